"""The commands ``masquerade export-faces`` and ``masquerade import-method``."""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from masquerade.cli.common import Root, Scale, read_options
from masquerade.core import files
from masquerade.core.errors import MasqueradeError, ParameterError
from masquerade.params import paths
from masquerade.params.paths import Paths

if TYPE_CHECKING:
    from masquerade.core.images import FaceArchive
    from masquerade.params.parameters import Parameters

Dataset = Annotated[
    str,
    typer.Option(
        "--dataset", help="The dataset whose test faces are used: the name of a block under `datasets:` in params.yaml."
    ),
]


def export_faces(
    output: Annotated[Path, typer.Argument(help="The folder into which the faces are written. It must be empty.")],
    dataset: Dataset,
    scale: Scale = None,
    root: Root = Path(),
) -> None:
    """Write the test faces of a dataset as PNG files for another program, which must keep the file names."""
    from masquerade.params import loading
    from masquerade.pipeline.imported import pictures
    from masquerade.pipeline.photographs import batches

    archive = _open_faces(loading.load(root, scale), root, dataset)
    batches.check_output(output, root / paths.DATA, overwrite=False)
    count = pictures.export(archive, output)
    typer.echo(f"{output}: {count} faces. Keep their names, and give the results to `masquerade import-method`.")


@dataclass(frozen=True)
class ImportOptions:
    """The options of `import_method`."""

    folder: Annotated[
        Path,
        typer.Argument(
            help="The folder with the images of the other program. Each image must have the name of its original.",
            exists=True,
            file_okay=False,
        ),
    ]
    name: Annotated[
        str, typer.Option(help="The key of the method in params.yaml and in all paths, such as `deepprivacy_official`.")
    ]
    dataset: Dataset
    variant: Annotated[str, typer.Option(help="A name for the settings with which the program ran.")] = "default"
    title: Annotated[
        str, typer.Option(help="The name of the method in tables, as its authors write it. Default: its key.")
    ] = ""
    source: Annotated[
        str,
        typer.Option(
            help="The paper, and the program with its version. It is required at the first import of a method."
        ),
    ] = ""
    partial: Annotated[
        bool, typer.Option("--partial", help="Allow missing images, whose faces then count as refused.")
    ] = False
    resize: Annotated[
        bool, typer.Option("--resize", help="Resize square images to the size of the scale, `image.size`.")
    ] = False
    suffix: Annotated[
        str,
        typer.Option(help="The ending that the program added to each file name after the id, such as `_anonymized`."),
    ] = ""
    near: Annotated[
        float,
        typer.Option(
            help="Refuse an image as unchanged if its mean absolute difference from the original is at most this "
            "many gray levels of 255."
        ),
    ] = 6.0
    scale: Scale = None
    root: Root = Path()


@read_options
def import_method(given: ImportOptions) -> None:
    """Import the images that another program made of a dataset's test faces. They are then measured like a method."""
    from masquerade.params import loading
    from masquerade.pipeline.imported import pictures, recognized, registry

    parameters = loading.load(given.root, given.scale)
    earlier = parameters.imported.get(given.name)
    if not (given.source or earlier):
        raise ParameterError("--source is missing: name the paper, and the program with its version.")
    title = given.title or (earlier.title if earlier else given.name)
    source = given.source or earlier.source
    originals = pictures.Originals(_open_faces(parameters, given.root, given.dataset))
    file = registry.place(parameters.scale, given.dataset, given.name, given.variant)
    with tempfile.TemporaryDirectory(prefix="masquerade-") as place:
        stored = Path(place, "pictures.zip")
        count = pictures.collect(given.folder, originals, stored, given.near, given.partial, given.resize, given.suffix)
        entry = {"sha256": pictures.sha256(stored), "originals": originals.digest, "near": given.near}
        block = {given.name: {"title": title, "source": source, "variants": {given.variant: {given.dataset: entry}}}}
        overlay = registry.register(given.root, parameters.scale, block)
        recognized_faces, compared = recognized.count(stored, originals)
        (given.root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(stored, given.root / file)
    typer.echo(f"{file}: {count} of {len(originals.rows)} faces, sha256:{entry['sha256']}")
    if recognized_faces > compared / 2:
        typer.echo(
            f"Warning: dlib still finds the right person for {recognized_faces} of {compared} faces. If the program "
            f"hides people, this is not what it wrote: look at the images in {given.folder}.",
            err=True,
        )
    typer.echo(f"{overlay}: imported.{given.name}.variants.{given.variant}.{given.dataset}")
    if (given.root / ".dvc").is_dir():
        add_to_dvc(given.root, file, pushed=given.dataset not in parameters.private)
    typer.echo("Next: `snakemake all`, `git add --all && git commit`, `dvc push`.")
    if given.dataset in parameters.private:
        typer.echo(f"`dvc push` leaves {file} out, as {given.dataset} is private: docs/sharing.md, share_originals.")


def _open_faces(parameters: "Parameters", root: Path, dataset: str) -> "FaceArchive":
    from masquerade.core.images import FaceArchive

    if dataset not in parameters.datasets:
        raise ParameterError(f"There is no dataset '{dataset}'. There are: {', '.join(parameters.datasets)}.")
    return FaceArchive(root / Paths(parameters.scale).faces.format(dataset=dataset))


def add_to_dvc(root: Path, file: Path, pushed: bool) -> None:
    """Add the file to DVC. ``pushed``: whether `dvc push` uploads it. Raises MasqueradeError when DVC fails."""
    from masquerade.params import overlays

    command = [sys.executable, "-m", "dvc", "add", "--quiet", str(file)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MasqueradeError(f"`dvc add {file}` failed: {done.stderr.strip()}")
    entry = (root / file).with_name(f"{file.name}.dvc")
    tree = overlays.read_yaml(entry)
    tree["outs"][0]["push"] = pushed
    files.write_text(entry, overlays.format_yaml(tree))

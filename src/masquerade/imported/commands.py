"""The command line: ``masquerade export-faces | import-method``."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from masquerade.errors import MasqueradeError, ParameterError

if TYPE_CHECKING:
    from masquerade.images import FaceArchive
    from masquerade.params import Parameters

Dataset = Annotated[str, typer.Option("--dataset", help="Whose test faces: a block of datasets: in params.yaml.")]
Scale = Annotated[str | None, typer.Option("--scale", help="Whose faces; default: `scale:` of params.yaml.")]
Root = Annotated[Path, typer.Option("--root", help="The repository: params.yaml, data/, imported/.")]


def export_faces(
    output: Annotated[Path, typer.Argument(help="The folder to write, which must be empty.")],
    dataset: Dataset,
    scale: Scale = None,
    root: Root = Path(),
) -> None:
    """Hand the test faces of a dataset to another program: one PNG a face, whose name is to stay."""
    from masquerade import params, photographs
    from masquerade.imported import pictures

    archive = _faces(params.load(root, scale), root, dataset)
    photographs.check_output(output, root / "data", overwrite=False)
    count = pictures.export(archive, output)
    typer.echo(f"{output}: {count} faces. Keep their names, and give the results to `masquerade import-method`.")


def import_method(
    folder: Annotated[
        Path, typer.Argument(help="The pictures, named as their originals.", exists=True, file_okay=False)
    ],
    name: Annotated[str, typer.Option(help="The name by which tables know the method, such as deepprivacy.")],
    dataset: Dataset,
    variant: Annotated[str, typer.Option(help="A name for these settings of the method.")] = "default",
    title: Annotated[str, typer.Option(help="The method, as its authors call it.")] = "",
    source: Annotated[str, typer.Option(help="The paper, and the program with its version.")] = "",
    partial: Annotated[bool, typer.Option("--partial", help="Faces without a picture are refusals.")] = False,
    resize: Annotated[bool, typer.Option("--resize", help="Bring square pictures of another size to ours.")] = False,
    near: Annotated[float, typer.Option(help="Grey levels, in the mean, that tell a picture from an original.")] = 6.0,
    scale: Scale = None,
    root: Root = Path(),
) -> None:
    """Take in the pictures that another program made of a dataset's test faces: a method like all others."""
    from masquerade import params
    from masquerade.imported import pictures, registry

    parameters = params.load(root, scale)
    known = parameters.imported.get(name)
    if not (source or known):
        raise ParameterError("--source is missing: which paper, and which program in which version, made the pictures?")
    title, source = title or (known.title if known else name), source or known.source
    originals = pictures.Originals(_faces(parameters, root, dataset))
    file = registry.place(parameters.scale, dataset, name, variant)
    with tempfile.TemporaryDirectory(prefix="masquerade-") as place:
        stored = Path(place, "pictures.zip")
        count = pictures.collect(folder, originals, stored, near, partial, resize)
        knobs = {"sha256": pictures.sha256(stored), "originals": originals.digest, "near": near}
        block = {name: {"title": title, "source": source, "variants": {variant: {dataset: knobs}}}}
        overlay = registry.register(root, parameters.scale, block)
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(stored, root / file)
    typer.echo(f"{file}: {count} of {len(originals.rows)} faces, sha256:{knobs['sha256']}")
    typer.echo(f"{overlay}: imported.{name}.variants.{variant}.{dataset}")
    if (root / ".dvc").is_dir():
        _add(root, file)
    typer.echo("Next: `make dvc.yaml`, `snakemake all`, `git add --all && git commit`, `dvc push`.")


def _faces(parameters: "Parameters", root: Path, dataset: str) -> "FaceArchive":
    from masquerade.images import FaceArchive

    if dataset not in parameters.datasets:
        raise ParameterError(f"There is no dataset '{dataset}'. There are: {', '.join(parameters.datasets)}.")
    return FaceArchive(root / "data" / parameters.scale / "faces" / f"{dataset}.zip")


def _add(root: Path, file: Path) -> None:
    """Put the file under DVC, so that `dvc push` carries it. Raises MasqueradeError."""
    command = [sys.executable, "-m", "dvc", "add", "--quiet", str(file)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MasqueradeError(f"`dvc add {file}` failed: {done.stderr.strip()}")

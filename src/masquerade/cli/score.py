"""The commands ``masquerade export-faces`` and ``masquerade score``."""

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from masquerade.cli import common
from masquerade.cli.common import Root, Scale, read_options
from masquerade.core import files, fingerprints
from masquerade.core.errors import MasqueradeError, ParameterError
from masquerade.params.paths import Paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from masquerade.core.images import FaceArchive
    from masquerade.papers.score_page import Standing
    from masquerade.params.blocks import ImportedImages
    from masquerade.params.parameters import Parameters
    from masquerade.pipeline.exchange import Results

Dataset = Annotated[
    str,
    typer.Option(
        "--dataset",
        help="The dataset: a key of `datasets:` in params.yaml. Default: the one that methods learn from, whose people "
        "also serve the attackers.",
    ),
]


def export_faces(
    to: Annotated[
        Path,
        typer.Option("--to", help="The folder into which the faces are written. It must be empty.", file_okay=False),
    ],
    dataset: Dataset = "",
    scale: Scale = None,
    root: Root = Path(),
) -> None:
    """Write the faces that another program is to anonymize, under neutral names, with their parts and instructions."""
    from masquerade.params import loading
    from masquerade.pipeline import exchange

    if to.is_dir() and any(to.iterdir()):
        raise ParameterError(f"{to} is not empty. Name another folder.")
    parameters = loading.load(root, scale)
    dataset = dataset or parameters.matrix.train_on
    archive = _open_faces(parameters, root, dataset)
    rows = exchange.select_exported(archive, parameters, dataset)
    exchange.export(archive, rows, to, parameters.scale, dataset)
    typer.echo(f"{to}: {len(rows)} faces. {exchange.README} there says what your program must do with them.")


@dataclass(frozen=True)
class ScoreOptions:
    """The options of `score`."""

    name: Annotated[str, typer.Argument(help="A name for your method in all paths: a-z, 0-9 and _.")]
    results: Annotated[
        Path | None,
        typer.Argument(
            help="The folder with the images of your program, under the names of the exported faces. It is left out "
            "with --call or --run.",
            exists=True,
            file_okay=False,
        ),
    ] = None
    call: Annotated[
        str,
        typer.Option(
            help="A Python function in place of the folder, `package.module:function`: it gets images, uint8 "
            "(N, height, width, 3), and a seed, another seed for each call, and returns as many images; None in place "
            "of one that it refuses."
        ),
    ] = ""
    run: Annotated[
        str,
        typer.Option(
            help="A command for each image in place of the folder, such as 'my_program {input} {output}'. Where it "
            "fails, it refuses the face."
        ),
    ] = ""
    dataset: Dataset = ""
    recovered: Annotated[
        Path | None,
        typer.Option(
            help="A folder with what your program recovered from its own images of the part `test`, under the same "
            "names.",
            exists=True,
            file_okay=False,
        ),
    ] = None
    title: Annotated[str, typer.Option(help="The name of the method in tables. Default: its name.")] = ""
    source: Annotated[str, typer.Option(help="The paper, and the program with its version.")] = ""
    partial: Annotated[
        bool, typer.Option("--partial", help="Allow missing images, whose faces then count as refused.")
    ] = False
    suffix: Annotated[
        str, typer.Option(help="What the program added to the name of each face, such as `_anonymized`.")
    ] = ""
    near: Annotated[
        float | None,
        typer.Option(
            help="Refuse an image as an unchanged original if their mean absolute difference is at most this many gray "
            "levels of 255. Default: that of the earlier score under this name, else 6.",
            min=0.0,
        ),
    ] = None
    seed: Annotated[
        int, typer.Option(help="The seed from which the seeds passed to the --call function are derived.")
    ] = 0
    replace: Annotated[bool, typer.Option("--replace", help="Replace the images that were scored under the name.")] = (
        False
    )
    cores: Annotated[str, typer.Option(help="The processors that the build may use, or `all`.")] = "all"
    profile: Annotated[str, typer.Option(help="A profile of Snakemake, such as `slurm`.")] = ""
    scale: Scale = None
    root: Root = Path()


@read_options
def score(given: ScoreOptions) -> None:
    """Score the images of another program: measure and attack them like every method, and rank them among all."""
    from masquerade.params import loading, matrix
    from masquerade.params.blocks import ImportedImages
    from masquerade.pipeline import exchange

    parameters = loading.load(given.root, given.scale)
    dataset = given.dataset or parameters.matrix.train_on
    earlier = matrix.list_imported(parameters).get(given.name) or ImportedImages(
        title=given.name, source="its paper and program were not stated", near=exchange.NEAR, images={}, recovers=False
    )
    _check_options(given, parameters, dataset, earlier)
    near = earlier.near if given.near is None else given.near
    archive = _open_faces(parameters, given.root, dataset)
    rows = exchange.select_exported(archive, parameters, dataset)
    file = exchange.find_images(parameters.scale, dataset, given.name)
    with tempfile.TemporaryDirectory(prefix="masquerade-") as place:
        results = _make_results(given, near, archive, rows, Path(place, "results"))
        count = exchange.collect(results, archive, rows, given.root / file, parameters.informed.held_out)
    overlay = exchange.register(given.root, parameters.scale, given.name, {
        "title": given.title or earlier.title,
        "source": given.source or earlier.source,
        "near": near,
        "recovers": given.recovered is not None,
        "images": {dataset: fingerprints.sha256(given.root / file)},
    })  # fmt: skip
    typer.echo(f"{file}: images of {count} of {len(rows)} faces. {overlay} names them.")
    try:
        _build(given, parameters.scale)
        _print_standing(given, parameters.scale)
    finally:  # DVC keeps the images also if the build failed
        if (given.root / ".dvc").is_dir():
            add_to_dvc(given.root, file, pushed=dataset not in parameters.private)


def _check_options(given: ScoreOptions, parameters: "Parameters", dataset: str, earlier: "ImportedImages") -> None:
    """Raises ParameterError for options or a scale that cannot be used, or if ``earlier``, what was scored under the
    same name, does not allow them.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", given.name):
        raise ParameterError(f"'{given.name}' is no name: use a-z, 0-9 and _, and begin with a letter.")
    if sum(map(bool, (given.results, given.call, given.run))) != 1:
        raise ParameterError("Give one of three: the folder with the images, --call, or --run.")
    if parameters.rehearsal:
        raise ParameterError(f"Scale {parameters.scale} is a rehearsal, which makes no numbers. Take another one.")
    if "attackers" not in parameters.papers:
        raise ParameterError(
            f"Scale {parameters.scale} has no leaderboard, because `papers` lacks attackers. Take another scale."
        )
    if dataset in earlier.images and not given.replace:
        raise ParameterError(
            f"Images of '{given.name}' were scored on {dataset} before. Give --replace to replace them, or another "
            "name."
        )
    if others := ", ".join(sorted(earlier.images.keys() - {dataset})):
        if given.near not in (None, earlier.near):
            raise ParameterError(
                f"'{given.name}' was scored on {others} with --near {earlier.near:g}, which holds for all datasets of "
                "a name. Give the same, or another name."
            )
        if earlier.recovers != (given.recovered is not None):
            raise ParameterError(
                f"'{given.name}' was scored on {others} {'with' if earlier.recovers else 'without'} --recovered, which "
                "holds for all datasets of a name. Do the same here, or give another name."
            )


def _make_results(
    given: ScoreOptions, near: float, archive: "FaceArchive", rows: "pd.DataFrame", folder: Path
) -> "Results":
    """The folder with the images: the one that was given, or a new one that the function or the command fills."""
    from masquerade.pipeline import exchange

    if given.call:
        exchange.run_function(given.call, given.seed, archive, rows, folder)
    elif given.run and (failures := exchange.run_command(given.run, archive, rows, folder)):
        typer.echo(f"{len(failures)} runs failed and count as refused; the first: {failures[0]}")
    partial = given.partial or not given.results
    return exchange.Results(given.results or folder, given.suffix, near, partial, given.recovered)


def _build(given: ScoreOptions, scale: str) -> None:
    """Run the pipeline up to the leaderboard and the page of the program. Raises MasqueradeError if it fails."""
    pages = [f"{Paths(scale).score}.md".format(variant=given.name), f"{Paths(scale).leaderboard}.md"]
    place = ["--profile", given.profile] if given.profile else ["--cores", given.cores]
    command = ["snakemake", *pages, *place, "--quiet", "rules", *_select_scale(given.root, scale)]
    if subprocess.run([sys.executable, "-m", *command], cwd=given.root, check=False).returncode:
        raise MasqueradeError(
            "The build failed; what it made is kept. Mend what the lines above say, and go on with "
            f"`{' '.join(command)}`."
        )


def _select_scale(root: Path, scale: str) -> list[str]:
    """The options by which Snakemake builds another scale than that of params.yaml."""
    from masquerade.params import blocks, overlays

    return [] if overlays.read_yaml(root / blocks.PARAMS)["scale"] == scale else ["--config", f"scale={scale}"]


def _print_standing(given: ScoreOptions, scale: str) -> None:
    """Print where the program stands in each column, what attackers identify, what is missing, and the pages."""
    from masquerade.papers import leaderboard, score_page

    folder = Paths(scale)
    records = files.parse_csv((given.root / f"{folder.leaderboard}.csv").read_text(encoding="utf-8"))
    lines = [score_page.explain_absence(records, given.name)]
    if standings := score_page.find_standings(records, given.name):
        common.print_table(_list_standings(standings, f"{given.name} at scale {scale}"))
        lines = [leaderboard.RANKS, score_page.describe_attackers(records, given.name)]
    lines += [f"Not measured: {line}" for line in score_page.explain_missing(records, given.name)]
    lines += [
        f"{given.root / folder.score}.md has the faces that it protects worst.".format(variant=given.name),
        f"{given.root / folder.leaderboard}.md has all methods.",
    ]
    typer.echo("\n".join(filter(None, lines)))


def _list_standings(standings: "Sequence[Standing]", title: str) -> Table:
    """One line for each column of the leaderboard. On a narrow terminal only the names of methods are broken."""
    from masquerade.papers import score_page

    whole = [Column(name, no_wrap=True) for name in ("column", "value", "rank")]
    table = Table(*whole, "best method", title=title, box=SIMPLE_HEAD, collapse_padding=True)
    for standing in standings:
        value = score_page.format_number(standing.own)
        common.add_row(table, standing.own["column"], value, standing.rank, standing.best["row"])
    return table


def _open_faces(parameters: "Parameters", root: Path, dataset: str) -> "FaceArchive":
    """The faces of a dataset. Raises ParameterError if they are not built."""
    from masquerade.core.images import FaceArchive

    if dataset not in parameters.datasets:
        raise ParameterError(f"There is no dataset '{dataset}'. There are: {', '.join(parameters.datasets)}.")
    file = Paths(parameters.scale).faces.format(dataset=dataset)
    if not (root / file).is_file():
        command = " ".join(["snakemake --cores all", file, *_select_scale(root, parameters.scale)])
        raise ParameterError(
            f"{root / file} is missing: the faces of {dataset} are not built. Run `{command}` first, or `dvc pull` for "
            "a finished build."
        )
    return FaceArchive(root / file)


def add_to_dvc(root: Path, file: Path, pushed: bool) -> None:
    """Add the file to DVC, or print why DVC failed. ``pushed``: whether `dvc push` uploads it."""
    from masquerade.params import overlays

    entry = (root / file).with_name(f"{file.name}.dvc")
    command = [sys.executable, "-m", "dvc", "add", "--quiet", str(file)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        private = "" if pushed else f" Then write `push: false` into {entry.name}: `dvc push` must not send them."
        advice = f"The score stands; `dvc add {file}` keeps its images.{private}"
        common.print_error(f"DVC failed: {done.stderr.strip()}\n{advice}", "yellow")
        return
    tree = overlays.read_yaml(entry)
    tree["outs"][0]["push"] = pushed
    files.write_text(entry, overlays.format_yaml(tree))

"""The command line: ``masquerade anonymize | recover | matrix | convert | doctor | params | lineage | assets | export |
export-faces | import-method``.

A mistake gets one paragraph on stderr and status 1 (``masquerade --debug ...`` shows where it came from). Keys come
from a file or a prompt, never from the command line, and go to no log and no report.
"""

import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from masquerade.assets.commands import app as assets_app
from masquerade.errors import MasqueradeError, ParameterError
from masquerade.imported import commands as imported
from masquerade.lineage.commands import app as lineage_app

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="Face anonymization, measured."
)
params_app = typer.Typer(no_args_is_help=True, help="Look at params.yaml, check it, and keep its schema.")
app.add_typer(params_app, name="params")
app.add_typer(lineage_app, name="lineage")
app.add_typer(assets_app, name="assets")
app.command("export-faces")(imported.export_faces)
app.command("import-method")(imported.import_method)


class Several(StrEnum):
    """What to do with a photograph of several people."""

    refuse = "refuse"
    largest = "largest"
    all = "all"


MethodName = Annotated[str, typer.Option("--method", help="An anonymizer: a block of methods: in params.yaml.")]
VariantName = Annotated[str | None, typer.Option("--variant", help="One of its variants; the first if not given.")]
Source = Annotated[Path, typer.Option("--input", help="The folder of pictures.", exists=True, file_okay=False)]
Output = Annotated[Path, typer.Option("--output", help="The folder for the results and report.csv.")]
Scale = Annotated[str | None, typer.Option("--scale", help="Whose checkpoints; default: `scale:` of params.yaml.")]
KeyFile = Annotated[Path | None, typer.Option("--key-file", help="Holds the key; asked for if not given.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Write into a folder that is not empty.")]
Root = Annotated[Path, typer.Option("--root", help="The repository: params.yaml, checkpoints/, data/.")]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The program. Ends the process with status 0, 1 (a mistake, or nothing could be done) or 2 (unknown option)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(given)
    except (MasqueradeError, OSError) as error:
        if "--debug" in given:
            raise
        Console(stderr=True, soft_wrap=True).print(Text(str(error), style="red"))
        sys.exit(1)
    sys.exit(0)


@app.callback()
def options(debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False) -> None:
    """Face anonymization, measured."""


@app.command()
def anonymize(
    method: MethodName,
    pictures: Source,
    output: Output,
    variant: VariantName = None,
    faces: Annotated[Several, typer.Option(help="What to do with a picture of several people.")] = Several.refuse,
    hide: Annotated[str | None, typer.Option(help="Keywords of what to hide, with commas: identity,age.")] = None,
    keep: Annotated[str | None, typer.Option(help="Keywords of what to keep, with commas; '' for nothing.")] = None,
    seed: Annotated[int | None, typer.Option(help="For experiments: makes the result predictable.")] = None,
    key_file: KeyFile = None,
    scale: Scale = None,
    overwrite: Overwrite = False,
    root: Root = Path(),
) -> None:
    """Cut the faces out of photographs and anonymize them: one PNG a face, and report.csv with every file."""
    from masquerade import anonymization, params, photographs
    from masquerade.images import FaceArchive

    parameters = params.load(root, scale)
    photographs.check_output(output, pictures, overwrite)
    chosen, variant = photographs.method(root, parameters, method, variant, seed is None, _listed(hide), _listed(keep))
    key = None
    if chosen.capabilities.keys:
        key = chosen.capabilities.keys.of(_secret(key_file, confirm=True))
    if parameters.caution:
        Console(stderr=True).print(Text(f"Scale {parameters.scale}: {parameters.caution.strip()}", style="yellow"))
    if seed is None:
        seed = secrets.randbits(63)
        Console(stderr=True).print("The randomness comes from the operating system and is not kept.", style="dim")
    folder = photographs.folder(parameters, pictures, faces=faces.value, alignment="ffhq")
    with tempfile.TemporaryDirectory(prefix="masquerade-") as place, Console(stderr=True).status("") as status:
        originals = photographs.build(folder, Path(place, "faces.zip"), parameters.image.size, _looking(status))
        anonymization.anonymize(
            originals, Path(place, "anonymized.zip"), chosen, variant, None, seed, photographs.BATCH, key,
            lambda done: status.update(f"Anonymizing: {done} of {len(originals.select())} faces"), for_release=True,
        )  # fmt: skip
        result = FaceArchive(Path(place, "anonymized.zip"))
        report = photographs.publish(result, output)
    _summarise(report, output, f"{chosen.title} ({method}/{variant})", result.facts["statement"], "anonymized")


@app.command()
def recover(
    method: MethodName,
    pictures: Source,
    output: Output,
    variant: VariantName = None,
    key_file: KeyFile = None,
    scale: Scale = None,
    overwrite: Overwrite = False,
    root: Root = Path(),
) -> None:
    """Bring faces back that an invertible method anonymized, from the pictures and the key alone."""
    from masquerade import anonymization, params, photographs
    from masquerade.images import FaceArchive

    parameters = params.load(root, scale)
    photographs.check_output(output, pictures, overwrite)
    chosen, variant = photographs.method(root, parameters, method, variant, strict=False)
    if not (chosen.capabilities.invertible and chosen.capabilities.keys):
        raise MasqueradeError(f"'{method}' has no key that brings a face back.")
    key = chosen.capabilities.keys.of(_secret(key_file, confirm=False))
    folder = photographs.folder(parameters, pictures, faces="refuse", alignment="none")
    with tempfile.TemporaryDirectory(prefix="masquerade-") as place, Console(stderr=True).status("") as status:
        anonymized = photographs.build(folder, Path(place, "anonymized.zip"), parameters.image.size, _looking(status))
        anonymization.recover(anonymized, Path(place, "recovered.zip"), chosen, key, photographs.BATCH)
        report = photographs.publish(FaceArchive(Path(place, "recovered.zip")), output)
    _summarise(report, output, f"{chosen.title} ({method}/{variant})", {}, "recovered")


@app.command()
def convert(
    pickled: Annotated[Path, typer.Argument(help="A generator's pickle, as NVlabs publish it.", exists=True)],
    output: Annotated[Path, typer.Argument(help="The weight file to write, for backbones.generator.published.")],
) -> None:
    """Read the tensors of an NVlabs pickle, without executing anything of it, and write them as a weight file."""
    from masquerade.backbones import _nvlabs

    count = _nvlabs.convert(pickled, output)
    typer.echo(f"{output}: {count} tensors. Name it in params.yaml as backbones.generator.published.")


@app.command()
def doctor(scale: Scale = None, root: Root = Path()) -> None:
    """Say what is there, what is missing, and what to do about it."""
    from masquerade import doctor as checks

    table = Table("", "what", "found", "what to do", title="masquerade doctor")
    found = checks.examine(root, scale)
    for check in found:
        table.add_row(*(Text(cell, style=check.style) for cell in (check.word, check.what, check.found, check.todo)))
    Console().print(table)
    if any(check.essential and not check.ok for check in found):
        raise typer.Exit(1)


@app.command()
def matrix(
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    scale: Scale = None,
    root: Root = Path(),
) -> None:
    """List every cell (dataset, method, variant, seed), and why those that are skipped are skipped."""
    import json

    from masquerade import matrix as planned
    from masquerade import params

    cells = planned.cells(params.load(root, scale))
    if as_json:
        typer.echo(json.dumps([vars(cell) for cell in cells]))
        return
    table = Table("dataset", "method", "variant", "seed", "runs", title=f"{len(cells)} cells")
    for cell in cells:
        table.add_row(cell.dataset, cell.method, cell.variant, str(cell.seed), cell.reason or "yes")
    Console().print(table)


@app.command()
def export(
    crate: Annotated[Path, typer.Argument(help="The .zip to write.")],
    with_data: Annotated[
        bool, typer.Option("--with-data", help="Also the files of data/ and checkpoints/: every face of the run.")
    ] = False,
    scale: Scale = None,
    root: Root = Path(),
) -> None:
    """Export a run as a Workflow Run RO-Crate: its jobs, code, parameters, results, and the licence of everything."""
    from masquerade.lineage import crate as crates

    jobs = crates.export(crate, root, scale, with_data)
    typer.echo(f"{crate}: {jobs} jobs. Its figures show faces, originals among them: look before you publish it.")


@params_app.command("show")
def params_show(scale: Scale = None, root: Root = Path()) -> None:
    """Print the parameters of a scale, overlay included, as YAML."""
    import yaml

    from masquerade import params

    typer.echo(yaml.safe_dump(params.load(root, scale).tree, sort_keys=False, allow_unicode=True), nl=False)


@params_app.command("check")
def params_check(root: Root = Path()) -> None:
    """Check params.yaml with the overlay of every scale."""
    from masquerade import matrix, params

    for scale in params.scales(root):
        parameters = params.load(root, scale)
        typer.echo(f"{scale}: valid, {len(matrix.cells(parameters))} cells")


@params_app.command("schema")
def params_schema(
    fix: Annotated[bool, typer.Option("--fix", help="Write the schema anew.")] = False, root: Root = Path()
) -> None:
    """Check that the committed JSON schema is that of the code."""
    from masquerade import params

    file, text = root / params.SCHEMA, params.schema_text()
    if fix:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    elif not file.is_file() or file.read_text(encoding="utf-8") != text:
        raise ParameterError(f"{file} is not the schema of the code. Run `masquerade params schema --fix`.")
    typer.echo(f"{file}: {'written' if fix else 'up to date'}")


@params_app.command("template")
def params_template(method: Annotated[str, typer.Argument(help="A module of methods/.")]) -> None:
    """Print the block of params.yaml for a new method, each knob with its description."""
    from masquerade import params

    typer.echo(params.template(method), nl=False)


def _listed(words: str | None) -> list[str] | None:
    """The words between commas; None where none were asked for, [] where nothing stands there."""
    return None if words is None else [word.strip() for word in words.split(",") if word.strip()]


def _secret(key_file: Path | None, confirm: bool) -> bytes:
    """The secret of the user: the content of a file, without its last line break, or what is typed unseen."""
    if key_file is None:
        return typer.prompt("Key", hide_input=True, confirmation_prompt=confirm).encode()
    return key_file.read_bytes().rstrip(b"\r\n")


def _looking(status: Status) -> Callable[[int], None]:
    """Shows how many files were read; not their names, which could hold escape codes of the terminal."""
    return lambda done: status.update(f"Looking for faces: {done} files")


def _summarise(report: list[dict[str, str]], output: Path, title: str, statement: dict, done: str) -> None:
    """Print how many faces were done and why others were not. Raises MasqueradeError where none was."""
    from masquerade import photographs

    counts = Counter(row["reason"] for row in report)
    table = Table("faces", "outcome", title=title)
    succeeded = counts.pop("", 0)
    table.add_row(str(succeeded), Text(f"{done}, in {output}", style="green"))
    for reason, count in counts.most_common():
        table.add_row(str(count), Text(f"refused: {reason}", style="yellow"))
    for fact, value in statement.items():
        table.add_row("", Text(f"{fact}: {value}", style="dim"))
    Console().print(table)
    if not succeeded:
        raise MasqueradeError(f"No face could be {done}; the reasons are in {output / photographs.REPORT}.")

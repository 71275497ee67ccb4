"""The command line: ``masquerade lineage show | diff | verify``."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

app = typer.Typer(no_args_is_help=True, help="Where a number comes from, why it changed, and whether it is intact.")

Address = Annotated[
    str,
    typer.Argument(
        help="PAPER/ITEM, PAPER/ITEM:METHOD[/VARIANT][:COLUMN[:DATASET]], claims:PAPER:CLAIM, or a file of a build."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="For machines.")]
Scale = Annotated[str | None, typer.Option("--scale", help="Whose numbers; default: `scale:` of params.yaml.")]
Root = Annotated[Path, typer.Option("--root", help="The repository.")]


@app.command()
def show(
    address: Address,
    graph: Annotated[Path | None, typer.Option("--graph", help="Draw the chain: a .svg, .png or .pdf.")] = None,
    as_json: Json = False,
    full: Annotated[bool, typer.Option("--full", help="Every parameter to its end.")] = False,
    scale: Scale = None,
    root: Root = Path(),
) -> None:
    """Print the chain of a number: table, metrics, measurements, anonymized faces, checkpoint, training, raw data."""
    from masquerade import publishing
    from masquerade.lineage import chain, drawing, telling
    from masquerade.lineage.address import resolve
    from masquerade.lineage.history import History

    scale = scale or _scale(root)
    history = History(root)
    asked = resolve(address, scale, history.outputs(), history.read)
    links = chain.follow(history, scale, asked)
    if graph is not None:
        drawing.draw(asked, links, graph)
    runs = publishing.find(link.job.told["run"] for link in links if link.job and link.job.told)
    if as_json:
        typer.echo(json.dumps(chain.tree(asked, scale, links, runs), indent=1, ensure_ascii=False))
    else:
        _print(telling.chain(asked, scale, links, runs, full))


@app.command()
def diff(
    old: Annotated[str, typer.Argument(help="A commit, branch or tag.")],
    new: Annotated[str, typer.Argument(help="Another one; the working copy if not given.")] = "",
    cell: Annotated[str, typer.Option("--cell", help="What to compare: an address, as for `lineage show`.")] = "",
    as_json: Json = False,
    root: Root = Path(),
) -> None:
    """Say why a number changed between two commits: which parameter, code, data or environment."""
    from dataclasses import asdict

    from masquerade.lineage import difference, telling
    from masquerade.lineage.history import LineageError
    from masquerade.lineage.revision import Revision

    if not cell:
        raise LineageError("Which number? `--cell PAPER/ITEM:METHOD[/VARIANT][:COLUMN[:DATASET]]`, as `lineage show`.")
    found = difference.compare(Revision(old, root), Revision(new, root), cell)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=1, ensure_ascii=False))
    else:
        _print(telling.difference(found))


@app.command()
def verify(
    every: Annotated[bool, typer.Option("--all", help="Every broken link, not the first alone.")] = False,
    as_json: Json = False,
    root: Root = Path(),
) -> None:
    """Compute every hash again and report the first broken link; status 1 where there is one."""
    from dataclasses import asdict

    from masquerade.lineage import telling
    from masquerade.lineage import verify as checking

    verdict = checking.verify(root)
    if as_json:
        typer.echo(json.dumps(asdict(verdict), indent=1, ensure_ascii=False))
    else:
        _print(telling.verdict(verdict, every))
    if verdict.breaks:
        raise typer.Exit(1)


def _scale(root: Path) -> str:
    from masquerade import params

    return params.read(root / params.PARAMS)["scale"]


def _print(lines: Iterable[Text]) -> None:
    console = Console(soft_wrap=True)
    for line in lines:
        console.print(line)

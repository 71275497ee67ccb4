"""What several commands share: common options, options as a dataclass, tables, errors, and the end by a signal.

Tables hold text from outside: each cell is printed as it is given, and in a pipe or a log nothing is wrapped or cut.
"""

import inspect
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text


def _require_clone(given: Path) -> Path:
    from masquerade.params import repository

    return repository.require_clone(given)


Root = Annotated[
    Path,
    typer.Option("--root", callback=_require_clone, help="The clone of the repository. Default: the current folder."),
]
AnyRoot = Annotated[
    Path,
    typer.Option(
        "--root",
        help="A clone of the repository. Default: the current folder if it is one, otherwise the installed package.",
    ),
]
Scale = Annotated[str | None, typer.Option("--scale", help="The scale. Default: the value of `scale:` in params.yaml.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def read_options(command: Callable[[Any], None]) -> Callable[..., None]:
    """The command as typer calls it: with one option for each field of the dataclass that ``command`` takes.

    A field has the type, the default and the `typer.Option` of its option, as a parameter of a plain command has.
    """
    name = next(iter(inspect.signature(command).parameters))
    options = get_type_hints(command)[name]

    def run(**values: Any) -> None:
        command(options(**values))

    run.__doc__, run.__name__ = command.__doc__, command.__name__
    run.__signature__ = inspect.signature(options).replace(return_annotation=None)  # pyright: ignore[reportFunctionMemberAccess]
    run.__annotations__ = get_type_hints(options, include_extras=True)
    return run


def print_error(text: object, style: str = "red") -> None:
    """Print a text on stderr, where words of a file are no markup and no line is wrapped."""
    Console(stderr=True, soft_wrap=True).print(Text(str(text), style=style))


WIDEST = 100_000
"""The most columns of text of a table that goes into a pipe or a log."""


def add_row(table: Table, *cells: str | Text, style: str = "", end_section: bool = False) -> None:
    """Add a row. Cells are printed as they are: `[words]` in them are no markup. ``style``: of cells that are str."""
    texts = (cell if isinstance(cell, Text) else Text(cell, style=style) for cell in cells)
    table.add_row(*texts, end_section=end_section)


def print_table(table: Table) -> None:
    """Print a table: as wide as the terminal, elsewhere as wide as its rows, so that paths and commands stay whole."""
    console = Console()
    if not console.is_terminal:
        needed = Measurement.get(console, console.options.update(max_width=WIDEST), table).maximum
        console = Console(width=max(console.width, needed))
        table.title_justify = "left"
    console.print(table)


SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGXCPU", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF"]
"""Signals that end a program by default, and that a person, a scheduler or a system sends for that purpose."""


@contextmanager
def end_orderly() -> Iterator[None]:
    """Within the block, a signal of `SIGNALS` raises SystemExit(128 + its number). One that is ignored stays so."""
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    ours = [number for number in numbers if before[number] in (signal.SIG_DFL, signal.default_int_handler)]

    def end(number: int, frame: FrameType | None) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_IGN)  # a second signal does not interrupt the deletion
        sys.exit(128 + number)

    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])

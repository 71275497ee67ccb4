"""What several commands share: the option ``--root`` and those about keys, tables in a terminal, the end by a signal.

Tables hold text from outside: each cell is printed as it is given, and in a pipe or a log nothing is wrapped or cut.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text


def _require_clone(given: Path) -> Path:
    from masquerade.params import repository

    return repository.require_clone(given)


Root = Annotated[Path, typer.Option("--root", callback=_require_clone, help="The clone. Default: the current folder.")]

KeyFile = Annotated[Path | None, typer.Option("--key-file", help="The file with the key. Default: a prompt.")]
Salt = Annotated[
    bool | None,
    typer.Option(help="A salt for each face, so that faces under one key cannot be linked. Default: on."),
]
KeyCheck = Annotated[
    bool | None,
    typer.Option(help="A check of the key beside each salt, so that recover tells a wrong key. Default: on."),
]
NoSalt = Annotated[
    bool, typer.Option("--no-salt", help="Pictures whose salt is not known were anonymized without one.")
]


def read_key(key_file: Path | None, confirm: bool) -> bytes:
    """The key of the user: the content of a file, or hidden input from a prompt."""
    if key_file is None:
        return typer.prompt("Key", hide_input=True, confirmation_prompt=confirm).encode(errors="surrogateescape")
    return key_file.read_bytes()


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

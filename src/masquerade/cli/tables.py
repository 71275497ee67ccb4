"""Prints tables of text from outside: each cell as it is given, and in a pipe or a log nothing wrapped or cut."""

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

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

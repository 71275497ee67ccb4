"""The share of a GPU's peak that steps reached. ``benchmarks/gpu.sh`` measures it, and writes it into a page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

PAGE = Path("benchmarks/gpu.md")
STEP, WHAT, SHARE = "step", "what", "share of the peak"
"""The columns of the page's table that are read: the two names of a step of the plan, and its share, 0 .. 1."""


@dataclass(frozen=True)
class Measured:
    """What was measured on ``card``: ``shares`` of its peak in TF32, of steps by their two names in the plan."""

    card: str
    shares: Mapping[tuple[str, str], float]

    @property
    def usual(self) -> float:
        """The median of all shares, for a step that was not measured."""
        return median(self.shares.values())


def read(root: Path) -> Measured | None:
    """What the page of the repository ``root`` holds; None if there is no page, or no share on it."""
    page = root / PAGE
    if not page.is_file():
        return None
    lines = page.read_text(encoding="utf-8").splitlines()
    shares = {(row[STEP], row[WHAT]): float(row[SHARE]) for row in _rows(lines) if row.get(SHARE)}
    title = next((line.removeprefix("# ") for line in lines if line.startswith("# ")), "a GPU")
    return Measured(title, shares) if shares else None


def _rows(lines: list[str]) -> Iterator[dict[str, str]]:
    """The rows of all tables of a page in Markdown: the title of each column -> the cell."""
    titles: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not (cells and titles):
            titles = cells
        elif set("".join(cells)) - set("-:"):
            yield dict(zip(titles, cells, strict=False))

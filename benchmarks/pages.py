"""Tables in Markdown, the pages of this folder, and the shortest of several times."""

import platform
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[1]
MACHINE = f"{platform.machine()}, Python {platform.python_version()}"
Result = TypeVar("Result")


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table whose numbers are aligned to the right."""
    titles = list(head)
    lines = [titles, ["---", *["---:"] * (len(titles) - 1)], *(map(str, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write(name: str, *parts: str) -> None:
    """Print ``parts`` (title, sentences, tables), and write them into the page ``name`` of this folder."""
    text = "\n\n".join(parts) + "\n"
    (ROOT / "benchmarks" / f"{name}.md").write_text(text, encoding="utf-8")
    print(text, flush=True)


def best(
    act: Callable[[], Result], rounds: int = 3, clock: Callable[[], float] = time.perf_counter
) -> tuple[Result, float]:
    """(the result of the fastest call, its seconds). Other processes can only slow a call down."""

    def timed() -> tuple[Result, float]:
        start = clock()
        result = act()
        return result, clock() - start

    return min((timed() for _ in range(rounds)), key=lambda call: call[1])

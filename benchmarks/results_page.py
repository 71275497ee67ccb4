"""Writes the tables of results in docs/ and README.md, and the images beside them.

`python benchmarks/results_page.py` after `make reproduce` takes the numbers of the build into measured.json, and then
writes the pages. Without a build `make generated` writes them from measured.json, and a test compares. A table follows
the line `<!-- results: NAME -->` (of another scale: `<!-- results: NAME at SCALE -->`) and ends at an empty line; the
prose around it is written by hand. What a scale without a build has in measured.json stays.
"""

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image
from results_tables import TABLES, Table

ROOT = Path(__file__).parents[1]
MEASURED = "benchmarks/measured.json"
"""Scale -> `standings` and `values`, as they are computed below."""
MARK = "<!-- results:"
"""What the line above a table begins with."""
PICTURES = {
    "overview.jpg": "attackers/overview",
    "figure7.jpg": "identitydp/figure7",
    "identitydp.jpg": "identitydp/figure7 at photo",
    "falco.jpg": "falco/figure3 at photo",
    "falco_mini.jpg": "falco/figure3",
    "ifadit.jpg": "ifadit/figure3 at photo",
    "lreorg.jpg": "lreorg/figure9 at photo",
    "gallery_ifadit.jpg": "ifadit/figure3",
    "gallery_lreorg.jpg": "lreorg/figure9",
    "gallery_fit.jpg": "cao21/figure9",
}
"""Name in docs/ -> paper and figure, and the scale if it is another one than that of the build."""
WIDTHS, LARGEST = (1500, 1300, 1100), 199_000
"""Widths of an image in pixels, the first one that fits is taken; and the largest size in bytes."""
DATASET = "synthetic_hq"
DIGITS = {"psnr": 1, "frechet_distance": 0}
"""Decimals of a metric; 2 of any other."""
NONE = "–"
FACES = "identity_distance/recognizer_a"
"""The value whose number of faces stands in the head of a table."""

SCALES = ("mini", "evening")
"""The scales of the table of claims and pairs."""
CLAIMS = r"^\| `\w+` +\| +(\d+) \| +(\d+) \| +(\d+) \| +(\d+) \| +(\d+) \|$"
"""A paper's line on the page of claims."""
PAIRS = (
    r"Of (\d+) pairs of rows that the paper orders, (\d+) have the same order here, (\d+) the opposite one, and (\d+)"
)
"""The sentence under a table."""
STANDING = (
    "claims",
    "repeat another",
    "hold",
    "do not hold",
    "inconclusive",
    "pairs of rows",
    "as in the paper",
    "opposite",
    "undecided",
)

Value = Sequence[Any]
"""The text of a value, and the number of faces that it is over."""
Values = dict[str, dict[str, Value]]
"""method/variant -> path -> value. A path is [attempt:]metric/part."""


def pages(root: Path) -> list[str]:
    """README.md and the pages of docs/ that hold a table of results."""
    files = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return [str(file.relative_to(root)) for file in files if MARK in file.read_text(encoding="utf-8")]


def measured(results: Path) -> Values:
    """Every value of a build that stands in some table. What was not measured is missing."""
    paths = {
        (name, path) for one in TABLES.values() for name in one.rows.values() for path in sum(one.columns.values(), ())
    }
    values: Values = {}
    for name, path in sorted(paths):
        file = results / "metrics" / DATASET / name / "0.json"
        if file.is_file() and (found := value(json.loads(file.read_text(encoding="utf-8")), path)):
            values.setdefault(name, {})[path] = found
    return values


def value(cell: dict[str, Any], path: str) -> Value | None:
    attempt, _, rest = path.rpartition(":")
    metric, part = rest.split("/")
    metrics = cell.get("attempts", {}).get(attempt, {}) if attempt else cell["metrics"]
    found = metrics.get(metric, {}).get(part)
    if found is None or found["value"] is None:
        return None
    text, *ends = (
        number(found[key], DIGITS.get(metric, 2)) for key in ("value", "low", "high") if found[key] is not None
    )
    return f"{text} [{', '.join(ends)}]" if ends else text, found["over"]


def number(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text.replace("-", "−")


def table(values: Values, asked: Table) -> list[str]:
    """The lines of a table. A row without any value, of a method to which this was not done, is left out."""
    rows = {label: values[name] for label, name in asked.rows.items() if name in values}
    faces = next((row[FACES][1] for row in rows.values() if FACES in row), None)
    head, lines = [asked.heading.format(faces=faces)], [[label] for label in rows]
    for label, paths in asked.columns.items():
        counts = {row[path][1] for row in rows.values() for path in paths if path in row} - {None, faces}
        head.append(f"{label} (of {', '.join(map(str, sorted(counts)))})" if counts else label)
        for line, row in zip(lines, rows.values(), strict=True):
            line.append(" / ".join(row[path][0] for path in paths if path in row) or NONE)
    cells = [head, *(line for line in lines if set(line[1:]) != {NONE})]
    if asked.turned:
        cells = [list(line) for line in zip(*cells, strict=True)]
    texts = [f"| {' | '.join(line)} |" for line in cells]
    return [texts[0], "|---|" + "---:|" * (len(cells[0]) - 1), *texts[1:]]


def counted(results: Path) -> list[int]:
    """How many claims and pairs of rows of a build stand as in the papers, in the order of STANDING."""
    tables = results / "tables"
    return [*totals(CLAIMS, [tables / "claims.md"]), *totals(PAIRS, sorted(tables.glob("*/*.md")))]


def totals(pattern: str, pages: Iterable[Path]) -> list[int]:
    """The sum of each number of ``pattern`` over all its matches in some pages. Raises ValueError without a match."""
    found = [match for page in pages for match in re.findall(pattern, page.read_text(), re.MULTILINE)]
    if not found:
        raise ValueError(f"No page of the build has a line like {pattern}. Build all tables, or change the pattern.")
    return [sum(map(int, column)) for column in zip(*found, strict=True)]


def standings(record: dict[str, Any]) -> list[str]:
    lines = [f"| scale | {' | '.join(STANDING)} |", "|---|" + "---:|" * len(STANDING)]
    return lines + [f"| `{scale}` | {' | '.join(map(str, record[scale]['standings']))} |" for scale in SCALES]


def written(root: Path, page: str) -> str:
    """The text of a page with the tables of measured.json in their places."""
    record = json.loads((root / MEASURED).read_text(encoding="utf-8"))

    def replaced(match: re.Match[str]) -> str:
        line, name, scale = match.groups()
        lines = standings(record) if name == "standings" else table(record[scale or "mini"]["values"], TABLES[name])
        return "\n".join((line, *lines, ""))

    text = (root / page).read_text(encoding="utf-8")
    return re.sub(r"(<!-- results: (\w+)(?: at (\w+))? -->)\n(?:\|.*\n)*", replaced, text)


def record(results: Path) -> None:
    """Take the numbers of a build, and of other scales beside it, into measured.json."""
    file = ROOT / MEASURED
    scales = json.loads(file.read_text(encoding="utf-8"))
    for scale in SCALES:
        folder = results.parent / scale
        if (folder / "metrics").is_dir():
            scales[scale] = {"standings": counted(folder), "values": measured(folder)}
    lines = json.dumps(scales, ensure_ascii=False, indent=1)
    file.write_text(re.sub(r"\[\n +(.+),\n +(\w+)\n +\]", r"[\1, \2]", lines) + "\n", encoding="utf-8")


def picture(source: Path, target: Path) -> None:
    """Save a figure as JPEG, as good as WIDTHS and LARGEST allow."""
    with Image.open(source) as opened:
        image = Image.new("RGB", opened.size, "white")
        image.paste(opened, mask=opened.getchannel("A") if opened.mode == "RGBA" else None)
    for width in WIDTHS:
        image.thumbnail((width, width), Image.Resampling.LANCZOS)
        for quality in range(92, 64, -2):
            image.save(target, quality=quality, optimize=True)
            if target.stat().st_size <= LARGEST:
                return


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "results/mini")
    given = parser.parse_args(arguments)
    record(given.results)
    for page in pages(ROOT):
        (ROOT / page).write_text(written(ROOT, page), encoding="utf-8")
    for target, source in PICTURES.items():
        name, _, scale = source.partition(" at ")
        folder = given.results.parent / scale if scale else given.results
        if not scale or (folder / "figures" / f"{name}.png").is_file():
            picture(folder / "figures" / f"{name}.png", ROOT / "docs" / target)


if __name__ == "__main__":
    main()

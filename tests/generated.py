"""Files that follow from others, as text: `make generated` writes them, and tests compare."""

import functools
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "docs")]

import recognized_figure  # noqa: E402
import reference_pages  # noqa: E402
import results_page  # noqa: E402


def conda(root: Path) -> str:
    """environment.yml: its head, the packages of both locks, and Masquerade itself."""
    head, _, _ = (root / "environment.yml").read_text(encoding="utf-8").partition("  - pip:\n")
    locks = [(root / name).read_text(encoding="utf-8") for name in ("requirements.lock", "requirements-cuda.lock")]
    packages, cuda = ([line for line in text.splitlines() if "==" in line] for text in locks)
    lines = [*packages, "# what the CUDA build of torch needs", *cuda, "# Masquerade, from this folder", "--editable ."]
    return f"{head}  - pip:\n" + "".join(f"      {'' if line[0] == '#' else '- '}{line}\n" for line in lines)


def citation(root: Path) -> str:
    """CITATION.cff, with the version of pyproject.toml."""
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    text = (root / "CITATION.cff").read_text(encoding="utf-8")
    return re.sub(r"^version: .*$", f"version: {version}", text, flags=re.MULTILINE)


FILES = {
    "environment.yml": conda,
    "CITATION.cff": citation,
    "docs/recognized.svg": recognized_figure.draw,
    **{page: functools.partial(results_page.written, page=page) for page in results_page.pages(ROOT)},
    **{page: functools.partial(reference_pages.write, page=page) for page in reference_pages.PAGES},
}
"""File -> the function of the repository that gives its text."""


def main() -> None:
    for name, text in FILES.items():
        (ROOT / name).write_text(text(ROOT), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Writes what was imported into the overlay of its scale, and leaves all else in that file as it is."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from masquerade import params
from masquerade.errors import ParameterError

_BLOCK = re.compile(r"^imported:.*\n(?:[ \t].*\n|\n(?=[ \t]))*", re.MULTILINE)


def place(scale: str, dataset: str, method: str, variant: str) -> Path:
    """Where the pictures of an imported cell lie in the repository."""
    return Path("imported", scale, dataset, method, f"{variant}.zip")


def register(root: Path, scale: str, block: Mapping[str, Any]) -> Path:
    """Lay ``block`` ({method: {title, source, variants}}) over `imported` in the overlay of ``scale``, and return its
    file.

    Raises ParameterError, and leaves the file as it was, where the parameters would no longer be valid.
    """
    file = root / params.SCALES / f"{scale}.yaml"
    before, text = params.read(file), file.read_text(encoding="utf-8")
    merged = {"imported": params.overlay(before.get("imported") or {}, block)}
    written = yaml.safe_dump(merged, sort_keys=False, allow_unicode=True, width=1000)
    if _BLOCK.search(text + "\n"):
        changed = _BLOCK.sub(lambda _: written, text if text.endswith("\n") else f"{text}\n", count=1)
    else:
        changed = f"{text.rstrip()}\n{written}"
    try:
        intact = params.parse(changed, file) == {**before, **merged}
    except ParameterError:
        intact = False
    if not intact:
        raise ParameterError(f"{file} has a form that cannot be edited here. Write into it yourself:\n{written}")
    file.write_text(changed, encoding="utf-8")
    try:
        params.load(root, scale)
    except ParameterError:
        file.write_text(text, encoding="utf-8")
        raise
    return file

"""Writes the block of an imported method into the overlay of its scale, and changes nothing else in that file."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from masquerade.core.errors import ParameterError
from masquerade.params import blocks, loading, overlays
from masquerade.params.paths import Paths

_BLOCK = re.compile(r"^imported:.*\n(?:[ \t].*\n|\n(?=[ \t]))*", re.MULTILINE)


def place(scale: str, dataset: str, method: str, variant: str) -> Path:
    """The path of the images of an imported cell in the repository."""
    return Path(Paths(scale).imported.format(dataset=dataset, method=method, variant=variant))


def register(root: Path, scale: str, block: Mapping[str, Any]) -> Path:
    """Merge ``block`` ({method: {title, source, variants}}) into `imported` of the overlay of ``scale``.

    Returns the file of the overlay. Raises ParameterError, and leaves the file as it was, if the parameters would not
    be valid.
    """
    file = root / blocks.SCALES / f"{scale}.yaml"
    before, text = overlays.read_yaml(file), file.read_text(encoding="utf-8")
    merged = {"imported": overlays.overlay(before.get("imported") or {}, block)}
    written = overlays.format_yaml(merged)
    if _BLOCK.search(text + "\n"):
        changed = _BLOCK.sub(lambda _: written, text if text.endswith("\n") else f"{text}\n", count=1)
    else:
        changed = f"{text.rstrip()}\n{written}"
    try:
        intact = overlays.parse_yaml(changed, file) == {**before, **merged}
    except ParameterError:
        intact = False
    if not intact:
        raise ParameterError(f"{file} has a form that this command cannot edit. Write into it yourself:\n{written}")
    file.write_text(changed, encoding="utf-8")
    try:
        loading.load(root, scale)
    except ParameterError:
        file.write_text(text, encoding="utf-8")
        raise
    return file

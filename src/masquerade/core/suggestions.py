"""Suggests a known name in place of a mistyped one."""

from collections.abc import Iterable
from difflib import get_close_matches

SIMILARITY = 0.5
"""How similar a known name must be to be suggested, from 0 to 1 (`difflib.get_close_matches`)."""


def nearest(name: str, known: Iterable[str]) -> str:
    """``Did you mean 'x'? Known: x, y.`` The first sentence is left out if no known name is similar."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=SIMILARITY)
    return (f"Did you mean '{close[0]}'? " if close else "") + f"Known: {', '.join(names) or 'none'}."

"""The table of guessed keys, which no paper prints: how often a random key recovers the identity."""

from collections.abc import Iterable, Mapping
from typing import Any

from masquerade.papers import layout

HEAD = [
    "Method", "Faces", "Keys", "Tried on each picture", "Accepted", "Pictures opened", "Right key", "Unopened", "FAR"
]  # fmt: skip


def markdown(guesses: Iterable[Mapping[str, Any]], params: Mapping[str, Any], commit: str) -> str:
    """One line for each cell (dataset, method, variant, seed). ``params`` has the ``scale`` and its ``caution``."""
    guesses = list(guesses)
    judges = ", ".join(sorted({f"`{guess['guessing']['judge']}`" for guess in guesses}))
    parts = [
        "# Guessed keys",
        f"> Scale `{params['scale']}`. {params['caution']}".rstrip(),
        layout.grid(HEAD, [_row(guess["cell"], guess["guessing"]) for guess in guesses], right_from=2),
        f"Random keys are tried on the anonymized picture alone. **Accepted**: share of (picture, key) pairs that "
        f"{judges}, which no training has seen, takes for the person; a method that shows any other person instead "
        "would come out at the false-accept rate (**FAR**) of the threshold. **Pictures opened**: by at least one of "
        "the tried keys. **Right key**: pictures in which the person is found with the right key. **Unopened**: in "
        "which the person is found without any. **Keys**: how many there are.",
        f"Code: commit {commit}.",
    ]
    return "\n\n".join(parts) + "\n"


def _row(cell: Mapping[str, Any], counts: Mapping[str, Any]) -> list[str]:
    name = f"`{cell['method']}/{cell['variant']}`" + (f" seed {cell['seed']}" if cell["seed"] else "")
    start = [name, f"`{cell['dataset']}`", _keys(counts["keys"])]
    if counts["threshold"] is None:
        return [*start, "too few strangers for a threshold", *[""] * 5]
    pictures = counts["pictures"]
    return [
        *start,
        str(counts["guesses"]),
        f"{counts['accepted'] / counts['tried']:.4f} ({counts['accepted']} of {counts['tried']})",
        f"{counts['opened']} of {pictures}",
        f"{counts['accepted_right']} of {pictures}",
        f"{counts['accepted_unopened']} of {pictures}",
        f"{counts['far']:g}",
    ]


def _keys(count: int | None) -> str:
    return f"{count:,}" if count else "2^256"

"""The table of guessed keys, which no paper prints: how often a random key brings the identity back."""

from collections.abc import Iterable, Mapping
from typing import Any

from masquerade.papers import layout

HEAD = [
    "Method", "Faces", "Keys", "Tried on each picture", "Accepted", "Pictures opened", "Right key", "Unopened", "FAR"
]  # fmt: skip


def markdown(found: Iterable[Mapping[str, Any]], scale: str, caution: str, commit: str) -> str:
    """One line a cell (dataset, method, variant, seed)."""
    found = list(found)
    judges = ", ".join(sorted({f"`{row['guessing']['judge']}`" for row in found}))
    parts = [
        "# Guessed keys",
        f"> Scale `{scale}`. {caution}".rstrip(),
        layout.grid(HEAD, [_row(of["cell"], of["guessing"]) for of in found], right_from=2),
        f"Random keys are tried on the anonymized picture alone. **Accepted**: share of (picture, key) pairs that "
        f"{judges}, which no training has seen, takes for the person; a method that shows any other person instead "
        "would come out at the false-accept rate (**FAR**) of the threshold. **Pictures opened**: by at least one of "
        "the tried keys. **Right key**: pictures in which the person is found with the right key. **Unopened**: in "
        "which the person is found without any. **Keys**: how many there are.",
        f"Code: commit {commit}.",
    ]
    return "\n\n".join(parts) + "\n"


def _row(cell: Mapping[str, Any], of: Mapping[str, Any]) -> list[str]:
    name = f"`{cell['method']}/{cell['variant']}`" + (f" seed {cell['seed']}" if cell["seed"] else "")
    pictures = of["pictures"]
    if of["threshold"] is None:
        return [name, f"`{cell['dataset']}`", _keys(of["keys"]), *["too few strangers for a threshold"], *[""] * 5]
    return [
        name,
        f"`{cell['dataset']}`",
        _keys(of["keys"]),
        str(of["guesses"]),
        f"{of['accepted'] / of['tried']:.4f} ({of['accepted']} of {of['tried']})",
        f"{of['opened']} of {pictures}",
        f"{of['accepted_right']} of {pictures}",
        f"{of['accepted_unopened']} of {pictures}",
        f"{of['far']:g}",
    ]


def _keys(count: int | None) -> str:
    return f"{count:,}" if count else "2^256"

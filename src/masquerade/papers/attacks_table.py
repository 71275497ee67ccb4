"""The tables of the attacks that need no training, which no paper prints."""

from collections.abc import Iterable, Mapping
from typing import Any

from masquerade.papers import layout

FOUND = {
    "right_key": "Right key",
    "no_attack": "No attack",
    "guess": "One guess",
    "any_guess": "Any guess",
    "average": "Average",
    "sign_flip": "Sign flip",
}
"""Attack -> header. The attacks are those of masquerade.pipeline.attacks."""
LINKED = {
    "originals": "Originals",
    "own_keys": "A key each",
    "one_key": "One key",
    "shuffled": "One key, shuffled people",
}


def markdown(attacks: Iterable[Mapping[str, Any]], params: Mapping[str, Any], commit: str) -> str:
    """One line for each cell (dataset, method, variant, seed). ``params`` has the ``scale`` and its ``caution``."""
    attacks = list(attacks)
    judges = ", ".join(sorted({f"`{each['attacks']['judge']}`" for each in attacks}))
    guesses, averaged, rates = (
        ", ".join(sorted({f"{each['attacks'][name]:g}" for each in attacks})) for name in ("guesses", "averaged", "far")
    )
    found = [line for each in attacks for line in _found(each["cell"], each["attacks"])]
    linked = [_linked(each["cell"], each["attacks"]["linked"]) for each in attacks]
    parts = [
        "# Attacks that need no training",
        f"> Scale `{params['scale']}`. {params['caution']}".rstrip(),
        "## Is the person found?",
        layout.grid(["Method", "Dataset", "Keys", "Whom", "Faces", *FOUND.values()], found, right_from=4),
        f"The share of faces that {judges}, which no training has seen, takes for the person, with the interval that "
        "covers 95 % of the bootstrap samples of the people. The control is *another person*: the same attack, "
        f"compared with the original of somebody else. By chance a share is the false-accept rate ({rates}), and "
        "more for *any guess*. "
        "**Right key**: the face recovered with its key. **No attack**: the anonymized picture itself. **One guess**: "
        f"recovered with a random key. **Any guess**: with at least one of {guesses} random keys. **Average**: the "
        f"mean embedding of the faces that {averaged} wrong keys recover. **Sign flip**: the negative embedding of the "
        "anonymized picture.",
        "## Are two pictures linked?",
        layout.grid(["Method", "Dataset", "Pairs", *LINKED.values()], linked, right_from=2),
        "The share of comparisons in which two pictures of one person are nearer than two pictures of two people (the "
        "area under the ROC curve); 0.5 by chance. **Originals**: what can be linked without anonymization. **A key "
        "each**: every picture has its own key. **One key**: all pictures have the same key. **Shuffled people**: the "
        "control, in which pictures belong to people at random.",
        f"Code: commit {commit}.",
    ]
    return "\n\n".join(parts) + "\n"


def _found(cell: Mapping[str, Any], attacks: Mapping[str, Any]) -> list[list[str]]:
    start = [*_name(cell), _keys(attacks["keys"])]
    if attacks["threshold"] is None:
        return [[*start, "too few strangers for a threshold", *[""] * (1 + len(FOUND))]]
    found = attacks["found"]
    faces = str(found["no_attack"]["person"]["over"])
    return [
        [*start, whom, faces, *(_number(found[attack][part]) for attack in FOUND)]
        for part, whom in (("person", "the person"), ("another", "*another person*"))
    ]


def _linked(cell: Mapping[str, Any], linked: Mapping[str, Any]) -> list[str]:
    return [*_name(cell), str(linked["one_key"]["pairs"]), *(_number(linked[kind]) for kind in LINKED)]


def _name(cell: Mapping[str, Any]) -> list[str]:
    seed = f" seed {cell['seed']}" if cell["seed"] else ""
    return [f"`{cell['method']}/{cell['variant']}`{seed}", f"`{cell['dataset']}`"]


def _number(value: Mapping[str, Any]) -> str:
    if value["value"] is None:
        return layout.NONE
    ends = "" if value["low"] is None else f" [{value['low']:.2f}, {value['high']:.2f}]"
    return f"{value['value']:.2f}{ends}"


def _keys(count: int | None) -> str:
    return f"{count:,}" if count else "2^256"

"""CelebA's own lists, which CelebA and CelebA-HQ share: who is in a picture, and to which part it belongs."""

from pathlib import Path

from masquerade.attributes import regions
from masquerade.errors import DatasetError
from masquerade.faces import _lists, _people
from masquerade.faces._trees import found

IDENTITIES, PARTITION = "identity_CelebA.txt", "list_eval_partition.txt"
ATTRIBUTES = frozenset([*regions.INNER, *regions.OUTER, "Attractive", "Blurry"])
PUBLISHED_IN = {IDENTITIES: "Anno", PARTITION: "Eval"}
# How a caption says an attribute.
COLOURS = {"Black_Hair": "black", "Blond_Hair": "blond", "Brown_Hair": "brown", "Gray_Hair": "grey"}
DETAILS = {
    "Bald": "a bald head",
    "Receding_Hairline": "a receding hairline",
    "Bangs": "bangs",
    "Bushy_Eyebrows": "bushy eyebrows",
    "Goatee": "a goatee",
    "Mustache": "a moustache",
    "5_o_Clock_Shadow": "stubble",
}
WORN = {
    "Eyeglasses": "eyeglasses",
    "Wearing_Hat": "a hat",
    "Wearing_Lipstick": "lipstick",
    "Wearing_Earrings": "earrings",
    "Wearing_Necklace": "a necklace",
    "Wearing_Necktie": "a necktie",
}


def list_of(root: Path, name: str) -> Path:
    """A list in ``root`` or in the sub-folder in which it is published. Raises DatasetError."""
    return found(root, [name, f"{PUBLISHED_IN.get(name, 'Anno')}/{name}"])


def text_of(path: Path) -> str:
    """Raises DatasetError."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read ({error}). Fetch it again.") from error


def people(root: Path) -> tuple[dict[str, str], dict[str, str]]:
    """(file -> person, file -> split) of all of CelebA's pictures, ``000001.jpg`` and so on. Raises DatasetError.

    A person has the same name in CelebA and CelebA-HQ. The official parts share nobody, and that is checked.
    """
    identities, partition = list_of(root, IDENTITIES), list_of(root, PARTITION)
    who = {file: f"celeba-{number}" for file, number in _lists.values(text_of(identities), identities.name).items()}
    split = _lists.partition(text_of(partition), partition.name)
    _lists.same_names(who, identities.name, split, partition.name)
    _people.check_disjoint(((who[file], split[file]) for file in sorted(who)), f"{identities.name}, {partition.name}")
    return who, split


def attributes(text: str, name: str) -> dict[str, dict[str, bool]]:
    """file -> ``attribute.<name>`` -> true or false, of a table of 1 and -1. Raises DatasetError."""
    columns, listed = _lists.table(text, name)
    if set(columns) != ATTRIBUTES:
        strange = sorted(ATTRIBUTES.symmetric_difference(columns))
        raise DatasetError(f"{name} should have CelebA's 40 attributes; {strange[0]} is not in both. Fetch it again.")
    for file, signs in listed.items():
        if not set(signs) <= {"1", "-1"}:
            raise DatasetError(f"{name}: {file} has an attribute that is neither 1 nor -1. Fetch the list again.")
    keys = [f"attribute.{column}" for column in columns]
    return {file: {key: sign == "1" for key, sign in zip(keys, signs, strict=True)} for file, signs in listed.items()}


def caption(known: dict[str, bool]) -> str:
    """A sentence that says a picture's `attributes`, in the words of the drawn faces' captions; nobody wrote it."""
    has = {name.removeprefix("attribute."): true for name, true in known.items()}
    who = f"{'young' if has['Young'] else 'old'} {'man' if has['Male'] else 'woman'}"
    form = [word for name, word in (("Straight_Hair", "straight"), ("Wavy_Hair", "wavy")) if has[name]]
    colour = [word for name, word in COLOURS.items() if has[name]]
    details = ["very light skin"] * has["Pale_Skin"]
    details += [" ".join([*form, *colour, "hair"])] * bool((form or colour) and not has["Bald"])
    details += [words for name, words in DETAILS.items() if has[name]]
    shaven = has["No_Beard"] or any(has[name] for name in ("Goatee", "Mustache", "5_o_Clock_Shadow"))
    details += [] if shaven else ["a beard"]
    worn = [words for name, words in WORN.items() if has[name]]
    wearing = f", wearing {_listed(worn)}" if worn else ""
    mood = "smiling" if has["Smiling"] else "with a neutral expression"
    mouth = ", mouth slightly open" if has["Mouth_Slightly_Open"] else ""
    looks = f" with {_listed(details)}" if details else ""
    return f"{'A' if has['Young'] else 'An'} {who}{looks}{wearing}, {mood}{mouth}."


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

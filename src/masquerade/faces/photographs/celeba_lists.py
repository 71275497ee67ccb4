"""CelebA's lists, which CelebA and CelebA-HQ share: person, split and attributes of each picture."""

from pathlib import Path

from masquerade.core import annotations
from masquerade.core.errors import DatasetError
from masquerade.faces.photographs import lists, people_splits
from masquerade.faces.photographs.trees import first_existing

IDENTITIES, PARTITION = "identity_CelebA.txt", "list_eval_partition.txt"
ATTRIBUTES = frozenset([*annotations.INNER, *annotations.OUTER, "Attractive", "Blurry"])
PUBLISHED_IN = {IDENTITIES: "Anno", PARTITION: "Eval"}
# The words of a caption for an attribute.
COLORS = {"Black_Hair": "black", "Blond_Hair": "blond", "Brown_Hair": "brown", "Gray_Hair": "gray"}
DETAILS = {
    "Bald": "a bald head",
    "Receding_Hairline": "a receding hairline",
    "Bangs": "bangs",
    "Bushy_Eyebrows": "bushy eyebrows",
    "Goatee": "a goatee",
    "Mustache": "a mustache",
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


def find_list(root: Path, name: str) -> Path:
    """The list in ``root``, or in the sub-folder in which it is published. Raises DatasetError if it is missing."""
    return first_existing(root, [name, f"{PUBLISHED_IN.get(name, 'Anno')}/{name}"])


def read_text(path: Path) -> str:
    """The text of a list. Raises DatasetError if the file cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read ({error}). Fetch it again.") from error


def people_and_splits(root: Path) -> tuple[dict[str, str], dict[str, str]]:
    """(file -> person, file -> split) of all pictures of CelebA, ``000001.jpg`` and so on.

    A person has the same name in CelebA and CelebA-HQ. Raises DatasetError if the lists do not fit each other, or if
    two of the official parts share a person.
    """
    identities, partition = find_list(root, IDENTITIES), find_list(root, PARTITION)
    numbers = lists.values(read_text(identities), identities.name)
    people = {file: f"celeba-{number}" for file, number in numbers.items()}
    splits = lists.partition(read_text(partition), partition.name)
    lists.check_same_files(people, identities.name, splits, partition.name)
    people_splits.check_disjoint(
        ((people[file], splits[file]) for file in sorted(people)), f"{identities.name}, {partition.name}"
    )
    return people, splits


def attributes(text: str, name: str) -> dict[str, dict[str, bool]]:
    """file -> ``attribute.<name>`` -> whether it has it, of a table of 1 and -1. Raises DatasetError."""
    columns, listed = lists.table(text, name)
    if set(columns) != ATTRIBUTES:
        odd = sorted(ATTRIBUTES.symmetric_difference(columns))
        raise DatasetError(
            f"{name} must have CelebA's 40 attributes as columns; {odd[0]} is missing or is not one of them. "
            "Fetch it again."
        )
    for file, signs in listed.items():
        if not set(signs) <= {"1", "-1"}:
            raise DatasetError(f"{name}: {file} has an attribute that is neither 1 nor -1. Fetch the list again.")
    keys = [f"attribute.{column}" for column in columns]
    return {file: {key: sign == "1" for key, sign in zip(keys, signs, strict=True)} for file, signs in listed.items()}


def caption(known: dict[str, bool]) -> str:
    """A sentence made from a picture's `attributes`, in the words of the captions of the drawn faces."""
    has = {name.removeprefix("attribute."): true for name, true in known.items()}
    who = f"{'young' if has['Young'] else 'old'} {'man' if has['Male'] else 'woman'}"
    form = [word for name, word in (("Straight_Hair", "straight"), ("Wavy_Hair", "wavy")) if has[name]]
    color = [word for name, word in COLORS.items() if has[name]]
    details = ["very light skin"] * has["Pale_Skin"]
    details += [" ".join([*form, *color, "hair"])] * bool((form or color) and not has["Bald"])
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

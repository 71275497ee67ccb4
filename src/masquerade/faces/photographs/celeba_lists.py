"""CelebA's lists, which CelebA and CelebA-HQ share: person, split and attributes of each image.

``identity_CelebA.txt`` and ``list_eval_partition.txt`` have lines ``000001.jpg 2880``. A ``list_*`` file has the number
of files, the names of the columns, and lines such as ``000001.jpg -1 1 ...``.
"""

import io
from pathlib import Path

import pandas as pd

from masquerade.core import annotations
from masquerade.core.errors import DatasetError
from masquerade.faces import _splits
from masquerade.faces.photographs.trees import first_existing

IDENTITIES, PARTITION = "identity_CelebA.txt", "list_eval_partition.txt"
ATTRIBUTES = frozenset([*annotations.INNER, *annotations.OUTER, "Attractive", "Blurry"])
PUBLISHED_IN = {IDENTITIES: "Anno", PARTITION: "Eval"}
SPLITS = {0: "train", 1: "validation", 2: "test"}  # the numbers of list_eval_partition.txt
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


def read_table(text: str, name: str, **options) -> pd.DataFrame:
    """The rows of a list, whose words stand between spaces, by their first column. ``options``: of `pandas.read_csv`.

    Raises DatasetError for a list that is empty or cut, and for one that names a file twice.
    """
    try:
        table = pd.read_csv(io.StringIO(text), sep=r"\s+", index_col=0, **options)
    except (ValueError, pd.errors.ParserError) as error:
        raise DatasetError(f"{name} is damaged ({error}). Fetch it again.") from error
    if not table.index.is_unique or table.isna().any(axis=None):
        raise DatasetError(f"{name} names a file twice, or a line of it is cut. Fetch it again.")
    return table


def read_people_and_splits(root: Path) -> pd.DataFrame:
    """The columns ``person`` and ``split`` of all images of CelebA; the index is the file, ``000001.jpg`` and so on.

    A person has the same name in CelebA and CelebA-HQ. Raises DatasetError if the lists do not fit each other, or if
    two of the official parts share a person.
    """
    paths = [find_list(root, name) for name in (IDENTITIES, PARTITION)]
    numbers, parts = (read_table(read_text(path), path.name, header=None, names=["file", "number"]) for path in paths)
    check_same_files(numbers.index, IDENTITIES, parts.index, PARTITION)
    table = pd.DataFrame({"person": "celeba-" + numbers["number"].astype(str), "split": parts["number"].map(SPLITS)})
    if table["split"].isna().any():
        raise DatasetError(f"{PARTITION} has another part than 0, 1 and 2. Fetch the list again.")
    _splits.check_disjoint(table["person"], table["split"], f"{IDENTITIES}, {PARTITION}")
    return table


def read_attributes(text: str, name: str) -> dict[str, dict[str, bool]]:
    """file -> ``attribute.<name>`` -> whether it has it, of a ``list_*`` file of 1 and -1. Raises DatasetError."""
    table = read_table(text, name, skiprows=1)
    if set(table) != ATTRIBUTES:
        raise DatasetError(f"{name} must have CelebA's 40 attributes as columns. Fetch it again.")
    return (table == 1).add_prefix("attribute.").to_dict("index")


def check_same_files(first: pd.Index, first_name: str, second: pd.Index, second_name: str) -> None:
    """Raise DatasetError when two lists do not name the same files."""
    apart = first.symmetric_difference(second)
    if len(apart):
        raise DatasetError(
            f"{first_name} and {second_name} do not name the same files: {len(apart)} are in one list only (the first: "
            f"{apart[0]}). The lists are of different versions. Fetch both again."
        )


def caption(attributes: dict[str, bool]) -> str:
    """A sentence made from the attributes of an image, in the words of the captions of rendered faces."""
    has = {name.removeprefix("attribute."): true for name, true in attributes.items()}
    who = f"{'young' if has['Young'] else 'old'} {'man' if has['Male'] else 'woman'}"
    form = [word for name, word in (("Straight_Hair", "straight"), ("Wavy_Hair", "wavy")) if has[name]]
    color = [word for name, word in COLORS.items() if has[name]]
    details = ["very light skin"] * has["Pale_Skin"]
    details += [" ".join([*form, *color, "hair"])] * bool((form or color) and not has["Bald"])
    details += [words for name, words in DETAILS.items() if has[name]]
    shaven = has["No_Beard"] or any(has[name] for name in ("Goatee", "Mustache", "5_o_Clock_Shadow"))
    details += [] if shaven else ["a beard"]
    worn = [words for name, words in WORN.items() if has[name]]
    wearing = f", wearing {_join(worn)}" if worn else ""
    mood = "smiling" if has["Smiling"] else "with a neutral expression"
    mouth = ", mouth slightly open" if has["Mouth_Slightly_Open"] else ""
    looks = f" with {_join(details)}" if details else ""
    return f"{'A' if has['Young'] else 'An'} {who}{looks}{wearing}, {mood}{mouth}."


def _join(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

"""CelebA's own lists, which CelebA and CelebA-HQ share: who is in a picture, and to which part it belongs."""

from pathlib import Path

from masquerade.attributes import regions
from masquerade.errors import DatasetError
from masquerade.faces import _lists, _people
from masquerade.faces._trees import found

IDENTITIES, PARTITION = "identity_CelebA.txt", "list_eval_partition.txt"
ATTRIBUTES = frozenset([*regions.INNER, *regions.OUTER, "Attractive", "Blurry"])
PUBLISHED_IN = {IDENTITIES: "Anno", PARTITION: "Eval"}


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

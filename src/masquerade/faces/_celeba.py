"""CelebA's own lists, which CelebA and CelebA-HQ share: who is in a picture, and to which part it belongs."""

from pathlib import Path

from masquerade.errors import DatasetError
from masquerade.faces import _lists, _people
from masquerade.faces._trees import found

IDENTITIES, PARTITION = "identity_CelebA.txt", "list_eval_partition.txt"
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

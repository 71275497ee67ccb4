"""The lists that come with published datasets, read strictly: a line that does not fit is an error with its place.

Lines may end as Windows ends them. Raises DatasetError, written for the person who placed the file.
"""

from collections.abc import Sequence

from masquerade.errors import DatasetError

SPLITS = {"0": "train", "1": "validation", "2": "test"}  # of list_eval_partition.txt


def rows(text: str, name: str) -> list[tuple[int, list[str]]]:
    """(line number, its words) of every line that is not empty."""
    lines = text.removeprefix("\ufeff").splitlines()
    found = [(number, line.split()) for number, line in enumerate(lines, start=1)]
    found = [(number, words) for number, words in found if words]
    if not found:
        raise DatasetError(f"{name} is empty. Fetch it again.")
    return found


def whole(word: str, name: str, line: int) -> int:
    """The word as a whole number that is not negative."""
    if not (word.isascii() and word.isdigit()):
        raise DatasetError(f"{name}, line {line}: '{word[:40]}' is no whole number. Fetch the list again.")
    return int(word)


def values(text: str, name: str) -> dict[str, str]:
    """``file value`` a line, as identity_CelebA.txt and list_eval_partition.txt have."""
    return _by_file([(line, words) for line, words in rows(text, name)], 2, name, lambda words: words[0])


def table(text: str, name: str) -> tuple[list[str], dict[str, list[str]]]:
    """(columns, file -> values): the number of files, the names of the columns, then a file a line (``list_*``)."""
    (line, head), *body = rows(text, name)
    if len(head) != 1 or not body:
        raise DatasetError(f"{name}, line {line}: the number of files should stand here, alone. Fetch the list again.")
    announced, columns, body = whole(head[0], name, line), body[0][1], body[1:]
    if announced != len(body):
        raise DatasetError(f"{name} announces {announced} files and lists {len(body)}. Fetch the list again.")
    if len(set(columns)) < len(columns):
        raise DatasetError(f"{name} names a column twice. Fetch the list again.")
    return columns, _by_file(body, len(columns) + 1, name, lambda words: words)


def _by_file(body: Sequence[tuple[int, list[str]]], width: int, name: str, value) -> dict:
    found = {}
    for line, (file, *words) in body:
        if len(words) + 1 != width:
            raise DatasetError(f"{name}, line {line}: {len(words) + 1} words where {width} belong. Fetch it again.")
        if file in found:
            raise DatasetError(f"{name}, line {line}: {file} is listed twice. Fetch the list again.")
        found[file] = value(words)
    return found


def partition(text: str, name: str) -> dict[str, str]:
    """file -> train, validation or test, of list_eval_partition.txt."""
    found = values(text, name)
    for file, number in found.items():
        if number not in SPLITS:
            raise DatasetError(
                f"{name}: {file} is of part '{number[:40]}'; there are 0, 1 and 2. Fetch the list again."
            )
    return {file: SPLITS[number] for file, number in found.items()}


def same_names(first: dict, first_name: str, second: dict, second_name: str) -> None:
    """Raises DatasetError where two lists are not about the same files."""
    apart = sorted(first.keys() ^ second.keys())
    if apart:
        where = first_name if apart[0] in first else second_name
        raise DatasetError(
            f"{first_name} and {second_name} are not about the same files: {len(apart)} stand in one alone (the first: "
            f"{apart[0]}, in {where}). They come from different versions: fetch both again."
        )

"""Reads the lists that come with published datasets. A line that does not fit is an error with its line number.

Line ends may be those of Windows. All functions raise DatasetError, which says what to do.
"""

from collections.abc import Sequence

from masquerade.core.errors import DatasetError

SPLITS = {"0": "train", "1": "validation", "2": "test"}  # numbers of list_eval_partition.txt


def rows(text: str, name: str) -> list[tuple[int, list[str]]]:
    """(line number, words) of every line that is not empty."""
    lines = text.removeprefix("\ufeff").splitlines()
    body = [(number, words) for number, line in enumerate(lines, start=1) if (words := line.split())]
    if not body:
        raise DatasetError(f"{name} is empty. Fetch it again.")
    return body


def whole_number(word: str, name: str, line: int) -> int:
    """The word as a whole number, 0 or above."""
    if not (word.isascii() and word.isdigit()):
        raise DatasetError(f"{name}, line {line}: '{word[:40]}' is not a whole number. Fetch the list again.")
    return int(word)


def values(text: str, name: str) -> dict[str, str]:
    """file -> value, of lines ``file value`` as in identity_CelebA.txt and list_eval_partition.txt."""
    return _by_file([(line, words) for line, words in rows(text, name)], 2, name, lambda words: words[0])


def table(text: str, name: str) -> tuple[list[str], dict[str, list[str]]]:
    """(columns, file -> values) of a ``list_*`` file: the number of files, the column names, then one line a file."""
    (line, head), *body = rows(text, name)
    if len(head) != 1 or not body:
        raise DatasetError(f"{name}, line {line}: only the number of files belongs here. Fetch the list again.")
    count, columns, body = whole_number(head[0], name, line), body[0][1], body[1:]
    if count != len(body):
        raise DatasetError(f"{name} announces {count} files and lists {len(body)}. Fetch the list again.")
    if len(set(columns)) < len(columns):
        raise DatasetError(f"{name} has two columns of the same name. Fetch the list again.")
    return columns, _by_file(body, len(columns) + 1, name, lambda words: words)


def _by_file(body: Sequence[tuple[int, list[str]]], width: int, name: str, value) -> dict:
    """file -> value(words after the file). Every line must have ``width`` words, and no file may be listed twice."""
    by_file = {}
    for line, (file, *words) in body:
        if len(words) + 1 != width:
            raise DatasetError(f"{name}, line {line} has {len(words) + 1} words and needs {width}. Fetch it again.")
        if file in by_file:
            raise DatasetError(f"{name}, line {line}: {file} is listed twice. Fetch the list again.")
        by_file[file] = value(words)
    return by_file


def partition(text: str, name: str) -> dict[str, str]:
    """file -> train, validation or test, of list_eval_partition.txt."""
    numbers = values(text, name)
    for file, number in numbers.items():
        if number not in SPLITS:
            raise DatasetError(
                f"{name}: {file} is in part '{number[:40]}'; the parts are 0, 1 and 2. Fetch the list again."
            )
    return {file: SPLITS[number] for file, number in numbers.items()}


def check_same_files(first: dict, first_name: str, second: dict, second_name: str) -> None:
    """Raise DatasetError when two lists do not name the same files."""
    apart = sorted(first.keys() ^ second.keys())
    if apart:
        holder = first_name if apart[0] in first else second_name
        raise DatasetError(
            f"{first_name} and {second_name} do not name the same files: {len(apart)} are in one list only (the first: "
            f"{apart[0]}, in {holder}). The lists are of different versions. Fetch both again."
        )

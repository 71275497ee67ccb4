"""Reads pictures in MXNet's record format, in which InsightFace publishes training sets, without MXNet.

``train.rec`` holds records: a magic number, a word with 3 bits of kind and 29 of length, the content, zeros up to a
multiple of four bytes (dmlc-core, include/dmlc/recordio.h). ``train.idx`` has the offset of each record; ``property``
has the number of people and the size of the pictures. A record begins with flag, label and two numbers, then ``flag``
more labels (mxnet/recordio.py, IRHeader). Record 0 has two labels: the number of the first record that is a person,
and one past the last. The record of a person has two labels, too: the number of the person's first picture, and one
past the last (InsightFace, dataset_info.py).
"""

import struct
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from masquerade.core.errors import DatasetError, PictureError
from masquerade.faces.photographs import lists
from masquerade.faces.photographs.celeba_lists import read_text
from masquerade.faces.photographs.trees import LARGEST, Tree, first_existing

RECORDS, INDEX, PROPERTY = "train.rec", "train.idx", "property"
MAGIC = 0xCED7230A
WHOLE, BEGIN, MIDDLE, END = range(4)  # kinds: content that contains the magic number is split there into parts
_HEADER = struct.Struct("<IfQQ")


class RecordTree(Tree):
    """The pictures under the numbers of their records, ``1`` and so on. ``folder`` holds the three files."""

    def __init__(self, folder: Path):
        super().__init__(first_existing(folder, [RECORDS]))
        self._files = [self.path, first_existing(folder, [INDEX]), first_existing(folder, [PROPERTY])]

    def files(self) -> list[Path]:
        return self._files

    @cached_property
    def _stream(self) -> BinaryIO:
        return self.path.open("rb")

    def __exit__(self, *error: object) -> None:
        if "_stream" in vars(self):
            self._stream.close()

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """(begin, end) of each record in bytes, by its number. InsightFace writes record 0 after the pictures."""
        name = self._files[1].name
        begins: dict[int, int] = {}
        for line, words in lists.rows(read_text(self._files[1]), name):
            if len(words) != 2:
                raise DatasetError(f"{name}, line {line}: a record and its offset belong here. Fetch it again.")
            number, place = (lists.whole_number(word, name, line) for word in words)
            if number in begins:
                raise DatasetError(f"{name}, line {line}: record {number} is listed twice. Fetch it again.")
            begins[number] = place
        if max(begins) != len(begins) - 1:
            raise DatasetError(
                f"{name} lists {len(begins)} records, one with the number {max(begins)}. Fetch it again."
            )
        edges = [*sorted(begins.values()), self.path.stat().st_size]
        if any(first >= second for first, second in pairwise(edges)):
            raise DatasetError(f"{name} does not fit {self.path}, which is cut or another file. Fetch both again.")
        ends = dict(pairwise(edges))
        return [(begins[number], ends[begins[number]]) for number in range(len(begins))]

    @cached_property
    def people(self) -> list[range]:
        """The picture numbers of each person. Raises DatasetError if records, index and property do not fit."""
        first, last = self._range(0)
        people = [self._range(number) for number in range(first, last)]
        stated = read_text(self._files[2]).strip().split(",")[0]
        if last != len(self._places) or stated != str(len(people)):
            raise DatasetError(
                f"{self.path} holds {len(people)} people up to record {last - 1}; {PROPERTY} has {stated[:20]} people, "
                f"and {INDEX} has {len(self._places)} records. They are of different sets. Fetch all three again."
            )
        ends = [1, *(end for _, end in people)]
        if [start for start, _ in people] != ends[:-1] or ends[-1] != first:
            raise DatasetError(f"{self.path}: there are gaps between the pictures of its people. Fetch it again.")
        return [range(start, end) for start, end in people]

    def _range(self, number: int) -> tuple[int, int]:
        """The first record and one past the last, as record ``number`` names them."""
        try:
            labels, _ = self._labels(number)
        except (PictureError, OSError, ValueError, struct.error) as error:
            raise DatasetError(f"{self.path}: record {number} is damaged ({error}). Fetch it again.") from error
        if len(labels) != 2 or not all(label == int(label) >= 0 for label in labels):
            raise DatasetError(f"{self.path}: record {number} must name a first and a last record. Fetch it again.")
        return int(labels[0]), int(labels[1])

    def sizes(self, inside: str) -> dict[str, int]:
        places = ((number, *self._places[number]) for pictures in self.people for number in pictures)
        return {str(number): end - start for number, start, end in places}

    def _read(self, name: str) -> bytes:
        labels, content = self._labels(int(name))
        if not (0 <= labels[0] < len(self.people)) or int(name) not in self.people[int(labels[0])]:
            raise PictureError("the record names another person than the list of people")
        return content

    def _labels(self, number: int) -> tuple[tuple[float, ...], bytes]:
        """(labels, content) of a record. Raises ValueError or struct.error if it is damaged."""
        whole = self._whole(number)
        flag, label, *_ = _HEADER.unpack_from(whole)
        at = _HEADER.size + 4 * flag
        if flag and at > len(whole):
            raise ValueError("its labels are cut")
        return (struct.unpack_from(f"<{flag}f", whole, _HEADER.size) if flag else (label,)), whole[at:]

    def _whole(self, number: int) -> bytes:
        """The content of a record, joined from its parts. Raises ValueError or struct.error if it is damaged."""
        if number >= len(self._places):
            raise ValueError("the index has no such record")
        start, end = self._places[number]
        if end - start > LARGEST:
            raise ValueError("it is too long")
        self._stream.seek(start)
        raw = self._stream.read(end - start)
        parts, kinds, at = [], [], 0
        while at < len(raw):
            magic, word = struct.unpack_from("<II", raw, at)
            length = word & (2**29 - 1)
            if magic != MAGIC or at + 8 + length > len(raw):
                raise ValueError("no record begins at the offset of the index, or it is cut")
            parts.append(raw[at + 8 : at + 8 + length])
            kinds.append(word >> 29)
            at += 8 + -(-length // 4) * 4
        if kinds != [WHOLE] and (kinds[0] != BEGIN or kinds[-1] != END or set(kinds[1:-1]) - {MIDDLE}):
            raise ValueError("its parts are not in order")
        return struct.pack("<I", MAGIC).join(parts)

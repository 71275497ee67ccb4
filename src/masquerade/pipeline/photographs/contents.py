"""Remembers what the files of a batch held, so that it goes on with the photographs that it began with.

A name does not tell: cameras start again at IMG_0001, and photographs are edited. The hashes prove to whoever has a
photograph that it was in the batch. So they are in no report: they lie hidden in the folder of the results, each with
a random salt, without which they could be looked up in lists of known files.
"""

import hashlib
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path

from masquerade.core import files
from masquerade.pipeline.photographs.placing import HIDDEN
from masquerade.pipeline.reports import Report

FILE = f"{HIDDEN}/contents.csv"
LENGTH = 16  # bytes of a salt


class Contents:
    """The salted hashes of the files whose rows are in the report of ``output``. `begin` is called before `add`."""

    def __init__(self, output: Path):
        self._report = Report(output / FILE, ("file", "salt", "sha256"))
        rows = files.parse_csv(self._report.path.read_text(encoding="utf-8")) if self.known else []
        self._by_file = {row["file"]: row for row in rows}

    @property
    def known(self) -> bool:
        """Whether the folder has hashes: an older version wrote none."""
        return self._report.path.is_file()

    def fit(self, file: str, sha256: bytes) -> bool:
        """Whether the row of ``file`` is of a photograph with this hash."""
        row = self._by_file.get(file)
        return row is not None and row["sha256"] == _salted(row["salt"], sha256)

    def begin(self, kept: Collection[str]) -> None:
        """Forget all files but ``kept``. It is done before their rows are replaced."""
        self._report.begin(row for file, row in self._by_file.items() if file in kept)

    def add(self, sha256: Mapping[str, bytes]) -> None:
        """Remember files, name -> hash. It is done after their rows are in the report: no hash is of another row."""
        salts = {file: secrets.token_hex(LENGTH) for file in sha256}
        self._report.add([
            {"file": file, "salt": salts[file], "sha256": _salted(salts[file], content)}
            for file, content in sha256.items() if content
        ])  # fmt: skip


def _salted(salt: str, sha256: bytes) -> str:
    return hashlib.sha256(salt.encode() + sha256).hexdigest()

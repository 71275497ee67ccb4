"""Brings the records in ``.snakemake`` and the text ``records/<scale>.jsonl`` into agreement with the bytes.

A file and the record of the job that made it may come apart: git brings another text, DVC brings other bytes, a job is
killed, a file is edited. `sync_records` runs whenever Snakemake starts. A file whose md5 is that of its line in the
text gets its record from the line. A file that no record explains is marked as incomplete, so that Snakemake makes it
again. `write_records` writes the text when a build has ended.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from masquerade.core import files, fingerprints
from masquerade.core.errors import MasqueradeError
from masquerade.lineage import provenance, records, snakemake_internals
from masquerade.lineage.records import Record, Records
from masquerade.lineage.snakemake_internals import incomplete_path, record_path
from masquerade.params.paths import BUILT, CODE

STATE = Path(".masquerade/records")
"""For each scale: the hash of the text at the last `sync_records`, and the md5 of files with their size and time."""
UNUSED = ("job_hash", "incomplete", "external_jobid")
"""Fields of Snakemake's record that hold for one process only."""


class NotRecorded(MasqueradeError):
    """The build is not in a state that may be recorded."""


class Build:
    """The files of a scale in the working copy at ``root``, and the records that explain them."""

    def __init__(self, scale: str, root: Path = Path()):
        self.scale, self.root = scale, root
        self.files = dict(_list_files(scale, root))
        """Path -> (size, time in nanoseconds) of every file of the scale."""
        self._state_file = root / STATE / f"{scale}.json"
        state = _read_json(self._state_file) or {"text": "", "md5s": {}}
        self._synced_text: str = state["text"]
        self._md5s: dict[str, list[Any]] = state["md5s"]

    @cached_property
    def text_records(self) -> Records:
        """The records in the text."""
        return Records.read(self.scale, self.root)

    @cached_property
    def job_records(self) -> dict[str, Record]:
        """Output -> the record of its job in ``.snakemake``, for the files of the scale."""
        records_by_output: dict[str, Record] = {}
        for folder in BUILT:
            for path in sorted((self.root / provenance.FOLDER / f"{folder}{self.scale}").rglob("*.json")):
                circumstances = _read_json(path) or {}
                outputs = circumstances.pop("outputs", {})
                contents = {output: _read_json(self.root / record_path(output)) for output in outputs}
                if not outputs or not all(contents.values()):
                    continue
                record = Record(outputs, circumstances, _drop_transient_fields(contents[next(iter(outputs))]))
                records_by_output |= dict.fromkeys(outputs, record)
                for output, content in contents.items():
                    self._note_if_untouched(output, outputs[output], content)
        return records_by_output

    def _note_if_untouched(self, path: str, md5: str, content: Mapping[str, Any]) -> None:
        """Note the md5 of a file without reading it, if it has the time that Snakemake saw when the job had ended."""
        is_noted = path not in self.files or self._has_md5(path)
        if not is_noted and (self.root / path).stat().st_mtime == content["endtime"]:
            self._md5s[path] = [*self.files[path], md5]

    def _has_md5(self, path: str) -> bool:
        """Whether the md5 is noted that a file has at its present size and time."""
        return path in self._md5s and tuple(self._md5s[path][:2]) == self.files[path]

    def md5(self, path: str) -> str:
        """The md5 of a file of the scale. A file is read again if its size or time has changed."""
        if not self._has_md5(path):
            self._md5s[path] = [*self.files[path], fingerprints.md5(self.root / path)]
        return self._md5s[path][2]

    @cached_property
    def records_by_file(self) -> dict[str, Record | None]:
        """Every file of the scale -> the record of the job that wrote its bytes, None if there is none.

        A record that fits all files of its job is preferred to one that fits this file alone. If a line of the text and
        a local record both fit: when git brought in a new text since the last start, its line is taken, otherwise the
        local record, because a job ran after the text was written.
        """
        sources = [self.job_records, self.text_records.makers]
        if self._synced_text != self._hash_text():
            sources.reverse()
        records_by_file: dict[str, Record | None] = {}
        for path in self.files:
            candidates = [source[path] for source in sources if path in source]
            fitting = [record for record in candidates if self._fits(record, path)]
            records_by_file[path] = next(filter(self.fits_all, fitting), next(iter(fitting), None))
        return records_by_file

    def _fits(self, record: Record, path: str) -> bool:
        return record.outputs[path] == self.md5(path)

    def fits_all(self, record: Record) -> bool:
        """Whether the files of a job that are here have the bytes that it wrote."""
        return all(self._fits(record, path) for path in record.outputs if path in self.files)

    def is_synced(self) -> bool:
        """Whether nothing changed since `sync_records`: the text, the files, and the existence of their records."""
        present = snakemake_internals.list_recorded_outputs(self.root)
        same_text = self._synced_text == self._hash_text()
        return same_text and present >= self.files.keys() and all(map(self._has_md5, self.files))

    def save_state(self) -> None:
        """Note that text and records agree now."""
        md5s = {path: self._md5s[path] for path in self.files if path in self._md5s}
        files.write_text(self._state_file, json.dumps({"text": self._hash_text(), "md5s": md5s}))

    def _hash_text(self) -> str:
        file = self.root / records.text_path(self.scale)
        return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def sync_records(scale: str, root: Path = Path()) -> str:
    """Bring the records of a scale into agreement with its files. Returns a sentence on what was done, or ''.

    Does nothing while a build runs.
    """
    build = Build(scale, root)
    if snakemake_internals.is_locked(root) or (build.is_synced() and not snakemake_internals.any_incomplete(root)):
        return ""
    replaced, unexplained = 0, []
    for path, record in build.records_by_file.items():
        mark = root / incomplete_path(path)
        if record is None:
            unexplained.append(path)
            files.write_text(mark, json.dumps({"external_jobid": None}))
            continue
        if record != build.job_records.get(path):
            replaced += 1
            _write_record(path, record, root)
        if build.text_records.makers.get(path) == record:
            mark.unlink(missing_ok=True)  # a job was interrupted here, and DVC brought the file back
    build.save_state()
    texts = []
    if replaced:
        texts.append(f"{replaced} files came with git and DVC: their records are those of {records.text_path(scale)}.")
    if unexplained:
        texts.append(
            f"{len(unexplained)} files have other bytes than a job wrote (the first: {unexplained[0]}); they are made "
            "again if a job of the graph makes them."
        )
    return " ".join(texts)


def write_records(scale: str, root: Path = Path(), needed: Collection[str] = ()) -> int:
    """Write the records of every file of a scale as text, and return the number of jobs.

    ``needed``: files that may not be missing if the present text has them. Raises NotRecorded if a file is missing, was
    not written by a job, or belongs to an interrupted job.
    """
    sync_records(scale, root)
    build = Build(scale, root)
    altered = [path for path, record in build.records_by_file.items() if record is None]
    siblings = [path for path, record in build.records_by_file.items() if record and not build.fits_all(record)]
    if unexplained := [*altered, *siblings]:
        raise NotRecorded(
            f"{len(unexplained)} files have other bytes than a job wrote (the first: {unexplained[0]}). "
            "`snakemake all` makes them again; remove those that are no job's."
        )
    if interrupted := [path for path in build.files if (root / incomplete_path(path)).is_file()]:
        raise NotRecorded(f"{len(interrupted)} files are of interrupted jobs (the first: {interrupted[0]}); "
                          "run `snakemake all` first")  # fmt: skip
    jobs = {record.key: record for record in build.records_by_file.values() if record}
    written = {path for record in jobs.values() for path in record.outputs}
    missing = sorted((written | (build.text_records.makers.keys() & set(needed))) - build.files.keys())
    if missing:
        raise NotRecorded(f"{len(missing)} files are missing (the first: {missing[0]}); run `snakemake all` or "
                          "`dvc pull` first")  # fmt: skip
    steps = {Path(path).stem for record in jobs.values() for path in record.snakemake["input"] if path.startswith(CODE)}
    closures = {step: closure for step, closure in records.read_closures(root).items() if step in steps}
    files.write_if_changed(root / records.text_path(scale), Records(jobs, closures).text())
    build.save_state()
    return len(jobs)


def _write_record(path: str, record: Record, root: Path) -> None:
    """Write the record of an output where Snakemake and the lineage look for it."""
    files.write_text(root / record_path(path), json.dumps(record.snakemake))
    circumstances = {"outputs": record.outputs, **record.circumstances}
    files.write_text(root / provenance.circumstances_path(record.key), json.dumps(circumstances, indent=1) + "\n")


def _list_files(scale: str, root: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    for folder in BUILT:
        for parent, _, names in os.walk(root / f"{folder}{scale}"):
            for name in names:
                if not name.startswith("."):  # the temporary file of a killed job (`core.files.write_atomically`)
                    path = Path(parent, name)
                    facts = path.stat()
                    yield path.relative_to(root).as_posix(), (facts.st_size, facts.st_mtime_ns)


def _read_json(path: Path) -> Any:
    """The content of a JSON file, None if it is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _drop_transient_fields(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in UNUSED}

"""DVC keeps the bytes of a finished build, and git its records. Each scale is one stage of DVC."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from masquerade.core import files, fingerprints
from masquerade.faces import MANIFESTS
from masquerade.lineage import local_records, records
from masquerade.lineage.local_records import Build, NotRecorded
from masquerade.lineage.records import Records
from masquerade.lineage.snakemake_internals import plan_jobs, read_input_hashes
from masquerade.params import blocks, loading, overlays, sharing
from masquerade.params.paths import BUILT

if TYPE_CHECKING:
    from snakemake.jobs import Job

STAGE = "build@{scale}"
LOCK = Path("dvc.lock")
OF_DVC = "DVC_STAGE"
"""DVC sets this variable for the commands of its stage, and itself records what they wrote."""
PARTIAL = ["snakemake all"]
"""The command of the stage in the lock of an unfinished build. It differs from that of dvc.yaml, so DVC goes on."""


def record_build(partial: bool = False) -> int:
    """Record the build of the scale in params.yaml: its records as text, and its files by `dvc commit`.

    Returns the number of jobs. ``partial``: a build that is not finished is recorded, too. Raises NotRecorded, saying
    why, where a job was interrupted or is out of date, a file is missing or is not the one that its job wrote, or an
    input changed behind Snakemake's back.
    """
    scale = overlays.read_yaml(Path(blocks.PARAMS))["scale"]
    if os.environ.get(OF_DVC):
        return _write_records(scale)
    jobs, out_of_date = plan_jobs()
    if out_of_date and not partial:
        raise NotRecorded(f"{len(out_of_date)} jobs are out of date; run `snakemake all` first")
    finished = [job for job in jobs if job not in out_of_date]
    if stale := sorted(set(_find_changed_inputs(finished))):
        raise NotRecorded(f"inputs changed behind Snakemake's back; run `snakemake all --forcerun {' '.join(stale)}`")
    count = _write_records(scale, {str(path) for job in jobs for path in job.output})
    ignore_private(loading.load(Path()).private)
    _run_program("dvc", "commit", "--quiet", "--force", "--no-relink", STAGE.format(scale=scale))
    if out_of_date:
        lock = overlays.read_yaml(LOCK)
        lock["stages"][STAGE.format(scale=scale)]["cmd"] = PARTIAL
        LOCK.write_text(overlays.format_yaml(lock), encoding="utf-8")
    return count


def ignore_private(private: Collection[str], root: Path = Path()) -> None:
    """Let DVC ignore the files of private datasets, so that no `dvc push` sends them.

    Raises NotRecorded in a stage of DVC that began before it was told to ignore one of them.
    """
    if sharing.write_dvcignore(private, root) and OF_DVC in os.environ:
        raise NotRecorded(
            f"{sharing.IGNORE} did not name all files of real people that stay on this machine (share_originals in "
            "params.yaml), and DVC has read it already. It names them now: run the same command again"
        )


def _write_records(scale: str, planned: frozenset[str] | set[str] = frozenset()) -> int:
    for folder in (*(Path(f"{folder}{scale}") for folder in BUILT), MANIFESTS):
        folder.mkdir(parents=True, exist_ok=True)  # DVC needs it; a rehearsal makes no results
    count = local_records.write_records(scale, needed=planned)
    effective = overlays.format_yaml(loading.load(Path()).tree, sort_keys=True)
    files.write_if_changed(records.params_path(scale), effective)
    return count


def list_orphans() -> list[str]:
    """The files of the scale in params.yaml that no job of the graph makes: those of variants that were removed."""
    scale = overlays.read_yaml(Path(blocks.PARAMS))["scale"]
    planned = {str(path) for job in plan_jobs(force_all=True)[0] for path in job.output}
    return sorted(Build(scale).files.keys() - planned)


def merge_builds() -> int:
    """After ``git merge``: put the records and files of both sides together. Returns the number of files from theirs.

    A job that one side changed is taken from that side. A job that both sides changed is taken from ours. dvc.lock
    stays ours until the build is recorded. The files of private datasets are in no remote: jobs make them again.
    Raises NotRecorded if no merge is under way, or the bytes of the other side are neither in DVC's cache nor in a
    remote.
    """
    import dvc.api

    scale = overlays.read_yaml(Path(blocks.PARAMS))["scale"]
    text = records.text_path(scale).as_posix()
    base, ours, theirs = (Records.parse(_read_at_commit(commit, text)) for commit in _find_sides())
    merged = records.merge_records(base, ours, theirs)
    private = loading.load(Path()).private
    paths = [path for path, record in merged.makers.items() if not sharing.is_private(path, private)
             and (path not in ours.makers or ours.makers[path].outputs[path] != record.outputs[path])]  # fmt: skip
    other = dvc.api.DVCFileSystem(".", rev="MERGE_HEAD")
    try:
        for path in paths:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            other.get_file(path, path)
    except Exception as error:  # DVC and the file systems of its remotes raise many kinds
        raise NotRecorded(f"the files of the other side cannot be read ({error}). The other side must have pushed: "
                          "`dvc push` there, then run this again") from error  # fmt: skip
    for path in ours.makers.keys() - merged.makers.keys():
        Path(path).unlink(missing_ok=True)
    Path(text).write_text(merged.text(), encoding="utf-8")
    _run_program("git", "checkout", "--ours", "--", LOCK.as_posix(), records.params_path(scale).as_posix())
    return len(paths)


def _find_sides() -> tuple[str, str, str]:
    """The common ancestor, our commit and their commit of the merge that is under way."""
    theirs = _run_program(
        "git", "rev-parse", "--verify", "MERGE_HEAD", problem="no merge is under way: run `git merge` first"
    )
    return _run_program("git", "merge-base", "HEAD", theirs), "HEAD", theirs


def _read_at_commit(commit: str, path: str) -> str:
    shown = fingerprints.run_git(Path(), "show", f"{commit}:{path}")
    return shown.stdout if not shown.returncode else ""


def _run_program(program: Literal["git", "dvc"], *arguments: str, problem: str = "") -> str:
    """What a program prints. Raises NotRecorded if it fails."""
    if program == "git":
        done = fingerprints.run_git(Path(), *arguments)
    else:
        command = [sys.executable, "-m", "dvc", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotRecorded(
            problem or f"`{program} {' '.join(arguments)}` failed: {(done.stderr or done.stdout).strip()}"
        )
    return done.stdout.strip()


def _find_changed_inputs(jobs: list["Job"]) -> Iterator[str]:
    @cache
    def sha256(path: str) -> str:
        with Path(path).open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"

    for job in jobs:
        for output in map(str, job.output):
            hashes = read_input_hashes(output)
            if any(hashes.get(path) != sha256(path) for path in map(str, job.input)):
                yield output

"""DVC keeps the bytes: dvc.yaml is written from the Snakemake graph, and a finished build is recorded.

Each job is one stage. Snakemake's record of each output is a DVC output beside it, so that Snakemake has nothing to do
after ``git clone && dvc pull``. The circumstances of the job are a DVC output as well, for the lineage. Fingerprints of
code and slices of the parameters are files too: the stages ``code`` and ``params`` write them, and other stages depend
on them.
"""

import hashlib
import json
import logging
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from masquerade import assets
from masquerade.core.errors import MasqueradeError
from masquerade.faces import MANIFESTS
from masquerade.lineage import dvc_internals, provenance, snakemake_internals, stage_files
from masquerade.lineage.snakemake_internals import graph, record_path
from masquerade.params import blocks, loading, overlays, paths, yaml_files
from masquerade.params.parameters import Parameters

if TYPE_CHECKING:
    from snakemake.jobs import Job

_RUN = "python workflow/scripts/stage.py {rule} {outputs}"
_HEADER = "# Generated from the Snakemake graph by `make dvc.yaml`; do not edit.\n"
_CODE_STAGE, _PARAMS_STAGE = "code", "params"
_DECLARED = Path("reference")
"""The folder with a folder of declared tables and figures for each paper."""


class NotRecorded(MasqueradeError):
    """The build is not in a state that may be recorded."""


def _circumstances_path(outputs: list[str]) -> str:
    """Where the circumstances of the job with these outputs lie."""
    return provenance.path_of(outputs[0]).as_posix()


def build_stages(jobs: list["Job"], root: Path = Path()) -> dict[str, dict[str, Any]]:
    """Every dvc.yaml -> its content, for these jobs."""
    over_paths = loading.layers_of(yaml_files.read(root / blocks.PARAMS)["scale"], root)
    read = {path for job in jobs for path in map(str, job.input)}
    fingerprints = sorted(path for path in read if path.startswith(f"{paths.CODE}/"))
    identities = sorted(path for path in read if assets.role_of(path))
    manifests = sorted(path for path in read if Path(path).parent == MANIFESTS)
    first: dict[str, Any] = {
        # A comment changes a source file but not its fingerprint: DVC then stops here.
        _CODE_STAGE: {
            "cmd": "python workflow/scripts/fingerprints.py",
            "deps": ["src/masquerade", "workflow/scripts", *([assets.LOCK.as_posix()] if identities else [])],
            "outs": [{path: {"persist": True}} for path in (*fingerprints, *identities, *manifests)],
        },
        _PARAMS_STAGE: {
            "cmd": "python workflow/scripts/effective_params.py",
            # The code determines the values that the files leave out.
            "deps": [blocks.PARAMS, *over_paths, "src/masquerade"],
            "outs": [{overlays.FILE.as_posix(): {"persist": True}}],
        },
    }
    outputs = sorted(str(path) for job in jobs for path in job.output)
    contents: dict[str, dict[str, Any]] = {
        stage_files.DVC_YAML: {
            "stages": {},
            # what `dvc params diff`, `metrics diff`, `plots diff` and `exp show` show
            "params": [overlays.FILE.as_posix()],
            "metrics": [path for path in outputs if path.endswith(f"/{paths.SCORES}")],
            "plots": [path for path in outputs if path.startswith(paths.RESULTS) and path.endswith(".png")],
        }
    }
    for name, stage in first.items():
        file = stage_files.of_rule(name)
        contents[file] = {"stages": {name: {"wdir": stage_files.root_from(file), **stage}}}
    for job in sorted(jobs, key=stage_name):
        if read.isdisjoint(map(str, job.output)):
            contents[stage_files.DVC_YAML]["stages"][stage_name(job)] = _stage(job)
        else:
            words = job.wildcards_dict
            file = stage_files.of_rule(job.rule.name, words.get("method") or words.get("paper") or "")
            content = contents.setdefault(file, {"stages": {}})
            content["stages"][stage_name(job)] = {"wdir": stage_files.root_from(file), **_stage(job)}
    return contents


def stage_name(job: "Job") -> str:
    """The name of a job's stage: its rule and its wildcards."""
    return "-".join([job.rule.name, *map(str, job.wildcards_dict.values())]).replace(".", "_")


def _stage(job: "Job") -> dict[str, Any]:
    outputs = [str(path) for path in job.output]
    read = {str(path) for path in job.input}
    return {
        "cmd": _RUN.format(rule=job.rule.name, outputs=" ".join(outputs)) + f" # rule {_short_hash(job.rule.shellcmd)}",
        "deps": sorted(_dependencies(read)),
        "outs": [
            {path: {"persist": True}} for path in [*outputs, *map(record_path, outputs), _circumstances_path(outputs)]
        ],
    }


def _dependencies(read: set[str]) -> set[str]:
    """The dependencies of a stage whose job reads these files: fewer, because DVC takes milliseconds for each.

    An index holds the checksum of its archive and comes from the same stage, so it stands for both. A folder of
    `_DECLARED` stands for its files if the job reads all of them.
    """
    read = {path for path in read if not (path.endswith(".zip") and paths.index(path) in read)}
    for folder in (path for path in _DECLARED.iterdir() if path.is_dir()):
        files = {path.as_posix() for path in folder.iterdir()}
        if len(files) > 1 and files <= read:
            read = read - files | {folder.as_posix()}
    return read


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def write_parameters(root: Path = Path()) -> Parameters:
    """Write the effective parameters, and return them. Raises MasqueradeError."""
    parameters = loading.load(root)
    overlays.write(parameters.tree, root / overlays.FILE)
    return parameters


def documents(jobs: list["Job"]) -> dict[str, str]:
    """Every dvc.yaml as it should be: path -> text, of every job of `rule all`."""
    return {
        path: _HEADER + yaml.safe_dump(content, sort_keys=False, width=1000)
        for path, content in build_stages(jobs).items()
    }


def record() -> int:
    """Put a finished build under DVC (`dvc commit`); returns the number of stages.

    Raises NotRecorded, saying why, where a job was interrupted or is out of date, an output has no record, an input
    changed behind Snakemake's back, or dvc.yaml is not that of the graph.
    """
    if any(path.is_file() for path in snakemake_internals.INCOMPLETE.rglob("*")):
        raise NotRecorded("a job was interrupted; run `snakemake all` first")
    jobs, out_of_date = graph()
    if out_of_date:
        raise NotRecorded(f"{len(out_of_date)} jobs are out of date; run `snakemake all` first")
    lost = [path for job in jobs for path in map(str, job.output) if not Path(record_path(path)).is_file()]
    lost += [path for job in jobs for path in [str(job.output[0])] if not provenance.path_of(path).is_file()]
    if lost:
        raise NotRecorded(
            f"{len(lost)} outputs have no record (the first: {lost[0]}); `dvc checkout`, or rebuild them: "
            f"`snakemake all --forcerun {' '.join(lost[:4])}{' ...' if len(lost) > 4 else ''}`"
        )
    stale = sorted(set(_changed_inputs(jobs)))
    if stale:
        raise NotRecorded(f"inputs changed behind Snakemake's back; run `snakemake all --forcerun {' '.join(stale)}`")
    present = stage_files.present(stage_files.DVC_YAML)
    if {path.as_posix(): path.read_text(encoding="utf-8") for path in present} != documents(jobs):
        raise NotRecorded(
            "dvc.yaml is not that of the graph; run `make dvc.yaml`, then `python workflow/scripts/finish.py record`"
        )
    write_parameters()
    _commit()
    return len(jobs) + 2


def _commit() -> None:
    """Commit the stages that changed. Raises NotRecorded."""
    from dvc.exceptions import DvcException

    logging.getLogger("dvc").setLevel(logging.WARNING)
    try:
        dvc_internals.commit_changed()
    except DvcException as error:
        raise NotRecorded(f"`dvc commit` failed: {error}") from error


def _changed_inputs(jobs: list["Job"]) -> Iterator[str]:
    @cache
    def sha256(path: str) -> str:
        with Path(path).open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"

    for job in jobs:
        for output in map(str, job.output):
            seen = json.loads(Path(record_path(output)).read_text(encoding="utf-8"))["input_checksums"]
            if any(seen.get(path) != sha256(path) for path in map(str, job.input)):
                yield output

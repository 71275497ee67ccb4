"""Exports a run as a Workflow Run RO-Crate: one zip with a description that other tools and archives can read.

RO-Crate 1.1 with the profiles Process, Workflow and Provenance Run Crate 0.5 (w3id.org/ro/wfrun). It describes the
workflow and its rules, an action for every job with its inputs, outputs and parameters, and the licence of every file.
Code, parameters, references, tables and figures are inside. Faces, measurements and checkpoints are listed by their
hashes, and are inside only on request.
"""

import hashlib
import json
from collections.abc import Collection
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from masquerade.assets.entries import asset
from masquerade.assets.identity import identity, role_of
from masquerade.core import files
from masquerade.lineage.history import History, Job, LineageError, working_copy
from masquerade.lineage.licences import ASSETS, OURS, SPDX, of_faces
from masquerade.params import loading, paths
from masquerade.params import parameters as params

if TYPE_CHECKING:
    from rocrate.model import Entity

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/provenance/0.5": ("Provenance Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
WORKFLOW = "Snakefile"
CITATION = "CITATION.cff"
REPOSITORY = (CITATION, "LICENSE", "README.md", "params.yaml", "requirements.lock", "environment.yml", "dvc.yaml",
              "dvc.lock", "records", "pyproject.toml", "src", "workflow", "scales", "profiles",
              "reference")  # fmt: skip
"""The files and folders of the repository that go into the crate, if they exist."""
SUFFIXES = {
    ".csv": "text/csv", ".md": "text/markdown", ".tex": "application/x-tex", ".json": "application/json",
    ".png": "image/png", ".svg": "image/svg+xml", ".yaml": "application/yaml", ".py": "text/x-python",
    ".zip": "application/zip", ".parquet": "application/vnd.apache.parquet",
}  # fmt: skip
BIOSCHEMAS = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
COMPLETED = "http://schema.org/CompletedActionStatus"


def export(output: Path, root: Path = Path(), scale: str | None = None, with_data: bool = False) -> int:
    """Write the crate of a built scale to ``output`` (a .zip). Returns the number of jobs in it.

    ``with_data``: the files of data/ and checkpoints/ go into it as well. Photographed faces are personal data. Raises
    LineageError if nothing was built or a file for the crate is missing.
    """
    if output.suffix != ".zip":
        raise LineageError(f"{output} has the wrong suffix: a crate is a .zip. Give it a name that ends in .zip.")
    parameters = loading.load(root, scale)
    history = working_copy(root, parameters.scale)
    jobs = history.jobs()
    if not jobs:
        raise LineageError(f"There is no build of scale {parameters.scale}. Run `snakemake all`, or `dvc pull`.")
    maker = _Maker(root, parameters, history, with_data)
    maker.describe(sorted(jobs.values(), key=lambda job: (job.started, job.key)))
    with files.written(output) as temporary:
        maker.crate.write_zip(temporary)
    return len(jobs)


class _Maker:
    def __init__(self, root: Path, parameters: params.Parameters, history: History, with_data: bool):
        from rocrate.rocrate import ROCrate

        self.root, self.parameters, self.history, self.with_data = root, parameters, history, with_data
        self.crate = ROCrate(version="1.1")
        self.files: dict[str, Entity] = {}
        self.rules: dict[str, tuple[Entity, Entity]] = {}
        self.commits: set[str] = set()

    def describe(self, jobs: list[Job]) -> None:
        """Fill the crate with the description of a run of these jobs. The oldest job is the first one."""
        cited = self.cited
        self.crate.name = f"{cited['title']}: a run at scale {self.parameters.scale}"
        self.crate.description = f"{len(jobs)} jobs from raw faces to tables. {self.parameters.caution.strip()}".strip()
        self.crate.license = self._licence(OURS)
        self.crate.root_dataset["conformsTo"] = [
            self._thing(place, "CreativeWork", name=name, version=number) for place, (name, number) in PROFILES.items()
        ]
        people = [self._person(number, author) for number, author in enumerate(cited["authors"], 1)]
        self.crate.root_dataset["author"] = self.crate.root_dataset["publisher"] = _one(people)
        self._repository()
        workflow = self._workflow(people)
        actions = [self._action(number, job, people[0]) for number, job in enumerate(jobs, 1)]
        self._run(workflow, actions, jobs, people[0])
        if "README.md" in self.files:
            self.files["README.md"]["about"] = self.crate.root_dataset
        self.crate.root_dataset["citation"] = self.files[CITATION]

    @cached_property
    def cited(self) -> dict[str, Any]:
        if not (self.root / CITATION).is_file():
            raise LineageError(f"{CITATION} is missing. Run this in the repository, or give --root.")
        return yaml.safe_load((self.root / CITATION).read_text(encoding="utf-8"))

    def _thing(self, identifier: str, kind: str, /, **properties: Any) -> "Entity":
        from rocrate.model import ContextEntity

        return self.crate.add(ContextEntity(self.crate, identifier, properties={"@type": kind, **properties}))

    def _licence(self, identifier: str) -> "Entity":
        place = f"{SPDX}{identifier}"
        return self.crate.get(place) or self._thing(place, "CreativeWork", name=identifier, identifier=place)

    def _person(self, number: int, author: dict[str, str]) -> "Entity":
        if "name" in author:
            return self._thing(f"#author-{number}", "Organization", name=author["name"])
        name = f"{author.get('given-names', '')} {author.get('family-names', '')}".strip()
        return self._thing(author.get("orcid", f"#author-{number}"), "Person", name=name)

    def _repository(self) -> None:
        for name in REPOSITORY:
            place = self.root / name
            for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
                if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path):
                    self.file(path.relative_to(self.root).as_posix(), OURS)

    def _workflow(self, people: "list[Entity]") -> "Entity":
        path = self.root / WORKFLOW
        if not path.is_file():
            raise LineageError(f"{WORKFLOW} is missing. Run this in the repository, or give --root.")
        kinds = ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"]
        workflow = self.crate.add_workflow(
            path, WORKFLOW, main=True, lang="snakemake", lang_version=version("snakemake"), properties={"@type": kinds}
        )
        workflow["name"] = f"{self.cited['title']} ({WORKFLOW})"
        workflow["version"], workflow["encodingFormat"] = self.cited["version"], "text/plain"
        workflow["conformsTo"] = self._thing(BIOSCHEMAS, "CreativeWork", name="Bioschemas ComputationalWorkflow")
        workflow["license"], workflow["author"] = self._licence(OURS), _one(people)
        judges = {*self.parameters.measure.judges, *self.parameters.recovery.judges}
        packages = [
            self._thing(f"#asset-{used.package}", "SoftwareApplication", name=used.package, description=used.what,
                        softwareVersion=_version(used.package), license=self._licence(used.licence),
                        **({"usageInfo": used.note} if used.note else {}))
            for used in ASSETS if not used.judges or judges & set(used.judges)
        ]  # fmt: skip
        workflow["softwareRequirements"] = [self.files["requirements.lock"], *packages]
        return workflow

    def file(self, path: str, licence: str | None = None) -> "Entity":
        """A file of the run. Files of data/ and checkpoints/ are outside the crate, with their hashes, by default."""
        if path in self.files:
            return self.files[path]
        if role := role_of(path):
            self.files[path] = self._outside(role)
            return self.files[path]
        kind = SUFFIXES.get(Path(path).suffix, "application/octet-stream" if self.history.maker(path) else "text/plain")
        about: dict[str, Any] = {"name": path, "encodingFormat": kind}
        job = self.history.maker(path)
        if job and job.outputs[path]:
            about["identifier"] = f"md5:{job.outputs[path]}"
        stated = licence or of_faces("the datasets", self._drawn)
        about["license"] = self._licence(stated) if " " not in stated else stated
        source = self.root / path
        folders = paths.BUILT if self.with_data else (paths.RESULTS,)
        inside = licence is not None or path.startswith(folders)
        if source.is_file():
            about["contentSize"] = str(source.stat().st_size)
        elif inside:
            raise LineageError(f"{path} is missing. Build it with `snakemake {path}`, or fetch it with `dvc pull`.")
        self.files[path] = (
            self.crate.add_file(source, path, properties=about)
            if inside
            else self._thing(f"#{path}", "CreativeWork", **about)
        )
        return self.files[path]

    def _outside(self, role: str) -> "Entity":
        """A weight file or dataset from outside, with the hashes of its parts. It never goes into the crate."""
        entry = asset(role)
        hashes = [f"sha256:{sha256}" for sha256 in identity(role, self.root).values() if sha256]
        return self._thing(
            f"#outside-{role}", "CreativeWork", name=f"{role}: {entry.title}", description=entry.source,
            license=entry.licence if " " in entry.licence else self._licence(entry.licence),
            conditionsOfAccess=f"Redistribution: {entry.redistribution}.",
            **({"identifier": _one(hashes)} if hashes else {}), **({"usageInfo": entry.terms} if entry.terms else {}),
        )  # fmt: skip

    @cached_property
    def _drawn(self) -> bool:
        """Whether all datasets of this run are drawn, so that none was made from files."""
        jobs = (self.history.maker(path) for path in self.history.outputs())
        return all(job.drawn for job in jobs if job and job.rule == "faces")

    def _rule(self, job: Job) -> "tuple[Entity, Entity]":
        """The step of the workflow and the program that carries it out."""
        if job.rule not in self.rules:
            tool = self._thing(f"#tool-{job.rule}", "SoftwareApplication", name=job.rule, description=job.template,
                               softwareVersion=self.cited["version"])  # fmt: skip
            step = self._thing(f"{WORKFLOW}#{job.rule}", "HowToStep", name=job.rule, position=str(len(self.rules) + 1))
            step["workExample"] = tool
            self.rules[job.rule] = (step, tool)
        return self.rules[job.rule]

    def _action(self, number: int, job: Job, agent: "Entity") -> "Entity":
        _, tool = self._rule(job)
        circumstances = job.circumstances
        knobs = [
            self._thing(
                f"#job-{number}-{key}",
                "PropertyValue",
                name=key,
                value=value if isinstance(value, str | int | float) else json.dumps(value),
            )
            for key, value in {**job.params, **job.words}.items()
        ]
        facts = {
            "code": f"sha256:{job.code_sha256}", "commit": circumstances.get("commit"),
            "run": circumstances.get("run"), "environment": circumstances.get("environment", {}).get("sha256"),
            "machine": circumstances and json.dumps(circumstances["machine"]),
        }  # fmt: skip
        action = self._thing(
            f"#job-{number}", "CreateAction", name=f"{job.rule}: {job.key}", description=job.command,
            startTime=_iso(job.started), endTime=_iso(job.ended), actionStatus=COMPLETED,
        )  # fmt: skip
        action["instrument"], action["agent"] = tool, agent
        action["object"] = _one([*self._read(job), *knobs])
        action["result"] = _one([self.file(path) for path in job.outputs])
        action["additionalProperty"] = [
            self._thing(f"#job-{number}-fact-{key}", "PropertyValue", name=key, value=value)
            for key, value in facts.items() if value
        ]  # fmt: skip
        return action

    def _read(self, job: Job, made: Collection[str] = ()) -> "list[Entity]":
        """The files that a job read, without those in ``made``.

        Photographs are one entry without file names, because a file name can identify a person.
        """
        if job.rule != "faces" or job.drawn:
            return [self.file(path) for path in job.inputs if path not in made]
        dataset = job.words["dataset"]
        digest = hashlib.sha256("".join(sorted(job.inputs.values())).encode()).hexdigest()
        return [self.crate.get(f"#photographs-{dataset}") or self._thing(
            f"#photographs-{dataset}", "CreativeWork", name=f"{len(job.inputs)} files of the dataset {dataset}",
            identifier=f"sha256:{digest}", license=of_faces(dataset, drawn=False),
        )]  # fmt: skip

    def _run(self, workflow: "Entity", actions: "list[Entity]", jobs: list[Job], agent: "Entity") -> None:
        """Add the whole run as one action, and Snakemake's orchestration of its jobs."""
        began, ended = _iso(min(job.started for job in jobs)), _iso(max(job.ended for job in jobs))
        workflow["step"] = [step for step, _ in self.rules.values()]
        workflow["hasPart"] = [tool for _, tool in self.rules.values()]
        period = {"startTime": began, "endTime": ended}
        description = (
            f"Every table and figure at scale {self.parameters.scale}, from nothing; parts may be of several builds."
        )
        run = self._thing(
            "#run", "CreateAction", name="snakemake all", description=description, actionStatus=COMPLETED, **period
        )
        made = {path for job in jobs for path in job.outputs}
        read = {thing.id: thing for job in jobs for thing in self._read(job, made)}
        run["instrument"], run["agent"] = workflow, agent
        run["object"] = _one([self.files["params.yaml"], *read.values()])
        run["result"] = [self.file(path) for path in sorted(made) if path.startswith(paths.RESULTS)]
        engine = self._thing(
            "#snakemake", "SoftwareApplication", name="Snakemake", softwareVersion=version("snakemake"),
            license=self._licence("MIT"), url="https://snakemake.github.io",
        )  # fmt: skip
        controls = []
        for number, (job, action) in enumerate(zip(jobs, actions, strict=True), 1):
            control = self._thing(f"#control-{number}", "ControlAction", name=f"orchestrate {job.rule}")
            control["instrument"], control["object"] = self.rules[job.rule][0], action
            controls.append(control)
        order = self._thing("#orchestration", "OrganizeAction", name="run of Snakemake", **period)
        order["instrument"], order["agent"], order["object"], order["result"] = engine, agent, controls, run
        self.crate.root_dataset["mentions"] = [run, order, *actions]


def _one(values: list[Any]) -> Any:
    """A list with one value becomes the value, as RO-Crate writes it."""
    return values[0] if len(values) == 1 else values


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed here"


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

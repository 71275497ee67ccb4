"""Exports a run as a Workflow Run RO-Crate: one zip with a description that other tools and archives can read.

RO-Crate 1.1 with the profiles Process, Workflow and Provenance Run Crate 0.5 (w3id.org/ro/wfrun). It describes the
workflow and its rules, an action for every job with its inputs, outputs and parameters, and the license of every file.
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

from masquerade.assets.packaged import PHOTOGRAPHS
from masquerade.core import files
from masquerade.lineage.crate_things import Things, one
from masquerade.lineage.history import Job, LineageError, working_copy
from masquerade.lineage.licenses import ASSETS, OURS, of_faces
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
BIOSCHEMAS = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
COMPLETED = "http://schema.org/CompletedActionStatus"


def export(output: Path, root: Path = Path(), scale: str | None = None, with_data: bool = False) -> int:
    """Write the crate of a built scale to ``output`` (a .zip). Returns the number of jobs in it.

    ``with_data``: the files of data/ and checkpoints/ go into it as well, except those of private datasets
    (`params.sharing`). Raises LineageError if nothing was built or a file for the crate is missing.
    """
    if output.suffix != ".zip":
        raise LineageError(f"{output} has the wrong suffix: a crate is a .zip. Give it a name that ends in .zip.")
    parameters = loading.load(root, scale)
    history = working_copy(root, parameters.scale)
    jobs = history.jobs()
    if not jobs:
        raise LineageError(f"There is no build of scale {parameters.scale}. Run `snakemake all`, or `dvc pull`.")
    things = Things(root, history, with_data, parameters.terms, parameters.private)
    _Run(parameters, things).describe(sorted(jobs.values(), key=lambda job: (job.started, job.key)))
    with files.write_atomically(output) as temporary:
        things.crate.write_zip(temporary)
    return len(jobs)


class _Run:
    """The description of a run: the workflow, its rules, and an action for each job."""

    def __init__(self, parameters: params.Parameters, things: Things):
        self.parameters, self.things, self.crate, self.files = parameters, things, things.crate, things.files
        self.rules: dict[str, tuple[Entity, Entity]] = {}

    def describe(self, jobs: list[Job]) -> None:
        """Fill the crate with the description of a run of these jobs. The oldest job is the first one."""
        cited = self.cited
        self.crate.name = f"{cited['title']}: a run at scale {self.parameters.scale}"
        self.crate.description = f"{len(jobs)} jobs from raw faces to tables. {self.parameters.caution.strip()}".strip()
        self.crate.license = self.things.license(OURS)
        self.crate.root_dataset["conformsTo"] = [
            self.things.add(place, "CreativeWork", name=name, version=number)
            for place, (name, number) in PROFILES.items()
        ]
        people = [self.things.person(number, author) for number, author in enumerate(cited["authors"], 1)]
        self.crate.root_dataset["author"] = self.crate.root_dataset["publisher"] = one(people)
        self._repository()
        workflow = self._workflow(people)
        actions = [self._action(number, job, people[0]) for number, job in enumerate(jobs, 1)]
        self._run(workflow, actions, jobs, people[0])
        if "README.md" in self.files:
            self.files["README.md"]["about"] = self.crate.root_dataset
        self.crate.root_dataset["citation"] = self.files[CITATION]

    @cached_property
    def cited(self) -> dict[str, Any]:
        if not (self.things.root / CITATION).is_file():
            raise LineageError(f"{CITATION} is missing. Run this in the repository, or give --root.")
        return yaml.safe_load((self.things.root / CITATION).read_text(encoding="utf-8"))

    def _repository(self) -> None:
        for name in REPOSITORY:
            place = self.things.root / name
            for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
                if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path):
                    self.things.file(path.relative_to(self.things.root).as_posix(), OURS)

    def _workflow(self, people: "list[Entity]") -> "Entity":
        path = self.things.root / WORKFLOW
        if not path.is_file():
            raise LineageError(f"{WORKFLOW} is missing. Run this in the repository, or give --root.")
        kinds = ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"]
        workflow = self.crate.add_workflow(
            path, WORKFLOW, main=True, lang="snakemake", lang_version=version("snakemake"), properties={"@type": kinds}
        )
        workflow["name"] = f"{self.cited['title']} ({WORKFLOW})"
        workflow["version"], workflow["encodingFormat"] = self.cited["version"], "text/plain"
        workflow["conformsTo"] = self.things.add(BIOSCHEMAS, "CreativeWork", name="Bioschemas ComputationalWorkflow")
        workflow["license"], workflow["author"] = self.things.license(OURS), one(people)
        judges = {*self.parameters.measure.judges, *self.parameters.recovery.judges}
        packages = [
            self.things.add(f"#asset-{used.package}", "SoftwareApplication", name=used.package, description=used.what,
                            softwareVersion=_version(used.package), license=self.things.license(used.license),
                            **({"usageInfo": used.note} if used.note else {}))
            for used in ASSETS
            if (judges & set(used.judges) if used.judges else self.parameters.terms or used.package not in PHOTOGRAPHS)
        ]  # fmt: skip
        workflow["softwareRequirements"] = [self.files["requirements.lock"], *packages]
        return workflow

    def _rule(self, job: Job) -> "tuple[Entity, Entity]":
        """The step of the workflow and the program that carries it out."""
        if job.rule not in self.rules:
            tool = self.things.add(f"#tool-{job.rule}", "SoftwareApplication", name=job.rule, description=job.template,
                                   softwareVersion=self.cited["version"])  # fmt: skip
            step = self.things.add(
                f"{WORKFLOW}#{job.rule}", "HowToStep", name=job.rule, position=str(len(self.rules) + 1)
            )
            step["workExample"] = tool
            self.rules[job.rule] = (step, tool)
        return self.rules[job.rule]

    def _action(self, number: int, job: Job, agent: "Entity") -> "Entity":
        _, tool = self._rule(job)
        circumstances = job.circumstances
        knobs = [
            self.things.add(
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
        action = self.things.add(
            f"#job-{number}", "CreateAction", name=f"{job.rule}: {job.key}", description=job.command,
            startTime=_iso(job.started), endTime=_iso(job.ended), actionStatus=COMPLETED,
        )  # fmt: skip
        action["instrument"], action["agent"] = tool, agent
        action["object"] = one([*self._read(job), *knobs])
        action["result"] = one([self.things.file(path) for path in job.outputs])
        action["additionalProperty"] = [
            self.things.add(f"#job-{number}-fact-{key}", "PropertyValue", name=key, value=value)
            for key, value in facts.items() if value
        ]  # fmt: skip
        return action

    def _read(self, job: Job, made: Collection[str] = ()) -> "list[Entity]":
        """The files that a job read, without those in ``made``.

        Photographs are one entry without file names, because a file name can identify a person.
        """
        if job.rule != "faces" or job.drawn:
            return [self.things.file(path) for path in job.inputs if path not in made]
        dataset = job.words["dataset"]
        digest = hashlib.sha256("".join(sorted(job.inputs.values())).encode()).hexdigest()
        return [self.crate.get(f"#photographs-{dataset}") or self.things.add(
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
            f"Every table and figure at scale {self.parameters.scale}. Networks that it adopts were trained before. "
            "Parts may be of several builds."
        )
        run = self.things.add(
            "#run", "CreateAction", name="snakemake all", description=description, actionStatus=COMPLETED, **period
        )
        made = {path for job in jobs for path in job.outputs}
        read = {thing.id: thing for job in jobs for thing in self._read(job, made)}
        run["instrument"], run["agent"] = workflow, agent
        run["object"] = one([self.files["params.yaml"], *read.values()])
        run["result"] = [self.things.file(path) for path in sorted(made) if path.startswith(paths.RESULTS)]
        engine = self.things.add(
            "#snakemake", "SoftwareApplication", name="Snakemake", softwareVersion=version("snakemake"),
            license=self.things.license("MIT"), url="https://snakemake.github.io",
        )  # fmt: skip
        controls = []
        for number, (job, action) in enumerate(zip(jobs, actions, strict=True), 1):
            control = self.things.add(f"#control-{number}", "ControlAction", name=f"orchestrate {job.rule}")
            control["instrument"], control["object"] = self.rules[job.rule][0], action
            controls.append(control)
        order = self.things.add("#orchestration", "OrganizeAction", name="run of Snakemake", **period)
        order["instrument"], order["agent"], order["object"], order["result"] = engine, agent, controls, run
        self.crate.root_dataset["mentions"] = [run, order, *actions]


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed here"


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

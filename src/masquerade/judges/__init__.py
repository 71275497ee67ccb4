"""Independent evaluators: detectors, recognisers, landmarks, attributes, features, pixel and perceptual differences.

Every judge looks at every picture of a set once; what it saw becomes columns of one measurements file, from
which metrics are computed without ever opening a picture again.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

from masquerade.settings import Settings


class Judge(ABC):
    """What a module of judges/ defines, once: a subclass with its ``Params`` (its block under ``judges:``).

    ``needs`` names the backbones (checkpoints trained by ``backbones.smk``) that it loads, ``assets`` the official
    weight files. ``quantities`` says what
    it measures: name -> the shape of one value ('' bool/number scalars as ``()``), so that the matrix and the metrics
    know without running it. Preprocessing (size, crop, range, colour order) belongs to the judge. Importing the
    module must not import torch; do it in the functions.
    """

    title: ClassVar[str]
    source: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    quantities: ClassVar[Mapping[str, tuple[int, ...]]]
    packages: ClassVar[tuple[str, ...]] = ()
    """Distributions whose versions decide what it measures; they are kept with the measurements."""
    assets: ClassVar[tuple[str, ...]] = ()
    """Roles of the official weight files that it loads, by ``assets.checked`` (docs/assets.md); a judge whose file is
    not there raises CheckpointError that says what to do."""
    shares: ClassVar[tuple[str, ...]] = ()
    """Backbones that may adopt the file of ``assets``: to methods that need one of them it is no stranger, and their
    tables say that they saw this judge in training."""

    class Params(Settings):
        pass

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        self.params = params
        self.backbones = backbones

    @abstractmethod
    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Judge a batch.

        ``images``: float32 (N, 3, H, W) in [-1, 1]; ``reference``: the source pictures of the same faces where
        ``images`` are derived from them, else None. Returns quantity -> array of shape (N, *shape); a quantity
        that could not be had for a face is NaN there (False for a detection). Quantities that compare with the
        reference are left out where there is none.
        """


BASE = Judge

"""The judges, one file for each kind: detectors, recognizers, landmarks, attributes, features and image differences.

A judge measures each image once, and its quantities become columns of a measurements file; metrics/ computes metrics
from that file without opening an image. Architectures are in networks/, networks that methods may use in backbones/.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from masquerade.core.settings import NoParameters, Settings


class Judge(ABC):
    """A judge. Each is one class of a file of judges/, with its ``Params``: its block under ``judges:``.

    ``needs`` names the backbones (checkpoints trained by ``backbones.smk``) that it loads, ``assets`` the official
    weight files. ``quantities`` maps the name of each quantity to the shape of one value, ``()`` for a number or bool;
    the matrix and the metrics use it without running the judge. Preprocessing (size, crop, range, color order) is
    part of the judge. Importing the module must not import torch; import torch in the functions.
    """

    name: ClassVar[str]
    """Its key in params.yaml, and the first part of the names of its columns."""
    title: ClassVar[str]
    source: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    quantities: ClassVar[Mapping[str, tuple[int, ...]]]
    engine: ClassVar[Literal["torch", "onnx", "opencv", "none"]] = "torch"
    """The library that runs its networks. Those of torch run on the GPU where there is one (`networks.inputs.place`);
    the others, and dlib's detector and landmarks, run on processors."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Distributions whose versions affect its measurements; the versions are saved with the measurements."""
    assets: ClassVar[tuple[str, ...]] = ()
    """Roles of the official weight files that it loads with ``check_asset`` (docs/datasets.md). If a file is missing,
    the judge raises CheckpointError, which says what to do."""
    shares: ClassVar[tuple[str, ...]] = ()
    """Backbones that may adopt the file of ``assets``. For a method that needs one of them this judge is not
    independent, and the tables state that the method was trained with it."""

    Params: ClassVar[type[Settings]] = NoParameters
    params: Any
    """An instance of ``Params``. A subclass with its own ``Params`` declares it with that type."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        self.params = params
        self.backbones = backbones

    @abstractmethod
    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Measure a batch.

        ``images``: float32 (N, 3, H, W) in [-1, 1]. ``reference``: the source images if ``images`` are derived from
        others, else None. Returns quantity -> array of shape (N, *shape). A quantity that cannot be measured for a face
        is NaN (False for a detection). Quantities that compare with the reference are left out without one.
        """


BASE = Judge

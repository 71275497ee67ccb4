"""What the fork server imports and loads once for many jobs: large libraries, models, and the code of Masquerade.

Jobs use the code of the server as long as it is the code on their disk. A job imports whatever else it needs.
"""

# ruff: noqa: F401 - importing is all that the two last functions are for
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from masquerade.core.fingerprints import PACKAGES

_SOURCE = Path(__file__).parents[2]
_NOT_FORGOTTEN = {"masquerade.networks.dlib_models", "masquerade.networks.torchvision_internals"}
"""Modules that hold models and operations of libraries, and stay when the code is forgotten."""


class PreloadedCode:
    """What ``load`` imports. Where it fails, nothing is held: a job that imports the same code reports the error."""

    def __init__(self, load: Callable[[], None]):
        before = {str(path): _state(path) for name in PACKAGES for path in (_SOURCE / name).rglob("*.py")}
        try:
            load()
        except Exception:  # noqa: BLE001 - a line that a person is about to write can raise anything
            forget_code()
        files = {file for name in _list_imported() if (file := sys.modules[name].__file__)}
        self._files = {file: before.get(file) for file in files}
        self._folders = {str(folder): _state(folder) for folder in {Path(file).parent for file in files}}
        """A file that is added to a room or taken from it changes the folder."""

    def matches(self, path: Sequence[str]) -> bool:
        """Whether a process that imports from ``path`` would import the same files, none of them changed since."""
        folder_of_code = next((folder for folder in path if (Path(folder) / "masquerade/__init__.py").is_file()), None)
        return (
            folder_of_code is not None
            and Path(folder_of_code).resolve() == _SOURCE.resolve()
            and all(_state(Path(name)) == state for name, state in (self._files | self._folders).items())
        )


def forget_code() -> None:
    """Let jobs import the code of Masquerade from the disk of their working copy, except the modules of what is loaded.

    The packages around those are forgotten too: they would lead a job to the sources of this process.
    """
    for name in _list_imported():
        if name not in _NOT_FORGOTTEN:
            del sys.modules[name]


def _list_imported() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] in PACKAGES]


def _state(path: Path) -> tuple[int, int] | None:
    """What differs after a change of a file or folder: the time of it, which no program can set, and the size."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ctime_ns, status.st_size


def load_libraries() -> Iterator[None]:
    """Load the libraries into this process, in steps of less than a second: between them it can do other things.

    First what every job needs. None that starts a thread belongs here: a process with threads must not fork.
    """
    import filelock
    import numpy.random
    import pandas
    import PIL.Image
    import pyarrow.dataset
    import pyarrow.parquet
    import pydantic.main
    import ruamel.yaml
    import threadpoolctl
    import tqdm
    import yaml

    PIL.Image.preinit()  # imports the plugins of the common formats
    yield
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg
    import matplotlib.figure

    yield
    import scipy.linalg
    import scipy.ndimage
    import scipy.spatial.distance

    yield
    import torch

    yield
    from masquerade.networks import dlib_models, torchvision_internals

    torchvision_internals.ensure()
    import cv2
    import efficientnet_lite_pytorch
    import facenet_pytorch
    import safetensors.torch
    import torchvision

    yield
    dlib_models.load_face_detector()
    yield
    dlib_models.load_landmark_predictor()
    yield
    import open_clip.model

    yield
    import torch._dynamo  # as the first step of an optimizer does

    yield
    from skimage.restoration import wiener  # scikit-image imports a module when its function is asked for


def load_code() -> None:
    """Import the code of Masquerade that most jobs need, and load the networks that come with packages."""
    from masquerade.core import discovery, process
    from masquerade.lineage import provenance, publishing, tracking
    from masquerade.networks import efficientnet_lite_internals, mobilenet_v2
    from masquerade.papers import claims_page, clusters, curves, documents, grids, tables
    from masquerade.params import blocks, protocols, slices
    from masquerade.pipeline import downstream_utility, evaluation, measuring, program, recovery

    for room in ("backbones", "judges", "methods", "attackers", "metrics"):
        for name in discovery.list_names(room):
            discovery.load(room, name)
    mobilenet_v2.load_folded_network()
    efficientnet_lite_internals.load_quick_network(0)
    process.limit_threads(1)

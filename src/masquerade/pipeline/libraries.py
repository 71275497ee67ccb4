"""The libraries that many jobs import, and two models that many load. The fork server loads them once.

A job imports whatever else it needs.
"""

# ruff: noqa: F401 - importing is all that this module is for
import sys

from masquerade.networks import dlib_models, torchvision_internals


def load() -> None:
    """Load them into this process. None that starts a thread belongs here: a process with threads must not fork."""
    torchvision_internals.ensure()
    import cv2
    import dlib
    import efficientnet_lite_pytorch
    import facenet_pytorch
    import filelock
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg
    import matplotlib.figure
    import open_clip.model
    import pandas
    import PIL.Image
    import pyarrow.dataset
    import pyarrow.parquet
    import pydantic.main
    import ruamel.yaml
    import safetensors.torch
    import scipy.linalg
    import scipy.ndimage
    import scipy.spatial.distance
    import threadpoolctl
    import torchvision
    import tqdm
    import yaml
    from skimage.restoration import wiener  # scikit-image imports a module when its function is asked for

    PIL.Image.preinit()  # imports the plugins of the common formats

    dlib_models.frontal_face_detector()
    dlib_models.landmark_predictor()
    _forget_own_code()


def _forget_own_code() -> None:
    """Let jobs import the code of Masquerade from the disk of their working copy, except the modules of what is loaded.

    The packages around those are forgotten too: they would lead a job to the sources of this process.
    """
    kept = {dlib_models.__name__, torchvision_internals.__name__}
    for name in [name for name in sys.modules if name.partition(".")[0] == "masquerade"]:
        if name not in kept:
            del sys.modules[name]

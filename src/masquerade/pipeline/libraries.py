"""The libraries that many jobs import, and two models that many load. The fork server loads them once.

A job imports whatever else it needs.
"""

# ruff: noqa: F401 - importing is all that this module is for
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
    import torch._dynamo  # as the first step of an optimiser does
    import torchvision
    import tqdm
    import yaml
    from skimage.restoration import wiener  # scikit-image imports a module when its function is asked for

    PIL.Image.preinit()  # imports the plugins of the common formats

    dlib_models.frontal_face_detector()
    dlib_models.landmark_predictor()

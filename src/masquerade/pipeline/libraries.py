"""The libraries that many jobs import, and the face detector that many unpack. The fork server loads them once.

A job imports whatever else it needs.
"""

# ruff: noqa: F401 - importing is all that this module is for
from masquerade.networks import frontal_face_detector, torchvision_internals


def load() -> None:
    """Load them into this process. None that starts a thread belongs here: a process with threads must not fork."""
    torchvision_internals.ensure()
    import cv2
    import dlib
    import filelock
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg
    import matplotlib.figure
    import pandas
    import PIL.JpegImagePlugin
    import PIL.PngImagePlugin
    import pyarrow.dataset
    import pydantic.main
    import safetensors.torch
    import scipy.linalg
    import scipy.ndimage
    import skimage.metrics
    import threadpoolctl
    import torchvision
    import tqdm
    import yaml

    frontal_face_detector.detector()

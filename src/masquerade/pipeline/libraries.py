"""The libraries that many jobs import. The fork server imports them once; a job imports whatever else it needs."""

# ruff: noqa: F401 - importing is all that this module is for
from masquerade.networks import torchvision_internals


def load() -> None:
    """Import the libraries into this process."""
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

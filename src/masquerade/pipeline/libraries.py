"""What many jobs import, and the models that many load. The fork server imports and loads them once.

A job imports whatever else it needs.
"""

# ruff: noqa: F401 - importing is all that this module is for
from collections.abc import Iterator


def load() -> Iterator[None]:
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
    dlib_models.frontal_face_detector()
    yield
    dlib_models.landmark_predictor()
    yield
    import open_clip.model

    yield
    import torch._dynamo  # as the first step of an optimizer does

    yield
    from skimage.restoration import wiener  # scikit-image imports a module when its function is asked for


def load_own_code() -> None:
    """Import the code of Masquerade that most jobs need, and load the networks that come with packages."""
    from masquerade.core import discovery, process
    from masquerade.lineage import provenance, publishing, tracking
    from masquerade.networks import efficientnet_lite_internals, mobilenet_v2
    from masquerade.papers import claims_page, clusters, face_selection, figures, imported_rows, latex, markdown, tables
    from masquerade.params import blocks, imported, informed, slices
    from masquerade.pipeline import (
        downstream_utility,
        evaluation,
        features,
        measuring,
        metric_summary,
        program,
        recovery,
    )

    for room in ("backbones", "judges", "methods", "attackers", "metrics"):
        for name in discovery.names(room):
            discovery.load(room, name)
    mobilenet_v2.folded_network()
    efficientnet_lite_internals.quick_network(0)
    process.limit_threads(1)

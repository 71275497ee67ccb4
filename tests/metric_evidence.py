"""Invented measurements, for tests of metrics."""

import numpy as np
import pandas as pd

from masquerade.core import discovery
from masquerade.metrics import Evidence


def table(names, embeddings=None, **columns):
    tree = {"id": [f"f{row}" for row in range(len(names))], "identity": names, "status": ["ok"] * len(names)}
    if embeddings is not None:
        columns["r.embedding"] = list(np.asarray(embeddings, dtype=np.float32))
    return pd.DataFrame({**tree, **columns})


def evidence(original, derived, calibration=None):
    calibration = original if calibration is None else calibration
    return Evidence(original, derived, calibration, tuple({name.split(".")[0] for name in derived if "." in name}))


def compute(metric, measurements, **params):
    cls = discovery.load("metrics", metric)
    return cls(cls.Params(**params)).compute(measurements)


def on_circle(*degrees):
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], 1)

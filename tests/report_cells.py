"""Invented cells and a table, for tests of the report."""

import numpy as np

from masquerade.core.statistics import encode
from masquerade.papers.context import Context
from masquerade.papers.measured import Results
from masquerade.params.blocks import StandIns

CONTEXT = Context(
    scale="tiny",
    seeds=(0, 1),
    stand_ins=StandIns(datasets={"celeba_hq": "synthetic_hq"}, judges={"facenet": "recognizer_a"}),
    commit="abc1234",
    caution="Numbers mean nothing.",
)
HQ = {"name": "CelebA-HQ", "role": "celeba_hq"}
FACENET = {"name": "FaceNet", "role": "facenet"}
RE_ID = {"metric": "re_identification_rate", "judge": FACENET}
TABLE = {
    "kind": "table", "paper": "identitydp", "name": "table1", "title": "Table I", "caption": "A <b>caption</b> & more",
    "source": "Table I, section V", "dataset": HQ,
    "columns": [
        {"title": "Re-ID(%)", "group": "Face", **RE_ID, "direction": "lower", "digits": 1, "percent": True},
        {"title": "FID", "metric": "frechet_distance", "judge": FACENET, "direction": "lower", "digits": 2},
        {"title": "PSNR", "metric": "psnr", "direction": "higher", "digits": 2, "spread": "metric", "printed": False},
    ],
    "rows": [
        {"title": "Ours(ε=6)", "method": "identitydp", "variant": "eps_6", "printed": ["2.0", "30 ± 1.5"]},
        {"title": "Ours(ε=100)", "method": "identitydp", "variant": "eps_100", "printed": ["40.0", "20"]},
        {"title": "Blur", "method": "gaussian_blur", "variant": "size_7", "printed": ["90.0", "25"]},
        {"title": "Other", "method": "ciagan", "variant": "default", "printed": ["1.0", "null"], "note": "not given"},
        {"title": "Original", "method": "original", "variant": "control", "control": True, "note": "control: itself"},
    ],
}  # fmt: skip
SKIPPED = {("synthetic_hq", "ciagan", "default"): "ciagan is not built yet"}
KNOBS = {
    "original": {"control": {}},
    "gaussian_blur": {"size_7": {"kind": "resample", "size": 7.0}},
    "identitydp": {"eps_100": {"epsilon": 100.0, "sampler": "seeded"}, "eps_6": {"epsilon": 6.0, "sampler": "seeded"}},
}


def number(value, over=10, of=10, half=0.0, **more):
    """A value whose bootstrap samples lie evenly within ``half`` of it."""
    drawn = {} if value is None else {"draws": encode(value + half * np.linspace(-1, 1, 41))}
    return {"value": value, "over": over, "of": of, "spread": None, "spread_of": "", "note": "", **drawn, **more}


def cell(method, variant, re_id, fd, psnr, seed=0):
    return {
        "cell": {"dataset": "synthetic_hq", "method": method, "variant": variant, "seed": seed},
        "measurements": {f"data/tiny/measurements/synthetic_hq/{method}/{variant}/{seed}.parquet": "0f" * 16},
        "statement": {"faces": 10, "refused": 0, "epsilon": 6.0} if method == "identitydp" else {"faces": 10},
        "metrics": {
            "re_identification_rate": {"recognizer_a": number(re_id)},
            "frechet_distance": {"recognizer_a": number(fd, note="from 10 faces")},
            "psnr": {"": number(psnr, spread=1.5, spread_of="faces")},
        },
    }


CELLS = [
    *(cell("identitydp", "eps_6", 0.1 + 0.02 * seed, 31.0, 20.0, seed) for seed in (0, 1)),
    *(cell("identitydp", "eps_100", 0.5, 33.0, 25.0, seed) for seed in (0, 1)),
    cell("gaussian_blur", "size_7", 0.95, 12.0, None),
    cell("original", "control", 1.0, 0.0, None),
]
CLAIM = {
    "paper": "identitydp", "name": "small_hides_more", "says": "A smaller ε hides more.", "source": "Figure 4",
    "dataset": HQ, "measure": RE_ID, "greater": [{"method": "identitydp", "variant": "eps_100"}],
    "than": [{"method": "identitydp", "variant": "eps_6"}],
}  # fmt: skip


def results(cells=CELLS, skipped=SKIPPED, context=CONTEXT) -> Results:
    return Results(cells, skipped, context)

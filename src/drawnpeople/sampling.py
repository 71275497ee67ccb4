"""Samples a person. The order of the random draws is fixed: another order gives other people for the same seed.

The order is that of the statements in `sample_person`: gender, age, ancestry and build; the local changes of the shape
(features.py); skin; hair; eyes; brows and beard; habits; at last the seed of the person's textures. A helper draws the
same number of times whatever the person is, where that is cheap, so that a changed odd alters few other people.
"""

from typing import Any

import numpy as np

from drawnpeople.colors import IRIS, hair_color
from drawnpeople.features import sample_features
from drawnpeople.labels import linear
from drawnpeople.person import Person
from drawnpeople.template import template

YOUNGEST, OLDEST = 16.0, 86.0
"""Years. The template has no children."""

BEARDS = {"none": 0.0, "stubble": 0.0022, "mustache": 0.008, "goatee": 0.010, "full": 0.013}
"""Kind of beard -> usual length in metres."""


def sample_person(rng: np.random.Generator) -> Person:
    """Sample a person."""
    male = bool(rng.random() < 0.5)
    age = _age(rng)
    old = min(max((age - 40.0) / 40.0, 0.0), 1.15)
    ancestry = _ancestry(rng)
    muscle = _clip(rng, 0.52 if male else 0.42, 0.14, 0.05, 0.95)
    weight = _clip(rng, 0.47 + 0.04 * old, 0.17, 0.08, 0.98)
    local = sample_features(rng, male, old, float(ancestry[0]), template().local_names)
    skin = _skin(rng, male, age, old, ancestry)
    fair = _fair(ancestry, skin["melanin"])
    hair = _hair(rng, male, age, old, ancestry, fair)
    iris = _iris(rng, fair, hair["hair_name"])
    return Person(
        male=male,
        age=age,
        ancestry=ancestry,
        muscle=muscle,
        weight=weight,
        local=local,
        **skin,
        iris=iris,
        **_brows(rng, male, old),
        **_beard(rng, male, age),
        **hair,
        **_habits(rng, male, age, old, hair["style"]),
        texture=int(rng.integers(0, 2**31)),
    )


def _clip(rng: np.random.Generator, mean: float, deviation: float, low: float, high: float) -> float:
    return float(np.clip(rng.normal(mean, deviation), low, high))


def _pick(rng: np.random.Generator, odds: dict[str, float]) -> str:
    """A key, drawn with the given odds, which need not sum to 1."""
    weights = np.array(list(odds.values()))
    return str(rng.choice(list(odds), p=weights / weights.sum()))


def _age(rng: np.random.Generator) -> float:
    """Years: half of the people are under 40, a fifth over 60."""
    low, high = ((YOUNGEST, 40.0), (36.0, 62.0), (58.0, OLDEST))[int(rng.choice(3, p=[0.50, 0.28, 0.22]))]
    return float(rng.uniform(low, high))


def _ancestry(rng: np.random.Generator) -> np.ndarray:
    """float32 (3,): african, asian and caucasian shares. Most people have mainly one; a third are mixed.

    Uniform draws only: those of a Dirichlet distribution go through powers, which differ between processors.
    """
    main = int(rng.choice(3, p=[0.27, 0.29, 0.44]))
    mixed = float(rng.uniform(0.0, 0.12) if rng.random() < 0.65 else rng.uniform(0.12, 0.60))
    first = float(rng.uniform(0.0, 1.0))
    shares = np.zeros(3, np.float32)
    shares[main] = 1.0 - mixed
    shares[(main + 1) % 3] = mixed * first
    shares[(main + 2) % 3] = mixed * (1.0 - first)
    return shares


def _skin(rng: np.random.Generator, male: bool, age: float, old: float, ancestry: np.ndarray) -> dict[str, Any]:
    african, asian, caucasian = (float(share) for share in ancestry)
    melanin = _clip(rng, 0.80 * african + 0.31 * asian + 0.17 * caucasian, 0.10, 0.02, 0.98)
    pale = min(max(1.0 - melanin / 0.35, 0.0), 1.0)
    lines = 1.15 * old + 0.16 * min(max((age - 25.0) / 20.0, 0.0), 1.0)
    return {
        "melanin": melanin,
        "rosy": _clip(rng, 0.38 + 0.20 * pale, 0.20, 0.0, 1.0),
        "freckles": float(np.clip(rng.normal(-0.35, 0.55), 0.0, 1.0)) * pale,
        "wrinkles": float(np.clip(lines * rng.uniform(0.75, 1.25) + rng.uniform(0.0, 0.06), 0.0, 1.0)),
        "eye_bags": _clip(rng, 0.18 + 0.42 * old + 0.05 * male, 0.20, 0.0, 1.0),
        "gloss": _clip(rng, 0.15 - 0.04 * old, 0.04, 0.05, 0.26),
        "moles": _moles(rng),
        "lip_red": _clip(rng, 0.52 if male else 0.66, 0.13, 0.1, 1.0),
    }


def _moles(rng: np.random.Generator) -> np.ndarray:
    """float32 (N, 3) of x, z and radius in metres on the template; up to three, on cheeks, chin and forehead."""
    count = int(rng.choice(4, p=[0.45, 0.30, 0.17, 0.08]))
    columns = rng.uniform(-0.055, 0.055, count), rng.uniform(0.630, 0.785, count), rng.uniform(0.0007, 0.0018, count)
    return np.stack(columns, -1).astype(np.float32)


def _fair(ancestry: np.ndarray, melanin: float) -> float:
    """In [0, 1]: how likely fair hair and pale eyes are. 0 for dark skin and for those without caucasian ancestry."""
    return float(np.clip(1.6 * ancestry[2] - 0.35, 0.0, 1.0)) * min(max(1.25 - 2.6 * melanin, 0.0), 1.0)


def _hair(
    rng: np.random.Generator, male: bool, age: float, old: float, ancestry: np.ndarray, fair: float
) -> dict[str, Any]:
    dark = 1.0 - fair
    name = _pick(
        rng,
        {
            "black": 0.10 + 2.2 * dark,
            "dark brown": 0.30 + 0.7 * dark,
            "brown": 0.75 * fair + 0.10,
            "light brown": 0.60 * fair + 0.02,
            "blond": 1.25 * fair,
            "red": 0.22 * fair,
        },
    )
    turning = rng.normal(50.0, 8.0)
    gray = float(np.clip((age - turning) / 15.0, 0.0, 1.0)) if age > 36.0 else 0.0
    dyed = rng.random() < (0.05 if male else 0.28)
    gray *= 0.15 if dyed else 1.0
    color = hair_color(rng, name, gray)
    style = _style(rng, male, age, old, float(ancestry[0]))
    curl = _curl(rng, style, ancestry)
    loss = max(0.0, rng.normal(0.004 + 0.010 * (age > 30.0), 0.009) + 0.012 * old)
    return {
        "style": style,
        "hair": color,
        "hair_name": "white" if gray > 0.85 else "gray" if gray > 0.5 else name,
        "gray": gray,
        "curl": curl,
        "length": float(rng.uniform(0.75, 1.30)),
        "recede": float(min(loss, 0.034)) * (1.0 if male else 0.15),
        "part": float(rng.choice([-1.0, 1.0]) * rng.uniform(0.0, 0.035)),
        "dense": _clip(rng, 1.0 - 0.18 * old, 0.12, 0.55, 1.3),
    }


def _style(rng: np.random.Generator, male: bool, age: float, old: float, african: float) -> str:
    afro = 1.6 * max(african - 0.45, 0.0)
    if male:
        bald = 0.08 + 0.16 * (age > 30.0) + 0.35 * old
        return _pick(
            rng,
            {
                "bald": bald,
                "buzz": 0.45,
                "short": 1.0,
                "side": 0.9 * (1.0 - 0.5 * african),
                "medium": 0.08 * (1.0 - 0.6 * min(old, 1.0)),
                "long": 0.06 * (1.0 - 0.6 * min(old, 1.0)),
                "afro": 0.5 * afro,
                "curly": 0.14,
                "fringe": 0.06 * (1.0 - min(old, 1.0)),
            },
        )
    return _pick(
        rng,
        {
            "short": 0.10 + 0.25 * old,
            "side": 0.06 + 0.20 * old,
            "medium": 0.75,
            "long": 1.2 * (1.0 - 0.7 * min(old, 1.0)),
            "fringe": 0.65 * (1.0 - 0.4 * min(old, 1.0)),
            "bob": 0.65,
            "bun": 0.24,
            "ponytail": 0.22 * (1.0 - 0.8 * min(old, 1.0)),
            "curly": 0.45,
            "afro": 0.8 * afro,
        },
    )


def _curl(rng: np.random.Generator, style: str, ancestry: np.ndarray) -> float:
    african, asian = float(ancestry[0]), float(ancestry[1])
    odds = np.array([0.55 + 0.8 * asian, 0.45 + 0.2 * african, 0.14 + 0.9 * african])
    drawn = float(np.clip(rng.choice([0.08, 0.5, 0.88], p=odds / odds.sum()) + rng.normal(0.0, 0.08), 0.0, 1.0))
    return {"afro": 1.0, "curly": max(drawn, 0.78)}.get(style, drawn)


def _iris(rng: np.random.Generator, fair: float, hair_name: str) -> np.ndarray:
    """Linear light, float32 (3,)."""
    pale = fair * (0.3 if hair_name == "black" else 1.0)
    name = _pick(
        rng,
        {
            "dark brown": 0.15 + 1.2 * (1.0 - fair),
            "brown": 0.55,
            "hazel": 0.05 + 0.30 * pale,
            "green": 0.30 * pale,
            "blue": 0.75 * pale,
            "gray": 0.25 * pale,
        },
    )
    return np.clip(linear(IRIS[name]) * np.float32(rng.uniform(0.8, 1.25)), 0.01, 0.6).astype(np.float32)


def _brows(rng: np.random.Generator, male: bool, old: float) -> dict[str, Any]:
    return {
        "brow_dense": _clip(rng, (1.00 if male else 0.66) - 0.16 * old, 0.17, 0.40, 1.30),
        "brow_height": _clip(rng, 0.0004 if male else 0.0016, 0.0011, -0.0022, 0.0035),
        "brow_arch": _clip(rng, 0.28 if male else 0.60, 0.20, 0.0, 1.0),
    }


def _beard(rng: np.random.Generator, male: bool, age: float) -> dict[str, Any]:
    kind = _pick(rng, {"none": 0.48, "stubble": 0.18, "mustache": 0.08, "goatee": 0.10, "full": 0.16})
    factor = float(rng.uniform(0.45, 1.3))
    if not male or age < 19.0:
        kind = "none"
    return {"beard": kind, "beard_length": BEARDS[kind] * factor}


def _habits(rng: np.random.Generator, male: bool, age: float, old: float, style: str) -> dict[str, Any]:
    glasses = float(np.clip(rng.uniform(-2.0, 1.0) + 0.35 * old, 0.0, 1.0))
    smiles = float(rng.uniform(0.15, 0.90))
    lipstick = float(rng.uniform(0.0, 1.0))
    hat = float(max(0.0, rng.uniform(-2.5, 0.5)))
    return {
        "glasses": glasses,
        "smiles": smiles,
        "lipstick": 0.0 if male else lipstick,
        "hat": hat * (style not in ("afro", "bun", "ponytail")),
    }

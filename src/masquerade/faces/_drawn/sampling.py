"""Samples a person. The order of the random draws is fixed: another order gives other people for the same seed."""

import numpy as np

from masquerade.faces._drawn import proportions
from masquerade.faces._drawn.person import Person
from masquerade.faces._drawn.proportions import Traits

# sRGB skin from the lightest to the darkest; a person's tone is interpolated between them
SKIN_TONES = np.array(
    [
        [0.950, 0.815, 0.735],
        [0.915, 0.745, 0.640],
        [0.875, 0.690, 0.570],
        [0.780, 0.575, 0.440],
        [0.650, 0.450, 0.330],
        [0.500, 0.325, 0.230],
        [0.345, 0.215, 0.155],
    ]
)
HAIR_COLOURS = {
    "black": (0.075, 0.065, 0.062),
    "dark brown": (0.165, 0.110, 0.078),
    "brown": (0.290, 0.190, 0.125),
    "light brown": (0.430, 0.300, 0.190),
    "blond": (0.740, 0.590, 0.370),
    "red": (0.480, 0.215, 0.100),
}
IRIS_COLOURS = {
    "dark brown": (0.145, 0.085, 0.055),
    "brown": (0.300, 0.175, 0.090),
    "hazel": (0.390, 0.300, 0.150),
    "green": (0.330, 0.410, 0.270),
    "blue": (0.330, 0.465, 0.600),
    "grey": (0.430, 0.480, 0.510),
}


def sample_person(rng: np.random.Generator) -> Person:
    """Sample a person. Proportions are spread almost uniformly, not normally, so that people differ clearly."""
    t = _traits(rng)
    skin = skin_tone(t.tone) * (1.0 + 0.045 * rng.uniform(-1, 1) * np.array([0.6, 0.0, -1.0]))
    hair_name, hair, grey = _hair_colour(rng, t)
    iris = _iris(rng, t, hair_name)
    style = _style(rng, t)
    curl = _curl(rng, style)
    if style == "afro":
        hair_name, hair = "black", np.array(HAIR_COLOURS["black"]) * rng.uniform(0.85, 1.5)
    beard_kind = _beard_kind(rng, t)
    lengths = _hair_lengths(rng)
    moles = _moles(rng)
    # Python evaluates the arguments from left to right, so the groups below draw in this order.
    return Person(
        male=t.male,
        age=t.age,
        skin=np.clip(skin, 0.05, 0.98),
        tone=t.tone,
        **_complexion(rng, t),
        **proportions.skull(rng, t),
        iris=np.clip(iris, 0.03, 0.8),
        **proportions.eyes(rng, t),
        **proportions.brows(rng, t),
        **proportions.nose(rng, t),
        **proportions.mouth(rng, t),
        **proportions.ears_and_neck(rng, t),
        build=t.build,
        style=style,
        hair=hair,
        hair_name=hair_name,
        grey=grey,
        curl=curl,
        hair_length=float(lengths.get(style, 0.0)),
        **_hair(rng, t, style),
        **_beard(rng, t, beard_kind),
        **_habits(rng, t, style),
        moles=moles,
        texture=int(rng.integers(0, 2**31)),
    )


def skin_tone(tone: float) -> np.ndarray:
    """sRGB of the place ``tone`` in [0, 1] among SKIN_TONES."""
    place = np.clip(tone, 0.0, 1.0) * (len(SKIN_TONES) - 1)
    return np.array([np.interp(place, np.arange(len(SKIN_TONES)), SKIN_TONES[:, i]) for i in range(3)])


def _traits(rng: np.random.Generator) -> Traits:
    male = bool(rng.random() < 0.5)
    age = float(
        rng.choice(
            [rng.uniform(5, 14), rng.uniform(16, 40), rng.uniform(36, 62), rng.uniform(60, 86)],
            p=[0.13, 0.45, 0.25, 0.17],
        )
    )
    child = float(np.clip((16.0 - age) / 10.0, 0.0, 1.0))
    old = float(np.clip((age - 42.0) / 36.0, 0.0, 1.0))
    return Traits(
        male=male,
        age=age,
        child=child,
        old=old,
        man=float(male) * (1.0 - child),
        tone=float(rng.uniform(0, 1) ** 1.15),
        build=float(np.clip(rng.normal(0.0, 0.55), -1, 1)),
    )


def _pale(t: Traits) -> float:
    """1 for the lightest skin, 0 from the middle tone on. Light skin makes fair hair and pale eyes likelier."""
    return np.clip(1.0 - t.tone * 2.0, 0.0, 1.0)


def _hair_colour(rng: np.random.Generator, t: Traits) -> tuple[str, np.ndarray, float]:
    """The name of the colour, its sRGB value, and the share of grey."""
    light = _pale(t)
    weights = np.array([0.45 + t.tone, 0.5, 0.45 * light + 0.08, 0.35 * light, 0.40 * light, 0.14 * light])
    name = str(rng.choice(list(HAIR_COLOURS), p=weights / weights.sum()))
    hair = np.array(HAIR_COLOURS[name]) * rng.uniform(0.85, 1.15)
    grey = float(np.clip((t.age - rng.uniform(38, 68)) / 16.0, 0, 1)) if t.age > 38 else 0.0
    return name, hair, grey


def _iris(rng: np.random.Generator, t: Traits, hair_name: str) -> np.ndarray:
    """sRGB of the iris."""
    pale = _pale(t) * (0.35 if hair_name == "black" else 1.0)
    weights = np.array([0.5 + t.tone, 0.5, 0.28 * pale + 0.03, 0.25 * pale, 0.5 * pale, 0.2 * pale])
    return np.array(IRIS_COLOURS[str(rng.choice(list(IRIS_COLOURS), p=weights / weights.sum()))]) * rng.uniform(
        0.85, 1.15
    )


def _style(rng: np.random.Generator, t: Traits) -> str:
    if t.male:
        loss = t.old * 0.55 + (0.12 if t.age > 24 else 0.0)
        styles, odds = (
            ("bald", "receding", "cropped", "short", "afro", "long"),
            np.array([0.55 * loss, 0.7 * loss, 0.35, 0.75, 0.05 + 0.35 * (t.tone > 0.55), 0.07]),
        )
    else:
        styles, odds = (
            ("long", "bob", "updo", "short", "afro"),
            np.array([0.55 * (1.0 - 0.6 * t.old), 0.4, 0.22, 0.07 + 0.35 * t.old, 0.03 + 0.4 * (t.tone > 0.55)]),
        )
    return str(rng.choice(styles, p=odds / odds.sum()))


def _curl(rng: np.random.Generator, style: str) -> float:
    if style == "afro":
        return 1.0
    return float(np.clip(rng.choice([0.05, 0.5, 0.9], p=[0.5, 0.3, 0.2]) + rng.normal(0, 0.08), 0, 1))


def _beard_kind(rng: np.random.Generator, t: Traits) -> str:
    if not (t.male and t.age > 19):
        return "none"
    return str(rng.choice(["none", "stubble", "moustache", "goatee", "beard"], p=[0.46, 0.17, 0.1, 0.1, 0.17]))


def _hair_lengths(rng: np.random.Generator) -> dict[str, float]:
    """Style -> length of the hair below the eyes, mm. Every length is drawn, whichever style the person has."""
    return {
        "bob": rng.uniform(62, 98),
        "long": rng.uniform(135, 175),
        "updo": -20.0,
        "afro": rng.uniform(5, 55),
    }


def _moles(rng: np.random.Generator) -> np.ndarray:
    """float (N, 3) of x, y and radius in mm; up to three moles."""
    count = int(rng.integers(0, 4))
    return np.stack([rng.uniform(-55, 55, count), rng.uniform(-95, 40, count), rng.uniform(0.8, 1.9, count)], -1)


def _complexion(rng: np.random.Generator, t: Traits) -> dict[str, float]:
    return {
        "rosy": float(np.clip(rng.normal(0.45 + 0.2 * t.child, 0.3), 0, 1.2)),
        "freckles": float(max(0.0, rng.uniform(-2.2, 1.0)) * (t.tone < 0.35)),
        "wrinkles": float(t.old * rng.uniform(0.75, 1.25)),
        "noise_phase": float(rng.uniform(0, 6.28)),
    }


def _hair(rng: np.random.Generator, t: Traits, style: str) -> dict[str, float]:
    return {
        "hairline": proportions.spread(rng, 63.0 + (14.0 if style == "receding" else 0.0) - 4.0 * t.child, 7.0),
        "temple": float(rng.uniform(0, 1)) + (1.2 if style == "receding" else 0.0),
        "volume": {"cropped": 3.5, "bald": 2.5, "receding": 5.0, "afro": rng.uniform(18, 40), "updo": 9.0}.get(
            style, float(rng.uniform(8, 20))
        ),
        "part": float(rng.choice([-1, 1]) * rng.uniform(0.1, 1.0)),
        "fringe": float(rng.random() < (0.32 if style in ("bob", "long") else 0.2 if style == "short" else 0.0))
        * float(rng.uniform(0.7, 1.0)),
    }


def _beard(rng: np.random.Generator, t: Traits, kind: str) -> dict[str, float]:
    return {
        "beard": float(kind == "beard") * rng.uniform(0.7, 1.0),
        "moustache": float(kind in ("moustache", "goatee", "beard")) * rng.uniform(0.65, 1.0),
        "goatee": float(kind in ("goatee", "beard")) * rng.uniform(0.65, 1.0),
        "stubble": float(t.man * (t.age > 17))
        * (rng.uniform(0.45, 0.8) if kind == "stubble" else rng.uniform(0.02, 0.25)),
    }


def _habits(rng: np.random.Generator, t: Traits, style: str) -> dict[str, float]:
    return {
        "glasses": float(np.clip(rng.uniform(-1.2, 1.0) + 0.25 * t.old, 0, 1)) * (t.age > 8),
        "lipstick": float(0.0 if t.male or t.age < 16 else rng.uniform(0, 1)),
        "smiles": float(rng.uniform(0.15, 0.9)),
        "hat": float(max(0.0, rng.uniform(-2.5, 0.5))) * (style not in ("afro", "updo")),
    }

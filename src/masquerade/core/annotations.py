"""What the rooms share of what is known of a face: names of attributes and parsing classes, and the face box."""

import numpy as np
import pandas as pd

ANNOTATION = "attribute."
"""Prefix of the columns of annotations in an index, in measurements and in features."""
ANNOTATED = "annotated"
"""The kind of labels that are annotations of a dataset, in contrast to pseudo-labels."""


def list_annotation_columns(rows: pd.DataFrame) -> list[str]:
    """The columns with attributes that are true or false of every face; other annotations are left out."""
    return [name for name in rows if name.startswith(ANNOTATION) and rows[name].dtype == bool]


INNER = (
    "5_o_Clock_Shadow", "Arched_Eyebrows", "Bags_Under_Eyes", "Big_Lips", "Big_Nose", "Bushy_Eyebrows", "Eyeglasses",
    "Goatee", "Heavy_Makeup", "High_Cheekbones", "Male", "Mouth_Slightly_Open", "Mustache", "Narrow_Eyes", "No_Beard",
    "Pale_Skin", "Pointy_Nose", "Rosy_Cheeks", "Smiling", "Wearing_Lipstick", "Young",
)  # fmt: skip
"""CelebA's attributes of the inner region of the face (Barattin et al. 2023, Table 5)."""
OUTER = (
    "Bald", "Bangs", "Black_Hair", "Blond_Hair", "Brown_Hair", "Chubby", "Double_Chin", "Gray_Hair", "Oval_Face",
    "Receding_Hairline", "Sideburns", "Straight_Hair", "Wavy_Hair", "Wearing_Earrings", "Wearing_Hat",
    "Wearing_Necklace", "Wearing_Necktie",
)  # fmt: skip
"""CelebA's attributes of the outer region (the same table). It leaves out 2 of CelebA's 40: Attractive and Blurry."""
ATTRIBUTES = (
    "Male", "Young", "Smiling", "Heavy_Makeup", "Blond_Hair", "Black_Hair", "Brown_Hair", "Gray_Hair", "Wavy_Hair",
)  # fmt: skip
"""CelebA's names of the attributes in LReOrg's Table 1, in the order of the logits. CelebA has no attribute for the
length of the hair.
"""
CLASSES = (
    "background", "skin", "l_brow", "r_brow", "l_eye", "r_eye", "eye_g", "l_ear", "r_ear", "ear_r", "nose", "mouth",
    "u_lip", "l_lip", "neck", "neck_l", "cloth", "hair", "hat",
)  # fmt: skip
"""Parsing classes: label -> name, in the order of the published weights and of the masks in the archives."""
FACE = ("skin", "l_brow", "r_brow", "l_eye", "r_eye", "eye_g", "nose", "mouth", "u_lip", "l_lip")
"""The parsing classes of the face region of iFADIT's Eq. 11: all inside the outline of the face, with glasses."""
FACE_BOX = (0.23, 0.32, 0.76, 0.85)
"""Where the face is in an aligned (FFHQ-style) crop: left, top, right, bottom as shares of the side.

From brows to chin, as dlib's HOG detector draws it. Alignment fixes this box, so an attacker can use it too when a
detector finds no face.
"""
FOREHEAD = 0.5
"""Height of the forehead as a share of the height from brows to chin. The 68 landmarks end at the brows.

Hairline to brows, brows to nose base and nose base to chin are each about a third of a face (neoclassical canon)."""


def compute_boxes(landmarks: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The face in images of ``shape`` (height, width), from brows to chin and with the forehead: int (N, 4).

    ``landmarks``: (N, 68, 2). Left, top, right, bottom in pixels; right and bottom are exclusive. A box is clipped to
    the image, and empty if its landmarks lie outside of it.
    """
    height, width = shape
    low, high = landmarks.min(axis=1), landmarks.max(axis=1)
    low[:, 1] -= FOREHEAD * (high[:, 1] - low[:, 1])
    corners = np.concatenate([np.floor(low), np.ceil(high) + 1], axis=1)
    return np.clip(corners, 0, [width, height, width, height]).astype(int)

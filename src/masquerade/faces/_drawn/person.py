"""The constant features of one drawn person: bone structure, colouring, hair, age and habits."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Person:
    """Geometry in millimetres, colouring in sRGB [0, 1], tendencies in [0, 1], unless a comment says otherwise."""

    male: bool
    age: float  # years
    skin: np.ndarray
    tone: float  # place among SKIN_TONES, 0 lightest
    rosy: float
    freckles: float
    wrinkles: float
    noise_phase: float
    # skull and jaw
    skull_half: float
    skull_top: float
    cheek_half: float
    depth: float
    chin_drop: float
    jaw_square: float  # exponent of the jaw's curve: 1.6 pointed, 3.2 square
    jaw_taper: float
    chin_recess: float
    chin_bump: float
    chin_cleft: float
    cheekbone: float
    cheek_full: float
    fold: float
    double_chin: float
    # eyes and brows
    eye_x: float
    eye_half: float
    lid_upper: float
    lid_lower: float
    eye_tilt: float
    crease: float  # distance of the lid's crease above the lid
    iris: np.ndarray
    iris_radius: float
    eye_bags: float
    smile_eyes: float
    socket: float
    brow_ridge: float
    brow_inner: float
    brow_length: float
    brow_y: float
    brow_arch: float
    brow_tilt: float
    brow_thick: float
    brow_dense: float
    # nose
    nose_tip_y: float
    nose_half: float
    nose_bridge: float
    nose_height: float
    nose_hump: float
    nose_tip: float
    nose_wing: float
    nose_bend: float
    bridge_half: float
    nostril: float
    # mouth
    mouth_y: float
    mouth_half: float
    upper_lip: float
    lower_lip: float
    cupid: float
    mouth_curve: float
    lip_red: float
    # ears, neck, build
    ear_height: float
    ear_out: float
    neck_half: float
    build: float  # -1 slim .. 1 heavy
    # hair
    style: str  # bald, receding, cropped, short, afro, bob, long, updo
    hair: np.ndarray
    hair_name: str
    grey: float
    curl: float  # 0 straight, 0.5 wavy, 1 curly
    hairline: float
    temple: float
    volume: float
    hair_length: float
    part: float
    fringe: float
    beard: float
    moustache: float
    goatee: float
    stubble: float
    # habits
    glasses: float
    lipstick: float
    smiles: float
    hat: float
    moles: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))  # x, y, radius
    texture: int = 0

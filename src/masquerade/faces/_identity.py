"""Who is drawn: what stays from picture to picture (bone structure, colouring, hair, age) and how it is sampled."""

from dataclasses import dataclass, field

import numpy as np

# sRGB skin from the lightest to the darkest, between which a person's tone is interpolated
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


@dataclass(frozen=True)
class Person:
    """Geometry in millimetres, colouring in sRGB [0, 1], tendencies in [0, 1] unless said otherwise."""

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


def skin_tone(tone: float) -> np.ndarray:
    """sRGB of a place in [0, 1] among SKIN_TONES."""
    place = np.clip(tone, 0.0, 1.0) * (len(SKIN_TONES) - 1)
    return np.array([np.interp(place, np.arange(len(SKIN_TONES)), SKIN_TONES[:, i]) for i in range(3)])


def sample_person(rng: np.random.Generator) -> Person:
    """Draw a person. Proportions spread uniformly rather than normally: people must be easy to tell apart."""

    def spread(middle, reach):
        return float(
            middle + 1.22 * reach * (0.65 * rng.uniform(-1, 1) + 0.35 * np.clip(rng.normal(0, 0.6), -1.4, 1.4))
        )

    male = bool(rng.random() < 0.5)
    age = float(
        rng.choice(
            [rng.uniform(5, 14), rng.uniform(16, 40), rng.uniform(36, 62), rng.uniform(60, 86)],
            p=[0.13, 0.45, 0.25, 0.17],
        )
    )
    child = float(np.clip((16.0 - age) / 10.0, 0.0, 1.0))
    old = float(np.clip((age - 42.0) / 36.0, 0.0, 1.0))
    man = float(male) * (1.0 - child)
    tone = float(rng.uniform(0, 1) ** 1.15)
    build = float(np.clip(rng.normal(0.0, 0.55), -1, 1))
    skin = skin_tone(tone) * (1.0 + 0.045 * rng.uniform(-1, 1) * np.array([0.6, 0.0, -1.0]))

    hair_names = list(HAIR_COLOURS)
    light = np.clip(1.0 - tone * 2.0, 0.0, 1.0)
    weights = np.array([0.45 + tone, 0.5, 0.45 * light + 0.08, 0.35 * light, 0.40 * light, 0.14 * light])
    hair_name = str(rng.choice(hair_names, p=weights / weights.sum()))
    hair = np.array(HAIR_COLOURS[hair_name]) * rng.uniform(0.85, 1.15)
    grey = float(np.clip((age - rng.uniform(38, 68)) / 16.0, 0, 1)) if age > 38 else 0.0
    iris_names = list(IRIS_COLOURS)
    pale_eyes = light * (0.35 if hair_name == "black" else 1.0)
    eye_weights = np.array(
        [0.5 + tone, 0.5, 0.28 * pale_eyes + 0.03, 0.25 * pale_eyes, 0.5 * pale_eyes, 0.2 * pale_eyes]
    )
    iris = np.array(IRIS_COLOURS[str(rng.choice(iris_names, p=eye_weights / eye_weights.sum()))]) * rng.uniform(
        0.85, 1.15
    )

    if male:
        loss = old * 0.55 + (0.12 if age > 24 else 0.0)
        styles, odds = (
            ("bald", "receding", "cropped", "short", "afro", "long"),
            np.array([0.55 * loss, 0.7 * loss, 0.35, 0.75, 0.05 + 0.35 * (tone > 0.55), 0.07]),
        )
    else:
        styles, odds = (
            ("long", "bob", "updo", "short", "afro"),
            np.array([0.55 * (1.0 - 0.6 * old), 0.4, 0.22, 0.07 + 0.35 * old, 0.03 + 0.4 * (tone > 0.55)]),
        )
    style = str(rng.choice(styles, p=odds / odds.sum()))
    curl = (
        1.0
        if style == "afro"
        else float(np.clip(rng.choice([0.05, 0.5, 0.9], p=[0.5, 0.3, 0.2]) + rng.normal(0, 0.08), 0, 1))
    )
    if style == "afro":
        hair_name, hair = "black", np.array(HAIR_COLOURS["black"]) * rng.uniform(0.85, 1.5)
    beard_kind = (
        str(rng.choice(["none", "stubble", "moustache", "goatee", "beard"], p=[0.46, 0.17, 0.1, 0.1, 0.17]))
        if male and age > 19
        else "none"
    )
    lengths = {
        "bob": rng.uniform(62, 98),
        "long": rng.uniform(135, 175),
        "updo": -20.0,
        "afro": rng.uniform(5, 55),
    }
    spots = int(rng.integers(0, 4))
    moles = np.stack([rng.uniform(-55, 55, spots), rng.uniform(-95, 40, spots), rng.uniform(0.8, 1.9, spots)], -1)
    full = 1.8 * build
    return Person(
        male=male,
        age=age,
        skin=np.clip(skin, 0.05, 0.98),
        tone=tone,
        rosy=float(np.clip(rng.normal(0.45 + 0.2 * child, 0.3), 0, 1.2)),
        freckles=float(max(0.0, rng.uniform(-2.2, 1.0)) * (tone < 0.35)),
        wrinkles=float(old * rng.uniform(0.75, 1.25)),
        noise_phase=float(rng.uniform(0, 6.28)),
        skull_half=spread(74.0 - 1.0 * child, 4.5),
        skull_top=spread(112.0 + 3 * child, 7.0),
        cheek_half=spread(68.5 + 2.4 * build + 1.5 * man + 1.0 * child, 4.8),
        depth=spread(93.0, 4.0),
        chin_drop=spread(110.5 + 4.5 * man - 15.0 * child, 7.5),
        jaw_square=spread(2.1 + 0.33 * man + 0.35 * build, 0.5),
        jaw_taper=max(0.0, spread(0.13 - 0.04 * man, 0.10)),
        chin_recess=max(0.0, spread(0.06, 0.06)),
        chin_bump=spread(4.2 + 1.6 * man - 1.5 * child, 2.2),
        chin_cleft=max(0.0, spread(-0.4, 1.9)) * (1 - child),
        cheekbone=spread(2.4 - 1.8 * child, 2.2),
        cheek_full=spread(1.0 + full + 2.6 * child - 1.4 * old, 2.2),
        fold=float(np.clip(rng.normal(0.15 + 0.75 * old + 0.15 * man, 0.15), 0, 1.3)) * (1 - child),
        double_chin=float(np.clip(build - 0.35 + 0.3 * old, 0, 1)),
        eye_x=spread(31.5 - 0.5 * child, 2.6),
        eye_half=spread(15.2 + 1.5 * child, 1.5),
        lid_upper=spread(6.6 + 1.8 * child - 0.9 * old - 0.3 * man, 1.25),
        lid_lower=spread(4.2, 0.9),
        eye_tilt=spread(0.05 - 0.06 * old, 0.11),
        crease=max(0.7, spread(2.9 - 0.8 * old, 1.9)),
        iris=np.clip(iris, 0.03, 0.8),
        iris_radius=spread(6.0 + 0.6 * child, 0.35),
        eye_bags=float(np.clip(rng.normal(0.15 + 0.5 * old, 0.25), 0, 1)),
        smile_eyes=float(rng.uniform(0.2, 1.0)),
        socket=spread(6.6 + 1.2 * man + 1.2 * old - 1.8 * child, 2.2),
        brow_ridge=max(0.0, spread(2.3 + 2.4 * man - 1.8 * child, 1.9)),
        brow_inner=max(5.0, spread(11.5 - 1.2 * man, 3.6)),
        brow_length=spread(36.5, 4.5),
        brow_y=spread(17.5 - 2.2 * man + 1.2 * child, 3.4),
        brow_arch=max(0.2, spread(3.4 - 1.2 * man, 2.4)),
        brow_tilt=spread(0.5, 4.0),
        brow_thick=max(1.1, spread(2.8 + 1.0 * man - 0.6 * child, 1.25)),
        brow_dense=float(np.clip(rng.normal(0.95 + 0.05 * man - 0.25 * old - 0.12 * child, 0.15), 0.3, 1)),
        nose_tip_y=-spread(41.5 - 6.5 * child + 2.2 * old + 1.5 * man, 5.0),
        nose_half=spread(16.4 + 1.3 * man - 1.5 * child + 2.8 * (tone - 0.35), 2.9),
        nose_bridge=max(1.0, spread(5.0 + 1.5 * man - 2.5 * child - 2.2 * (tone - 0.35), 2.4)),
        nose_height=spread(18.0 + 1.8 * man - 4.5 * child, 3.2),
        nose_hump=spread(0.2 + 0.5 * man, 1.5) * (1 - child),
        nose_tip=spread(2.6, 1.7),
        nose_wing=spread(5.2, 1.3),
        nose_bend=spread(0.0, 1.5),
        bridge_half=spread(6.4 + 0.6 * man, 1.5),
        nostril=spread(1.0, 0.3),
        mouth_y=-spread(71.5 - 8.0 * child + 1.5 * old, 4.0),
        mouth_half=spread(25.8 - 3.4 * child + 0.8 * man, 3.2),
        upper_lip=max(2.6, spread(5.9 - 1.0 * man - 1.7 * old + 1.9 * (tone - 0.35), 1.9)),
        lower_lip=max(4.2, spread(8.4 - 0.9 * man - 1.8 * old + 1.9 * (tone - 0.35), 2.2)),
        cupid=float(np.clip(rng.normal(0.26, 0.13), 0, 0.55)),
        mouth_curve=spread(-0.2 - 1.0 * old, 1.4),
        lip_red=float(np.clip(rng.normal(0.62 - 0.12 * man - 0.15 * old, 0.15), 0.15, 0.95)),
        ear_height=spread(30.0 + 3.0 * old - 3.0 * child, 3.5),
        ear_out=spread(8.5, 3.6),
        neck_half=spread(46.5 + 7.5 * man - 10.0 * child + 5.0 * build, 4.0),
        build=build,
        style=style,
        hair=hair,
        hair_name=hair_name,
        grey=grey,
        curl=curl,
        hairline=spread(63.0 + (14.0 if style == "receding" else 0.0) - 4.0 * child, 7.0),
        temple=float(rng.uniform(0, 1)) + (1.2 if style == "receding" else 0.0),
        volume={"cropped": 3.5, "bald": 2.5, "receding": 5.0, "afro": rng.uniform(18, 40), "updo": 9.0}.get(
            style, float(rng.uniform(8, 20))
        ),
        hair_length=float(lengths.get(style, 0.0)),
        part=float(rng.choice([-1, 1]) * rng.uniform(0.1, 1.0)),
        fringe=float(rng.random() < (0.32 if style in ("bob", "long") else 0.2 if style == "short" else 0.0))
        * float(rng.uniform(0.7, 1.0)),
        beard=float(beard_kind == "beard") * rng.uniform(0.7, 1.0),
        moustache=float(beard_kind in ("moustache", "goatee", "beard")) * rng.uniform(0.65, 1.0),
        goatee=float(beard_kind in ("goatee", "beard")) * rng.uniform(0.65, 1.0),
        stubble=float(man * (age > 17))
        * (rng.uniform(0.45, 0.8) if beard_kind == "stubble" else rng.uniform(0.02, 0.25)),
        glasses=float(np.clip(rng.uniform(-1.2, 1.0) + 0.25 * old, 0, 1)) * (age > 8),
        lipstick=float(0.0 if male or age < 16 else rng.uniform(0, 1)),
        smiles=float(rng.uniform(0.15, 0.9)),
        hat=float(max(0.0, rng.uniform(-2.5, 0.5))) * (style not in ("afro", "updo")),
        moles=moles,
        texture=int(rng.integers(0, 2**31)),
    )

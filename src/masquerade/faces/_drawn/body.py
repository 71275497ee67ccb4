"""Ears, neck, shoulders and clothes."""

import numpy as np

from masquerade.faces._drawn.geometry import Head, smoothstep
from masquerade.faces._drawn.paint import LABEL, linear, texture
from masquerade.faces._drawn.scene import Scene


def ears(scene: Scene, head: Head, turn: np.ndarray) -> None:
    """Put the ears into the scene: two tilted discs beside the head, each with a rim and a hollow."""
    p = head.person
    for side, name in ((-1, "l_ear"), (1, "r_ear")):
        middle = (turn @ np.array([side * (p.cheek_half + 0.35 * p.ear_out - 1.0), -9.0, -8.0])).tolist()
        half_u = (
            abs(np.cos(np.radians(head.shot.yaw))) * p.ear_out
            + 15.0 * max(0.0, -side * np.sin(np.radians(head.shot.yaw)))
            + 1.0
        )
        lean = np.radians(8.0 * side + head.shot.roll)
        du, dv = scene.u - middle[0], scene.v - middle[1]
        a = (du * np.cos(lean) - dv * np.sin(lean)) / half_u
        b = (du * np.sin(lean) + dv * np.cos(lean)) / p.ear_height
        a = a * (1.0 + 0.25 * np.clip(-b, 0, 1))
        radius = a * a + b * b
        at = np.flatnonzero(radius.ravel() < 1.0)
        r, aa, bb = (value.ravel()[at] for value in (radius, a, b))
        hollow = np.exp(-(((aa + 0.25 * side) / 0.42) ** 2) - ((bb / 0.55) ** 2))
        rim = np.exp(-(((np.sqrt(r) - 0.86) / 0.12) ** 2))
        depth = middle[2] + 9.0 * np.sqrt(1.0 - r) - 5.0 * hollow + 1.5 * rim
        base = linear(p.skin) * (1.0 - np.array([0.0, 0.14, 0.12]) * (1 - 0.6 * p.tone))
        colour = base * (1.0 - 0.45 * hollow - 0.1 * (1 - rim))[:, None]
        scene.put(at, depth.astype(np.float32), colour, np.float32(0.4), np.uint8(LABEL[name]), 1.0)


def torso(scene: Scene, head: Head, turn: np.ndarray) -> None:
    """Put neck, shoulders and clothing into the scene. They move with the head but hardly turn with it."""
    pivot = (turn @ np.array([0.0, -75.0, -30.0])).tolist()
    u, v = scene.u - pivot[0], scene.v - pivot[1] - 75.0
    half, depth = _neck(scene, head, u, v)
    _clothing(scene, head, u, v, half, depth)


def _childhood(age: float) -> float:
    """1 up to 6 years, 0 from 16 years, linear between."""
    return float(np.clip((16.0 - age) / 10.0, 0.0, 1.0))


def _neck(scene: Scene, head: Head, u, v) -> tuple[np.ndarray, np.ndarray]:
    """Put the neck into the scene. Returns its half-width and its depth at every sample, in mm."""
    p = head.person
    drop = np.clip((-80.0 - v) / 60.0, 0.0, 1.6)
    half = p.neck_half * (0.97 + 0.05 * drop**2) + 34.0 * smoothstep(0.35, 1.3, drop) ** 2 * (0.7 + 0.3 * p.male)
    across = u / half
    neck = np.abs(across) < 1.0
    depth = -32.0 + 1.5 * drop + 58.0 * np.sqrt(np.maximum(1.0 - across**2, 0.0))
    cord = np.abs(np.abs(u) - 30.0 + 16.0 * drop)
    depth = (
        depth
        + (1.8 - p.build) * np.exp(-((cord / 7.0) ** 2))
        + (2.4 * p.male * (1 - _childhood(p.age))) * np.exp(-(((u / 7.0) ** 2) + ((drop - 0.5) / 0.18) ** 2))
    )
    depth = depth + 9.0 * p.double_chin * np.exp(-((u / 32.0) ** 2) - ((v + p.chin_drop + 4.0) / 11.0) ** 2)
    at = np.flatnonzero((neck & (v < -45.0)).ravel())
    skin = linear(p.skin) * np.array([0.97, 0.93, 0.92])
    grain = 1.0 + 0.04 * texture(u.ravel()[at], v.ravel()[at], 1.1, p.texture + 3, 1.2)
    lines = 1.0 - (0.06 + 0.1 * p.wrinkles) * np.exp(
        -(((np.mod(v.ravel()[at] + 0.004 * u.ravel()[at] ** 2, 17.0) - 8.0) / 1.2) ** 2)
    )
    scene.put(at, depth.ravel()[at], skin * (grain * lines)[:, None], np.float32(0.4), np.uint8(LABEL["neck"]), 1.0)
    return half, depth


def _clothing(scene: Scene, head: Head, u, v, half, depth) -> None:
    """Put clothes into the scene. They cover the shoulders up to the line of the collar on the neck."""
    p, s = head.person, head.shot
    # shoulders: a rounded ridge that falls away from the neck
    width = 150.0 + 22.0 * (p.male - 0.5) + 14.0 * p.build - 45.0 * _childhood(p.age)
    au = np.abs(u)
    ridge = -116.0 - 0.20 * np.clip(au - 48.0, 0, None) - 42.0 * smoothstep(0.72, 1.12, au / width)
    neckline = {
        "crew": -134.0 + 16.0 * (au / 55.0) ** 2,
        "vee": -172.0 + 58.0 * (au / 52.0),
        "shirt": -160.0 + 48.0 * (au / 50.0),
        "turtle": -117.0 + 3.0 * (au / 52.0) ** 2,
    }[s.collar]
    neckline = np.where(au < half, neckline, 1e3)
    top = np.minimum(ridge + 3.0 * (au > half), neckline)
    cloth = v < top
    fall = np.clip((ridge - v) / 55.0, -0.3, 1.0)
    sheet = -42.0 + 50.0 * np.sqrt(np.maximum(1.0 - (1.0 - fall) ** 2, 0.0)) - 30.0 * (au / 150.0) ** 2
    near_neck = np.exp(-((np.clip(au - half, 0, None) / 14.0) ** 2))
    sheet = np.maximum(sheet, np.where(au < half, depth + 3.0, -200.0)) + 4.0 * near_neck
    folds = texture(u * 0.55 + 0.3 * v, v * 0.25, 1.1, s.texture, 1.6)
    sheet = sheet + 1.6 * folds
    hem = np.exp(-(((top - v - 4.0) / 1.4) ** 2)) * (s.collar in ("crew", "turtle"))
    weave = 1.0 + 0.05 * texture(u, v, 0.6, s.texture // 3, 0.2) - 0.22 * hem
    colour = linear(s.clothing) * weave[..., None]
    if s.collar == "shirt":
        wing = (au < half + 26.0) & (v > -150.0 - 0.2 * au)
        colour = np.where((wing & cloth)[..., None], np.minimum(colour * 1.25 + 0.02, 0.9), colour)
        sheet = sheet + 3.0 * wing
    at = np.flatnonzero(cloth.ravel())
    scene.put(
        at,
        sheet.ravel()[at].astype(np.float32),
        colour.reshape(-1, 3)[at],
        np.float32(0.06),
        np.uint8(LABEL["cloth"]),
        0.15,
    )

"""Objects around the face: background, hat, spectacles, and an object in front of the mouth."""

import numpy as np

from masquerade.core.seeding import generator
from masquerade.faces._drawn.geometry import LEVELS, lookup, meet, smoothstep
from masquerade.faces._drawn.paint import LABEL, linear, texture


def background(u, v, centre, side, shot) -> np.ndarray:
    """Linear colours (n, n, 3) of a plain wall, a gradient, lights out of focus, or a blurred room."""
    a, b = linear(shot.background[0]), linear(shot.background[1])
    x, y = (u - centre[0]) / side, (v - centre[1]) / side
    cloud = texture(x * 60.0, y * 60.0, 1.0, shot.texture, 2.0)
    if shot.background_kind == "plain":
        mix = np.clip(0.25 + 0.08 * cloud - 0.3 * (x * shot.light[0] + y * shot.light[1]), 0, 1)
    elif shot.background_kind == "gradient":
        mix = np.clip(0.5 + 0.9 * y + 0.5 * x + 0.05 * cloud, 0, 1)
    elif shot.background_kind == "indoor":
        rng = generator(shot.texture, "room")
        edges = np.sort(rng.uniform(-0.5, 0.5, 4))
        levels = rng.uniform(0, 1, 5)
        mix = levels[0] + sum((levels[i + 1] - levels[i]) * smoothstep(-0.05, 0.05, x - edges[i]) for i in range(4))
        mix = np.clip(0.8 * mix + 0.25 * smoothstep(-0.08, 0.08, y - rng.uniform(-0.2, 0.4)) + 0.05 * cloud, 0, 1)
    else:
        mix = np.clip(0.5 + 0.25 * cloud, 0, 1)
    image = a + (b - a) * mix[..., None].astype(np.float32)
    if shot.background_kind == "bokeh":
        rng = generator(shot.texture, "bokeh")
        for _ in range(9):
            cx, cy, radius = rng.uniform(-0.55, 0.55), rng.uniform(-0.5, 0.55), rng.uniform(0.03, 0.10)
            disc = smoothstep(1.1, 0.8, np.hypot(x - cx, y - cy) / radius)
            image = image + (disc * rng.uniform(0.02, 0.16))[..., None] * linear(0.5 + 0.5 * rng.random(3))
    return image.astype(np.float32)


def hat(image, label, u, v, turn, head, pixel) -> np.ndarray:
    """The picture with a knitted hat over the hair, or unchanged if the shot has none."""
    shot = head.shot
    if not shot.hat:
        return image
    thick = max(7.0, 0.55 * head.person.volume)
    top = head.top + thick + 6.0
    up = np.clip((LEVELS - 40.0) / (top - 40.0), 0.0, 1.0)
    dome = np.sqrt(np.maximum(1.0 - up**2.6, 1e-4)).astype(np.float32)
    widths, depths = (head.person.skull_half + thick) * dome, (head.person.depth + 0.8 * thick) * dome
    w, room = meet(u, v, turn, widths, depths, start=60.0, rounds=5)
    x, y, z = (u * turn[0, i] + v * turn[1, i] + w * turn[2, i] for i in range(3))
    width, depth = lookup(widths, y), lookup(depths, y)
    brim = 44.0 + 6.0 * (z < 0) - 0.0025 * x * x
    alpha = np.clip((y - brim) / 1.5 + 0.5, 0, 1) * (room > 0) * (y < top)
    angle = np.arctan2(x, z)
    normal = np.stack([x / width**2, 0.6 * (y - 40.0) / (top - 40.0) ** 2 * (y > 40), z / depth**2], -1) @ turn.T
    normal /= np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-9)
    light = np.clip(normal @ shot.light * 0.75 + 0.25, 0, 1)
    knit = 1.0 + 0.16 * np.sin(angle * 46.0) * np.cos(y * 0.25) + 0.05 * texture(x, y, 0.6, shot.texture, 0.3)
    knit = knit * np.where(y < brim + 17.0, 1.08, 1.0) * (1.0 - 0.4 * np.exp(-(((y - brim - 17.0) / 1.5) ** 2)))
    colour = linear(shot.hat_colour) * knit[..., None]
    lit = colour * (shot.fill * 0.9 + shot.key * light)[..., None]
    shade = np.exp(-((np.clip(brim - y, 0, None) / 9.0) ** 2)) * (room > 0) * (y < brim) * (z > 0)
    image = image * (1.0 - 0.45 * shade)[..., None]
    image = image + (lit - image) * alpha[..., None]
    label[alpha > 0.5] = LABEL["hat"]
    return image


def glasses(image, label, u, v, turn, head, pixel) -> np.ndarray:
    """The picture with spectacles: two thin rims, a bridge and the arm of the nearer side. Unchanged without them."""
    shot, p = head.shot, head.person
    if not shot.glasses:
        return image
    r0, r1, r2 = turn
    plane = float(head.front(np.array(p.eye_x), np.array(-2.0))) + 13.0
    w = (plane - u * r0[2] - v * r1[2]) / r2[2]
    x, y = u * r0[0] + v * r1[0] + w * r2[0], u * r0[1] + v * r1[1] + w * r2[1]
    half_x, half_y, power = {"round": (22.0, 20.5, 2.0), "square": (24.5, 17.5, 4.0), "oval": (24.0, 15.5, 2.4)}[
        shot.glasses
    ]
    ax = np.abs(x)
    centre = max(p.eye_x, half_x + 7.0)
    ring = (np.abs((ax - centre) / half_x) ** power + np.abs((y + 3.0) / half_y) ** power + 1e-6) ** (1 / power)
    distance = (ring - 1.0) * 0.5 * (half_x + half_y)
    wire = 0.85 if shot.frame.mean() > 0.4 else 1.3
    soft = max(0.9 * pixel, 0.4)
    rim = np.clip((wire - np.abs(distance)) / soft + 0.5, 0, 1)
    bridge = np.clip((wire - np.abs(y - 2.5 + 0.03 * x * x)) / soft + 0.5, 0, 1) * (ax < centre - half_x + 1.0)
    frame = np.maximum(rim, bridge)
    # the arm runs back from the hinge at constant x to the ear
    for side in (-1, 1):
        hinge_x = side * (centre + half_x - 0.5)
        if abs(r2[0]) > 0.05:
            depth = (hinge_x * 1.02 - u * r0[0] - v * r1[0]) / r2[0]
            ay, az = u * r0[1] + v * r1[1] + depth * r2[1], u * r0[2] + v * r1[2] + depth * r2[2]
            outside = side * r2[0] > 0.05  # the arm of the far side is behind the face
            arm = (
                np.clip((wire + 0.4 - np.abs(ay - 4.0)) / soft + 0.5, 0, 1)
                * (az < plane)
                * (az > 0.0)
                * (label != LABEL["hair"])
            )
            frame = np.maximum(frame, arm * outside)
    lens = np.clip(-distance / soft + 0.5, 0, 1)
    lit = np.sign(shot.light[0] + 1e-6)
    glare = np.exp(-((((x - centre * np.sign(x)) * lit + 0.8 * y - 8.0) / 3.5) ** 2)) * lens
    image = image * (1.0 - 0.05 * lens)[..., None] + (0.035 * glare * shot.key)[..., None]
    below = np.clip((1.6 - np.abs(distance + 2.4)) / 2.0 + 0.3, 0, 1) * (y < -5.0)
    image = image * (1.0 - 0.10 * below)[..., None]
    gleam = 1.0 + 0.6 * smoothstep(4.0, 16.0, y)
    colour = linear(shot.frame) * (gleam * (0.5 + 0.6 * shot.key))[..., None] + 0.01
    image = image + (colour - image) * (0.95 * frame)[..., None]
    label[frame > 0.4] = LABEL["eye_g"]
    return image


def occluder(image, label, u, v, turn, head, pixel) -> np.ndarray:
    """The picture with a microphone, a cup or a hand in front of the lower face, or unchanged without one."""
    shot = head.shot
    if not shot.occluder:
        return image
    rng = generator(shot.texture, "occluder")
    mouth = (turn @ np.array([0.0, head.mouth_y, head.person.depth])).tolist()
    cx, cy = mouth[0] + rng.uniform(-34, 34), mouth[1] - rng.uniform(18, 34)
    du, dv = u - cx, v - cy
    lean = rng.uniform(-0.5, 0.5)
    a, b = du * np.cos(lean) - dv * np.sin(lean), du * np.sin(lean) + dv * np.cos(lean)
    alpha, base, bulge = {"microphone": _microphone, "cup": _cup, "hand": _hand}[shot.occluder](a, b, head)
    side = np.clip(0.55 + 0.45 * np.sign(shot.light[0]) * np.tanh(a / 14.0), 0, 1)
    lit = base * ((shot.fill + shot.key * side) * (0.45 + 0.55 * bulge))[..., None]
    image = image + (lit - image) * alpha[..., None]
    label[alpha > 0.5] = LABEL["background"]
    return image


def _microphone(a, b, head):
    """Opacity, linear colour and roundness of a microphone at (a, b) mm."""
    ball = 1.0 - (a / 17.0) ** 2 - (b / 20.0) ** 2
    handle = np.minimum(10.0 - np.abs(a), -b)
    alpha = np.maximum(np.clip(ball * 9.0, 0, 1), np.clip(handle / 1.5, 0, 1))
    mesh = 1.0 + 0.6 * np.sin(a * 1.6) * np.sin(b * 1.6) * (ball > 0)
    bulge = np.sqrt(np.clip(np.where(ball > 0, ball, 1 - (a / 11.0) ** 2), 0, 1))
    return alpha, np.array([0.03, 0.03, 0.035]) * mesh[..., None], bulge


def _cup(a, b, head):
    """Opacity, linear colour and roundness of a cup at (a, b) mm."""
    alpha = np.clip(np.minimum(29.0 + 0.12 * b - np.abs(a), 26.0 - b) / 1.5, 0, 1)
    base = np.where((np.abs(b - 21.0) < 3.5)[..., None], 0.75, linear(head.shot.hat_colour))
    return alpha, base, np.sqrt(np.clip(1 - (a / 33.0) ** 2, 0, 1))


def _hand(a, b, head):
    """Opacity, linear colour and roundness of a hand at (a, b) mm."""
    reach = np.minimum(33.0 - np.abs(a), -16.0 - b)  # the palm
    for k in range(4):
        tip = 26.0 - 5.0 * abs(k - 1.4)
        finger = 8.4 - np.hypot(a + 25.0 - 16.5 * k - 0.06 * b, np.maximum(b - tip, 0.0))
        reach = np.maximum(reach, finger)
    base = linear(head.person.skin) * np.array([0.92, 0.83, 0.81]) * np.ones((*a.shape, 1))
    return np.clip(reach / 1.4, 0, 1), base, np.sqrt(np.clip(reach / 8.4, 0.05, 1))

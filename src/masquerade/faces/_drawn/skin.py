"""What is painted on the solid face: skin, eyes, brows, lips and beard, as albedo, gloss, glow and parsing labels."""

import numpy as np

from masquerade.faces._drawn.geometry import Head, brow_line, bump, eye_lids, smoothstep
from masquerade.faces._drawn.paint import LABEL, Paint, hair_colour, linear, texture


def paint(head: Head, x: np.ndarray, y: np.ndarray, z: np.ndarray, pixel: float, gaze: np.ndarray) -> Paint:
    """Paint the surface points (x, y, z), mm. ``pixel``: mm of one sample, which sets the softness of edges.

    ``gaze``: shift of both irises, (right, up) in mm.
    """
    out = _complexion(head, x, y, z)
    _beard(head, out, x, y, z, pixel)
    _mouth(head, out, x, y, z, pixel)
    _nose(head, out, x, y, z, pixel)
    for side in (-1, 1):
        _eye(head, out, x, y, z, pixel, side, gaze)
        _brow(head, out, x, y, z, pixel, side)
    return out


def _complexion(head: Head, x, y, z) -> Paint:
    """The bare skin: redness, pores, freckles, age spots, moles and gloss."""
    p, s = head.person, head.shot
    ax = np.abs(x)
    base = linear(p.skin)
    warm = np.array([1.0, 0.62, 0.58], np.float32)
    albedo = np.broadcast_to(base, (len(x), 3)).copy()
    depth = 1.0 - 0.55 * p.tone
    red = 0.36 * p.rosy * bump(ax, y, 40.0, -33.0, 15.0, 14.0) + (0.20 + 0.2 * p.rosy) * bump(
        ax, y, 0.0, p.nose_tip_y, 13.0, 10.0
    )
    red += 0.12 * bump(ax, y, 0.0, head.chin + 14, 14.0, 9.0) + 0.35 * s.makeup * bump(ax, y, 47.0, -30.0, 13.0, 11.0)
    albedo *= 1.0 - np.clip(red * depth, 0, 0.8)[:, None] * (1.0 - warm)
    mottle = texture(x, y, 1.1, p.texture, 1.2)
    albedo *= 1.0 + (0.035 + 0.02 * p.wrinkles) * mottle[:, None] * np.array([0.7, 1.0, 1.1], np.float32)
    pores = texture(x, y, 0.35, p.texture // 7, 0.35)
    albedo *= 1.0 + (0.025 + 0.02 * (p.male and p.age > 18)) * (1 - 0.5 * s.makeup) * pores[:, None]
    # eyelids, rings under the eyes
    ring = (0.13 + 0.28 * p.eye_bags) * bump(ax, y, p.eye_x - 5.0, -11.0, 11.0, 4.0) + 0.18 * bump(
        ax, y, p.eye_x - 1.0, 5.5, 13.0, 6.0
    )
    ring += 0.22 * bump(ax, y, p.eye_x - p.eye_half - 1.0, 0.0, 4.0, 5.0)
    albedo *= 1.0 - ring[:, None] * np.array([0.55, 0.85, 0.75], np.float32)
    if p.freckles > 0:
        spots = smoothstep(1.0, 1.9, texture(x, y, 0.8, p.texture // 3, 0.6))
        cheeks = bump(ax, y, 22.0, -24.0, 26.0, 16.0)
        albedo *= 1.0 - (0.55 * p.freckles * spots * cheeks)[:, None] * np.array([0.45, 0.8, 1.0], np.float32)
    if p.wrinkles > 0.3:
        spots = smoothstep(1.7, 2.4, texture(x, y, 1.5, p.texture // 11, 1.0))
        albedo *= 1.0 - (0.3 * p.wrinkles * spots)[:, None] * np.array([0.5, 0.8, 0.9], np.float32)
    for mx, my, radius in p.moles:
        dark = np.exp(-((((x - mx) ** 2 + (y - my) ** 2) / radius**2) ** 1.5))
        albedo *= 1.0 - 0.72 * dark[:, None] * np.array([0.85, 1.0, 1.0], np.float32)
    # the forehead and the nose are oilier
    gloss = 0.55 + 0.45 * bump(ax, y, 0.0, 45.0, 32.0, 22.0) + 0.6 * bump(ax, y, 0.0, p.nose_tip_y + 4, 7.0, 18.0)
    gloss = gloss * (1.0 + 0.15 * pores)
    return Paint(
        albedo, gloss.astype(np.float32), np.zeros(len(x), np.float32), np.full(len(x), LABEL["skin"], np.uint8)
    )


def _near(x, y, z, centre_x, centre_y, reach_x, reach_y) -> np.ndarray:
    """Indices of the points in a rectangle on the front of the face."""
    return np.flatnonzero((np.abs(x - centre_x) < reach_x) & (np.abs(y - centre_y) < reach_y) & (z > 0))


def _cover(distance, softness):
    """Opacity, from a signed distance to the edge in mm (positive inside)."""
    return np.clip(distance / softness + 0.5, 0.0, 1.0)


def _eye(head: Head, out: Paint, x, y, z, pixel, side, gaze) -> None:
    p, s = head.person, head.shot
    at = _near(x, y, z, side * p.eye_x, 2.0, p.eye_half + 12.0, 20.0)
    if not len(at):
        return
    across, up = side * x[at] - p.eye_x, y[at]
    u = across / p.eye_half
    upper, lower = eye_lids(p, s, np.clip(u, -1.0, 1.0))
    within = np.minimum(upper - up, up - lower) - np.maximum(np.abs(u) - 1.0, 0.0) * p.eye_half
    soft = max(0.6 * pixel, 0.35)
    opening = _cover(within, soft)
    # the lid above the eye: crease, eye shadow
    crease = upper + p.crease * (0.55 + 0.45 * np.sqrt(np.maximum(1.0 - u * u, 0.0)))
    taper = np.clip(1.25 - np.abs(u), 0.0, 1.0)
    width = max(0.75, 0.45 * pixel)
    line = np.exp(-(((up - crease) / width) ** 2)) * taper * (np.abs(u) < 1.25)
    out.lay(at, out.albedo[at] * 0.42, 0.75 * line * min(1.0, 0.75 / width * 1.3))
    if s.makeup > 0:
        shade = (
            np.clip((up - upper) / 1.0 + 0.5, 0, 1)
            * np.exp(-((np.maximum(up - crease, 0.0) / 3.0) ** 2))
            * np.clip(1.3 - np.abs(u), 0, 1)
        )
        out.lay(at, linear(0.55 * p.skin * np.array([0.9, 0.78, 0.85])), 0.62 * s.makeup * shade)
    # eyeball
    depth = upper - up
    shadow = 0.42 + 0.58 * smoothstep(0.0, 3.4, depth)
    edge = 1.0 - 0.35 * u**2
    white = np.stack(
        [0.66 * shadow * edge, (0.61 - 0.05 * u**2) * shadow * edge, (0.58 - 0.06 * u**2) * shadow * edge], -1
    )
    out.lay(at, white, opening, LABEL["l_eye"] if side < 0 else LABEL["r_eye"], 0.5)
    corner = bump(u, up, -0.95, float(eye_lids(p, s, np.array(-0.9))[1]) * 0.5, 0.09, 2.0)
    out.lay(at, linear([0.72, 0.42, 0.38]), 0.7 * corner * opening)
    ix, iy = side * gaze[0], -p.lid_lower + p.iris_radius - 0.5 + gaze[1]
    radius = np.hypot(across - ix, up - iy) / p.iris_radius
    ray = texture(np.arctan2(up - iy, across - ix) * 9.0, radius * 2.0, 0.5, p.texture // 5, 0.3)
    bright = (0.72 + 0.16 * ray + 0.55 * np.exp(-(((radius - 0.52) / 0.2) ** 2))) * (
        1.0 - 0.72 * smoothstep(0.78, 1.0, radius)
    )
    bright = bright * (0.55 + 0.45 * smoothstep(0.0, 3.0, depth))
    disc = _cover((1.0 - radius) * p.iris_radius, max(pixel, 0.6)) * opening
    out.lay(at, linear(p.iris) * bright[:, None], disc)
    pupil = _cover((0.37 - radius) * p.iris_radius, max(pixel, 0.4)) * opening
    out.lay(at, np.array([0.006, 0.005, 0.005]), pupil)
    hx, hy = ix + side * 1.7 * np.sign(s.light[0] + 1e-6), iy + 2.0
    spark = np.exp(-((((across - hx) ** 2 + (up - hy) ** 2) / max(1.15, 0.65 * pixel) ** 2) ** 2))
    out.glow[at] += (0.75 * spark * opening * (depth > 0.6)).astype(np.float32)
    # lashes
    thick = 0.75 + 0.45 * (not p.male) + 0.9 * s.makeup
    hairs = 0.8 + 0.2 * np.sin(across * 5.0)
    lash = np.exp(-(((up - upper - 0.15 - 0.35 * thick) / (0.5 * thick + 0.3 * pixel)) ** 2))
    lash *= np.clip(1.12 - np.abs(u - 0.06), 0.0, 0.22) / 0.22 * hairs
    dark = linear([0.09, 0.07, 0.065]) if p.grey < 0.8 or s.makeup > 0 else linear([0.2, 0.18, 0.17])
    out.lay(at, dark, np.clip(lash * min(1.0, 0.62 + 0.4 * thick / max(pixel, 0.8)), 0, 0.95))
    below = np.exp(-(((up - lower + 0.3) / (0.45 + 0.25 * pixel)) ** 2)) * np.clip(1.0 - np.abs(u), 0.0, 0.3) / 0.3
    out.lay(at, dark + 0.02, (0.22 + 0.35 * s.makeup) * below)


def _brow(head: Head, out: Paint, x, y, z, pixel, side) -> None:
    p, s = head.person, head.shot
    at = _near(x, y, z, side * (p.brow_inner + 0.5 * p.brow_length), p.brow_y + 2.0, 0.6 * p.brow_length + 4.0, 18.0)
    if not len(at):
        return
    across = side * x[at]
    t = (across - p.brow_inner) / p.brow_length
    _, centre, half = brow_line(p, s, np.clip(t, 0.0, 1.0))
    lift = y[at] - centre
    ends = np.clip(t / 0.16 + 0.35, 0.0, 1.0) * np.clip((1.02 - t) / 0.1, 0.0, 1.0)
    ragged = texture(
        across * 0.45 + (y[at] - centre) * 0.9, (y[at] - centre) - 0.7 * across, 0.42, p.texture + 11 * side, 0.5
    )
    d = np.abs(lift) / np.maximum(half, 0.3)
    alpha = np.clip((1.25 - d + 0.13 * ragged) / 0.75, 0.0, 1.0) * ends * p.brow_dense
    alpha *= np.clip(0.93 + 0.10 * ragged, 0.5, 1.0)
    colour = np.minimum(hair_colour(p) * 0.55, linear(p.skin) * 0.33)
    if p.grey > 0.5 and p.male:
        colour = hair_colour(p) * 0.7
    out.lay(at, colour, 0.97 * alpha, LABEL["l_brow"] if side < 0 else LABEL["r_brow"], 0.15)


def _mouth(head: Head, out: Paint, x, y, z, pixel) -> None:
    p, s = head.person, head.shot
    at = _near(x, y, z, 0.0, head.mouth_y - 4.0, head.mouth_half + 5.0, 27.0)
    if not len(at):
        return
    px, py = x[at], y[at]
    u = np.clip(px / head.mouth_half, -1.0, 1.0)
    upper, inner_upper, inner_lower, lower = head.lips(u * head.mouth_half)
    beyond = np.maximum(np.abs(px) - head.mouth_half, 0.0)
    soft = max(0.7 * pixel, 1.0)
    natural = linear(p.skin) * (1 - p.lip_red * np.array([0.10 + 0.16 * p.tone, 0.74, 0.66]))
    natural = natural * (0.95 - 0.12 * p.tone)
    colour = natural * (1 - s.lipstick) + linear(s.lip_colour) * s.lipstick
    creases = 1.0 + 0.07 * texture(px, py * 0.15, 0.4, p.texture // 13, 0.4)
    for top, bottom, name, shade in ((upper, inner_upper, "u_lip", 0.82), (inner_lower, lower, "l_lip", 1.06)):
        inside = np.minimum(top - py, py - bottom + 0.2) - beyond
        alpha = _cover(inside, soft) * np.clip((1.0 - np.abs(u)) / 0.06, 0.0, 1.0)
        out.lay(
            at,
            colour * (shade * creases)[:, None],
            (0.86 + 0.1 * s.lipstick) * alpha,
            LABEL[name],
            0.9 + 0.8 * s.lipstick,
        )
    hole = np.minimum(inner_upper - py, py - inner_lower) - beyond
    if head.gap > 1.0:
        alpha = _cover(hole, soft)
        cavity = np.array([0.035, 0.010, 0.010]) * (1.0 + 1.4 * np.clip((inner_upper - py) / 12.0, 0, 1))[:, None]
        out.lay(at, cavity, alpha, LABEL["mouth"], 0.2)
        fall = inner_upper - py
        bright = 0.62 * (1.0 - 0.62 * np.abs(u) ** 2.2) * (0.6 + 0.4 * smoothstep(0.0, 2.5, fall))
        gaps = 1.0 - 0.22 * np.exp(-((np.abs(np.mod(px + 3.6, 7.2) - 3.6) / 0.35) ** 2)) * (pixel < 1.6)
        teeth = _cover(7.6 - 2.0 * u**2 - fall, soft) * _cover((0.86 - np.abs(u)) * head.mouth_half, 2.5) * alpha
        amount = 1.0 if s.shows_teeth else float(np.clip((head.gap - 2.0) / 4.0, 0.0, 0.8))
        out.lay(at, (bright * gaps)[:, None] * np.array([1.0, 0.94, 0.84]), amount * teeth, None, 0.8)
    seam = 0.5 * (inner_upper + inner_lower)
    width = max(0.65, 0.4 * pixel)
    line = np.exp(-(((py - seam) / width) ** 2)) * np.clip((1.03 - np.abs(px) / head.mouth_half) / 0.06, 0, 1)
    out.lay(at, colour * 0.22, (0.85 if head.gap < 1.0 else 0.0) * line)
    ends = bump(
        np.abs(px),
        py,
        head.mouth_half - 0.3,
        float(head.lips(np.array(head.mouth_half))[1]),
        1.6 + 0.3 * pixel,
        1.3 + 0.3 * pixel,
    )
    out.lay(at, out.albedo[at] * 0.4, 0.6 * ends)


def _nose(head: Head, out: Paint, x, y, z, pixel) -> None:
    p = head.person
    tip = p.nose_tip_y
    at = _near(x, y, z, 0.0, tip - 4.0, p.nose_half + 6.0, 12.0)
    hole = bump(
        np.abs(x[at]),
        y[at],
        0.46 * p.nose_half,
        tip - 7.3,
        0.19 * p.nose_half * p.nostril + 0.8,
        1.55 * p.nostril + 0.25,
    )
    out.lay(at, linear(p.skin) * np.array([0.10, 0.05, 0.045]), np.clip(1.15 * hole, 0, 0.92))
    wing = bump(np.abs(x[at]), y[at], p.nose_half + 0.6, tip - 3.5, 1.4, 4.5)
    out.lay(at, out.albedo[at] * np.array([0.7, 0.5, 0.48]), 0.55 * wing)
    t = np.clip((8.0 - y) / (8.0 - tip + 8.0), 0, 1)
    half = 6.0 + (p.nose_half - 5.0) * t**1.8
    nose = (np.abs(x) < half) & (y < 6.0) & (y > tip - 9.5 + 0.012 * x * x) & (z > 0) & (out.label == LABEL["skin"])
    out.label[nose] = LABEL["nose"]


def _beard(head: Head, out: Paint, x, y, z, pixel) -> None:
    p = head.person
    if max(p.beard, p.moustache, p.goatee, p.stubble) < 0.03:
        return
    at = np.flatnonzero((y < p.nose_tip_y + 30.0) & (z > -10.0))
    ax, up = np.abs(x[at]), y[at]
    my = head.mouth_y
    upper, _, _, lower = head.lips(np.clip(x[at], -head.mouth_half, head.mouth_half))
    ragged = 5.0 * texture(x[at], y[at], 1.2, p.texture // 17, 0.9)
    cheek = my + 6.0 + np.clip(ax - 26.0, 0, None) * 0.62 + 18.0 * smoothstep(56.0, 66.0, ax) + ragged
    jaw = _cover(cheek - up, 13.0) * _cover(ax - 0.55 * head.mouth_half + np.clip(my - 8.0 - up, 0, 20.0) * 3.0, 10.0)
    base = p.nose_tip_y - 8.5
    lip = _cover(base - 1.5 - 0.10 * ax - up + 0.3 * ragged, 4.0) * _cover(
        up - upper + 0.8 + np.clip(ax - head.mouth_half, 0, 9) * 2.2, 2.2
    )
    lip *= _cover(head.mouth_half + 6.0 - ax, 6.0)
    ring = (
        _cover(head.mouth_half + 7.0 - ax + 0.3 * ragged, 5.0)
        * _cover(ax - head.mouth_half * 0.93, 4.0)
        * _cover(my + 5.0 - up, 4.0)
    )
    chin = np.maximum(ring, _cover(head.mouth_half - 3.0 + 0.25 * ragged - ax, 7.0) * _cover(lower - 4.5 - up, 4.5))
    hairy = np.maximum.reduce([p.beard * jaw, p.moustache * lip, p.goatee * chin])
    strand = texture(x[at] * 1.0, y[at] * 0.3, 0.5, p.texture // 19, 0.45)
    dots = texture(x[at], y[at], 0.45, p.texture // 23, 0.2)
    colour = hair_colour(p) * (0.8 + 0.1 * p.grey)
    shadow = p.stubble * np.maximum(jaw, np.maximum(lip, chin)) * (0.55 + 0.22 * dots)
    out.lay(at, linear(p.skin) * np.array([0.42, 0.47, 0.52]), np.clip(shadow, 0, 0.75))
    out.lay(
        at,
        colour * np.clip(0.9 + 0.35 * strand, 0.3, 2.0)[:, None],
        np.clip(hairy * (1.0 + 0.12 * strand), 0, 0.97),
        None,
        0.25,
    )

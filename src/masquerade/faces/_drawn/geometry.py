"""The solid face: a skull with elliptic cross-sections, a relief on its front, a camera, and the 68 landmarks.

Head coordinates are in millimetres: x to the right of the picture, y up, z towards the camera. The origin is between
the eyes, on the vertical axis of the skull. At height y the cross-section of the skull is an ellipse with half-width
W(y) and half-depth D(y). The relief (brow, sockets, nose, cheeks, lips, chin) shifts its front along z.
"""

from collections.abc import Callable

import numpy as np

from masquerade.faces._drawn.person import Person
from masquerade.faces._drawn.shot import Shot

LEVELS = np.linspace(-210.0, 160.0, 1481, dtype=np.float32)  # heights at which profiles are tabulated, every 0.25 mm
WIDEST, CHEEK = 14.0, -24.0  # heights of the widest part of the skull and of the cheekbones


def bump(x, y, centre_x, centre_y, spread_x, spread_y) -> np.ndarray:
    """An elliptic Gaussian of height 1."""
    return np.exp(-0.5 * (((x - centre_x) / spread_x) ** 2 + ((y - centre_y) / spread_y) ** 2))


def smoothstep(low, high, value) -> np.ndarray:
    """0 below ``low``, 1 above ``high``, a cubic between them."""
    t = np.clip((value - low) / (high - low), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


def lookup(table: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A profile that is tabulated at LEVELS, linearly interpolated at the heights ``y``."""
    place = np.clip((y - LEVELS[0]) * 4.0, 0.0, len(LEVELS) - 1.001)
    below = place.astype(np.int32)
    low = table[below]
    return low + (place - below) * (table[below + 1] - low)


def bilinear(table: np.ndarray, column: np.ndarray, row: np.ndarray) -> np.ndarray:
    """``table`` at fractional columns and rows, interpolated. Places outside take the value of the nearest edge."""
    height, width = table.shape
    column, row = np.clip(column, 0.0, width - 1.001), np.clip(row, 0.0, height - 1.001)
    i, j = column.astype(np.int32), row.astype(np.int32)
    s, t = (column - i).astype(np.float32), (row - j).astype(np.float32)
    flat, corner = table.ravel(), j * width + i
    top, low = flat[corner], flat[corner + width]
    top = top + (flat[corner + 1] - top) * s
    low = low + (flat[corner + width + 1] - low) * s
    return top + (low - top) * t


def rotation(yaw: float, pitch: float, roll: float) -> np.ndarray:
    """Head to camera (3, 3), angles in degrees. Positive: yaw to the picture's right, pitch up, roll to the right."""
    a, b, c = np.radians([yaw, pitch, roll])
    turn = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
    nod = np.array([[1, 0, 0], [0, np.cos(b), np.sin(b)], [0, -np.sin(b), np.cos(b)]])
    lean = np.array([[np.cos(c), np.sin(c), 0], [-np.sin(c), np.cos(c), 0], [0, 0, 1]])
    return lean @ nod @ turn


class Head:
    """One person's head with one expression."""

    def __init__(self, person: Person, shot: Shot):
        self.person, self.shot = person, shot
        self.top = person.skull_top
        self.chin = -person.chin_drop - 7.0 * shot.mouth_open
        self.mouth_y = person.mouth_y - 1.5 * shot.mouth_open + 1.0 * shot.smile
        self.mouth_half = person.mouth_half * (1.0 + 0.17 * shot.smile - 0.10 * shot.pout - 0.05 * shot.mouth_open)
        self.gap = 12.0 * shot.mouth_open + (6.0 * shot.smile if shot.shows_teeth else 0.0)
        self.widths, self.depths = self._profiles()

    def _profiles(self) -> tuple[np.ndarray, np.ndarray]:
        """W and D at LEVELS, mm."""
        p, y = self.person, LEVELS
        up = np.clip((y - WIDEST) / (self.top - WIDEST), 0.0, 1.0)
        down = np.clip((CHEEK - y) / (CHEEK - self.chin), 0.0, 1.0)
        middle = smoothstep(CHEEK - 5.0, WIDEST + 22.0, y)
        width = (p.cheek_half + (p.skull_half - p.cheek_half) * middle) * (1.0 - up**2.45) ** 0.5
        width *= (1.0 - down**p.jaw_square) ** 0.5 * (1.0 - p.jaw_taper * down)
        depth = p.depth * (1.0 - up**2.6) ** 0.5 * (1.0 - down**7) ** 0.5 * (1.0 - p.chin_recess * down**2)
        return np.maximum(width, 0.5).astype(np.float32), np.maximum(depth, 0.5).astype(np.float32)

    def lips(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Heights of the lip contours at ``x``, mm: outer upper, inner upper, inner lower, outer lower."""
        p, s = self.person, self.shot
        u = x / self.mouth_half
        inside = np.maximum(1.0 - u * u, 0.0)
        corner = 4.5 * s.smile - 3.0 * s.frown + p.mouth_curve
        seam = self.mouth_y + corner * (u * u - 0.35) - 0.6 * np.exp(-((u / 0.18) ** 2))
        bow = 1.0 - p.cupid * np.exp(-((u / 0.13) ** 2)) + 0.35 * p.cupid * np.exp(-(((np.abs(u) - 0.26) / 0.16) ** 2))
        thin = 1.0 - 0.25 * s.smile
        inner_upper = seam + 0.18 * self.gap * inside
        inner_lower = seam - 0.82 * self.gap * inside**0.8
        upper = inner_upper + p.upper_lip * thin * bow * inside**0.75
        lower = inner_lower - p.lower_lip * thin * inside**0.6
        return upper, inner_upper, inner_lower, lower

    def relief(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Shift of the front towards the camera in mm, before it fades out at the sides."""
        p, s = self.person, self.shot
        ax = np.abs(x)
        nx = np.abs(x - p.nose_bend * np.exp(-(((y + 20.0) / 18.0) ** 2)))
        # forehead, brow, sockets, eyeballs
        h = p.brow_ridge * bump(ax, y, 22.0, 16.0, 17.0, 7.0)
        h -= p.socket * bump(ax, y, p.eye_x - 2.0, 2.0, 14.5, 11.0)
        h += 4.6 * bump(ax, y, p.eye_x + 0.5, -0.5, 10.0, 7.0)
        h -= (1.2 + 2.6 * p.eye_bags) * bump(ax, y, p.eye_x - 4.0, -13.0, 12.0, 3.2)
        # nose: a bridge that rises towards the tip, wings, and a sharp lower edge
        tip = p.nose_tip_y
        along = np.clip((6.0 - y) / (6.0 - tip), 0.0, 1.15)
        under = 0.5 + 0.5 * np.tanh((y - (tip - 6.5 + 0.022 * nx * nx)) / 4.6)
        ridge = p.nose_bridge + (p.nose_height - p.nose_bridge) * along**1.5
        ridge = ridge + p.nose_hump * np.exp(-(((along - 0.42) / 0.18) ** 2))
        spread = p.bridge_half * (0.72 + 0.75 * along**2)
        above = 0.5 - 0.5 * np.tanh((y - 9.0) / 10.0)
        h += ridge * np.exp(-0.5 * (nx / spread) ** 2) * under * above
        h += p.nose_tip * bump(nx, y, 0.0, tip, 7.5, 6.0)
        h += p.nose_wing * bump(nx, y, p.nose_half - 4.0, tip - 2.5, 4.6, 4.6)
        # cheeks, the folds beside the nose, jowls
        h += (p.cheekbone + 1.5 * s.smile) * bump(ax, y, 45.0, -26.0, 13.0, 11.0)
        h += (p.cheek_full + 3.2 * s.smile) * bump(ax, y, 35.0, -46.0 + 4.0 * s.smile, 15.0, 14.0)
        fold = 0.7 + 2.4 * p.fold + 1.7 * s.smile
        fold_x = p.nose_half + 4.0 + 0.38 * (tip - 2.0 - y) + 2.5 * s.smile
        h -= (
            fold
            * np.exp(-0.5 * ((ax - fold_x) / 2.8) ** 2)
            * bump(0.0, y, 0.0, 0.5 * (tip + self.mouth_y) - 2, 1.0, 12.0)
        )
        # muzzle, lips, chin
        my = self.mouth_y
        h += 4.0 * bump(ax, y, 0.0, my + 2.0, 21.0, 15.0)
        h -= 1.3 * bump(ax, y, 0.0, 0.45 * my + 0.55 * tip - 3.0, 2.6, 6.0)
        across = np.maximum(1.0 - (x / (self.mouth_half * 1.02)) ** 2, 0.0)
        upper, inner_upper, inner_lower, lower = self.lips(np.clip(x, -self.mouth_half, self.mouth_half))
        h += (
            across
            * (0.6 + 0.30 * p.upper_lip)
            * np.exp(-(((y - 0.5 * (upper + inner_upper)) / (0.5 * p.upper_lip + 1.6)) ** 2))
        )
        h += (
            across
            * (0.8 + 0.34 * p.lower_lip)
            * np.exp(-(((y - 0.5 * (lower + inner_lower)) / (0.5 * p.lower_lip + 1.6)) ** 2))
        )
        seam = 0.5 * (inner_upper + inner_lower)
        h -= 2.4 * across**0.5 * np.exp(-(((y - seam) / (1.5 + 0.5 * self.gap)) ** 2))
        h -= 2.6 * bump(ax, y, 0.0, 0.58 * my + 0.42 * self.chin + 2.0, 17.0, 4.6)
        h += p.chin_bump * bump(ax, y, 0.0, self.chin + 17.0, 13.0, 9.0)
        h -= p.chin_cleft * bump(ax, y, 0.0, self.chin + 13.0, 1.8, 7.0)
        # wrinkles of age
        if p.wrinkles > 0.05:
            lines = np.cos((y - 44.0 + 0.004 * x * x) * 0.62 + p.noise_phase)
            h += 0.55 * p.wrinkles * lines * bump(ax, y, 0.0, 47.0, 30.0, 11.0)
            rays = np.cos(np.arctan2(y - 1.0, ax - p.eye_x - 3.0) * 13.0)
            h += 0.5 * (p.wrinkles + 0.4 * s.smile) * rays * bump(ax, y, p.eye_x + 21.0, 0.0, 5.0, 8.0)
            h -= 2.2 * p.wrinkles * bump(ax, y, 0.62 * self.mouth_half + 8.0, my - 16.0, 3.0, 9.0)
            h += 2.5 * p.wrinkles * bump(ax, y, 38.0, my - 12.0, 9.0, 9.0)
            h -= 1.0 * p.wrinkles * bump(ax, y, 4.5, 16.0, 1.3, 5.0)
        return h

    def front(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """z of the front surface at (x, y), mm."""
        across = np.clip(x / lookup(self.widths, y), -0.999, 0.999)
        base = lookup(self.depths, y) * np.sqrt(1.0 - across**2)
        return base + self.relief(x, y) * smoothstep(0.0, 32.0, base)

    def intersect(self, u: np.ndarray, v: np.ndarray, turn: np.ndarray, step: float) -> tuple[np.ndarray, ...]:
        """Intersect the rays of the flat camera points (u, v), mm, with the head.

        Returns (at, x, y, z, w): the indices of the rays that hit, the head coordinates of the hits, and their depth w
        towards the camera. With W, D and the relief f at the current estimate, the section
        (x/W)^2 + ((z - f)/D)^2 = 1 is a quadratic in w; its nearer root is the next estimate. The relief is tabulated
        every ``step`` mm.
        """
        _, room = meet(u, v, turn, self.widths, self.depths, start=0.75 * self.person.depth, rounds=2)
        at = np.flatnonzero(room > -0.25)
        rows, columns = np.arange(-142.0, 132.0, step), np.arange(-96.0, 96.0, step)
        relief = self.relief(*np.meshgrid(columns.astype(np.float32), rows.astype(np.float32)))

        def shift(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
            return bilinear(relief, (x + 96.0) / step, (y + 142.0) / step) * smoothstep(0.0, 32.0, z)

        start = 0.75 * self.person.depth
        w, room = meet(u[at], v[at], turn, self.widths, self.depths, start=start, rounds=7, shift=shift)
        x, y, z = (u[at] * turn[0, i] + v[at] * turn[1, i] + w * turn[2, i] for i in range(3))
        hit = (room > 0.0) & (y < self.top) & (y > self.chin)
        return at[hit], *(value[hit].astype(np.float32) for value in (x, y, z, w))


def meet(
    u: np.ndarray, v: np.ndarray, turn: np.ndarray, widths: np.ndarray, depths: np.ndarray, start: float, rounds: int,
    shift: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None, far: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Intersect rays of camera points (u, v), mm, with the solid whose sections are ``widths`` x ``depths`` at LEVELS.

    Returns the depth w of the nearer (or ``far``) wall, and ``room``, which is 1 on the axis, 0 at the outline and
    negative where the ray misses. ``shift(x, y, z)``: displacement of the section along z, mm.
    """
    r0, r1, r2 = turn.astype(np.float32)
    ox, oy, oz = (u * r0[i] + v * r1[i] for i in range(3))
    w = room = np.full_like(u, start)
    a = np.float32(1.0)
    for pass_ in range(rounds):
        y = oy + w * r2[1]
        width, depth = 1.0 / lookup(widths, y), 1.0 / lookup(depths, y)
        push = oz - shift(ox + w * r2[0], y, oz + w * r2[2]) if shift is not None and pass_ else oz
        ax, az, cx, cz = r2[0] * width, r2[2] * depth, ox * width, push * depth
        a, b = ax * ax + az * az, cx * ax + cz * az
        room = b * b - a * (cx * cx + cz * cz - 1.0)
        root = np.sqrt(np.maximum(room, 0.0))
        new = (-b - root if far else root - b) / a
        w = new if pass_ < 2 else 0.45 * w + 0.55 * new
    return w, room / a


def eye_lids(person: Person, shot: Shot, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Heights of upper and lower lid, mm, at ``u`` in [-1, 1], from the inner to the outer corner of an eye."""
    inside = np.maximum(1.0 - u * u, 0.0)
    slant = person.eye_tilt * u * person.eye_half
    opening = shot.eye_open * (1.0 - 0.28 * shot.smile * person.smile_eyes)
    upper = slant + person.lid_upper * opening * inside**0.62 * (1.0 - 0.16 * u)
    lower = (
        slant - person.lid_lower * (0.45 + 0.55 * opening) * inside**0.75 * (1.0 + 0.2 * u) + 1.2 * shot.smile * inside
    )
    return upper, lower


def brow_line(person: Person, shot: Shot, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, height and half-thickness of an eyebrow, mm, at ``t`` in [0, 1], from its inner to its outer end."""
    x = person.brow_inner + t * person.brow_length
    rise = (t - 0.62) / np.where(t < 0.62, 0.62, 0.5)
    arch = person.brow_arch * (1.0 - rise**2)
    y = person.brow_y + arch + person.brow_tilt * (t - 0.5) + shot.brow_raise * 5.0 - 3.0 * shot.frown * (1.0 - t)
    half = person.brow_thick * (0.75 + 0.6 * t) * np.clip((1.03 - t) / 0.55, 0.0, 1.0) ** 0.8
    return x, y, half


def landmarks(head: Head, turn: np.ndarray) -> np.ndarray:
    """The 68 iBUG points in camera millimetres, float (68, 3): u right, v up, w towards the camera."""
    p, s = head.person, head.shot
    points = np.zeros((68, 3))

    def on_face(index: slice | list[int], x: np.ndarray, y: np.ndarray) -> None:
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        points[index] = np.stack([x, y, head.front(x, y)], axis=-1)

    for side, order in ((-1, slice(17, 22)), (1, slice(26, 21, -1))):
        t = np.array([1.0, 0.76, 0.52, 0.28, 0.04])
        x, y, half = brow_line(p, s, t)
        on_face(order, side * x, y + 0.5 * half)
    on_face(slice(27, 31), np.zeros(4), np.linspace(3.0, p.nose_tip_y + 2.0, 4))
    on_face(
        slice(31, 36),
        np.array([-0.72, -0.38, 0.0, 0.38, 0.72]) * p.nose_half,
        p.nose_tip_y - 8.0 + np.array([0.8, -0.4, -1.2, -0.4, 0.8]),
    )
    for side, order in ((-1, [36, 37, 38, 39, 40, 41]), (1, [45, 44, 43, 42, 47, 46])):
        u = np.array([1.0, 0.36, -0.36, -1.0, -0.36, 0.36])
        upper, lower = eye_lids(p, s, u)
        on_face(order, side * (p.eye_x + u * p.eye_half), np.where([1, 1, 1, 1, 0, 0], upper, lower))
    u = np.array([-1.0, -0.62, -0.26, 0.0, 0.26, 0.62, 1.0])
    upper, inner_upper, inner_lower, lower = head.lips(u * head.mouth_half)
    on_face(slice(48, 55), u * head.mouth_half, upper)
    on_face(slice(55, 60), u[5:0:-1] * head.mouth_half, lower[5:0:-1])
    v = np.array([-0.86, -0.36, 0.0, 0.36, 0.86])
    _, inner_upper, inner_lower, _ = head.lips(v * head.mouth_half)
    on_face(slice(60, 65), v * head.mouth_half, inner_upper)
    on_face(slice(65, 68), v[3:0:-1] * head.mouth_half, inner_lower[3:0:-1])
    cast = points @ turn.T
    cast[:17] = _jaw(head, turn)
    return cast


def _jaw(head: Head, turn: np.ndarray) -> np.ndarray:
    """The jaw contour, points 0 to 16: at each height the outermost visible point on the front of the section."""
    heights = head.chin + (2.0 - head.chin) * np.array([1.0, 0.84, 0.68, 0.52, 0.37, 0.23, 0.11, 0.035])
    angles = np.radians(np.linspace(20.0, 84.0, 65))
    contour = np.zeros((17, 3))
    for side in (-1, 1):
        for row, y in enumerate(heights):
            width, depth = float(lookup(head.widths, np.array(y))), float(lookup(head.depths, np.array(y)))
            ring = np.stack([side * width * np.sin(angles), np.full(65, y), depth * np.cos(angles)], -1) @ turn.T
            contour[row if side < 0 else 16 - row] = ring[np.argmax(side * (ring @ turn_right(turn)))]
    low = np.array([0.0, head.chin + 1.0, 0.0])
    low[2] = float(head.front(low[0], np.array(low[1] + 2.0)))
    contour[8] = turn @ low
    return contour


def turn_right(turn: np.ndarray) -> np.ndarray:
    """The direction in the picture, (u, v, 0), at a right angle to the upright axis of the head."""
    up = turn[:2, 1] / np.hypot(*turn[:2, 1])
    return np.array([up[1], -up[0], 0.0])


def crop(points: np.ndarray) -> tuple[np.ndarray, float]:
    """FFHQ's aligned crop (Karras et al. 2019, appendix A) for the 68 points in camera mm: centre (u, v) and side."""
    left, right = points[36:42, :2].mean(0), points[42:48, :2].mean(0)
    eyes, mouth = 0.5 * (left + right), 0.5 * (points[48, :2] + points[54, :2])
    across, down = right - left, mouth - eyes
    axis = across + np.array([-down[1], down[0]])
    side = 2.0 * max(np.hypot(*across) * 2.0, np.hypot(*down) * 1.8) * (np.hypot(*axis) > 0)
    return eyes + 0.1 * down, float(side)

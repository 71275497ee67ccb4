"""One procedural face: from a ``Person`` and a ``Shot`` to a picture, its landmarks, its pose and its parsing mask."""

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from masquerade.faces._geometry import Head, crop, landmarks, rotation, smoothstep
from masquerade.faces._hair import Hair, Layer
from masquerade.faces._identity import Person
from masquerade.faces._props import background, glasses, hat, occluder
from masquerade.faces._shot import Shot
from masquerade.faces._skin import LABEL, linear, paint, texture
from masquerade.seeding import generator

FAR = -160.0  # depth of what is behind everything, mm
# how far light wraps around the terminator, by colour: blood makes the edge of a shadow red
WRAP = np.array([0.34, 0.20, 0.14], np.float32)


@dataclass(frozen=True)
class Drawing:
    """``picture`` uint8 (H, W, 3); ``landmarks`` float32 (68, 2) pixels (x, y); ``mask`` uint8 (H, W) of LABELS."""

    picture: np.ndarray
    landmarks: np.ndarray
    mask: np.ndarray


class Scene:
    """The surfaces seen at n x n camera points, gathered from back to front."""

    def __init__(self, u: np.ndarray, v: np.ndarray, pixel: float):
        self.u, self.v, self.pixel, self.shape = u, v, pixel, u.shape
        self.depth = np.full(u.shape, FAR, np.float32)
        self.colour = np.zeros((*u.shape, 3), np.float32)
        self.gloss = np.zeros(u.shape, np.float32)
        self.glow = np.zeros(u.shape, np.float32)
        self.skin = np.zeros(u.shape, np.float32)  # 1 where light goes under the surface
        self.solid = np.zeros(u.shape, bool)
        self.label = np.zeros(u.shape, np.uint8)

    def put(self, at, depth, colour, gloss, label, skin: float, glow=0.0) -> None:
        """Place surface points at flat indices ``at`` where they are nearer than what is there."""
        nearer = depth > self.depth.ravel()[at]
        at = at[nearer]

        def pick(value):
            return value[nearer] if np.ndim(value) else value

        self.depth.ravel()[at] = pick(depth)
        self.colour.reshape(-1, 3)[at] = colour[nearer] if np.ndim(colour) > 1 else colour
        self.gloss.ravel()[at] = pick(gloss)
        self.glow.ravel()[at] = pick(glow)
        self.label.ravel()[at] = pick(label)
        self.skin.ravel()[at] = skin
        self.solid.ravel()[at] = True


def draw(person: Person, shot: Shot, size: int, supersampling: int = 2) -> Drawing:
    """Draw a face, ``size`` x ``size`` pixels, each the mean of ``supersampling``^2 samples."""
    turn = rotation(shot.yaw, shot.pitch, shot.roll)
    head = Head(person, shot)
    points = landmarks(head, turn)
    centre, side = crop(points)
    side *= shot.zoom
    centre = (centre + shot.shift * side).tolist()
    turn = turn.astype(np.float32)  # as everything a sample carries
    n = size * supersampling
    pixel = float(side) / n
    ticks = (np.arange(n, dtype=np.float32) + 0.5 - n / 2) * np.float32(pixel)
    u, v = np.meshgrid(centre[0] + ticks, centre[1] - ticks)
    scene = Scene(u, v, float(pixel))
    hair = Hair(head)

    _torso(scene, head, turn)
    if not hair.long:  # which hangs over them
        _ears(scene, head, turn)
    _head(scene, head, turn)
    flat_u, flat_v = u.ravel(), v.ravel()
    front = hair.layer(flat_u, flat_v, turn, scene.pixel, False, np.ones(n * n, bool))
    front.alpha *= front.depth > scene.depth.ravel()[front.at] - 7.0
    image = np.where(scene.solid[..., None], _shade(scene, shot, front), background(u, v, centre, side, shot))
    label = scene.label.copy()
    if hair.hangs:
        open_ = ~scene.solid.ravel()
        open_[front.at[front.alpha > 0.98]] = False
        _lay(image, label, hair.layer(flat_u, flat_v, turn, scene.pixel, True, open_))
    _lay(image, label, front)
    for prop in (hat, glasses, occluder):
        image = prop(image, label, u, v, turn, head, hair, pixel)
    pixels = (
        np.stack([(points[:, 0] - centre[0]) / side + 0.5, 0.5 - (points[:, 1] - centre[1]) / side], -1) * size - 0.5
    )
    middle = supersampling // 2
    return Drawing(
        _develop(image, shot, size, supersampling),
        pixels.astype(np.float32),
        np.ascontiguousarray(label[middle::supersampling, middle::supersampling]),
    )


def _lay(image: np.ndarray, label: np.ndarray, layer: Layer) -> None:
    """Lay hair over the picture and its labels."""
    under = image.reshape(-1, 3)
    under[layer.at] += (layer.light - under[layer.at]) * layer.alpha[:, None]
    label.ravel()[layer.at[layer.alpha > 0.5]] = LABEL["hair"]


def _head(scene: Scene, head: Head, turn: np.ndarray) -> None:
    step = float(np.clip(scene.pixel, 0.5, 1.25))
    at, x, y, z, w = head.intersect(scene.u.ravel(), scene.v.ravel(), turn, step)
    shot = head.shot
    gaze = shot.gaze * head.person.eye_half
    gaze = np.clip(gaze - 7.0 * np.sin(np.radians([shot.yaw, shot.pitch])), [-4.5, -1.6], [4.5, 1.6])
    painted = paint(head, x, y, z, scene.pixel, gaze)
    scene.put(at, w, painted.albedo, painted.gloss, painted.label, 1.0, painted.glow)


def _ears(scene: Scene, head: Head, turn: np.ndarray) -> None:
    """Two tilted discs beside the head, with a rim and a hollow."""
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


def _torso(scene: Scene, head: Head, turn: np.ndarray) -> None:
    """Neck, shoulders and clothing; they follow the head's place but little of its turn."""
    p, s = head.person, head.shot
    pivot = (turn @ np.array([0.0, -75.0, -30.0])).tolist()
    u, v = scene.u - pivot[0], scene.v - pivot[1] - 75.0
    child = float(np.clip((16.0 - p.age) / 10.0, 0.0, 1.0))
    drop = np.clip((-80.0 - v) / 60.0, 0.0, 1.6)
    half = p.neck_half * (0.97 + 0.05 * drop**2) + 34.0 * smoothstep(0.35, 1.3, drop) ** 2 * (0.7 + 0.3 * p.male)
    across = u / half
    neck = np.abs(across) < 1.0
    depth = -32.0 + 0.25 * drop * 6.0 + 58.0 * np.sqrt(np.maximum(1.0 - across**2, 0.0))
    cord = np.abs(np.abs(u) - 30.0 + 16.0 * drop)
    depth = (
        depth
        + (1.8 - p.build) * np.exp(-((cord / 7.0) ** 2))
        + (2.4 * p.male * (1 - child)) * np.exp(-(((u / 7.0) ** 2) + ((drop - 0.5) / 0.18) ** 2))
    )
    depth = depth + 9.0 * p.double_chin * np.exp(-((u / 32.0) ** 2) - ((v + p.chin_drop + 4.0) / 11.0) ** 2)
    at = np.flatnonzero((neck & (v < -45.0)).ravel())
    skin = linear(p.skin) * np.array([0.97, 0.93, 0.92])
    grain = 1.0 + 0.04 * texture(u.ravel()[at], v.ravel()[at], 1.1, p.texture + 3, 1.2)
    lines = 1.0 - (0.06 + 0.1 * p.wrinkles) * np.exp(
        -(((np.mod(v.ravel()[at] + 0.004 * u.ravel()[at] ** 2, 17.0) - 8.0) / 1.2) ** 2)
    )
    scene.put(at, depth.ravel()[at], skin * (grain * lines)[:, None], np.float32(0.4), np.uint8(LABEL["neck"]), 1.0)
    # shoulders: a rounded ridge that falls away from the neck
    width = 150.0 + 22.0 * (p.male - 0.5) + 14.0 * p.build - 45.0 * child
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


def _normals(depth: np.ndarray, pixel: float) -> np.ndarray:
    """Unit normals (n, n, 3) of a depth map, camera axes (u right, v up, w towards the camera)."""
    down, right = np.gradient(depth, np.float32(pixel))
    normal = np.stack([-right, down, np.ones_like(depth)], -1)
    return normal / np.linalg.norm(normal, axis=-1, keepdims=True)


def _shade(scene: Scene, shot: Shot, front: Layer) -> np.ndarray:
    """Linear light leaving the solid surfaces."""
    cover = scene.depth
    light = shot.light.astype(np.float32)
    normal = _normals(np.where(scene.solid, cover, ndimage.maximum_filter(cover, 3)), scene.pixel)
    lambert = normal @ light
    wrap = WRAP * scene.skin[..., None]
    diffuse = np.clip((lambert[..., None] + wrap) / (1.0 + wrap), 0.0, 1.0)
    # what stands nearer to the camera around a point takes light from it
    occluder = np.maximum(cover, -70.0)
    thick = front.at[front.alpha > 0.5]
    occluder.ravel()[thick] = np.maximum(occluder.ravel()[thick], front.depth[front.alpha > 0.5] + 2.0)
    step = max(1, round(3.0 / scene.pixel))
    coarse = occluder[::step, ::step]
    mm = scene.pixel * step
    close = ndimage.gaussian_filter(coarse, 5.0 / mm)
    wide = ndimage.gaussian_filter(coarse, 15.0 / mm)
    zoom = np.array(scene.shape) / np.array(coarse.shape)
    grid = [np.minimum((np.arange(scene.shape[i]) - 0.5 * (step - 1)) / zoom[i], coarse.shape[i] - 1) for i in (0, 1)]

    def spread(field, shift=(0.0, 0.0)):
        rows = np.clip(grid[0] + shift[0] / mm, 0, coarse.shape[0] - 1.001)
        columns = np.clip(grid[1] + shift[1] / mm, 0, coarse.shape[1] - 1.001)
        i, j = rows.astype(int), columns.astype(int)
        a, b = (rows - i)[:, None].astype(np.float32), (columns - j)[None].astype(np.float32)
        rows0 = field[i] * (1 - a) + field[i + 1] * a
        return rows0[:, j] * (1 - b) + rows0[:, j + 1] * b

    hollow = (
        np.clip(spread(close) - cover, 0, 12.0) / 12.0 * 0.75 + np.clip(spread(wide) - cover, 0, 30.0) / 30.0 * 0.75
    )
    ambient = 1.0 - np.clip(hollow, 0.0, 0.72)
    shadow = np.zeros(scene.shape, np.float32)
    for reach in (9.0, 20.0, 36.0):
        towards = (-light[1] * reach, light[0] * reach)
        rise = spread(close, towards) - cover - reach * max(light[2], 0.25)
        shadow = np.maximum(shadow, np.clip(rise / 9.0, 0.0, 1.0))
    lit = 1.0 - 0.85 * shadow
    half = light + np.array([0, 0, 1.0], np.float32)
    half /= np.linalg.norm(half)
    facing = np.clip(normal @ half, 0.0, 1.0)
    shine = scene.gloss * (0.075 * facing**22 + 0.05 * facing**7) * lit
    sky = 0.78 + 0.22 * normal[..., 1] + 0.12 * normal[..., 2]
    fill = shot.fill * (ambient * sky)[..., None] * shot.fill_colour.astype(np.float32)
    # light that has been inside the skin comes out redder where little arrives
    bleed = np.stack([ambient**0.85, ambient, ambient**1.05], -1) / np.maximum(ambient, 1e-3)[..., None]
    key = (
        shot.key
        * 1.12
        * diffuse
        * lit[..., None]
        * (0.5 + 0.5 * ambient)[..., None]
        * shot.key_colour.astype(np.float32)
    )
    rim = 0.10 * (1.0 - np.clip(normal[..., 2], 0, 1)) ** 3 * shot.fill
    return (
        scene.colour * (key + fill * bleed)
        + (shine * shot.key)[..., None] * 0.9
        + rim[..., None] * scene.colour
        + scene.glow[..., None]
    )


def _develop(image: np.ndarray, shot: Shot, size: int, supersampling: int) -> np.ndarray:
    """Average the samples in linear light, bend highlights, encode as sRGB, add the camera's blur and noise."""
    linear_light = image.reshape(size, supersampling, size, supersampling, 3).mean((1, 3))
    if shot.blur * size > 0.25:
        linear_light = ndimage.gaussian_filter(linear_light, (shot.blur * size, shot.blur * size, 0))
    x = np.clip(linear_light, 0.0, None)
    x = np.where(x > 0.62, 0.62 + 0.38 * (1.0 - np.exp(-(x - 0.62) / 0.38)), x)
    picture = x ** (1 / 2.2)
    if shot.noise > 0:
        picture = picture + generator(shot.texture, "sensor", size).normal(0, shot.noise, picture.shape)
    return np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8)

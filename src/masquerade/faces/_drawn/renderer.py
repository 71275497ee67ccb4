"""Renders one face: from a ``Person`` and a ``Shot`` to a picture, its landmarks and its parsing mask."""

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from masquerade.core.seeding import generator
from masquerade.faces._drawn.body import ears, torso
from masquerade.faces._drawn.geometry import Head, crop, landmarks, rotation
from masquerade.faces._drawn.hair import Hair, Layer
from masquerade.faces._drawn.paint import LABEL
from masquerade.faces._drawn.person import Person
from masquerade.faces._drawn.props import background, glasses, hat, occluder
from masquerade.faces._drawn.scene import Scene
from masquerade.faces._drawn.shot import Shot
from masquerade.faces._drawn.skin import paint

# how far light wraps around the edge of a shadow, by colour: blood makes that edge red
WRAP = np.array([0.34, 0.20, 0.14], np.float32)


@dataclass(frozen=True)
class Drawing:
    """``picture`` uint8 (H, W, 3); ``landmarks`` float32 (68, 2), (x, y) in pixels; ``mask`` uint8 (H, W) of LABEL."""

    picture: np.ndarray
    landmarks: np.ndarray
    mask: np.ndarray


def draw(person: Person, shot: Shot, size: int, supersampling: int = 2) -> Drawing:
    """Draw a face of ``size`` x ``size`` pixels. Each pixel is the mean of ``supersampling``^2 samples."""
    turn = rotation(shot.yaw, shot.pitch, shot.roll)
    head = Head(person, shot)
    points = landmarks(head, turn)
    centre, side = crop(points)
    side *= shot.zoom
    centre = (centre + shot.shift * side).tolist()
    turn = turn.astype(np.float32)  # the type of every value of a sample
    n = size * supersampling
    pixel = float(side) / n
    ticks = (np.arange(n, dtype=np.float32) + 0.5 - n / 2) * np.float32(pixel)
    u, v = np.meshgrid(centre[0] + ticks, centre[1] - ticks)
    scene = Scene(u, v, pixel)
    hair = Hair(head)

    torso(scene, head, turn)
    if not hair.long:  # long hair hides the ears
        ears(scene, head, turn)
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
        image = prop(image, label, u, v, turn, head, pixel)
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
    """Put hair over the picture and its labels, in place."""
    under = image.reshape(-1, 3)
    under[layer.at] += (layer.light - under[layer.at]) * layer.alpha[:, None]
    label.ravel()[layer.at[layer.alpha > 0.5]] = LABEL["hair"]


def _head(scene: Scene, head: Head, turn: np.ndarray) -> None:
    """Put the painted face into the scene."""
    step = float(np.clip(scene.pixel, 0.5, 1.25))
    at, x, y, z, w = head.intersect(scene.u.ravel(), scene.v.ravel(), turn, step)
    shot = head.shot
    gaze = shot.gaze * head.person.eye_half
    gaze = np.clip(gaze - 7.0 * np.sin(np.radians([shot.yaw, shot.pitch])), [-4.5, -1.6], [4.5, 1.6])
    painted = paint(head, x, y, z, scene.pixel, gaze)
    scene.put(at, w, painted.albedo, painted.gloss, painted.label, 1.0, painted.glow)


def _normals(depth: np.ndarray, pixel: float) -> np.ndarray:
    """Unit normals (n, n, 3) of a depth map, camera axes (u right, v up, w towards the camera)."""
    down, right = np.gradient(depth, np.float32(pixel))
    normal = np.stack([-right, down, np.ones_like(depth)], -1)
    return normal / np.linalg.norm(normal, axis=-1, keepdims=True)


def _shade(scene: Scene, shot: Shot, front: Layer) -> np.ndarray:
    """Linear light from the solid surfaces, float (n, n, 3)."""
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
    # light that was scattered inside the skin is redder where the surface is dark
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
    """Average the samples in linear light, add blur, compress highlights, encode as sRGB, and add noise."""
    linear_light = image.reshape(size, supersampling, size, supersampling, 3).mean((1, 3))
    if shot.blur * size > 0.25:
        linear_light = ndimage.gaussian_filter(linear_light, (shot.blur * size, shot.blur * size, 0))
    x = np.clip(linear_light, 0.0, None)
    x = np.where(x > 0.62, 0.62 + 0.38 * (1.0 - np.exp(-(x - 0.62) / 0.38)), x)
    picture = x ** (1 / 2.2)
    if shot.noise > 0:
        picture = picture + generator(shot.texture, "sensor", size).normal(0, shot.noise, picture.shape)
    return np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8)

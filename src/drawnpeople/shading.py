"""Light on the visible points: diffuse light that spreads below the skin, and what is mirrored."""

import numpy as np

from drawnpeople.kernels import blur, exp32, kernel, log32, pow32
from drawnpeople.light import Light, measure_shadow
from drawnpeople.template import EYE, MOUTH, SKIN, TEETH
from drawnpeople.visible import Visible

F = np.float32
SCATTER = (0.0030, 0.0013, 0.0007)
"""Distance in metres over which light spreads below the skin: red, green, blue. Blood and collagen pass red best."""


@kernel
def illuminate(visible, seen, light, maps, camera, irradiance, mirrored):
    """Fill irradiance (N, 3) and mirrored (N, 3) of the `Visible` points.

    ``seen`` (N, 3): the points in the depth maps ``maps`` (2, q, q) of surfaces and hair; ``light`` (4, 3): direction,
    key, sky and ground; ``camera`` (3,): its place. Diffuse light wraps around the edge of a shadow, red furthest.
    """
    points, normal, tilt = visible.points, visible.normal, visible.tilt
    occlusion, material, gloss = visible.occlusion, visible.material, visible.gloss
    for i in range(points.shape[0]):
        kind = material[i]
        nx, ny, nz = normal[i, 0] + tilt[i, 0], normal[i, 1] + tilt[i, 1], normal[i, 2] + tilt[i, 2]
        r = F(1) / F(np.sqrt(nx * nx + ny * ny + nz * nz + F(1e-12)))
        nx, ny, nz = nx * r, ny * r, nz * r
        vx, vy, vz = camera[0] - points[i, 0], camera[1] - points[i, 1], camera[2] - points[i, 2]
        r = F(1) / F(np.sqrt(vx * vx + vy * vy + vz * vz))
        vx, vy, vz = vx * r, vy * r, vz * r
        lx, ly, lz = light[0, 0], light[0, 1], light[0, 2]
        facing = nx * lx + ny * ly + nz * lz
        open_, deep = measure_shadow(seen[i, 0], seen[i, 1], seen[i, 2], maps[0], maps[1])
        through = exp32(-deep / F(0.05))
        ao = occlusion[i]
        if kind == TEETH:
            ao = F(0.55)
        elif kind == EYE:
            ao = pow32(ao, F(0.6))
        log_ao = log32(ao)
        lit = open_ * exp32(-deep / F(0.012)) * (F(0.35) + F(0.65) * ao)
        up = F(0.5) + F(0.5) * nz
        soft = kind == SKIN
        for c in range(3):
            wrap = (F(0.28) if c == 0 else F(0.14) if c == 1 else F(0.09)) if soft else F(0.05)
            diffuse = min(max((facing + wrap) / (F(1) + wrap), F(0)), F(1))
            diffuse = diffuse * F(np.sqrt(diffuse)) if soft else diffuse
            value = diffuse * (pow32(lit, F(0.8)) if c == 0 and soft else lit) * light[1, c]
            ambient = light[2, c] * up + light[3, c] * (F(1) - up)
            hidden = exp32((F(0.9) if c == 0 else F(1.12) if c == 1 else F(1.2)) * log_ao) if ao > F(0) else F(0)
            value += F(0.75) * ambient * hidden * (F(0.5) + F(0.5) * through)
            if kind == MOUTH:
                value = max(F(0.5) * value, F(0.10) * light[2, c])
            elif kind == TEETH:
                value = max(value, F(0.5) * (light[2, c] + F(0.4) * light[1, c]))
            irradiance[i, c] = value
        # the lobes of a rough surface, and the sky at grazing angles (Schlick 1994)
        hx, hy, hz = lx + vx, ly + vy, lz + vz
        r = F(1) / F(np.sqrt(hx * hx + hy * hy + hz * hz + F(1e-12)))
        half = max((nx * hx + ny * hy + nz * hz) * r, F(0))
        graze = F(1) - max(nx * vx + ny * vy + nz * vz, F(0))
        fresnel = F(0.3) + F(0.7) * graze * graze * graze
        shine = gloss[i] * fresnel * _lobes(half)
        if kind == EYE:
            shine += _glint(half)
        shine *= lit if facing > F(-0.1) else F(0)
        around = (gloss[i] * F(0.25) + (F(0.035) if soft else F(0))) * fresnel * ao
        for c in range(3):
            mirrored[i, c] = shine * light[1, c] + around * light[2, c]


@kernel
def _power16(x):
    """x**16."""
    x = x * x
    x = x * x
    return x * x * x * x


@kernel
def _lobes(half):
    """What a rough surface mirrors at this cosine of the half angle: a wide and a narrow lobe."""
    h16 = _power16(half)
    return h16 * F(0.6) + h16 * h16 * h16 * h16 * F(0.7)


@kernel
def _glint(half):
    """The small bright spots on a wet eyeball."""
    h16 = _power16(half)
    h64 = h16 * h16 * h16 * h16
    h512 = h64 * h64 * h64 * h64
    h512 = h512 * h512
    return h512 * F(2.2) + F(0.5) * h512 * h512


def shade(visible: Visible, light: Light, camera, metres: float, at, side: int) -> np.ndarray:
    """Linear light float32 (N, 3) of the visible points; ``at``: their places in an image of ``side``^2 samples.

    ``camera`` (3,): its place. ``metres``: size of a sample at the face.
    """
    irradiance, mirrored = np.empty(visible.points.shape, F), np.empty(visible.points.shape, F)
    illuminate(visible, light.project(visible.points), light.rows, light.maps, camera, irradiance, mirrored)
    skin = visible.material == SKIN
    if SCATTER[0] / metres > 0.35 and skin.any():
        places = at[skin]
        buffer, weight = np.zeros((3, side, side), F), np.zeros((side, side), F)
        weight.ravel()[places] = F(1)
        for c, reach in enumerate(SCATTER):
            sigma = reach / metres
            if sigma > 0.35:
                buffer[c].ravel()[places] = irradiance[skin, c]
                spread = blur(buffer[c], sigma).ravel()[places]
                irradiance[skin, c] = spread / np.maximum(blur(weight, sigma).ravel()[places], F(1e-3))
    return visible.albedo * irradiance + mirrored

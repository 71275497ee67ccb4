"""Places outside, and what is seen through a window: trees, houses, streets, a park, leaves, lights at night."""

import numpy as np

from drawnpeople.scene import FACE, LIGHT_WARM, LINEAR, SKY_BLUE, SKY_WHITE, Scene


def outside(s: Scene, depth: float, bright) -> None:
    """What is seen through a window: sky, a far tree line or houses."""
    wide = 0.5 * FACE * depth / s.distance
    blue = s.one(0.1, 0.9)
    sky = (SKY_BLUE * blue + SKY_WHITE * (1 - blue)) * bright
    horizon = s.one(-0.6, 0.4) * wide
    s.panel((-3 * wide, 3 * wide, -3 * wide, 3 * wide), depth, sky, 0.6 * sky + 0.4 * SKY_WHITE * bright)
    if s.chance(0.6):
        _trees(s, 50, far=depth, heights=(horizon - 0.6 * wide, horizon + 0.15 * wide), wide=wide, light=bright)
        grass = s.pick("leaf") * bright
        s.panel((-3 * wide, 3 * wide, -3 * wide, horizon - 0.5 * wide), depth, grass)
    else:
        _houses(s, depth, wide, horizon, bright * 0.8)


def _trees(s: Scene, k: int, far, heights, wide, light, green="leaf") -> None:
    """A line of crowns, between two heights, darker below."""
    low, top = heights
    x = s.some(-1.5, 1.5, k) * wide
    wave = np.interp(x, np.linspace(-1.5, 1.5, 8) * wide, s.some(0.25, 1.0, 8))  # the line's own height
    up = np.sort(s.some(0.0, 1.0, k))[::-1]
    z, r = low + (top - low) * up * wave, s.some(0.07, 0.2, k) * wide
    tone = s.pick(green)
    colors = (0.6 * tone + 0.4 * s.picks(green, k, 0.3)) * light * s.some(0.6, 1.3, k)[:, None]
    s.balls((x, far, z), (r, 0.8 * r), colors * 1.35, colors * 0.45)
    k *= 2  # lit twigs and dark gaps
    i = s.rng.integers(len(x), size=k)
    x, z, r = x[i] + s.some(-0.8, 0.8, k) * r[i], z[i] + s.some(-0.6, 0.7, k) * r[i], s.some(0.12, 0.35, k) * r[i]
    colors = colors[i] * s.some(0.3, 1.9, k)[:, None]
    s.balls((x, far, z), (r, r), colors, colors * 0.8, 0.8)


def _houses(s: Scene, depth: float, wide: float, horizon: float, light) -> None:
    """A row of houses with windows that faces us."""
    x = -s.one(1.3, 1.9) * wide
    while x < 1.3 * wide:
        w, top = s.one(0.4, 1.0) * wide, horizon + s.one(0.1, 1.1) * wide
        color = s.pick("facade", 0.2) * light * s.one(0.4, 1.0)
        s.panel((x, x + w, -3 * wide, top), depth, color, color * 0.85)
        columns, rise = int(s.rng.integers(2, 5)), s.one(0.2, 0.34) * wide
        step, rows = w / columns, max(1, int((top + 1.2 * wide) / rise))
        a = (x + (0.25 + np.arange(columns)) * step)[None].repeat(rows, 0).ravel()
        z = (top - (0.5 + np.arange(rows)) * rise)[:, None].repeat(columns, 1).ravel()
        k = len(a)
        panes = color * s.some(0.12, 0.5, k)[:, None] + SKY_WHITE * light * (0.4 * (s.rng.random((k, 1)) < 0.2))
        s.panels(a, a + 0.5 * step, z - 0.55 * rise, z, depth, panes, panes * 0.7)
        x += w * s.one(1.0, 1.15)


def street(s: Scene) -> None:
    """A street between houses that runs away from us, with cars, lamps, people and trees."""
    light = s.one(0.8, 1.2) * (0.8 * s.sky + 0.3 * s.key)
    sun = 0.35 * s.key
    far = s.distance + 60.0
    wide = 0.5 * FACE * far / s.distance
    eye = -1.5 + s.one(-0.15, 0.15)  # height of the ground under the face
    blue = s.one(0.0, 0.8)
    sky = (SKY_BLUE * blue + SKY_WHITE * (1 - blue)) * light * s.one(1.2, 2.2)
    tilt = s.one(-0.02, 0.05)  # the camera looks a little up or down
    rise = tilt * 30.0
    s.panel((-3 * wide, 3 * wide, -3 * wide, 3 * wide), far, sky, 0.5 * sky + 0.5 * SKY_WHITE * light * 1.5)
    _houses(s, far, wide, rise - 0.3 * wide, light)
    near, end = s.distance + s.one(2, 6), far
    drift = s.one(-0.06, 0.06)  # the street's direction
    ground = s.pick("stone") * light

    def at(x, y, z):
        return x + drift * (y - s.distance), y + 0.0, z + tilt * (y - s.distance) * 0.5

    s.quad((at(-30, near, eye), at(30, near, eye), at(30, end, eye), at(-30, end, eye)), ground * 0.8, ground * 1.2)
    for sign in (-1, 1):
        edge = sign * s.one(2.0, 6.0)
        shade = s.one(0.35, 0.6) if sign == s.side else s.one(0.8, 1.1)
        y = end
        while y > near:  # from far to near
            length = s.one(6, 14)
            y0 = max(y - length, near - 3.0)
            color = s.pick("facade", 0.2) * (light * shade + (0 if sign == s.side else 0.6) * sun)
            top = s.one(6, 16)
            wall = (at(edge, y, eye), at(edge, y, top), at(edge, y0, top), at(edge, y0, eye))
            s.quad(wall, color * 0.9, color * 1.05)
            rows, columns = 4, max(1, int((y - y0 - 1.0) / 2.2))
            k = rows * columns
            a = (y - 0.8 - 2.2 * np.arange(columns))[None].repeat(rows, 0).ravel()
            z = (eye + 0.8 + 2.9 * np.arange(rows))[:, None].repeat(columns, 1).ravel()
            panes = (np.full(3, 0.06) * light + 0.1 * sky) * s.some(0.4, 1.6, k)[:, None]
            if s.chance(0.5):  # shops
                panes[:columns] = LIGHT_WARM * s.some(0.1, 0.9, columns)[:, None]
            corners = np.stack(
                [*at(edge, a, z + 1.5), *at(edge, a - 1.1, z + 1.5), *at(edge, a - 1.1, z), *at(edge, a, z)]
            )
            s.quads(corners.T.reshape(-1, 4, 3), panes, panes * 0.7)
            y = y0
    s.shoot(s.distance + 15.0)
    count = int(s.rng.integers(3, 8))
    for y in sorted((s.one(near + 1, 30) for _ in range(count)), reverse=True):
        kind = s.rng.random()
        half = 0.5 * FACE * y / s.distance
        x = s.one(-1.1, 1.1) * half
        if kind < 0.4:
            _car(s, *at(x, y, eye), light, sky)
        elif kind < 0.75:
            _passer(s, *at(x, y, eye), light)
        elif kind < 0.9:
            trunk = s.pick("bark") * light
            px, py, pz = at(x, y, eye)
            s.panel((px - 0.12, px + 0.12, pz, pz + 3.0), py, trunk, trunk * 0.7)
            _crown(s, px, py, pz + 3.2, 1.3, light, "leaf")
        else:
            px, py, pz = at(x, y, eye)
            s.panel((px - 0.05, px + 0.05, pz, pz + 4.0), py, s.pick("dark") * light)
            s.ball((px, py, pz + s.one(1.6, 2.6)), (0.2, 0.2), s.pick("signal") * 2.0)
    s.shoot(s.distance + 9.0)


def _car(s: Scene, x, y, z, light, sky) -> None:
    color = s.pick("car") * light
    w = s.one(0.85, 1.0)
    s.panel((x - w - 0.1, x + w + 0.1, z - 0.02, z + 0.25), y, np.full(3, 0.01), alpha=0.8)
    s.panel((x - w, x + w, z + 0.25, z + 0.95), y, color * 1.3, color * 0.5)
    s.quad(
        (
            (x - 0.75 * w, y, z + 1.45),
            (x + 0.75 * w, y, z + 1.45),
            (x + 0.95 * w, y, z + 0.92),
            (x - 0.95 * w, y, z + 0.92),
        ),
        0.5 * sky + 0.02,
        0.12 * sky,
    )
    s.panel((x - 0.7 * w, x + 0.7 * w, z + 1.40, z + 1.5), y, color * 1.6)
    lamp = LINEAR["signal"][0] * s.one(0.5, 3) if s.chance(0.5) else np.array([1.0, 0.95, 0.85]) * s.one(1, 8)
    for side in (-1, 1):
        s.ball((x + side * 0.75 * w, y, z + 0.72), (0.12, 0.08), lamp)


def _passer(s: Scene, x, y, z, light) -> None:
    coat, legs = s.pick("people") * light, s.pick("dark") * light
    tall = s.one(1.5, 1.85)
    s.panel((x - 0.16, x + 0.16, z, z + 0.5 * tall), y, legs, legs * 0.7)
    s.ball((x, y, z + 0.66 * tall), (0.25, 0.24 * tall), coat * 1.2, coat * 0.7)
    skin = s.pick("wood", 0.3) * light
    s.ball((x, y, z + 0.93 * tall), (0.085, 0.11), skin)
    s.ball((x, y, z + 0.97 * tall), (0.09, 0.085), s.pick("dark") * light)


def park(s: Scene) -> None:
    """Grass, trunks and crowns of trees before a bright sky."""
    light = s.one(0.8, 1.3) * (0.8 * s.sky + 0.4 * s.key)
    far = s.distance + s.one(25, 60)
    wide = 0.5 * FACE * far / s.distance
    blue = s.one(0.0, 0.8)
    sky = (SKY_BLUE * blue + SKY_WHITE * (1 - blue)) * light * s.one(1.2, 2.2)
    horizon = s.one(-0.75, 0.05) * wide
    green = "autumn" if s.chance(0.15) else "leaf"
    s.panel((-2 * wide, 2 * wide, horizon, 3 * wide), far, sky, 0.55 * sky + 0.45 * SKY_WHITE * light * 1.7)
    grass = s.pick("leaf") * light * 1.5
    s.panel((-2 * wide, 2 * wide, -3 * wide, horizon + 0.02 * wide), far, grass * 1.15, grass * 0.75)
    k = 24  # patches of sun and shade on the grass
    down = s.some(0.0, 1.0, k)
    tones = grass * s.some(0.4, 1.8, k)[:, None] * np.array([1.05, 1.0, 0.9])
    s.balls(
        (s.some(-1.5, 1.5, k) * wide, far, horizon - down * wide),
        (s.some(0.2, 0.8, k) * wide * (0.3 + down), s.some(0.01, 0.10, k) * wide * (0.2 + down)),
        tones,
        tones,
        0.6,
        2.0,
    )
    if s.chance(0.3):
        stone = s.pick("stone") * light * 1.3
        x = s.one(-0.8, 0.8) * wide
        s.quad(
            (
                (x, far, horizon),
                (x + 0.1 * wide, far, horizon),
                (3 * x + 1.2 * wide, far, -2 * wide),
                (3 * x - 0.6 * wide, far, -2 * wide),
            ),
            stone,
        )
    _trees(s, 70, far=far, heights=(horizon, horizon + s.one(0.2, 1.3) * wide), wide=wide, light=light, green=green)
    s.shoot(far)
    near = s.distance + s.one(5, 14)
    half = 0.5 * FACE * near / s.distance
    for _ in range(int(s.rng.integers(0, 4))):
        x, w = s.one(-1.3, 1.3) * half, s.one(0.1, 0.25)
        bark = s.pick("bark") * light
        s.quad(
            (
                (x - w, near, -3 * half),
                (x - 0.8 * w, near, 3 * half),
                (x + 0.8 * w, near, 3 * half),
                (x + w, near, -3 * half),
            ),
            bark * (1.2 if s.side < 0 else 0.5),
            bark * (1.2 if s.side > 0 else 0.5),
        )
    if s.chance(0.6):
        _crown(s, s.one(-1.2, 1.2) * half, near, s.one(0.5, 1.3) * half, half * s.one(0.6, 1.1), light, green)
    s.shoot(near)


def _crown(s: Scene, x, y, z, size, light, green) -> None:
    """Leaves of one tree: shaded below, lit above, with gaps."""
    k = 120
    u, v = s.some(-1, 1, k), s.some(-1, 1, k)
    inside = u * u + v * v < 1.0
    u, v = u[inside], v[inside]
    k = len(u)
    colors = s.picks(green, k, 0.3) * light * (0.85 + 0.6 * v + 0.5 * s.rng.random(k))[:, None]
    r = s.some(0.05, 0.16, k) * size
    s.balls((x + u * size, y, z + v * size * 0.8), (r, r * 0.9), colors * 1.3, colors * 0.7, 0.9)


def foliage(s: Scene) -> None:
    """A hedge or leaves close behind the person, with sun through the gaps."""
    light = s.one(0.8, 1.3) * (0.8 * s.sky + 0.4 * s.key)
    depth = s.distance + s.one(1.0, 4.0)
    wide = 0.5 * FACE * depth / s.distance
    green = "autumn" if s.chance(0.12) else "leaf"
    base = s.pick(green) * light
    s.panel((-2 * wide, 2 * wide, -2 * wide, 2 * wide), depth, base * 0.6, base * 0.25)
    far = s.chance(0.5)
    k = 60  # depth of the hedge: large dark and light masses
    r, tones = s.some(0.1, 0.45, k) * wide, base * s.some(0.15, 1.2, k)[:, None]
    s.balls(
        (s.some(-1.4, 1.4, k) * wide, depth, s.some(-1.4, 1.4, k) * wide), (r, r), tones * 1.2, tones * 0.7, 0.6, 3.0
    )
    k = int(s.rng.integers(4, 30))  # gaps to the sky
    r, tones = s.some(0.012, 0.06, k) * wide, SKY_WHITE * light * s.some(1.0, 5.0, k)[:, None]
    s.balls((s.some(-1.3, 1.3, k) * wide, depth, s.some(-0.6, 1.3, k) * wide), (r, r), tones, tones)
    s.shoot(depth + (8.0 if far else 1.5))
    k, large = int(s.rng.integers(90, 200)), s.one(0.8, 2.2)
    z = s.some(-1.3, 1.3, k)
    tones = s.picks(green, k, 0.4) * light * ((0.95 + 0.3 * z) * s.some(0.5, 1.7, k))[:, None]
    through = s.rng.random((k, 1)) < 0.12  # light through the leaf
    tones = np.where(through, tones * np.array([2.2, 2.2, 1.3]), tones)
    s.leaves(s.some(-1.3, 1.3, k) * wide, depth, z * wide, s.some(0.03, 0.10, k) * wide * large, tones)
    s.shoot(depth)


def night(s: Scene) -> None:
    """A city at night: dark houses, lit windows, and lamps that the lens turns into discs."""
    far = s.distance + s.one(20, 60)
    wide = 0.5 * FACE * far / s.distance
    s.lens = max(s.lens, 0.007)
    glow = s.pick("lamp") * s.one(0.004, 0.05)
    dusk = np.array([0.010, 0.013, 0.022]) * s.one(0.5, 4.0)
    horizon = s.one(-0.7, 0.5) * wide
    s.panel((-2 * wide, 2 * wide, -3 * wide, 3 * wide), far, dusk, dusk + glow)
    x = -1.6 * wide
    while x < 1.6 * wide:
        w, top = s.one(0.2, 0.8) * wide, horizon + s.one(0.0, 1.1) * wide
        c = s.pick("facade") * (dusk + 0.5 * glow) * s.one(0.2, 0.8)
        s.panel((x, x + w, -2 * wide, top), far, c, c + 0.4 * glow)
        k = int(s.rng.integers(0, 12))
        a, b, size = x + s.some(0.05, 0.9, k) * w, s.some(-0.8 * wide, top, k), s.some(0.015, 0.05, k) * wide
        panes = s.picks("lamp", k) * s.some(0.1, 0.9, k)[:, None]
        s.panels(a, a + size, b, b + 1.3 * size, far, panes, panes)
        x += w
    street = s.pick("stone") * 0.15 * (glow + dusk)
    s.panel((-2 * wide, 2 * wide, -3 * wide, horizon - 0.5 * wide), far, street + glow, street)
    k = int(s.rng.integers(8, 34))
    hue = "lamp" if s.chance(0.55) else "signal"
    few = s.rng.random((k, 1)) < 0.6
    colors = np.where(few, s.picks("lamp", k), s.picks(hue, k)) * s.some(2.0, 26.0, k)[:, None]
    r, z = s.some(0.008, 0.020, k) * wide, horizon + s.rng.normal(size=k) * 0.33 * wide
    s.balls((s.some(-1.25, 1.25, k) * wide, far, z), (r, r), colors, colors)
    s.shoot(far)

"""Inner loops of the objects before a face: their shape as limbs, and the light on them."""

import numpy as np

from drawnpeople.kernels import kernel, sin32

F = np.float32


@kernel
def shape(limbs, cover, fields):
    """Fill cover (n, n) and fields (n, n, 6): height, normal to the right and down, material, place along and across.

    ``limbs`` (k, 11): x, y, height, radius at both ends, in samples; material; flat ends; squash. Where two of them
    are about as high, they melt into one.
    """
    side = cover.shape[0]
    for i in range(len(limbs)):
        ax, ay, ah, ar, bx, by, bh, br = (
            limbs[i, 0],
            limbs[i, 1],
            limbs[i, 2],
            limbs[i, 3],
            limbs[i, 4],
            limbs[i, 5],
            limbs[i, 6],
            limbs[i, 7],
        )
        flat, squash = limbs[i, 9] > 0, limbs[i, 10]
        r = max(ar, br) + F(1)
        length = (bx - ax) * (bx - ax) + (by - ay) * (by - ay) + F(1e-6)
        root = F(np.sqrt(length))
        for y in range(max(0, int(min(ay, by) - r)), min(side - 1, int(max(ay, by) + r) + 1) + 1):
            for x in range(max(0, int(min(ax, bx) - r)), min(side - 1, int(max(ax, bx) + r) + 1) + 1):
                raw = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length
                t = min(max(raw, F(0)), F(1))
                dx, dy = x - ax - t * (bx - ax), y - ay - t * (by - ay)
                edge = F(1)
                if flat:
                    dx, dy = x - ax - raw * (bx - ax), y - ay - raw * (by - ay)
                    edge = min(max(F(0.5) + min(raw, F(1) - raw) * root, F(0)), F(1))
                d = F(np.sqrt(dx * dx + dy * dy))
                radius = ar + t * (br - ar)
                a = min(max(radius - d + F(0.5), F(0)), F(1)) * edge
                if a <= F(0):
                    continue
                s = min(d / radius, F(1))
                rise = F(np.sqrt(max(F(1) - s * s, F(0.0025))))
                h = ah + t * (bh - ah) + squash * radius * rise
                nx, ny = dx / radius, dy / radius
                before = fields[y, x, 0]
                soft = F(0.35) * radius
                same = fields[y, x, 3] == limbs[i, 8]
                if h > before:
                    w = F(1) - (h - before) / soft if same and h - before < soft else F(0)
                    w = F(0.5) * w
                    fields[y, x, 0] = h
                    fields[y, x, 1] = nx + w * (fields[y, x, 1] - nx)
                    fields[y, x, 2] = ny + w * (fields[y, x, 2] - ny)
                    fields[y, x, 3] = limbs[i, 8]
                    fields[y, x, 4] = raw * root
                    fields[y, x, 5] = (dx * (by - ay) - dy * (bx - ax)) / root
                elif same and before - h < soft:
                    w = F(0.5) * (F(1) - (before - h) / soft)
                    fields[y, x, 1] += w * (nx - fields[y, x, 1])
                    fields[y, x, 2] += w * (ny - fields[y, x, 2])
                cover[y, x] = max(cover[y, x], a)


@kernel
def light_up(image, cover, fields, materials, light, scale):
    """Draw the shape over the image (n, n, 3). ``light`` (4, 3): direction, key, sky and ground."""
    side = cover.shape[0]
    step = max(1, int(F(0.004) * scale + F(0.5)))
    hx, hy, hz = light[0, 0], light[0, 1] - F(1), light[0, 2]
    r = F(1) / F(np.sqrt(hx * hx + hy * hy + hz * hz + F(1e-9)))
    hx, hy, hz = hx * r, hy * r, hz * r
    for y in range(side):
        for x in range(side):
            a = cover[y, x]
            if a <= F(0):
                continue
            m = int(fields[y, x, 3])
            nx, nz = fields[y, x, 1], -fields[y, x, 2]
            ny = -F(np.sqrt(max(F(1) - nx * nx - nz * nz, F(0.01))))
            hidden = F(0)  # higher parts nearby
            for k in range(8):
                reach = step if k < 4 else 2 * step
                i = min(max(y + (reach if k % 4 == 0 else -reach if k % 4 == 1 else 0), 0), side - 1)
                j = min(max(x + (reach if k % 4 == 2 else -reach if k % 4 == 3 else 0), 0), side - 1)
                rise = (fields[i, j, 0] - fields[y, x, 0]) / (F(reach) + F(0.5))
                hidden += min(max(rise, F(0)), F(1.5)) * F(0.125)
            open_ = F(1) / (F(1) + F(1.5) * hidden)
            texture = materials[m, 4]
            tone = F(1)
            u, v = fields[y, x, 4] / scale, fields[y, x, 5] / scale
            if texture == F(1):
                tone = F(1) + F(0.75) * sin32(F(1600) * (u + v)) * sin32(F(1600) * (u - v))
            elif texture == F(2):
                tone = F(1) + F(0.20) * sin32(F(900) * u + F(1.5) * sin32(F(500) * v)) + F(0.10) * sin32(F(420) * v)
            facing = nx * light[0, 0] + ny * light[0, 1] + nz * light[0, 2]
            half = max(nx * hx + ny * hy + nz * hz, F(0))
            half = half * half
            half = half * half
            half = half * half * half
            up = F(0.5) + F(0.5) * nz
            for c in range(3):
                wrap = (F(0.26) if c == 0 else F(0.16)) if m == 0 else F(0.06)
                diffuse = min(max((facing + wrap) / (F(1) + wrap), F(0)), F(1))
                ambient = F(0.75) * (light[2, c] * up + light[3, c] * (F(1) - up))
                around = open_ if c == 0 and m == 0 else open_ * open_ if m == 0 else open_
                lit = materials[m, c] * tone * (diffuse * light[1, c] * (F(0.3) + F(0.7) * open_) + ambient * around)
                lit += materials[m, 3] * half * open_ * light[1, c] + F(0.2) * materials[m, 3] * light[2, c] * up
                image[y, x, c] += a * (lit - image[y, x, c])

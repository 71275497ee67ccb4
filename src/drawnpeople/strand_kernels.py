"""The inner loops of strands: children of guides, their light, and lines with coverage."""

import numpy as np

from drawnpeople.kernels import cos32, kernel, sin32

F = np.float32


@kernel
def fade(x):
    """exp(-x) for x >= 0, to 2 %: (1 + x/8)^-8."""
    y = F(1) + x * F(0.125)
    y = y * y
    y = y * y
    return F(1) / (y * y)


@kernel
def rotate(vectors, turn):
    """Vectors (g, k, 3) times the rotation ``turn`` (3, 3)."""
    out = np.empty_like(vectors)
    for g in range(vectors.shape[0]):
        for k in range(vectors.shape[1]):
            x, y, z = vectors[g, k, 0], vectors[g, k, 1], vectors[g, k, 2]
            for c in range(3):
                out[g, k, c] = x * turn[c, 0] + y * turn[c, 1] + z * turn[c, 2]
    return out


@kernel
def spread(guides, normals, parent, offset, reach, curl, phase):
    """Strands (s, k, 3) beside their guides (g, k, 3). ``curl``: clump, and radius and length of the wave."""
    clump, radius, wave = curl
    count, points = len(parent), guides.shape[1]
    out = np.empty((count, points, 3), np.float32)
    total = np.zeros(len(guides), np.float32)
    for g in range(len(guides)):
        for k in range(points - 1):
            x = guides[g, k + 1, 0] - guides[g, k, 0]
            y = guides[g, k + 1, 1] - guides[g, k, 1]
            z = guides[g, k + 1, 2] - guides[g, k, 2]
            total[g] += np.sqrt(x * x + y * y + z * z)
    one, zero = F(1), F(0)
    for s in range(count):
        g = parent[s]
        for k in range(points):
            t = reach[s] * F(k) / F(points - 1)
            at = t * F(points - 1)
            i = min(int(at), points - 2)
            f = F(at - F(i))
            ax, ay, az = guides[g, i, 0], guides[g, i, 1], guides[g, i, 2]
            bx, by, bz = guides[g, i + 1, 0], guides[g, i + 1, 1], guides[g, i + 1, 2]
            h, j = max(i - 1, 0), min(i + 2, points - 1)
            ex = (one - f) * (bx - guides[g, h, 0]) + f * (guides[g, j, 0] - ax)
            ey = (one - f) * (by - guides[g, h, 1]) + f * (guides[g, j, 1] - ay)
            ez = (one - f) * (bz - guides[g, h, 2]) + f * (guides[g, j, 2] - az)
            r = one / (np.sqrt(ex * ex + ey * ey + ez * ez) + F(1e-9))
            ex, ey, ez = ex * r, ey * r, ez * r
            nx = normals[g, i, 0] + f * (normals[g, i + 1, 0] - normals[g, i, 0])
            ny = normals[g, i, 1] + f * (normals[g, i + 1, 1] - normals[g, i, 1])
            nz = normals[g, i, 2] + f * (normals[g, i + 1, 2] - normals[g, i, 2])
            r = one / (np.sqrt(nx * nx + ny * ny + nz * nz) + F(1e-9))
            nx, ny, nz = nx * r, ny * r, nz * r
            d = nx * ex + ny * ey + nz * ez
            ex, ey, ez = ex - d * nx, ey - d * ny, ez - d * nz  # along the skin, as in `growth.offsets`
            r = one / (np.sqrt(ex * ex + ey * ey + ez * ez) + F(1e-9))
            ex, ey, ez = ex * r, ey * r, ez * r
            sx, sy, sz = ny * ez - nz * ey, nz * ex - nx * ez, nx * ey - ny * ex
            along = offset[s, 0] * (one - t)
            way = t * total[g]
            up = offset[s, 2] * min(one, way / F(0.008)) + offset[s, 4] * t * t
            across = offset[s, 1] * (one - clump * t * (F(2) - t)) + offset[s, 3] * t * t
            if radius > zero:
                a = phase[s] + way / wave * F(6.2831853)
                w = radius * min(one, way / F(0.03))
                across += w * sin32(a)
                up += w * F(0.7) * (one + cos32(a))
            out[s, k, 0] = ax + f * (bx - ax) + along * ex + across * sx + up * nx
            out[s, k, 1] = ay + f * (by - ay) + along * ey + across * sy + up * ny
            out[s, k, 2] = az + f * (bz - az) + along * ez + across * sz + up * nz
    return out


@kernel
def glint(sine2, power):
    """sine2 ** (2 ** power)."""
    for _ in range(power):
        sine2 = sine2 * sine2
    return sine2


@kernel
def shade(h, normals, strands, lighting, gloss, is_hair):
    """Colors (s, k, 3) of strands h. ``strands``: their parent, tone and color. ``gloss``: shine and darkness at roots.

    ``lighting``: the same points in the depth maps of the light, these maps, and `Light.rows`.
    """
    (parent, tone, color), (seen, maps, rows), (shine, root_dark) = strands, lighting, gloss
    count, points = h.shape[0], h.shape[1]
    light, key, sky, ground = rows[0], rows[1], rows[2], rows[3]
    surface, hair = maps[0], maps[1]
    out = np.empty_like(h)
    size = surface.shape[0]
    one, zero, half = F(1), F(0), F(0.5)
    hx, hy, hz = light[0], light[1] - one, light[2]
    r = one / (np.sqrt(hx * hx + hy * hy + hz * hz) + F(1e-6))
    hx, hy, hz = hx * r, hy * r, hz * r
    ux, uy, uz = F(0), F(-0.38), F(0.925)  # half way between the sky and the camera
    for s in range(count):
        g = parent[s]
        for k in range(points):
            i, j = max(k - 1, 0), min(k + 1, points - 1)
            tx, ty, tz = h[s, j, 0] - h[s, i, 0], h[s, j, 1] - h[s, i, 1], h[s, j, 2] - h[s, i, 2]
            r = one / (np.sqrt(tx * tx + ty * ty + tz * tz) + F(1e-9))
            tx, ty, tz = tx * r, ty * r, tz * r
            nx, ny, nz = normals[g, k, 0], normals[g, k, 1], normals[g, k, 2]
            t = F(k) / F(points - 1)
            facing = nx * light[0] + ny * light[1] + nz * light[2]
            lights = min(max((facing + F(0.35)) / F(1.35), zero), one)
            up = half + half * nz
            visible = one
            x, y = min(max(int(seen[s, k, 0]), 0), size - 1), min(max(int(seen[s, k, 1]), 0), size - 1)
            if is_hair:
                visible = min(max(one - (seen[s, k, 2] - surface[y, x] - F(0.010)) / F(0.008), zero), one)
                deep = max(seen[s, k, 2] - hair[y, x] - F(0.004), zero)
                visible = visible * (F(0.12) + F(0.88) * fade(deep / F(0.014)))
            else:
                visible = min(max(one - (seen[s, k, 2] - surface[y, x] - F(0.012)) / F(0.008), zero), one)
            open_ = tone[s] * (one - root_dark * (one - t) * (one - t))
            along = tx * light[0] + ty * light[1] + tz * light[2]
            diffuse = (F(0.30) * np.sqrt(max(one - along * along, zero)) + F(0.70) * lights) * visible
            a = tx * hx + ty * hy + tz * hz
            first, second = a + F(0.06), a - F(0.10)
            white = glint(max(one - first * first, zero), 5) * visible * min(one, lights * F(2))
            tinted = glint(max(one - second * second, zero), 3) * visible * min(one, lights * F(2))
            b = tx * ux + ty * uy + tz * uz
            dome = glint(max(one - b * b, zero), 4) * max(nz * F(0.7) - ny * F(0.5), zero)
            for c in range(3):
                around = sky[c] * up + ground[c] * (one - up)
                body = color[s, c] * (
                    diffuse * key[c] + F(0.70) * around + shine * (F(0.55) * tinted * key[c] + F(0.35) * dome * sky[c])
                )
                out[s, k, c] = open_ * (body + shine * (F(0.030) * white * key[c] + F(0.012) * dome * sky[c]))
    return out


@kernel
def from_back(p):
    """Numbers of the segments of strands p (s, k, 3), the furthest first, in 1024 steps of depth."""
    count, points = p.shape[0], p.shape[1]
    low, high = F(1e9), F(-1e9)
    for s in range(count):
        for k in range(points):
            low, high = min(low, p[s, k, 2]), max(high, p[s, k, 2])
    scale = F(1023) / max(F(high - low), F(1e-6))
    bins = np.zeros(1025, np.int64)
    bin_of = np.empty(count * (points - 1), np.int16)
    for s in range(count):
        for k in range(points - 1):
            b = int((high - F(0.5) * (p[s, k, 2] + p[s, k + 1, 2])) * scale)
            bin_of[s * (points - 1) + k] = b
            bins[b + 1] += 1
    for b in range(1024):
        bins[b + 1] += bins[b]
    order = np.empty(count * (points - 1), np.int32)
    for i in range(len(order)):
        b = bin_of[i]
        order[bins[b]] = i
        bins[b] += 1
    return order


@kernel
def paint(p, color, order, canvas, width, bias, deep):
    """Draws the segments of strands p in ``order`` into the image; ``cover`` grows towards 1.

    A strand of ``width`` samples lies over each sample with the share of it that it covers; it tapers to its tip. Where
    ``deep``, the depth of the image becomes that of the strands wherever they cover more than half.
    ``canvas``: image, depth and cover.
    """
    image, depth, cover = canvas
    rows, columns = depth.shape
    parts = p.shape[1] - 1
    front = np.full(depth.shape, F(1e9)) if deep else np.empty((1, 1), np.float32)
    one, half = F(1), F(0.5)
    for n in range(len(order)):
        s, k = order[n] // parts, order[n] % parts
        x0, y0, z0 = p[s, k, 0], p[s, k, 1], p[s, k, 2] - bias
        dx, dy, dz = p[s, k + 1, 0] - x0, p[s, k + 1, 1] - y0, p[s, k + 1, 2] - bias - z0
        adx, ady = abs(dx), abs(dy)
        steep = ady > adx
        major = ady if steep else adx
        if major < F(1e-4) or major > 400:
            continue
        start, run = (y0, dy) if steep else (x0, dx)
        cross, slope = (x0, dx) if steep else (y0, dy)
        t0, t1 = F(k) / parts, F(k + 1) / parts
        w0 = width * min(one, F(0.10) + F(1.8) * (one - t0))
        w1 = width * min(one, F(0.10) + F(1.8) * (one - t1))
        long = np.sqrt(adx * adx + ady * ady) / major  # a slanted strand is wider along the minor axis
        first = int(np.ceil(min(start, start + run)))
        last = int(np.ceil(max(start, start + run))) - 1
        first, last = max(first, 0), min(last, (rows if steep else columns) - 1)
        limit = columns if steep else rows
        r, g, b = color[s, k, 0], color[s, k, 1], color[s, k, 2]
        dr, dg, db = color[s, k + 1, 0] - r, color[s, k + 1, 1] - g, color[s, k + 1, 2] - b
        for m in range(first, last + 1):
            t = F(F(m) - start) / run
            c = cross + t * slope
            z = z0 + t * dz
            w = (w0 + t * (w1 - w0)) * long
            reach = half * w + half
            strength = min(one, w)
            low, high = max(int(np.ceil(c - reach)), 0), min(int(np.floor(c + reach)), limit - 1)
            red, green, blue = r + t * dr, g + t * dg, b + t * db
            for q in range(low, high + 1):
                share = min(strength, reach - abs(F(q) - c))
                if share <= 0:
                    continue
                y, x = (m, q) if steep else (q, m)
                if z >= depth[y, x]:
                    continue
                rest = one - share
                image[y, x, 0] = image[y, x, 0] * rest + share * red
                image[y, x, 1] = image[y, x, 1] * rest + share * green
                image[y, x, 2] = image[y, x, 2] * rest + share * blue
                cover[y, x] = cover[y, x] * rest + share
                if deep and share > F(0.1):
                    front[y, x] = min(front[y, x], z)
    if deep:
        for y in range(rows):
            for x in range(columns):
                if cover[y, x] > half:
                    depth[y, x] = min(depth[y, x], front[y, x])

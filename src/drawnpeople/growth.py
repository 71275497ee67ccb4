"""Growth of guide strands over the head: combed, pulled down, held off the skin and out of the face."""

from typing import NamedTuple

import numpy as np

from drawnpeople.kernels import kernel

F = np.float32


@kernel
def probe(p, distance, origin, cell, out):
    """Signed distance from the skin at ``p``; ``out`` becomes the direction away from the skin."""
    a, b, c = distance.shape
    x = min(max((p[0] - origin[0]) / cell, F(0.001)), F(a - 1.001))
    y = min(max((p[1] - origin[1]) / cell, F(0.001)), F(b - 1.001))
    z = min(max((p[2] - origin[2]) / cell, F(0.001)), F(c - 1.001))
    i, j, k = int(x), int(y), int(z)
    x, y, z = F(x - i), F(y - j), F(z - k)
    d000, d001 = distance[i, j, k], distance[i, j, k + 1]
    d010, d011 = distance[i, j + 1, k], distance[i, j + 1, k + 1]
    d100, d101 = distance[i + 1, j, k], distance[i + 1, j, k + 1]
    d110, d111 = distance[i + 1, j + 1, k], distance[i + 1, j + 1, k + 1]
    one = F(1)
    d00, d01 = d000 + x * (d100 - d000), d001 + x * (d101 - d001)
    d10, d11 = d010 + x * (d110 - d010), d011 + x * (d111 - d011)
    d0, d1 = d00 + y * (d10 - d00), d01 + y * (d11 - d01)
    out[2] = d1 - d0
    out[1] = (one - z) * (d10 - d00) + z * (d11 - d01)
    out[0] = (one - y) * ((one - z) * (d100 - d000) + z * (d101 - d001)) + y * (
        (one - z) * (d110 - d010) + z * (d111 - d011)
    )
    r = one / (np.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2]) + F(1e-9))
    out[0] *= r
    out[1] *= r
    out[2] *= r
    return d0 + z * (d1 - d0)


class Combing(NamedTuple):
    """How each of g guides grows: float32 (g, 3) or (g,), and ``aimed`` bool (g,). Lengths in metres."""

    root: np.ndarray
    normal: np.ndarray  # away from the skin at the root
    start: np.ndarray  # the direction in which the strand leaves
    comb: np.ndarray  # the direction that it follows
    hold: np.ndarray  # the length over which it follows it
    gravity: np.ndarray
    cling: np.ndarray  # how strongly it is drawn to the skin
    lift: np.ndarray  # its distance from the skin
    length: np.ndarray
    floor: np.ndarray  # the height below which it ends
    clear: np.ndarray  # how strongly it is kept out of the face
    tuck: np.ndarray  # how strongly it is put behind the ears
    aim: np.ndarray  # the point to which it goes, where it is ``aimed``
    aimed: np.ndarray


@kernel
def fall(combing, steps, points, distance, origin, cell):
    """Guides (g, points, 3) and the directions away from the skin along them (g, points, 3).

    A guide has ``steps`` steps at most. The signed distance from the skin is given as for `probe`.
    """
    # once: each access counts references
    start, comb, hold, gravity, cling = combing.start, combing.comb, combing.hold, combing.gravity, combing.cling
    lift, length, floor, clear, tuck = combing.lift, combing.length, combing.floor, combing.clear, combing.tuck
    root, normal, aim, aimed = combing.root, combing.normal, combing.aim, combing.aimed
    count = len(root)
    out, away = np.empty((count, points, 3), np.float32), np.empty((count, points, 3), np.float32)
    path, side = np.empty((steps + 1, 3), np.float32), np.empty((steps + 1, 3), np.float32)
    p, e, n = np.empty(3, np.float32), np.empty(3, np.float32), np.empty(3, np.float32)
    one, zero = F(1), F(0)
    for s in range(count):
        h = length[s] / F(steps)
        for c in range(3):
            p[c], e[c] = root[s, c], start[s, c]
            path[0, c], side[0, c] = p[c], normal[s, c]
        done = 0
        for k in range(steps):
            d = probe(p, distance, origin, cell, n)
            way = (F(k) + F(0.5)) * h
            follow = max(zero, one - way / hold[s]) * min(one, h / F(0.010))
            bend = min(one, h / F(0.014))
            if aimed[s]:
                if _arrives(p, e, aim[s], min(one, h / F(0.012))):
                    break
            else:
                for c in range(3):
                    e[c] += follow * (comb[s, c] - e[c])
            e[2] -= gravity[s] * bend * min(one, way / F(0.02))
            room = cling[s] * bend * min(one, max(zero, d - lift[s]) / F(0.012))
            for c in range(3):
                e[c] -= room * n[c]
            if clear[s] > 0:
                _leave_the_face(p, e, clear[s] * bend, comb[s, 0])
            if tuck[s] > 0 and p[2] < F(0.755) and p[2] > F(0.655) and p[1] < F(0.004):
                e[1] += tuck[s] * bend * F(2.2)
            r = one / (np.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2]) + F(1e-6))
            for c in range(3):
                e[c] *= r
                p[c] += e[c] * h
            d = probe(p, distance, origin, cell, n)
            if F(0.668) < p[2] < F(0.750) and F(-0.058) < p[1] < F(0.014):  # hair presses the ears to the head
                d = max(d, abs(p[0]) - F(0.077))
            off = lift[s] * min(one, (F(k) + one) * h / F(0.012))
            if d < off:
                _stay_off_the_skin(p, e, n, off - d)
            done = k + 1
            for c in range(3):
                path[done, c], side[done, c] = p[c], n[c]
            if p[2] < floor[s]:
                break
        _space_evenly(path, done, out[s])
        _space_evenly(side, done, away[s])
    return out, away


@kernel
def _arrives(p, e, aim, share):
    """Turn the direction ``e`` towards ``aim`` by ``share``, or return True near to it."""
    tx, ty, tz = aim[0] - p[0], aim[1] - p[1], aim[2] - p[2]
    r = F(1) / (np.sqrt(tx * tx + ty * ty + tz * tz) + F(1e-6))
    if r > 60:
        return True
    e[0] += F(1.5) * (tx * r - e[0]) * share
    e[1] += F(1.5) * (ty * r - e[1]) * share
    e[2] += F(1.5) * (tz * r - e[2]) * share
    return False


@kernel
def _leave_the_face(p, e, strength, side):
    """Turn the direction ``e`` outwards (to ``side``: its sign) and backwards before the face."""
    if p[1] >= F(-0.015) or p[2] >= F(0.815):
        return
    one, zero = F(1), F(0)
    # half width of the face that the hair leaves free at this height; less at the forehead and the chin
    wide = min(F(0.062), F(0.050) + F(0.50) * (F(0.795) - p[2]))
    wide = min(wide, F(0.062) - F(0.30) * max(zero, F(0.685) - p[2]))
    if p[2] > F(0.795):
        wide = F(0.050) - F(2.0) * (p[2] - F(0.795))
    gap = wide - abs(p[0])
    if gap > F(-0.012):
        push = strength * min(one, (gap + F(0.012)) / F(0.014)) * min(one, (F(-0.015) - p[1]) / F(0.03))
        e[0] += push * F(1.4) * (one if side > 0 else -one)
        e[1] += push * F(0.55)


@kernel
def _stay_off_the_skin(p, e, n, missing):
    """Move ``p`` away from the skin by the ``missing`` metres, at most 8 mm, and let ``e`` not lead into the skin."""
    into = e[0] * n[0] + e[1] * n[1] + e[2] * n[2]
    for c in range(3):
        p[c] += n[c] * min(missing, F(0.008))
        if into < 0:
            e[c] -= into * n[c]


@kernel
def _space_evenly(path, last, out):
    """Fill ``out`` (k, 3) with evenly spaced points of ``path`` up to its point number ``last``."""
    points = len(out)
    for k in range(points):
        at = F(k) * F(last) / F(points - 1)
        i = min(int(at), max(last - 1, 0))
        f = at - F(i)
        j = min(i + 1, last)
        for c in range(3):
            out[k, c] = path[i, c] + f * (path[j, c] - path[i, c])


@kernel
def nearest_guide(roots, guides, part, split):
    """Number of the nearest guide of every root; where ``split`` it is one of the same side of the parting."""
    out = np.zeros(len(roots), np.int32)
    for s in range(len(roots)):
        best = F(1e9)
        for g in range(len(guides)):
            x, y, z = roots[s, 0] - guides[g, 0], roots[s, 1] - guides[g, 1], roots[s, 2] - guides[g, 2]
            d = x * x + y * y + z * z
            if d < best:
                if split and (roots[s, 0] > part) != (guides[g, 0] > part) and roots[s, 2] > F(0.78):
                    d += F(0.0009)
                if d < best:
                    best = d
                    out[s] = g
    return out


@kernel
def offsets(roots, parents, guides, away):
    """Place of every root in the frame of its guide: along it, and across it (s, 2)."""
    out = np.zeros((len(roots), 2), np.float32)
    for s in range(len(roots)):
        g = parents[s]
        ex, ey, ez = (
            guides[g, 1, 0] - guides[g, 0, 0],
            guides[g, 1, 1] - guides[g, 0, 1],
            guides[g, 1, 2] - guides[g, 0, 2],
        )
        nx, ny, nz = away[g, 0, 0], away[g, 0, 1], away[g, 0, 2]
        t = ex * nx + ey * ny + ez * nz
        ex, ey, ez = ex - t * nx, ey - t * ny, ez - t * nz
        r = F(1) / (np.sqrt(ex * ex + ey * ey + ez * ez) + F(1e-9))
        ex, ey, ez = ex * r, ey * r, ez * r
        x, y, z = roots[s, 0] - guides[g, 0, 0], roots[s, 1] - guides[g, 0, 1], roots[s, 2] - guides[g, 0, 2]
        out[s, 0] = x * ex + y * ey + z * ez
        out[s, 1] = x * (ny * ez - nz * ey) + y * (nz * ex - nx * ez) + z * (nx * ey - ny * ex)
    return out

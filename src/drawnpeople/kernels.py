"""Inner loops of the renderer, compiled by numba: transcendental functions, blur, rasteriser, interpolation.

Without fast-math, and without functions of the C library whose last digit differs between processors, so that the same
seed gives the same bytes on every x86-64 processor.
"""

import math

import numpy as np

from drawnpeople.compiled import kernel

F = np.float32
EMPTY = F(1e9)
"""Depth of a sample that shows no surface."""

_LOG2E, _LN2_HIGH, _LN2_LOW = F(1.44269504), F(0.693359375), F(-2.12194440e-4)
_HALF, _ONE, _TWO = F(0.5), F(1), F(2)
_EDGE = F(-1e-6)  # a sample on an edge belongs to both triangles, so rounding opens no crack between them


@kernel
def exp32(x):
    """e**x in float32, within 3e-7 of the value; 0 below -87, and the value at 88 above it."""
    x = F(x)
    if x < F(-87.0):
        return F(0)
    x = min(x, F(88.0))
    k = math.floor(x * _LOG2E + _HALF)
    r = x - F(k) * _LN2_HIGH - F(k) * _LN2_LOW
    p = F(1.9875691500e-4)
    p = p * r + F(1.3981999507e-3)
    p = p * r + F(8.3334519073e-3)
    p = p * r + F(4.1665795894e-2)
    p = p * r + F(1.6666665459e-1)
    p = p * r + F(5.0000001201e-1)
    return (p * r * r + r + _ONE) * np.int32((int(k) + 127) << 23).view(np.float32)  # times 2**k


@kernel
def log32(x):
    """Natural logarithm in float32 of x > 0; -87 for smaller values than 1e-38."""
    x = F(x)
    if x < F(1e-37):
        return F(-87.0)
    bits = x.view(np.int32)
    e = (bits >> 23) - 126
    m = np.int32((bits & 0x7FFFFF) | 0x3F000000).view(np.float32)  # x = m * 2**e with m in [0.5, 1)
    if m < F(0.70710678):
        m = m * _TWO
        e -= 1
    t = (m - _ONE) / (m + _ONE)
    s = t * t
    p = F(2.0 / 9.0)
    p = p * s + F(2.0 / 7.0)
    p = p * s + F(2.0 / 5.0)
    p = p * s + F(2.0 / 3.0)
    return F(e) * (_LN2_HIGH + _LN2_LOW) + t * (p * s + _TWO)


@kernel
def pow32(x, exponent):
    """x**exponent in float32 for x >= 0; 0 for x = 0."""
    if x <= F(0):
        return F(0)
    return exp32(F(exponent) * log32(x))


@kernel
def sin32(x):
    """Sine in float32, within 1e-6 for |x| < 1000."""
    x = F(x)
    k = math.floor(x * F(0.15915494309) + _HALF)
    r = x - F(k) * F(6.28125) - F(k) * F(1.9353071795e-3)  # in [-pi, pi]
    if r > F(1.57079633):
        r = F(3.14159265) - r
    elif r < F(-1.57079633):
        r = F(-3.14159265) - r
    s = r * r
    p = F(2.6083159809786593e-06)
    p = p * s + F(-1.9810690719e-4)
    p = p * s + F(8.3330251389e-3)
    p = p * s + F(-1.6666657160e-1)
    return r + r * s * p


@kernel
def cos32(x):
    """Cosine in float32, within 1e-6 for |x| < 1000."""
    return sin32(F(x) + F(1.57079632679))


@kernel
def pow_all(values, exponent):
    """`pow32` of every value of a flat array."""
    out = np.empty_like(values)
    for i in range(values.size):
        out[i] = pow32(values[i], exponent)
    return out


@kernel
def exp_all(values):
    """`exp32` of every value of a flat array."""
    out = np.empty_like(values)
    for i in range(values.size):
        out[i] = exp32(values[i])
    return out


def power(values: np.ndarray, exponent: float) -> np.ndarray:
    """values**exponent for values >= 0, float32, the same on every processor."""
    flat = np.ascontiguousarray(values, F).ravel()
    return pow_all(flat, F(exponent)).reshape(np.shape(values))


def exponential(values: np.ndarray) -> np.ndarray:
    """e**values, float32, the same on every processor."""
    flat = np.ascontiguousarray(values, F).ravel()
    return exp_all(flat).reshape(np.shape(values))


@kernel
def _blur_rows(field, weights, out):
    """Blur (H, W, C) along W; ``weights`` (R + 1,) are those of the middle and of one side; edges are repeated."""
    height, width, channels = field.shape
    reach, end = len(weights) - 1, width * channels
    row = np.empty((width + 2 * reach) * channels, np.float32)  # with the repeated edges
    total = np.empty(end, np.float32)
    start = reach * channels
    for y in range(height):
        for c in range(channels):
            for x in range(reach):
                row[x * channels + c] = field[y, 0, c]
                row[start + end + x * channels + c] = field[y, width - 1, c]
            for x in range(width):
                row[start + x * channels + c] = field[y, x, c]
        middle = row[start:]
        for i in range(end):
            total[i] = weights[0] * middle[i]
        for k in range(1, reach + 1):
            w, left, right = weights[k], row[start - k * channels :], row[start + k * channels :]
            for i in range(end):
                total[i] += w * (left[i] + right[i])
        for x in range(width):
            for c in range(channels):
                out[y, x, c] = total[x * channels + c]


@kernel
def _blur_columns(field, weights, out):
    """As `_blur_rows`, for a field (H, W) and along H."""
    height, width = field.shape
    reach = len(weights) - 1
    for y in range(height):
        for x in range(width):
            out[y, x] = weights[0] * field[y, x]
        for k in range(1, reach + 1):
            above, below, w = field[max(y - k, 0)], field[min(y + k, height - 1)], weights[k]
            for x in range(width):
                out[y, x] += w * (above[x] + below[x])


def gaussian(sigma: float) -> np.ndarray:
    """The middle and one side of a Gaussian with deviation ``sigma``, cut at 2.6 deviations; its sum is 1."""
    reach = max(1, math.ceil(2.6 * sigma))
    one = np.array([math.exp(-0.5 * (k / sigma) ** 2) for k in range(reach + 1)])
    return (one / (one[0] + 2 * one[1:].sum())).astype(F)


def blur(field: np.ndarray, sigma: float) -> np.ndarray:
    """Gaussian blur of a float32 field (H, W) or (H, W, C); ``sigma`` in samples. The edge values are repeated."""
    if sigma < 0.2:
        return field
    full = np.ascontiguousarray(field, F).reshape(*field.shape[:2], -1)
    weights, rows, out = gaussian(sigma), np.empty_like(full), np.empty_like(full)
    _blur_rows(full, weights, rows)
    _blur_columns(rows.reshape(len(rows), -1), weights, out.reshape(len(out), -1))
    return out.reshape(field.shape)


@kernel
def reduce(picture, factor):
    """Means over squares of ``factor`` x ``factor``: (h * factor, w * factor, C) to (h, w, C)."""
    height, width, channels = picture.shape[0] // factor, picture.shape[1] // factor, picture.shape[2]
    out, share = np.zeros((height, width, channels), np.float32), _ONE / F(factor * factor)
    for y in range(height * factor):
        for x in range(width * factor):
            for c in range(channels):
                out[y // factor, x // factor, c] += share * picture[y, x, c]
    return out


@kernel
def enlarge(small, height, width):
    """Bicubic (Catmull-Rom) enlargement of (h, w, C) to (height, width, C); edges are repeated."""
    h, w, channels = small.shape
    out = np.empty((height, width, channels), np.float32)
    middle = np.empty((h, width, channels), np.float32)
    weight = np.empty(4, np.float32)
    for x in range(width):
        place = (F(x) + _HALF) * F(w) / F(width) - _HALF
        i = math.floor(place)
        _catmull_rom(F(place - i), weight)
        for y in range(h):
            for c in range(channels):
                total = F(0)
                for k in range(4):
                    total += weight[k] * small[y, min(max(i + k - 1, 0), w - 1), c]
                middle[y, x, c] = total
    for y in range(height):
        place = (F(y) + _HALF) * F(h) / F(height) - _HALF
        j = math.floor(place)
        _catmull_rom(F(place - j), weight)
        for x in range(width):
            for c in range(channels):
                total = F(0)
                for k in range(4):
                    total += weight[k] * middle[min(max(j + k - 1, 0), h - 1), x, c]
                out[y, x, c] = total
    return out


@kernel
def _catmull_rom(t, weight):
    """The four weights of Catmull-Rom's cubic at ``t`` in [0, 1) between the second and the third point."""
    weight[0] = ((-t + _TWO) * t - _ONE) * t * _HALF
    weight[1] = ((F(3) * t - F(5)) * t * t + _TWO) * _HALF
    weight[2] = ((F(-3) * t + F(4)) * t + _ONE) * t * _HALF
    weight[3] = (t - _ONE) * t * t * _HALF


@kernel
def raster(points, triangles, first, ids, bary, depth):
    """Z-buffer: write into ids (H, W), bary (H, W, 3) and depth (H, W) the triangles that are nearest to the camera.

    ``points`` (V, 3): x and y in samples, whose centers are whole numbers, and depth.
    Triangle t gets the number ``first`` + t.
    """
    height, width = depth.shape
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ax, ay, bx, by, cx, cy = points[a, 0], points[a, 1], points[b, 0], points[b, 1], points[c, 0], points[c, 1]
        top, bottom = max(0, math.ceil(min(ay, by, cy))), min(height - 1, math.floor(max(ay, by, cy)))
        left, right = max(0, math.ceil(min(ax, bx, cx))), min(width - 1, math.floor(max(ax, bx, cx)))
        if top > bottom or left > right:  # most triangles are smaller than a sample
            continue
        area = (by - cy) * (ax - cx) + (cx - bx) * (ay - cy)
        if abs(area) < F(1e-9):
            continue
        r, az, bz, cz = _ONE / area, points[a, 2], points[b, 2], points[c, 2]
        ux, uy, vx, vy = (by - cy) * r, (cx - bx) * r, (cy - ay) * r, (ax - cx) * r
        for y in range(top, bottom + 1):
            py = F(y) - cy
            for x in range(left, right + 1):
                px = F(x) - cx
                u, v = ux * px + uy * py, vx * px + vy * py
                w = _ONE - u - v
                if min(u, v, w) >= _EDGE:
                    z = u * az + v * bz + w * cz
                    if z < depth[y, x]:
                        depth[y, x] = z
                        ids[y, x] = first + t
                        bary[y, x, 0], bary[y, x, 1], bary[y, x, 2] = u, v, w


@kernel
def interpolate(triangles, ids, bary, values, corners):
    """Values (V, C) of vertices and (T, 3, K) of corners at the samples with ids >= 0: (N, C) and (N, K)."""
    count, columns, more = 0, values.shape[1], corners.shape[2]
    for y in range(ids.shape[0]):
        for x in range(ids.shape[1]):
            count += ids[y, x] >= 0
    out, own = np.empty((count, columns), np.float32), np.empty((count, more), np.float32)
    i = 0
    for y in range(ids.shape[0]):
        for x in range(ids.shape[1]):
            t = ids[y, x]
            if t < 0:
                continue
            u, v, w = bary[y, x, 0], bary[y, x, 1], bary[y, x, 2]
            a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
            for k in range(columns):
                out[i, k] = u * values[a, k] + v * values[b, k] + w * values[c, k]
            for k in range(more):
                own[i, k] = u * corners[t, 0, k] + v * corners[t, 1, k] + w * corners[t, 2, k]
            i += 1
    return out, own

"""Inner loops of the places: shapes in space, and the blur of a lens."""

import numpy as np

from drawnpeople.kernels import kernel


@kernel
def paint(layer, shapes, focal, pixel):
    """Draws shapes, in order, over a layer (m, m, 4) of premultiplied color and coverage."""
    m = layer.shape[0]
    half = np.float32(0.5) * np.float32(m - 1)
    zero, one, part = np.float32(0.0), np.float32(1.0), np.float32(0.5)
    px, py = np.empty(4, np.float32), np.empty(4, np.float32)
    nx, ny, off = np.empty(4, np.float32), np.empty(4, np.float32), np.empty(4, np.float32)
    for row in range(shapes.shape[0]):
        r = shapes[row]
        soft = max(r[20] * pixel, part)
        cx = cy = wide = high = near = dim = zero
        if r[0] == zero:
            for k in range(4):
                scale = focal / r[2 + 3 * k]
                px[k], py[k] = half + r[1 + 3 * k] * scale, half - r[3 + 3 * k] * scale
            area = zero
            for k in range(4):
                j = (k + 1) % 4
                area += px[k] * py[j] - px[j] * py[k]
            sign = one if area > zero else -one
            for k in range(4):
                j = (k + 1) % 4
                dx, dy = px[j] - px[k], py[j] - py[k]
                length = np.sqrt(dx * dx + dy * dy) + np.float32(1e-6)
                nx[k], ny[k] = -sign * dy / length, sign * dx / length
                off[k] = -(nx[k] * px[k] + ny[k] * py[k])
            x0, x1 = min(px[0], px[1], px[2], px[3]), max(px[0], px[1], px[2], px[3])
            y0, y1 = min(py[0], py[1], py[2], py[3]), max(py[0], py[1], py[2], py[3])
        else:
            scale = focal / r[2]
            cx, cy = half + r[1] * scale, half - r[3] * scale
            wide, high = max(r[4] * scale, part), max(r[5] * scale, part)
            dim = min(one, (r[4] * scale / wide)) * min(one, (r[5] * scale / high))
            x0, x1, y0, y1 = cx - wide, cx + wide, cy - high, cy + high
            near = min(wide, high)
        left, right = int(max(zero, x0 - soft)), int(min(np.float32(m - 1), x1 + soft + one))
        upper, lower = int(max(zero, y0 - soft)), int(min(np.float32(m - 1), y1 + soft + one))
        for y in range(upper, lower + 1):
            for x in range(left, right + 1):
                fx, fy = np.float32(x), np.float32(y)
                if r[0] == zero:
                    d = np.float32(1e9)
                    for k in range(4):
                        d = min(d, nx[k] * fx + ny[k] * fy + off[k])
                    a = r[19] * min(max(d / (soft + soft) + part, zero), one)
                    if a <= zero:
                        continue
                    d0, d1 = nx[0] * fx + ny[0] * fy + off[0], nx[2] * fx + ny[2] * fy + off[2]
                    t = min(max(d0 / max(d0 + d1, np.float32(1e-6)), zero), one)
                else:
                    u, v = (fx - cx) / wide, (fy - cy) / high
                    d = (one - np.sqrt(u * u + v * v)) * near
                    a = dim * r[19] * min(max(d / (soft + soft) + part, zero), one)
                    if a <= zero:
                        continue
                    if r[20] > one:  # no edge is seen
                        a = a * a * (np.float32(3.0) - (a + a))
                    t = min(max(part + part * v, zero), one)
                for c in range(3):
                    color = r[13 + c] + t * (r[16 + c] - r[13 + c])
                    layer[y, x, c] += a * (color - layer[y, x, c])
                layer[y, x, 3] += a * (one - layer[y, x, 3])


@kernel
def defocus(layer, radius):
    """The layer blurred by a disc of ``radius`` pixels. Its border is repeated outside."""
    m, channels = layer.shape[0], layer.shape[2]
    reach = int(radius) + 1
    half = np.empty(2 * reach + 1, np.float64)
    for j in range(2 * reach + 1):
        dy = float(j - reach)
        half[j] = 0.0
        for k in range(8):  # the mean over the row
            d = dy + (k - 3.5) / 8.0
            half[j] += np.sqrt(max(radius * radius - d * d, 0.0)) / 8.0
    total = 0.0
    for j in range(2 * reach + 1):
        total += 2.0 * half[j]
    edge = reach + 1  # columns that are added on either side
    sums = np.zeros((m, (m + 2 * edge + 1) * channels), np.float64)  # integrals of the rows, from their left ends
    for y in range(m):
        for x in range(m + 2 * edge):
            for c in range(channels):
                value = layer[y, min(max(x - edge, 0), m - 1), c]
                sums[y, (x + 1) * channels + c] = sums[y, x * channels + c] + value
    out = np.empty_like(layer)
    acc = np.empty(m * channels, np.float64)
    for y in range(m):
        acc[:] = 0.0
        for j in range(2 * reach + 1):
            if half[j] <= 0.0:
                continue
            row = sums[min(max(y + j - reach, 0), m - 1)]
            a, b = edge + 0.5 - half[j], edge + 0.5 + half[j]
            s, t = a - int(a), b - int(b)
            low, high = row[int(a) * channels :], row[int(b) * channels :]
            low_next, high_next = low[channels:], high[channels:]
            for i in range(m * channels):
                acc[i] += high[i] + t * (high_next[i] - high[i]) - (low[i] + s * (low_next[i] - low[i]))
        for x in range(m):
            for c in range(channels):
                out[y, x, c] = acc[x * channels + c] / total
    return out

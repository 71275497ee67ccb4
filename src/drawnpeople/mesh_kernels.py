"""Inner loops of the renderer on meshes and images: normals of a mesh, bilinear values of an image."""

import math

import numpy as np

from drawnpeople.compiled import kernel
from drawnpeople.kernels import F


@kernel
def normals(points, triangles):
    """Unit normals (V, 3) of a mesh, weighted by the area of the triangles."""
    out = np.zeros(points.shape, np.float32)
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ux, uy, uz = points[b, 0] - points[a, 0], points[b, 1] - points[a, 1], points[b, 2] - points[a, 2]
        vx, vy, vz = points[c, 0] - points[a, 0], points[c, 1] - points[a, 1], points[c, 2] - points[a, 2]
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        for k in range(3):
            p = triangles[t, k]
            out[p, 0] += nx
            out[p, 1] += ny
            out[p, 2] += nz
    for i in range(out.shape[0]):
        length = math.sqrt(out[i, 0] * out[i, 0] + out[i, 1] * out[i, 1] + out[i, 2] * out[i, 2])
        r = F(1) / F(max(length, 1e-12))
        for k in range(3):
            out[i, k] *= r
    return out


@kernel
def bilinear(picture, x, y):
    """Values (N, C) of a float32 image (H, W, C) at columns x and rows y (N,), wrapped around at the edges."""
    height, width, channels = picture.shape
    out = np.empty((len(x), channels), np.float32)
    for i in range(len(x)):
        fx, fy = math.floor(x[i]), math.floor(y[i])
        s, t = F(x[i] - F(fx)), F(y[i] - F(fy))
        x0, y0 = int(fx) % width, int(fy) % height
        x1, y1 = x0 + 1 if x0 + 1 < width else 0, y0 + 1 if y0 + 1 < height else 0
        for c in range(channels):
            top = picture[y0, x0, c] + s * (picture[y0, x1, c] - picture[y0, x0, c])
            bottom = picture[y1, x0, c] + s * (picture[y1, x1, c] - picture[y1, x0, c])
            out[i, c] = top + t * (bottom - top)
    return out

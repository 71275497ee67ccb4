"""Inner loops of the renderer: values against numpy and scipy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage

from drawnpeople import kernels, mesh_kernels

F = np.float32


def test_exponential_and_powers_agree_with_double_precision():
    x = np.linspace(-80, 80, 20_001).astype(F)
    np.testing.assert_allclose(kernels.exponential(x), np.exp(x.astype(float)), rtol=3e-7)
    assert (kernels.exponential(np.array([-100.0, -1e9], F)) == 0).all()
    y = np.exp(np.linspace(-6, 6, 4001)).astype(F)
    for exponent in (0.25, 1 / 2.2, 1.0, 2.2):
        np.testing.assert_allclose(kernels.power(y, exponent), y.astype(float) ** F(exponent), rtol=5e-6)
    assert kernels.power(np.zeros(1, F), 0.5) == 0


def test_sine_and_cosine_agree_with_double_precision():
    for angle in np.linspace(-50, 50, 501).astype(F):
        assert kernels.sin32(angle) == pytest.approx(np.sin(float(angle)), abs=3e-6)
        assert kernels.cos32(angle) == pytest.approx(np.cos(float(angle)), abs=3e-6)


@settings(deadline=None)  # the first call compiles
@given(arrays(F, (9, 14), elements=st.floats(0, 1, width=32)), st.floats(0.4, 3.0))
def test_blur_is_a_gaussian_that_keeps_the_mean_of_a_constant(field, sigma):
    blurred = kernels.blur(field, sigma)
    expected = ndimage.gaussian_filter(field.astype(float), sigma, mode="nearest", truncate=5)
    assert np.abs(blurred - expected).max() < 0.03  # cut at 2.6 deviations
    np.testing.assert_allclose(kernels.blur(np.full((5, 6, 3), F(0.7)), sigma), 0.7, rtol=1e-5)


def test_enlargement_goes_through_the_values_and_keeps_constants():
    small = np.arange(12, dtype=F).reshape(3, 4, 1)
    np.testing.assert_allclose(kernels.enlarge(small, 9, 12)[1::3, 1::3], small, atol=1e-5)
    np.testing.assert_allclose(kernels.enlarge(np.full((2, 2, 1), F(0.3)), 7, 5), 0.3, rtol=1e-6)


def _drawn(points, triangles, side=16):
    ids, bary = np.full((side, side), -1, np.int32), np.zeros((side, side, 3), F)
    depth = np.full((side, side), kernels.EMPTY, F)
    kernels.raster(np.array(points, F), np.array(triangles, np.int32), 5, ids, bary, depth)
    return ids, bary, depth


def test_rasteriser_covers_the_samples_inside_a_triangle_and_interpolates():
    points, triangle = [[2, 2, 1], [13, 2, 2], [2, 13, 3]], [[0, 1, 2]]
    ids, bary, depth = _drawn(points, triangle)
    y, x = np.mgrid[:16, :16]
    np.testing.assert_array_equal(ids == 5, (x >= 2) & (y >= 2) & (x + y <= 15))
    inside = ids >= 0
    np.testing.assert_allclose(bary[inside].sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose(depth[inside], 1 + (x - 2)[inside] / 11 + 2 * (y - 2)[inside] / 11, rtol=1e-5)
    corners = np.array([[[0, 0], [1, 0], [0, 1]]], F)
    values, places = kernels.interpolate(np.array(triangle, np.int32), ids - 5, bary, np.array(points, F), corners)
    np.testing.assert_allclose(values[:, 0], x[inside], atol=1e-4)
    np.testing.assert_allclose(places[:, 1] * 11, (y - 2)[inside], atol=1e-4)


def test_nearer_triangle_hides_the_other_in_any_order():
    near, far = [[0, 0, 1], [15, 0, 1], [0, 15, 1]], [[0, 0, 2], [15, 0, 2], [0, 15, 2]]
    for points, first in ((near + far, 5), (far + near, 6)):
        ids, _, depth = _drawn(points, [[0, 1, 2], [3, 4, 5]])
        assert set(ids[ids >= 0]) == {first}
        assert depth[ids >= 0].max() == 1


def test_normals_point_out_of_a_sphere():
    rng = np.random.default_rng(0)
    from scipy.spatial import ConvexHull

    points = rng.normal(size=(300, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    hull = ConvexHull(points)
    faces = hull.simplices.copy()
    corners = points[faces]
    outward = (np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) * corners.mean(1)).sum(1)
    faces[outward < 0] = faces[outward < 0][:, ::-1]
    normals = mesh_kernels.normals(points.astype(F), faces.astype(np.int32))
    assert (normals * points).sum(1).min() > 0.9


def test_a_picture_is_wrapped_around():
    picture = np.arange(12, dtype=F).reshape(3, 4, 1)
    found = mesh_kernels.bilinear(picture, np.array([0.0, 4.0, 3.5], F), np.array([0.0, 3.0, 1.0], F))
    np.testing.assert_allclose(found[:, 0], [0, 0, (7 + 4) / 2])

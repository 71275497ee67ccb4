"""cao21: a password and a level rotate an identity vector, and only the same two rotate it back."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from masquerade.core.errors import ParameterError
from masquerade.methods import cao21
from masquerade.methods.cao21 import Cao21, normalize

WIDTH = 12
level = st.sampled_from(list(cao21.LEVELS))
numbers = arrays.arrays(np.float64, (3, WIDTH), elements=st.floats(-1, 1, width=32))


def units(seed: int, rows: int = 40, width: int = 512) -> np.ndarray:
    return normalize(np.random.default_rng(seed).normal(size=(rows, width)))


def test_levels_are_those_of_section_5_1_and_exclude_90_degrees():
    assert [round(math.degrees(cao21.angle(d))) for d in cao21.LEVELS] == [
        70, 75, 80, 85, 95, 100, 105, 110, 115, 120,
    ]  # fmt: skip
    for wrong in (-1, 10):
        with pytest.raises(ValueError, match="0 to 9"):
            cao21.angle(wrong)


def test_rotation_equals_values_worked_by_hand():
    # z = e1 and f = (0.6, 0.8): z_90 = (0, 0.8), so that 120 degrees give (-1/2, 0.8 sqrt(3)/2).
    z, f = np.array([[1.0, 0.0]]), np.array([0.6, 0.8])
    turned = cao21.rotate(z, f, math.radians(120))
    np.testing.assert_allclose(turned, [[-0.5, 0.8 * math.sqrt(3) / 2]])
    np.testing.assert_allclose(cao21.rotate_back(turned, f, math.radians(120)), z)


@given(numbers, level)
def test_rotation_and_its_inverse_are_the_identity_to_float_precision(raw, d):
    raw = raw + np.eye(3, WIDTH)  # no zero vectors
    z, f = normalize(raw[:2]), normalize(raw[2:])[0]
    theta = cao21.angle(d)
    along = z @ f
    # A face that the rotation turns exactly onto the line of its reference loses its direction (docs/cao21.md).
    kept = np.abs(np.cos(theta) - along * np.sin(theta)) > 1e-3
    back = cao21.rotate_back(cao21.rotate(z, f, theta), f, theta)
    np.testing.assert_allclose(back[kept], z[kept], atol=1e-9)


@pytest.mark.parametrize("d", cao21.LEVELS)
def test_direction_alone_is_enough_at_the_usual_distance_of_a_reference(d):
    z, f, theta = units(0), units(1, 1)[0], cao21.angle(d)
    turned = cao21.rotate(z, f, theta)
    longer = cao21.restore_length(normalize(turned), f, theta, math.pi / 2)
    close = cao21.rotate_back(longer, f, theta)
    # Two faces fit. If both are near 90 degrees, the face on the other side of the reference is more likely.
    assert np.median((close * z).sum(axis=1)) > (0.999 if d not in (3, 4) else 0.97)
    right = (close * z).sum(axis=1) > 0.999999
    np.testing.assert_allclose(longer[right], turned[right], atol=1e-9)


@pytest.mark.parametrize("wrong", ["password", "level"])
def test_wrong_password_or_level_does_not_recover_the_vector(wrong):
    z, f, other = units(0), units(1, 1)[0], units(2, 1)[0]
    turned = cao21.rotate(z, f, cao21.angle(9))
    guess = (other, cao21.angle(9)) if wrong == "password" else (f, cao21.angle(0))
    assert (normalize(cao21.rotate_back(turned, *guess)) * z).sum(axis=1).max() < 0.9


class TestOrigin:
    def test_directions_and_vectors_are_inverse(self):
        people = normalize(units(6, rows=60, width=64) + units(7, rows=1, width=64))
        for origin in (cao21.Origin(), cao21.Origin(people)):
            np.testing.assert_allclose(origin.find_vectors(origin.find_directions(people)), people, atol=1e-12)
        np.testing.assert_allclose(cao21.Origin().find_directions(people), people)

    def test_every_direction_comes_back_also_one_in_which_nobody_is(self):
        origin = cao21.Origin(normalize(units(6, rows=60, width=64) + units(7, rows=1, width=64)))
        directions = units(8, rows=200, width=64)
        vectors = origin.find_vectors(directions)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1)
        np.testing.assert_allclose(origin.find_directions(vectors), directions, atol=1e-9)

    def test_around_their_mean_people_with_much_in_common_have_references_that_are_not_alike(self):
        people = normalize(units(6, rows=60, width=64) + units(7, rows=1, width=64))
        alike, centered = (
            np.stack([cao21.References(origin.find_directions(people), 10, 10**6).average(key) for key in range(40)])
            for origin in (cao21.Origin(), cao21.Origin(people))
        )
        assert (alike @ alike.T).mean() > 0.8
        assert abs((centered @ centered.T).mean()) < 0.1


class TestReferences:
    def test_every_password_selects_a_different_set_of_people(self):
        references = cao21.References(units(3, rows=9), 4, passwords=126)  # C(9, 4) = 126: every set, each once
        assert len({tuple(references.choose_people(password)) for password in range(126)}) == 126

    @given(st.integers(0, 999_999))
    def test_reference_is_the_mean_of_ten_people_and_equals_none_of_them(self, password):
        library = units(4, rows=60, width=64)
        references = cao21.References(library, 10, passwords=10**6)
        people = references.choose_people(password)
        assert len(set(people)) == 10
        assert all(0 <= person < 60 for person in people)
        reference = references.average(password)
        np.testing.assert_allclose(reference, normalize(library[people].mean(axis=0)[None])[0])
        assert (library @ reference).max() < 0.75

    def test_too_few_people_are_refused(self):
        with pytest.raises(ValueError, match="12 people give 66 different sets of 10, fewer than 1000000 passwords"):
            cao21.References(units(5, rows=12), 10, passwords=10**6)


def test_wrong_passwords_undo_a_part_of_the_protection_as_the_page_says():
    """docs/cao21.md: cosines to the face at d = 9, with references that are independent of each other."""
    draw, theta = np.random.default_rng(0), cao21.angle(9)
    faces, references = normalize(draw.standard_normal((400, 512))), normalize(draw.standard_normal((31, 512)))
    direction = normalize(cao21.rotate(faces, references[0], theta))

    def cosine(vectors):
        return float((normalize(vectors) * faces).sum(axis=1).mean())

    def recovered(reference):
        vectors = cao21.restore_length(direction, reference, theta, np.pi / 2)
        return normalize(cao21.rotate_back(vectors, reference, theta))

    wrong = [recovered(reference) for reference in references[1:]]
    assert cosine(direction) == pytest.approx(-0.50, abs=0.01)
    assert cosine(-direction) == pytest.approx(0.50, abs=0.01)
    assert np.mean([cosine(vectors) for vectors in wrong]) == pytest.approx(0.33, abs=0.01)
    assert cosine(sum(wrong)) == pytest.approx(0.50, abs=0.01)
    assert cosine(recovered(references[0])) == pytest.approx(1.0, abs=1e-6)


def test_random_level_cannot_be_inverted():
    method = object.__new__(Cao21)
    method.variant = Cao21.Variant(level="random")
    with pytest.raises(ParameterError, match="random level cannot be recovered"):
        method.recover(np.zeros((1, 3, 8, 8), np.float32), [b"000000"])

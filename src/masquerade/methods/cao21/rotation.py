"""Rotation of identity vectors by a password and a privacy level, and back: Cao et al. 2021, sections 4.3 and 4.4.

All in float64 NumPy: near 90 degrees the way back divides by a small cosine. docs/cao21.md derives the formulas.
"""

import hashlib
import math

import numpy as np

LEVELS = range(10)
NEAREST, FARTHEST = math.radians(30), math.radians(150)  # range of the angle between a face and a reference


def angle(level: int) -> float:
    """theta = g(d) in radians: 70 + 5 d degrees for d < 4, 70 + 5 (d + 1) from 4 on, so never 90 (section 5.1).

    Raises ValueError for another level.
    """
    if level not in LEVELS:
        raise ValueError(f"a privacy level is one of {LEVELS.start} to {LEVELS.stop - 1}, not {level}")
    return math.radians(70 + 5 * (level if level < 4 else level + 1))


def rotate(identity: np.ndarray, reference: np.ndarray, theta: np.ndarray | float) -> np.ndarray:
    """M(z_id, p, d), Eq. 13: unit vectors (N, D), reference (D,) or (N, D), theta a number or (N, 1) -> (N, D).

    The results are shorter than 1, as z_90 is (Eq. 14 does not bring it to length 1).
    """
    z_90 = reference - (identity * reference).sum(axis=1, keepdims=True) * identity  # Eq. 14
    return identity * np.cos(theta) + z_90 * np.sin(theta)  # Eq. 13


def rotate_back(rotated: np.ndarray, reference: np.ndarray, theta: np.ndarray | float) -> np.ndarray:
    """M^-1(z_new, p, d), Eq. 16: the input of `rotate` from its result, whose length matters: (N, D) -> (N, D)."""
    cosine, sine = np.cos(theta), np.sin(theta)
    rest = rotated - reference * sine
    along = (cosine**2 - (rest * rotated).sum(axis=1, keepdims=True)) / (sine * cosine)  # Eq. 17: A = z_id . f(p)
    return rest / (cosine - along * sine)  # Eq. 16


def lengthened(direction: np.ndarray, reference: np.ndarray, theta: float, usual: float) -> np.ndarray:
    """A direction, unit (N, D), with the length that `rotate` gives: z_new as a picture shows it.

    A recognizer gives directions only, but Eq. 17 needs the length. The length follows from alpha, the angle between
    the face and its reference, unit (N, D). The angle between the direction and the reference is
    alpha - atan2(sin theta sin alpha, cos theta), which rises with alpha. The side of the reference is not known, so
    two values of alpha fit; the one nearer to ``usual`` (radians) is taken.
    """
    offset = np.arccos(np.clip((direction * reference).sum(axis=1), -1, 1))
    both = np.stack([_alpha(offset, theta), _alpha(-offset, theta)])
    alpha = np.take_along_axis(both, np.abs(both - usual).argmin(axis=0)[None], axis=0)[0]
    return direction * np.hypot(np.cos(theta), np.sin(theta) * np.sin(alpha))[:, None]


def _alpha(offset: np.ndarray, theta: float) -> np.ndarray:
    """The angle between face and reference, (N,), if the rotated face is at ``offset`` from it; by bisection."""
    low, high = np.full(offset.shape, NEAREST), np.full(offset.shape, FARTHEST)
    for _ in range(60):
        middle = (low + high) / 2
        below = middle - np.arctan2(np.sin(theta) * np.sin(middle), np.cos(theta)) < offset
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


class References:
    """f(p): a reference identity for each password, the mean of ``combined`` people of a library (section 4.1).

    ``library``: unit vectors (M, D), one a person. Passwords 0 .. ``passwords`` - 1 have different sets of people: a
    one-to-one map shuffles the password among all C(M, combined) sets. The map multiplies by a number that has no
    common divisor with the number of sets. Raises ValueError if there are fewer sets than passwords.
    """

    def __init__(self, library: np.ndarray, combined: int, passwords: int):
        self.library, self.combined = np.asarray(library, dtype=np.float64), combined
        self.sets = math.comb(len(library), combined)
        if self.sets < passwords:
            raise ValueError(
                f"{len(library)} people give {self.sets} different sets of {combined}, fewer than {passwords} passwords"
            )
        self._stride = int.from_bytes(hashlib.sha512(b"masquerade reference identities").digest(), "big") % self.sets
        while math.gcd(self._stride, self.sets) != 1:
            self._stride += 1

    def people(self, password: int) -> list[int]:
        """The rows of the library whose mean is the password's reference, ascending: the set of its rank."""
        rank, chosen, first = password * self._stride % self.sets, [], 0
        for left in range(self.combined, 0, -1):
            # `starting` sets begin with this person; skip them if the rank is behind them
            while rank >= (starting := math.comb(len(self.library) - first - 1, left - 1)):
                rank -= starting
                first += 1
            chosen.append(first)
            first += 1
        return chosen

    def of(self, password: int) -> np.ndarray:
        """z_r = f(p), unit (D,)."""
        mean = self.library[self.people(password)].mean(axis=0)
        return mean / np.linalg.norm(mean)

    def usual_angle(self) -> float:
        """The mean angle, radians, between a person of the library and a reference, over the first 64 passwords."""
        cosines = self.library @ np.stack([self.of(password) for password in range(64)]).T
        return float(np.arccos(np.clip(cosines, -1, 1)).mean())

"""Identity vectors turned by a password and a privacy level, and turned back: Cao et al. 2021, sections 4.3 and 4.4.

All in float64 NumPy: near 90 degrees the way back divides by a small cosine. docs/cao21.md derives the formulas.
"""

import hashlib
import math

import numpy as np

LEVELS = range(10)
NEAREST, FARTHEST = math.radians(30), math.radians(150)  # angles between a face and a reference that are looked at


def angle(level: int) -> float:
    """theta = g(d) in radians: 70 + 5 d degrees for d < 4, 70 + 5 (d + 1) from 4 on, so never 90 (section 5.1)."""
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
    """M^-1(z_new, p, d), Eq. 16: what `rotate` was given, from what it gave, with its length: (N, D) -> (N, D)."""
    cosine, sine = np.cos(theta), np.sin(theta)
    rest = rotated - reference * sine
    along = (cosine**2 - (rest * rotated).sum(axis=1, keepdims=True)) / (sine * cosine)  # Eq. 17: A = z_id . f(p)
    return rest / (cosine - along * sine)  # Eq. 16


def lengthened(direction: np.ndarray, reference: np.ndarray, theta: float, usual: float) -> np.ndarray:
    """A direction, unit (N, D), as long as `rotate` would have made it: what a picture tells of z_new.

    A recogniser gives directions only, and Eq. 17 needs the length. It follows from alpha, the angle between the face
    and the reference, unit (D,): the direction lies beside the reference at alpha - atan2(sin theta sin alpha,
    cos theta), which rises with alpha. Which side of the reference is not seen: of the two alphas that fit, the one
    nearer to ``usual`` (radians) is taken.
    """
    beside = np.arccos(np.clip(direction @ reference, -1, 1))
    both = np.stack([_alpha(beside, theta), _alpha(-beside, theta)])
    alpha = np.take_along_axis(both, np.abs(both - usual).argmin(axis=0)[None], axis=0)[0]
    return direction * np.hypot(np.cos(theta), np.sin(theta) * np.sin(alpha))[:, None]


def _alpha(beside: np.ndarray, theta: float) -> np.ndarray:
    """The angle between face and reference for which the rotated face lies ``beside`` it, by bisection: (N,)."""
    low, high = np.full(beside.shape, NEAREST), np.full(beside.shape, FARTHEST)
    for _ in range(60):
        middle = (low + high) / 2
        below = middle - np.arctan2(np.sin(theta) * np.sin(middle), np.cos(theta)) < beside
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


class References:
    """f(p): a reference identity for each password, the mean of ``combined`` people of a library (section 4.1).

    ``library``: unit vectors (M, D), one a person. Passwords 0 .. ``passwords`` - 1 get different sets of people: the
    password's place among all C(M, combined) sets is shuffled by an affine map that has no common divisor with their
    number, which is one-to-one. Raises ValueError where there are fewer sets than passwords.
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
        """The rows of the library whose mean the password's reference is, ascending: the set of that rank."""
        rank, chosen, first = password * self._stride % self.sets, [], 0
        for left in range(self.combined, 0, -1):
            # how many sets begin with this person; skip them as long as the rank lies behind them
            while rank >= (here := math.comb(len(self.library) - first - 1, left - 1)):
                rank -= here
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

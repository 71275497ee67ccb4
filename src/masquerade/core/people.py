"""Who learns from whom: the people of a train split are dealt to four groups that share nobody.

A group is named after those who learn from its people. What is tested and what sets thresholds are splits of their own.
"""

import hashlib
from collections.abc import Iterable, Mapping

GROUPS = ("backbones", "judges", "methods", "attackers")
"""The networks in losses; the networks that only judge; the methods, their galleries and what learns from their
results; the attackers. The order in which the shares are dealt."""


def hash_person(person: str) -> float:
    """The place of a person in [0, 1): a hash of the name."""
    return int.from_bytes(hashlib.sha256(person.encode()).digest()[:8], "big") / 2**64


def sort_by_hash(names: Iterable[str]) -> list[str]:
    """The different names in the order of a hash."""
    return sorted(set(names), key=lambda name: hashlib.sha256(name.encode()).digest())


def assign_group(person: str, shares: Mapping[str, float]) -> str:
    """The group of a person, or '' for a person whom the shares leave out.

    ``shares``: group -> share of the people, in [0, 1]; together at most 1. The group depends on the name alone, so a
    person is in the same group in every dataset that gives the same name (CelebA and CelebA-HQ). Few people are
    therefore dealt in about these shares only.
    """
    place, end = hash_person(person), 0.0
    for group in GROUPS:
        end += shares[group]
        if place < end:
            return group
    return ""

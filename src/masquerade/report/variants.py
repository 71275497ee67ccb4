"""The variants of a method in their natural order, by the knobs that params.yaml gives them."""

from collections.abc import Mapping, Sequence
from typing import Any

from masquerade.report.chain import Cell

Knobs = Mapping[str, Any]
"""Knob -> its value, of one variant."""
Methods = Mapping[str, Mapping[str, Knobs]]
"""Method -> variant -> its knobs, in the order of params.yaml."""


def natural(variants: Mapping[str, Knobs]) -> list[str]:
    """Variants by their knobs: words in the order in which they are declared, then numbers by size.

    ``level: random`` among levels that are numbers comes after them.
    """
    words, numbers = _kinds(variants)

    def place(name: str) -> tuple:
        values = [(knob, variants[name].get(knob)) for knob in (*words, *numbers)]
        return tuple((0, value) if _is_number(value) else (1, words.get(knob, numbers.get(knob)).index(value))
                     for knob, value in values)  # fmt: skip

    return sorted(variants, key=place)


def label(name: str, variants: Mapping[str, Knobs]) -> str:
    """What tells a variant from the others: the short knobs that differ among them, or its name."""
    told = [
        f"{knob} {value:g}" if _is_number(value) else f"{knob} {value}"
        for knob, value in variants.get(name, {}).items()
        if any(other.get(knob) != value for other in variants.values()) and isinstance(value, int | float | str)
    ]
    return ", ".join(told) or name


def family(name: str, variants: Mapping[str, Knobs]) -> str:
    """Variants of one family differ in numbers alone: a line may join them."""
    words, numbers = _kinds(variants)
    knobs = variants.get(name, {})
    if not any(_is_number(knobs.get(knob)) for knob in numbers):
        return name
    odd = {knob: knobs.get(knob) for knob in numbers if not _is_number(knobs.get(knob))}
    return repr([{knob: knobs.get(knob) for knob in words}, odd])


def in_order(cells: Sequence[Cell], methods: Methods) -> list[Cell]:
    """Cells by dataset, then methods as params.yaml has them, then the natural order of their variants."""
    places = {(method, variant): (number, at)
              for number, (method, variants) in enumerate(methods.items())
              for at, variant in enumerate(natural(variants))}  # fmt: skip
    last = (len(methods), 0)
    return sorted(cells, key=lambda cell: (cell[0], *places.get(cell[1:], last), cell))


def _kinds(variants: Mapping[str, Knobs]) -> tuple[dict[str, list], dict[str, list]]:
    """Knobs of words and knobs of numbers, each with its value of every variant."""
    knobs = dict.fromkeys(knob for values in variants.values() for knob in values)
    given = {knob: [values.get(knob) for values in variants.values()] for knob in knobs}
    numbers = {knob: values for knob, values in given.items() if any(map(_is_number, values))}
    return {knob: values for knob, values in given.items() if knob not in numbers}, numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

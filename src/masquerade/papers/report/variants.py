"""Orders and labels the variants of a method by the knobs that params.yaml gives them."""

from collections.abc import Mapping, Sequence
from typing import Any

from masquerade.params.matrix import Setting
from masquerade.params.slices import Slice

Knobs = Mapping[str, Any]
"""Knob -> its value, for one variant."""
Methods = Mapping[str, Mapping[str, Knobs]]
"""Method -> variant -> its knobs, in the order of params.yaml."""


def of_params(params: Slice) -> Methods:
    """The variants of every method, from the blocks ``methods.<name>.variants`` of a job's parameters."""
    return {name: block["variants"] for name, block in params["methods"].items()}


def natural(variants: Mapping[str, Knobs]) -> list[str]:
    """Variants ordered by their knobs: knobs of words first, in the declared order, then knobs of numbers, by size.

    A word among numbers, such as ``level: random``, comes after the numbers.
    """
    words, numbers = _kinds(variants)

    def place(name: str) -> tuple:
        values = [(knob, variants[name].get(knob)) for knob in (*words, *numbers)]
        return tuple((0, value) if _is_number(value) else (1, (words.get(knob) or numbers[knob]).index(value))
                     for knob, value in values)  # fmt: skip

    return sorted(variants, key=place)


def label(name: str, variants: Mapping[str, Knobs]) -> str:
    """The knobs that differ among the variants, with their values; or the name of the variant."""
    texts = [
        f"{knob} {value:g}" if _is_number(value) else f"{knob} {value}"
        for knob, value in variants.get(name, {}).items()
        if any(other.get(knob) != value for other in variants.values()) and isinstance(value, int | float | str)
    ]
    return ", ".join(texts) or name


def in_order(settings: Sequence[Setting], methods: Methods) -> list[Setting]:
    """Settings by dataset, then by the order of the methods in params.yaml, then by the order of their variants."""
    places = {(method, variant): (number, at)
              for number, (method, variants) in enumerate(methods.items())
              for at, variant in enumerate(natural(variants))}  # fmt: skip
    last = (len(methods), 0)
    return sorted(settings, key=lambda setting: (setting[0], *places.get(setting[1:], last), setting))


def _kinds(variants: Mapping[str, Knobs]) -> tuple[dict[str, list], dict[str, list]]:
    """(knobs of words, knobs of numbers), each knob with its values over the variants."""
    knobs = dict.fromkeys(knob for values in variants.values() for knob in values)
    given = {knob: [values.get(knob) for values in variants.values()] for knob in knobs}
    numbers = {knob: values for knob, values in given.items() if any(map(_is_number, values))}
    return {knob: values for knob, values in given.items() if knob not in numbers}, numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

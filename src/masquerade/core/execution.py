"""Marks the functions that the cost estimate replaces with its own, so that the pipeline's code stays free of it.

The cost estimate (`masquerade.pipeline.costs`) runs the pipeline's code on tensors that have a shape and no values.
There, equal rounds of a loop need to run only once, and files with weights are not needed. Such loops use `rounds`
and `parts`; functions that read, write or check files with weights are marked `replaceable`.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Kind = Callable[[int], Hashable]
"""Number of a round -> its kind. Rounds of one kind cost the same."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_replacements: ContextVar[Mapping[Callable, Callable]] = ContextVar("replacements", default=MappingProxyType({}))


def replaceable(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorator: inside a block of `replaced`, calls of the function go to its replacement."""

    @wraps(function)
    def call(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        return _replacements.get().get(call, function)(*arguments, **options)

    return call


@contextmanager
def replaced(replacements: Mapping[Callable, Callable]) -> Iterator[None]:
    """Within the block, calls of each `replaceable` function (the key) go to another one with the same parameters."""
    token = _replacements.set(replacements)
    try:
        yield
    finally:
        _replacements.reset(token)


def alike(_: int) -> None:
    """The `Kind` of rounds that all cost the same."""


@replaceable
def rounds(count: int, first: int = 0, kind: Kind = alike) -> Iterator[int]:
    """Yields ``first``, ... ``count - 1``: the rounds of a loop in which rounds of one ``kind`` cost the same."""
    yield from range(first, count)


@replaceable
def parts(function: Callable[["Tensor"], Any], batch: "Tensor", size: int) -> Any:
    """Applies ``function`` to ``size`` rows of ``batch`` at a time and joins the results.

    ``function`` returns a tensor or a tuple of tensors, with one row for each row of its input; so does `parts`.
    """
    import torch

    results = [function(part) for part in batch.split(size)]
    if isinstance(results[0], torch.Tensor):
        return torch.cat(results)
    return tuple(map(torch.cat, zip(*results, strict=True)))

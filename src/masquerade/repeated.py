"""What costs the same again and again, said where it happens, so that a plan counts it once instead of doing it all.

The pipeline calls these functions as it would loop; they change nothing but for whoever `watched` them.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor, nn

Kind = Callable[[int], Hashable]
"""The number of a round -> what tells it from others: rounds of one kind cost the same."""


class Watcher(Protocol):
    """Who counts what the pipeline's own code costs (`masquerade.plan`)."""

    def rounds(self, first: int, count: int, kind: Kind) -> Iterator[int]:
        """Those rounds of ``first`` .. ``count - 1`` that are done."""

    def parts(self, function: Callable[["Tensor"], Any], batch: "Tensor", size: int) -> Any:
        """As `parts`."""

    def save(self, path: Path, modules: Mapping[str, "nn.Module"], facts: Mapping[str, object]) -> None:
        """Keep a checkpoint whose tensors have no numbers."""

    def load(self, path: Path) -> tuple[dict[str, dict[str, "Tensor"]], dict]:
        """What `save` kept."""


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def watcher() -> Watcher | None:
    """Who counts; None where the pipeline works."""
    return _watcher.get()


@contextmanager
def watched(by: Watcher) -> Iterator[None]:
    """For the block, ``by`` decides what is done of what is repeated."""
    token = _watcher.set(by)
    try:
        yield
    finally:
        _watcher.reset(token)


def alike(_: int) -> None:
    """The `Kind` of rounds that all cost the same."""


def rounds(count: int, first: int = 0, kind: Kind = alike) -> Iterator[int]:
    """``first``, ... ``count - 1``: a loop whose rounds of one ``kind`` cost the same."""
    counting = _watcher.get()
    yield from range(first, count) if counting is None else counting.rounds(first, count, kind)


def parts(function: Callable[["Tensor"], Any], batch: "Tensor", size: int) -> Any:
    """``function`` on at most ``size`` rows of ``batch`` at a time: its tensor, or tuple of tensors, joined again."""
    counting = _watcher.get()
    if counting is not None:
        return counting.parts(function, batch, size)
    import torch

    found = [function(part) for part in batch.split(size)]
    return torch.cat(found) if isinstance(found[0], torch.Tensor) else tuple(map(torch.cat, zip(*found, strict=True)))

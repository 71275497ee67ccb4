"""Applies a function to a batch of faces, and to each face alone if the function refuses the batch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from masquerade.core.errors import PictureError
from masquerade.core.images import Faces

Result = TypeVar("Result")


@dataclass(frozen=True)
class Refusal:
    """A face has no result."""

    reason: str


def apply_or_refuse(
    work: Callable[..., Result], faces: Faces, *partners: Faces
) -> Iterator[tuple[Faces, Result | Refusal]]:
    """(faces, result of ``work``). If ``work`` raises PictureError, the same for each face alone, in order.

    A face that is refused alone gives (face, Refusal). ``partners``: further images of the same faces in the same
    order, such as their originals. ``work`` takes ``faces`` and ``partners``.
    """
    try:
        result = work(faces, *partners)
    except PictureError as error:
        if len(faces) == 1:
            yield faces, Refusal(str(error))
            return
        for place in range(len(faces)):
            yield from apply_or_refuse(work, *(_one(batch, place) for batch in (faces, *partners)))
        return
    yield faces, result


def _one(faces: Faces, place: int) -> Faces:
    return Faces(faces.images[[place]], faces.index.iloc[[place]])

"""The errors of Masquerade. Each text says what was wrong, what is allowed, and what to do next."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class MasqueradeError(Exception):
    """Base class of the errors that Masquerade raises on purpose. Programs print the text and exit with status 1."""


class ParameterError(MasqueradeError):
    """A key of params.yaml or of an overlay is unknown, missing or of the wrong kind."""


class ArchiveError(MasqueradeError):
    """A face archive or a measurements file is missing, damaged, or does not fit its index."""


class DatasetError(MasqueradeError):
    """A published dataset is incomplete or changed: a file is missing, extra or altered, or a list does not fit."""


class CheckpointError(MasqueradeError):
    """A checkpoint is missing, damaged, or does not fit its network."""


class AssetError(MasqueradeError):
    """An asset cannot be fetched or placed, or it contradicts the registry or the lock."""


class BelowFloor(MasqueradeError):
    """The quality of a trained backbone is below its floor, so nothing may use it."""


class RehearsalError(MasqueradeError):
    """A file of a rehearsal is used as if it were a result."""


class ReferenceFileError(MasqueradeError):
    """A key of a file in reference/ is unknown, missing or of the wrong kind."""


class ProtocolError(MasqueradeError):
    """A module of methods/, judges/, metrics/, faces/ or backbones/ does not implement its base class correctly."""


class MissingPackage(MasqueradeError):
    """A package that is needed is not installed, or does not load."""


class PictureError(MasqueradeError):
    """One image cannot be used. It is recorded as refused, with this text as the reason."""


class SealError(PictureError):
    """A sealed record does not open."""


class NoFace(PictureError):
    """No face was found in a photograph."""


class SeveralFaces(PictureError):
    """Several faces were found in a photograph, and one was expected."""


class FaceLeft(PictureError):
    """A result shows a face that was not replaced."""


class StillRecognized(PictureError):
    """A recognizer still takes a result for somebody of its photograph. ``distance``: up to ``threshold``."""

    distance = threshold = float("nan")


class WrongKey(PictureError):
    """The check of an image says that the key is wrong."""


class KeyFormatError(MasqueradeError):
    """The method cannot use a secret. The text never repeats the secret."""


SIMILARITY = 0.5
"""How similar a candidate must be to be suggested, from 0 to 1 (`difflib.get_close_matches`)."""


def suggest_nearest(name: str, candidates: Iterable[str]) -> str:
    """``Did you mean 'x'? Known: x, y.`` The first sentence is left out if no candidate is similar."""
    from difflib import get_close_matches  # every program imports this module, and few ask for a suggestion

    names = sorted(candidates)
    close = get_close_matches(name, names, n=1, cutoff=SIMILARITY)
    return (f"Did you mean '{close[0]}'? " if close else "") + f"Known: {', '.join(names) or 'none'}."


@contextmanager
def explain_missing_packages() -> Iterator[None]:
    """Raises MissingPackage in place of an ImportError for a package from outside. It is a decorator, too."""
    try:
        yield
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if name in ("", __name__.partition(".")[0]):
            raise  # a mistake in this program
        raise MissingPackage(
            f"The package {name} is missing or does not load ({error}). Install the packages of Masquerade: `make "
            "environment` in a clone; elsewhere `pip install` with the wheel, and for builds with '<wheel>[pipeline]'. "
            "`masquerade doctor` lists what is missing."
        ) from error

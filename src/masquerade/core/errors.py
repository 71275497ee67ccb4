"""The errors of Masquerade. Each text says what was wrong, what is allowed, and what to do next."""


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
    """One picture cannot be used. It is recorded as refused, with this text as the reason."""


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
    """The check of a picture says that the key is wrong."""


class KeyFormatError(MasqueradeError):
    """The method cannot use a secret. The text never repeats the secret."""

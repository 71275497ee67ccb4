"""Errors that are written for the person who meets them: what was wrong, what is allowed, what to do next."""


class MasqueradeError(Exception):
    """Base of every error that Masquerade raises on purpose; programs print its text and exit with status 1."""


class ParameterError(MasqueradeError):
    """params.yaml or an overlay holds something that is unknown, missing or of the wrong kind."""


class ArchiveError(MasqueradeError):
    """A face archive or a measurements file is missing, damaged, or does not fit its index."""


class DatasetError(MasqueradeError):
    """A published dataset is not as it was published: a file is missing, extra or altered, or a list does not fit."""


class CheckpointError(MasqueradeError):
    """A checkpoint is missing, damaged, or does not fit the network that should load it."""


class AssetError(MasqueradeError):
    """A file from outside cannot be fetched or placed, or the registry or the lock of such files does not hold."""


class BelowFloor(MasqueradeError):
    """A backbone was trained and is too poor to judge or to train anything with."""


class RehearsalError(MasqueradeError):
    """A file of a rehearsal would be used as if it were a result."""


class ReferenceFileError(MasqueradeError):
    """A file of reference/ holds something that is unknown, missing or of the wrong kind."""


class ProtocolError(MasqueradeError):
    """A module of methods/, judges/, metrics/, faces/ or backbones/ does not keep its protocol."""


class PictureError(MasqueradeError):
    """One picture cannot be used; recorded as a refusal with this text as its reason."""


class KeyFormatError(MasqueradeError):
    """A secret is not one that the method can use; the text never repeats it."""

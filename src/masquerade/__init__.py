"""Masquerade rebuilds the matrix of face-anonymization papers: methods x datasets x metrics -> tables and figures.

From Python it anonymizes photographs (docs/python.md). What it offers is imported at its first use.

>>> import masquerade
>>> fit = next(method for method in masquerade.methods() if method.name == "fit")
>>> fit.title, fit.capabilities.invertible
('FIT', True)
>>> masquerade.load("gaussian_blur", "size_20")
Traceback (most recent call last):
masquerade.core.errors.ParameterError: 'gaussian_blur' has no variant 'size_20'. It has: size_7, size_19, ...
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from masquerade.core.errors import (
    CheckpointError,
    FaceLeft,
    KeyFormatError,
    MasqueradeError,
    MissingPackage,
    NoFace,
    ParameterError,
    PictureError,
    SealError,
    SeveralFaces,
    StillRecognized,
    WrongKey,
    explain_missing_packages,
)

if TYPE_CHECKING:
    from masquerade.methods import list_methods as methods
    from masquerade.pipeline.photographs.anonymizer import Anonymizer, load
    from masquerade.pipeline.photographs.choosing import Batch, FolderOptions, LoadOptions, RecoveryOptions
    from masquerade.pipeline.photographs.single import AnonymizedFace, AnonymizedPhotograph

__all__ = [
    "AnonymizedFace",
    "AnonymizedPhotograph",
    "Anonymizer",
    "Batch",
    "CheckpointError",
    "FaceLeft",
    "FolderOptions",
    "KeyFormatError",
    "LoadOptions",
    "MasqueradeError",
    "MissingPackage",
    "NoFace",
    "ParameterError",
    "PictureError",
    "RecoveryOptions",
    "SealError",
    "SeveralFaces",
    "StillRecognized",
    "WrongKey",
    "load",
    "methods",
]
_HOMES = {
    "Anonymizer": "pipeline.photographs.anonymizer",
    "Batch": "pipeline.photographs.choosing",
    "FolderOptions": "pipeline.photographs.choosing",
    "LoadOptions": "pipeline.photographs.choosing",
    "RecoveryOptions": "pipeline.photographs.choosing",
    "load": "pipeline.photographs.anonymizer",
    "AnonymizedFace": "pipeline.photographs.single",
    "AnonymizedPhotograph": "pipeline.photographs.single",
}
"""Name -> the module that defines it, and that is imported when the name is used. ``methods`` is the room itself."""


def __getattr__(name: str) -> Any:
    with explain_missing_packages():
        if name == "methods":
            return import_module(f"{__name__}.methods")
        if name in _HOMES:
            return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""The registry of files from outside, ``registry.yaml``: what each is, where it comes from, and who may use it."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, Field, ValidationError

from masquerade.core.errors import AssetError, suggest_nearest
from masquerade.core.settings import Name, Settings

FILE = Path(__file__).with_name("registry.yaml")

Url = Annotated[str, Field(pattern=r"^(https?://\S+|drive:[A-Za-z0-9_-]{20,})$")]
"""A plain address (http only if its publisher has no https), or ``drive:`` and the id of a file of Google Drive."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Md5 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


def _below(name: str) -> str:
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name:
        raise ValueError(f"'{name}' is no plain path below a folder: no '..', no backslash and no empty part")
    return name


Below = Annotated[str, AfterValidator(_below)]
"""A path below a folder: relative, with /, and without '..'."""


class Remote(Settings):
    """A published file: its addresses, size and hashes."""

    urls: tuple[Url, ...]
    """Its addresses in order of preference; empty if it is only inside an archive or behind a form."""
    size: int | None
    """Size in bytes; null if it is published nowhere."""
    sha256: Sha256 | None
    """SHA-256; null if it is published nowhere, so that the lock records the first file that comes in."""
    md5: Md5 | None
    """MD5, if its publisher gives one; it is checked too when the file comes in."""
    vouched: str
    """Who publishes size and hash; '' if they are not published."""


class File(Remote):
    """One file."""

    name: Below
    """Its path below ``assets/<role>/``."""


class Folder(Settings):
    """A folder with many files of one kind."""

    name: Below
    """Its path below ``assets/<role>/``."""
    count: int | None
    """Number of files in it and below it, as published; null if it is not published, or if its reader counts them."""
    instead_of: tuple[str, ...]
    """Packed files of the same role with the same content: either they or the folder must be present."""


class Archive(Remote):
    """A published .tar, .tgz, .zip or .bz2 that contains the file of a role."""

    name: Below
    """Its publisher's name for it; `place` recognizes it by this name."""
    member: str
    """The path of the file in it; '' for a .bz2, which contains one file."""


class Preprocessing(Settings):
    """The images that a network expects."""

    size: int
    """Width and height in pixels."""
    crop: str
    """The part of the image, and its alignment."""
    range: str
    """The range of the values."""
    colors: str
    """The order of the channels."""


class Asset(Settings):
    """The keys of every role."""

    title: str
    """What it is, in words."""
    source: str
    """Who made it, and the source of this entry."""
    roughly: str
    """Its size in words; '' = unknown."""
    license: str
    """An SPDX identifier, or words if there is none."""
    terms: str
    """Terms that its user accepts besides the license; '' = none."""
    redistribution: str
    """Who may redistribute it."""
    steps: tuple[str, ...]
    """The steps by which a person gets it, if terms or a form must be accepted first; otherwise empty."""
    papers: tuple[str, ...]
    """Those of the five papers that use it."""

    @property
    def parts(self) -> tuple[File, ...]:
        """Its files."""
        raise NotImplementedError

    @property
    def trees(self) -> tuple[Folder, ...]:
        """Its folders."""
        return ()

    @property
    def places(self) -> tuple[str, ...]:
        """The folders below ``assets/<role>/`` that may hold its parts."""
        return ("",)


class Weights(Asset):
    """A published weight file."""

    file: File
    """The one file of the role."""
    archives: tuple[Archive, ...]
    """Archives that contain it, which are tried if its own addresses fail."""
    layout: str
    """Its layout: the names of its tensors and the structure around them."""
    loader: str
    """The module or package that reads this layout."""
    preprocessing: Preprocessing | None
    """The preprocessing of its input images; null if its input is no image."""

    @property
    def parts(self) -> tuple[File, ...]:
        return (self.file,)


class Dataset(Asset):
    """A published dataset in its published layout, which the module of faces/ reads."""

    files: tuple[File, ...]
    """Lists, labels, records, and archives, which stay packed."""
    folders: tuple[Folder, ...]
    """Folders of images."""
    within: tuple[Below, ...]
    """Folders in which its publisher keeps some of these; they may also be there."""

    @property
    def parts(self) -> tuple[File, ...]:
        return self.files

    @property
    def trees(self) -> tuple[Folder, ...]:
        return self.folders

    @property
    def places(self) -> tuple[str, ...]:
        return ("", *self.within)


class Registry(Settings):
    """The whole file."""

    weights: dict[Name, Weights]
    """By role."""
    datasets: dict[Name, Dataset]
    """By name."""


@cache
def registry() -> Mapping[str, Asset]:
    """Role -> entry: weights first, then datasets, in the order of the file. Raises AssetError if it is not valid."""
    return read(FILE)


def read(file: Path) -> dict[str, Asset]:
    """The entries of a registry file. Raises AssetError naming each wrong entry."""
    try:
        entries = Registry(**yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
    except (ValidationError, yaml.YAMLError, TypeError) as error:
        details = error.errors() if isinstance(error, ValidationError) else [{"loc": (), "msg": str(error)}]
        mistakes = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in details)
        raise AssetError(f"{file} is no registry of assets: {mistakes}") from error
    duplicates = entries.weights.keys() & entries.datasets.keys()
    if duplicates:
        raise AssetError(f"{file} has weights and a dataset of one name: {', '.join(sorted(duplicates))}.")
    return {**entries.weights, **entries.datasets}


def asset(role: str) -> Asset:
    """The entry of a role. Raises AssetError naming the known roles."""
    entries = registry()
    if role not in entries:
        raise AssetError(f"There is no asset '{role}'. {suggest_nearest(role, entries)}")
    return entries[role]

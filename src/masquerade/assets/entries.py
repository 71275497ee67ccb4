"""The registry of files from outside, ``backbones/assets.yaml``: what each is, where it comes from, who may use it."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, Field, ValidationError

from masquerade.errors import AssetError
from masquerade.settings import Name, Settings

FILE = Path(__file__).parents[1] / "backbones" / "assets.yaml"

Url = Annotated[str, Field(pattern=r"^(https?://\S+|drive:[A-Za-z0-9_-]{20,})$")]
"""A plain address (http alone where its publisher has no other), or ``drive:`` and the id of a file there."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Md5 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


def _below(name: str) -> str:
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name:
        raise ValueError(f"'{name}' is no plain path below a folder")
    return name


Below = Annotated[str, AfterValidator(_below)]
"""A path below a folder: relative, with /, and never upwards."""


class Remote(Settings):
    """A published file: where it is, and what is known of its bytes."""

    urls: tuple[Url, ...]
    """Where it is published, in order of preference; empty where it is only inside an archive, or behind a form."""
    size: int | None
    """Bytes; null where nobody states them."""
    sha256: Sha256 | None
    """Null where nobody states it: then the first file that is seen is recorded in the lock."""
    md5: Md5 | None
    """Where its publisher gives this one; checked beside SHA-256 when the file comes in."""
    vouched: str
    """Who states size and hash; '' where nobody does."""


class File(Remote):
    """One file."""

    name: Below
    """Its path below ``assets/<role>/``."""


class Folder(Settings):
    """Many files of one kind."""

    name: Below
    """Its path below ``assets/<role>/``."""
    count: int | None
    """Files in it and below it, as published; null where nobody says, or where it is counted by who reads it."""
    instead_of: tuple[str, ...]
    """Files of the same role that hold the same, packed: the folder or they are enough; empty where there are none."""


class Archive(Remote):
    """A published .tar, .tgz, .zip or .bz2 that holds the file of a role."""

    name: Below
    """As its publisher calls it; `place` knows it by this name."""
    member: str
    """The path of the file in it; '' for a .bz2, which holds one."""


class Preprocessing(Settings):
    """What a network expects of a picture."""

    size: int
    """Pixels, width and height."""
    crop: str
    """Which part of the picture, and how it is aligned."""
    range: str
    """Of values."""
    colours: str
    """Order of the channels."""


class Asset(Settings):
    """What every role has."""

    title: str
    """What it is, in words."""
    source: str
    """Who made it, and where what stands here was read."""
    roughly: str
    """How large it is, in words; '' where nobody says."""
    licence: str
    """An SPDX identifier, or words where there is none."""
    terms: str
    """What its user agrees to beyond the licence; '' for nothing."""
    redistribution: str
    """Who may hand it on."""
    steps: tuple[str, ...]
    """What a person has to do, one step after the other, where terms or a form stand before it; empty where not."""
    papers: tuple[str, ...]
    """Which of the five papers use it."""

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
        """Where its parts may lie, below ``assets/<role>/``."""
        return ("",)


class Weights(Asset):
    """A published weight file."""

    file: File
    """The one file of the role."""
    archives: tuple[Archive, ...]
    """Archives that hold it, for where its own addresses fail."""
    layout: str
    """Its key layout: the names of its tensors and what lies around them."""
    loader: str
    """Who reads this layout: a module of ours, or a package."""
    preprocessing: Preprocessing | None
    """Of the pictures that the network sees; null for a network that sees none."""

    @property
    def parts(self) -> tuple[File, ...]:
        return (self.file,)


class Dataset(Asset):
    """A published dataset, in the layout in which it is published; the module of faces/ reads it so."""

    files: tuple[File, ...]
    """Lists, labels, records, and archives, which stay packed."""
    folders: tuple[Folder, ...]
    """Folders of pictures."""
    within: tuple[Below, ...]
    """Folders in which its publisher has some of these; they may lie there, too."""

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
    """Every role: weights first, then datasets, in the order of the file. Raises AssetError where it is not valid."""
    return read(FILE)


def read(file: Path) -> dict[str, Asset]:
    """What a registry file says. Raises AssetError naming each wrong entry."""
    try:
        found = Registry(**yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
    except (ValidationError, yaml.YAMLError, TypeError) as error:
        told = error.errors() if isinstance(error, ValidationError) else [{"loc": (), "msg": str(error)}]
        wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in told)
        raise AssetError(f"{file} is no registry of assets: {wrong}") from error
    twice = found.weights.keys() & found.datasets.keys()
    if twice:
        raise AssetError(f"{file} has weights and a dataset of one name: {', '.join(sorted(twice))}.")
    return {**found.weights, **found.datasets}


def asset(role: str) -> Asset:
    """The entry of a role. Raises AssetError naming those that there are."""
    known = registry()
    if role not in known:
        raise AssetError(f"There is no asset '{role}'. There are: {', '.join(known)}.")
    return known[role]

"""Exchanges images with another program: exports the faces that it gets, and collects what it made of them.

Every image that comes back is compared with the originals. One that shows an original, or an original in disguise, is
never stored.
"""

import importlib
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from masquerade.core import fingerprints
from masquerade.core.discovery import IMPORTED
from masquerade.core.errors import ArchiveError, PictureError
from masquerade.core.images import OK, TEST, FaceArchive, to_uint8
from masquerade.faces.photographs import decoding
from masquerade.faces.photographs.names import files
from masquerade.methods.imported.method import store
from masquerade.methods.imported.originals import Originals
from masquerade.params import overlays
from masquerade.params.blocks import SCALES
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import anonymization, informed

BATCH = 32
MEGAPIXELS = 40.0  # the limit of one image, against decompression bombs
MOST_NAMES = 5  # names that an error lists; the others are counted
MANIFEST, README = "faces.json", "README.txt"
COMPARED = 10
"""The fewest images of which the order of the colors is judged."""
INSTRUCTIONS = """{count} faces of {size} x {size} pixels: PNG files, RGB, 8 bits a channel.

Write one image for each of them, of the same size, under the same name, into another folder, and score it:

    masquerade score NAME RESULTS --scale {scale}

{parts}
Your program may use all of them together, but it must not learn from the faces of the part "test".
"""
PARTS = {
    TEST: "anonymized and measured",
    "attackers": "anonymized, and what attackers learn from who know your method",
    "methods": "anonymized, and what classifiers of attributes learn from",
}
"""Part of the exported faces -> what is done with it."""


def select_exported(archive: FaceArchive, parameters: Parameters, dataset: str) -> pd.DataFrame:
    """The usable faces that another program gets, rows of the index with a column ``part`` (a key of PARTS)."""
    rows = {TEST: archive.select(TEST)}
    if dataset == parameters.matrix.train_on:
        settings = parameters.informed.of(IMPORTED, "")
        own = informed.select_own_images(archive, settings)
        rows["attackers"] = own[own["status"] == OK]
        if dataset in parameters.attributes.cells:
            subset = anonymization.select_subset(
                archive.select("methods", status=None), parameters.attributes.train_pictures
            )
            rows["methods"] = subset[subset["status"] == OK]
    return pd.concat([each.assign(part=part) for part, each in rows.items()])


def export(archive: FaceArchive, rows: pd.DataFrame, output: Path, scale: str, dataset: str) -> None:
    """Write ``rows`` to the folder ``output`` as ``<id>.png``, with a manifest and instructions."""
    output.mkdir(parents=True, exist_ok=True)
    for faces in archive.batches(BATCH, rows=rows):
        for name, picture in zip(faces.ids, to_uint8(faces.images), strict=True):
            Image.fromarray(picture).save(output / f"{name}.png")
    ids = {part: rows["id"][rows["part"] == part].tolist() for part in PARTS}
    about = {"scale": scale, "dataset": dataset, "faces": archive.metadata["checksum"], "ids": ids}
    (output / MANIFEST).write_text(json.dumps(about, indent=1), encoding="utf-8")
    listed = "".join(f"- {part}: {len(names)} faces, {PARTS[part]}\n" for part, names in ids.items() if names)
    size = archive.metadata["size"]
    (output / README).write_text(
        INSTRUCTIONS.format(count=len(rows), size=size, scale=scale, parts=listed), encoding="utf-8"
    )


@dataclass(frozen=True)
class Results:
    """The folder of another program, and how it is read.

    ``suffix``: what the program added to each name. ``near``: see `ImportedImages`. ``partial``: faces may lack an
    image, and count as refused. ``recovered``: the folder with what the program recovered from its own images.
    """

    folder: Path
    suffix: str = ""
    near: float = 6.0
    partial: bool = False
    recovered: Path | None = None


def collect(results: Results, archive: FaceArchive, rows: pd.DataFrame, output: Path) -> int:
    """Write the images of a program to the file ``output``. Returns their number.

    ``rows``: the faces of ``archive`` that it was given. Raises ArchiveError, which lists every mistake with a remedy,
    and writes nothing, if a face lacks an image, or an image belongs to no face, cannot be read, has another size or
    format, or shows an original.
    """
    _check_manifest(results.folder, archive)
    pictures = _Pictures(results, results.folder, archive, rows)
    recovered = _Pictures(results, results.recovered, archive, rows) if results.recovered else None
    mistakes: dict[str, list[str]] = {}
    named = [(name, picture) for name, picture in pictures.read(mistakes)]
    _check_colors(dict(named), archive, rows, mistakes)
    back = list(recovered.read(mistakes, compared=False)) if recovered else []
    lines = [f"- {_list_names(names)}: {what}" for what, names in mistakes.items() if names]
    if lines or not named:
        raise ArchiveError(
            f"{results.folder} cannot be scored for the {len(rows)} faces of {archive.path}:\n"
            + "\n".join(lines or ["- there is no image"])
        )
    store(output, archive.metadata["checksum"], dict(named), dict(back))
    return len(named)


def run_function(name: str, seed: int, archive: FaceArchive, rows: pd.DataFrame, output: Path) -> None:
    """Write what a Python function makes of the faces to a new folder.

    ``name``: ``package.module:function``. It gets images, uint8 (N, S, S, 3), and a seed, and returns N images, or None
    in place of one that it refuses. Raises ArchiveError if it cannot be imported or returns something else.
    """
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")  # a module of the current folder
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ArchiveError(f"{name} cannot be imported ({error}). Write package.module:function.") from error
    finally:
        sys.path.remove("")
    output.mkdir()
    for faces in archive.batches(BATCH, rows=rows):
        results = function(to_uint8(faces.images), seed)
        if len(results) != len(faces.ids):
            raise ArchiveError(f"{name} returned {len(results)} images for {len(faces.ids)}.")
        for face, picture in zip(faces.ids, results, strict=True):
            if picture is None:
                continue
            picture = np.asarray(picture)
            if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
                raise ArchiveError(
                    f"{name} returned an image of {picture.dtype} and shape {picture.shape}: return uint8 (height, "
                    "width, 3), RGB from 0 to 255."
                )
            Image.fromarray(picture).save(output / f"{face}.png", compress_level=1)


def run_command(command: str, archive: FaceArchive, rows: pd.DataFrame, output: Path) -> None:
    """Write what a command makes of each face to a new folder. A command that fails refuses its face.

    ``command``: with ``{input}`` and ``{output}``, the paths of two PNG files. Raises ArchiveError if one of them is
    missing, or with the text of the first failure if every run fails.
    """
    words = shlex.split(command)
    if not {"{input}", "{output}"} <= set(re.findall(r"\{\w+\}", command)):
        raise ArchiveError(f"'{command}' must hold {{input}} and {{output}}, the paths of two PNG files.")
    output.mkdir()
    made, failure = 0, ""
    with tempfile.TemporaryDirectory(prefix="masquerade-", dir=output.parent) as place:
        for faces in archive.batches(BATCH, rows=rows):
            for name, picture in zip(faces.ids, to_uint8(faces.images), strict=True):
                source, target = Path(place, f"{name}.png"), output / f"{name}.png"
                Image.fromarray(picture).save(source, compress_level=1)
                filled = [word.replace("{input}", str(source)).replace("{output}", str(target)) for word in words]
                try:
                    done = subprocess.run(filled, capture_output=True, text=True, errors="replace", check=False)
                except OSError as error:
                    raise ArchiveError(f"'{command}' cannot be run: {error}.") from error
                source.unlink()
                if done.returncode:
                    target.unlink(missing_ok=True)
                    failure = failure or f"status {done.returncode}: {done.stderr.strip()[-500:]}"
                elif target.is_file():
                    made += 1
                else:
                    failure = failure or "it ended without an error and wrote no file"
    if not made:
        raise ArchiveError(f"'{command}' made no image. Its first run: {failure}")


def _check_manifest(folder: Path, archive: FaceArchive) -> None:
    """Raises ArchiveError if the folder holds the manifest of other faces, because a program wrote beside it."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return
    about = json.loads(manifest.read_text(encoding="utf-8"))
    if about["faces"] != archive.metadata["checksum"]:
        raise ArchiveError(
            f"{manifest} is of the faces of {about['dataset']} at scale {about['scale']}, as they were exported, and "
            f"not of {archive.path}. Give --scale {about['scale']}, or export the faces again and run the program on "
            "them."
        )


class _Pictures:
    """The images of one folder, by the ids of the faces."""

    def __init__(self, results: Results, folder: Path, archive: FaceArchive, rows: pd.DataFrame):
        self.results, self.folder, self.rows = results, folder, rows
        self.size, self.originals = archive.metadata["size"], Originals(archive, rows)
        self.locked: list[str] = []
        self.paths: dict[str, list[Path]] = {}
        for path in files(folder):
            if path.is_dir() and not path.is_symlink():
                self.locked.append(path.name)
            elif path.name not in (MANIFEST, README):
                self.paths.setdefault(path.stem.removesuffix(results.suffix), []).append(path)

    def read(self, mistakes: dict[str, list[str]], compared: bool = True) -> Iterator[tuple[str, np.ndarray]]:
        """(id, image) of each face with one good image. Mistakes are added to ``mistakes``: what -> names.

        ``compared``: with the originals.
        """
        expected = self.rows["id"].tolist()
        unknown = [path.name for name in self.paths.keys() - set(expected) for path in self.paths[name]]
        missing = [name for name in expected if name not in self.paths]
        mistakes |= {
            decoding.LOCKED_FOLDER: self.locked,
            "no image (--partial counts such faces as refused by the program)": [] if self.results.partial else missing,
            f"the name is not the id of a face; {_find_remedy(unknown, set(expected))}": sorted(unknown),
            "several files": [name for name in expected if len(self.paths.get(name, ())) > 1],
        }
        for name in expected:
            if len(self.paths.get(name, ())) == 1:
                try:
                    yield name, self._read(self.paths[name][0], name, compared)
                except PictureError as error:
                    mistakes.setdefault(str(error), []).append(name)

    def _read(self, path: Path, name: str, compared: bool) -> np.ndarray:
        picture = decoding.read(path, self.folder, MEGAPIXELS)
        if fault := _find_format_fault(path):
            raise PictureError(fault)
        if picture.shape[:2] != (self.size, self.size):
            height, width = picture.shape[:2]
            raise PictureError(
                f"{width} x {height} pixels, and the faces have {self.size} x {self.size}: write the size that was read"
            )
        return self.originals.check(picture, name, self.results.near) if compared else picture


def _find_format_fault(path: Path) -> str:
    """What is wrong with the format of an image that could be decoded; '' for three channels of 8 bits."""
    with Image.open(path, formats=decoding.FORMATS) as picture:
        bits = str(picture.tile[0].args) if picture.tile else ""
        if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
            return "an alpha channel: write RGB without transparency, because nobody knows what is behind"
        if picture.mode.startswith(("I", "F")) or ";16" in bits:
            return "more than 8 bits a channel: write 8 bits, from 0 to 255"
        if picture.mode in ("1", "L"):
            return "one channel: write RGB, three channels, also for a gray face"
    return ""


def _check_colors(
    pictures: Mapping[str, np.ndarray], archive: FaceArchive, rows: pd.DataFrame, mistakes: dict[str, list[str]]
) -> None:
    """Add a mistake if the images of most faces have their colors in the order blue, green, red.

    Over many faces, red minus blue of an image follows that of its original; with the other order, its negative.
    """
    if len(pictures) < COMPARED:
        return
    shown = rows[rows["id"].isin(pictures.keys())]
    theirs = np.array([_compute_warmth(pictures[name]) for name in shown["id"]])
    ours = np.concatenate([
        [_compute_warmth(picture) for picture in to_uint8(faces.images)] for faces in archive.batches(BATCH, rows=shown)
    ])  # fmt: skip
    if theirs.std() and ours.std() and np.corrcoef(theirs, ours)[0, 1] < -0.5 and ours.mean() * theirs.mean() < 0:
        mistakes["the colors are in the order blue, green, red: write red, green, blue"] = list(pictures)


def _compute_warmth(picture: np.ndarray) -> float:
    """The mean of red minus blue, in gray levels."""
    return float(picture[..., 0].mean() - picture[..., 2].mean())


def _find_remedy(names: list[str], expected: set[str]) -> str:
    """What to do about files whose ``names`` are no ids: most programs that rename add one suffix to all names."""
    suffixes: Counter[str] = Counter()
    for stem in (Path(name).stem for name in names):
        longest = next((length for length in range(len(stem), 0, -1) if stem[:length] in expected), len(stem))
        suffixes[stem[longest:]] += 1
    suffix, count = suffixes.most_common(1)[0] if suffixes else ("", 0)
    return f"add `--suffix={shlex.quote(suffix)}`" if suffix and 2 * count > len(names) else "remove the file"


def _list_names(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def register(root: Path, scale: str, name: str, block: Mapping[str, object]) -> Path:
    """Write the variant ``name`` of the method `imported` for one scale. Returns the file, which holds nothing else."""
    file = root / SCALES / IMPORTED / f"{scale}.yaml"
    before = overlays.read_yaml(file) if file.is_file() else {"methods": {IMPORTED: {"params": {}, "variants": {}}}}
    merged = overlays.overlay(before, {"methods": {IMPORTED: {"variants": {name: dict(block)}}}})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(overlays.format_yaml(merged), encoding="utf-8")
    return file


def hash_images(file: Path) -> str:
    """The SHA-256 by which the parameters name the images of a program."""
    return fingerprints.sha256(file)


def find_images(scale: str, dataset: str, name: str) -> Path:
    """The path of the images of a program in the repository."""
    return Path(Paths(scale).imported.format(dataset=dataset, variant=name))

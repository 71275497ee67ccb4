"""Exchanges images with another program: exports the faces that it gets, and collects what it made of them.

The exported files have neutral names (`name_file`), because the ids of faces may name people. Every image that comes
back is compared with the originals. One that shows an original, or an original in disguise, is never stored.
"""

import hashlib
import importlib
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from masquerade.attackers import study
from masquerade.core import seeding
from masquerade.core.discovery import IMPORTED
from masquerade.core.errors import ArchiveError, PictureError
from masquerade.core.files import write_text
from masquerade.core.images import GALLERY, OK, TEST, FaceArchive, to_uint8
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
DIGITS = 16  # hexadecimal, of the name of an exported face
MEGAPIXELS = 40.0  # the limit of one image, against decompression bombs
NEAR = 6.0  # gray levels of 255, unless the user gives another number (`ImportedImages.near`)
MOST_NAMES = 5  # names that an error lists; the others are counted
MANIFEST, README = "faces.json", "README.txt"
COMPARED = 10
"""The fewest images of which the order of the colors is judged."""
BLUE_FIRST = "the colors are in the order blue, green, red: write red, green, blue"
INSTRUCTIONS = """{count} faces of {size} x {size} pixels: PNG files, RGB, 8 bits a channel.
The names of the files say nothing about the people.

Write one image for each of them, of the same size, under the same name, into another folder, and score it:

    masquerade score NAME RESULTS --scale {scale} --dataset {dataset}

If it also recovers faces from its images, write those of the part "test" into a third folder, and add
--recovered FOLDER.

{parts}
Your program may use all of them together. Of these faces, it may learn only from those of the part "methods".
"""
PARTS = {
    TEST: "anonymized and measured",
    GALLERY: "anonymized, for attackers who link two images; they show people of the part test",
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
        own = own[own["status"] == OK]
        linked = own["split"] == GALLERY
        rows |= {GALLERY: own[linked], "attackers": own[~linked]}
        if dataset in parameters.attributes.cells:
            subset = anonymization.select_subset(
                archive.select("methods", status=None), parameters.attributes.train_pictures
            )
            rows["methods"] = subset[subset["status"] == OK]
    return pd.concat([each.assign(part=part) for part, each in rows.items()])


def name_file(archive: FaceArchive, face: str) -> str:
    """The name, without its ending, under which a program gets the face with the id ``face``.

    It says nothing about the person, and differs between the archives of scales and datasets.
    """
    return hashlib.sha256(f"{archive.metadata['checksum']} {face}".encode()).hexdigest()[:DIGITS]


def export(archive: FaceArchive, rows: pd.DataFrame, output: Path, scale: str, dataset: str) -> None:
    """Write ``rows`` to the folder ``output`` under the names of `name_file`, with a manifest and instructions."""
    output.mkdir(parents=True, exist_ok=True)
    for faces in archive.batches(BATCH, rows=rows):
        for face, picture in zip(faces.ids, to_uint8(faces.images), strict=True):
            Image.fromarray(picture).save(output / f"{name_file(archive, face)}.png")
    names = {part: sorted(name_file(archive, face) for face in rows["id"][rows["part"] == part]) for part in PARTS}
    about = {"scale": scale, "dataset": dataset, "faces": archive.metadata["checksum"], "names": names}
    (output / MANIFEST).write_text(json.dumps(about, indent=1), encoding="utf-8")
    listed = "".join(f"- {part}: {len(found)} faces, {PARTS[part]}\n" for part, found in names.items() if found)
    size = archive.metadata["size"]
    (output / README).write_text(
        INSTRUCTIONS.format(count=len(rows), size=size, scale=scale, dataset=dataset, parts=listed), encoding="utf-8"
    )


@dataclass(frozen=True)
class Results:
    """The folder of another program, and how it is read.

    ``suffix``: what the program added to each name. ``near``: see `ImportedImages`. ``partial``: faces may lack an
    image, and count as refused. ``recovered``: the folder with what the program recovered from its own images.
    """

    folder: Path
    suffix: str = ""
    near: float = NEAR
    partial: bool = False
    recovered: Path | None = None


def collect(results: Results, archive: FaceArchive, rows: pd.DataFrame, output: Path, held_out: float) -> int:
    """Write the images of a program to the file ``output``. Returns their number.

    ``rows``: the faces of ``archive`` that it was given, as `select_exported` returns them. ``held_out``: the share of
    the attackers' people from whom no attack learns. Raises ArchiveError, which lists every mistake with a remedy, and
    writes nothing, if a face lacks an image, or an image belongs to no face, cannot be read, has another size or
    format, or shows an original, and if a part has too few images for what is done with it.
    """
    anonymized = _Folder(results.folder, results, archive, rows)
    images = anonymized.read(set(rows["id"]))
    if _has_blue_first(images, archive, rows):
        anonymized.mistakes[BLUE_FIRST] = list(anonymized.paths)
    lines = anonymized.list_mistakes()
    recovered: dict[str, np.ndarray] = {}
    if results.recovered:
        folder = _Folder(results.recovered, results, archive, rows)
        recovered = folder.read(set(rows["id"][rows["part"] == TEST]), compared=False)  # no other face is recovered
        lines += folder.list_mistakes()
    if lines := lines or _list_shortages(rows, images, held_out):
        raise ArchiveError(
            f"{results.folder} cannot be scored for the {len(rows)} faces of {archive.path}:\n" + "\n".join(lines)
        )
    store(output, archive.metadata["checksum"], images, recovered)
    return len(images)


def _list_shortages(rows: pd.DataFrame, images: Collection[str], held_out: float) -> list[str]:
    """One line for each part of ``rows`` that has fewer ``images`` than the build needs."""
    made = rows[rows["id"].isin(images)]
    advice = "run your program on the faces of this part, too"
    lines = [
        f"- {part}: no face of this part has an image; {advice}"
        for part in (TEST, "methods")
        if (rows["part"] == part).any() and not (made["part"] == part).any()
    ]
    counts = made["identity"][made["part"] == "attackers"].value_counts()
    people = int((counts >= study.PICTURES).sum())
    needed = study.count_held_out(people, held_out) + study.PEOPLE
    if (rows["part"] == "attackers").any() and people < needed:
        lines.append(
            f"- attackers: {people} people of this part have {study.PICTURES} images or more, and attackers need "
            f"{needed}; {advice}"
        )
    return lines


def run_function(name: str, seed: int, archive: FaceArchive, rows: pd.DataFrame, output: Path) -> None:
    """Write what a Python function makes of the faces to a new folder.

    ``name``: ``package.module:function``. It gets images, uint8 (N, S, S, 3), and a seed, which follows from ``seed``
    and differs between calls. It returns N images, or None in place of one that it refuses. Raises ArchiveError if it
    cannot be imported or returns something else.
    """
    here = str(Path.cwd())
    sys.path.insert(0, here)  # until the end, because the function may import a module of the current folder, too
    try:
        function = _import_function(name)
        output.mkdir()
        for number, faces in enumerate(archive.batches(BATCH, rows=rows)):
            results = function(to_uint8(faces.images), seeding.derive_seed(seed, "call", number) % 2**32)
            if not isinstance(results, Collection) or len(results) != len(faces.ids):
                count = len(results) if isinstance(results, Collection) else "no"
                raise ArchiveError(f"{name} returned {count} images for {len(faces.ids)}. Return a list or array.")
            for face, picture in zip(faces.ids, results, strict=True):
                if picture is not None:
                    _save_image(np.asarray(picture), output / f"{name_file(archive, face)}.png", name)
    finally:
        sys.path.remove(here)


def _import_function(name: str) -> Callable[[np.ndarray, int], Any]:
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ArchiveError(f"{name} cannot be imported ({error}). Write package.module:function.") from error


def _save_image(picture: np.ndarray, path: Path, name: str) -> None:
    """Raises ArchiveError if the function ``name`` returned something else than a color image."""
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise ArchiveError(
            f"{name} returned an image of {picture.dtype} and shape {picture.shape}: return uint8 (height, width, 3), "
            "RGB from 0 to 255."
        )
    Image.fromarray(picture).save(path, compress_level=1)


def run_command(command: str, archive: FaceArchive, rows: pd.DataFrame, output: Path) -> list[str]:
    """Write what a command makes of each face to a new folder. A command that fails refuses its face.

    Returns the error of each run that failed. ``command``: with ``{input}`` and ``{output}``, the paths of two PNG
    files. Raises ArchiveError if it is no such command, or if every run fails.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ArchiveError(f"'{command}' is no command: {error}.") from error
    if not {"{input}", "{output}"} <= set(re.findall(r"\{\w+\}", command)):
        raise ArchiveError(f"'{command}' must hold {{input}} and {{output}}, the paths of two PNG files.")
    output.mkdir()
    failures = []
    with tempfile.TemporaryDirectory(prefix="masquerade-", dir=output.parent) as place:
        for faces in archive.batches(BATCH, rows=rows):
            for face, picture in zip(faces.ids, to_uint8(faces.images), strict=True):
                name = f"{name_file(archive, face)}.png"
                source, target = Path(place, name), output / name
                Image.fromarray(picture).save(source, compress_level=1)
                filled = [word.replace("{input}", str(source)).replace("{output}", str(target)) for word in words]
                try:
                    done = subprocess.run(filled, capture_output=True, text=True, errors="replace", check=False)
                except OSError as error:
                    raise ArchiveError(f"'{command}' cannot be run: {error}.") from error
                source.unlink(missing_ok=True)  # the program may have moved it
                if done.returncode:
                    target.unlink(missing_ok=True)
                    failures.append(f"status {done.returncode}: {done.stderr.strip()[-500:]}")
                elif not target.is_file():
                    failures.append("it ended without an error and wrote no file")
    if len(failures) == len(rows):
        raise ArchiveError(f"'{command}' made no image. Its first run: {failures[0]}")
    return failures


class _Folder:
    """The images of one folder. ``mistakes``: what is wrong -> the names of the files, after `read`."""

    def __init__(self, folder: Path, results: Results, archive: FaceArchive, rows: pd.DataFrame):
        self.folder, self.results = folder, results
        self.faces = {name_file(archive, face): face for face in rows["id"]}
        self.size, self.originals = archive.metadata["size"], Originals(archive, rows)
        self.mistakes: dict[str, list[str]] = {}
        self.paths: dict[str, list[Path]] = {}
        for path in files(folder):
            if path.is_dir() and not path.is_symlink():
                self.mistakes.setdefault(decoding.LOCKED_FOLDER, []).append(path.name)
            elif path.name not in (MANIFEST, README):
                self.paths.setdefault(path.stem.removesuffix(results.suffix), []).append(path)

    def read(self, wanted: Set[str], compared: bool = True) -> dict[str, np.ndarray]:
        """The id of each face of ``wanted`` with one good image -> the image. ``compared``: with the originals."""
        expected, found = self.faces.keys(), self.paths.keys()
        if unknown := sorted(path.name for name in found - expected for path in self.paths[name]):
            self.mistakes[_explain_unknown(unknown, expected, found)] = unknown
        images = {}
        for name, face in self.faces.items():
            if face in wanted and (name in found or not self.results.partial):
                try:
                    images[face] = self._read(self.paths.get(name, []), face, compared)
                except PictureError as error:
                    self.mistakes.setdefault(str(error), []).append(name)
        return images

    def list_mistakes(self) -> list[str]:
        """One line for each kind of mistake."""
        return [f"- {_list_names(names)} in {self.folder}: {what}" for what, names in self.mistakes.items()]

    def _read(self, paths: list[Path], face: str, compared: bool) -> np.ndarray:
        if not paths:
            raise PictureError("no image (--partial counts such faces as refused by the program)")
        if len(paths) > 1:
            raise PictureError("several files")
        picture = decoding.read(paths[0], self.folder, MEGAPIXELS)
        if fault := _find_format_fault(paths[0]):
            raise PictureError(fault)
        if picture.shape[:2] != (self.size, self.size):
            height, width = picture.shape[:2]
            raise PictureError(
                f"{width} x {height} pixels, and the faces have {self.size} x {self.size}: write the size that was read"
            )
        return self.originals.check(picture, face, self.results.near) if compared else picture


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


def _has_blue_first(images: Mapping[str, np.ndarray], archive: FaceArchive, rows: pd.DataFrame) -> bool:
    """Whether the images of most faces have their colors in the order blue, green, red.

    Over many faces, red minus blue of an image follows that of its original; with the other order, its negative. In
    negatives of the images it does so, too, but there green is reversed as well.
    """
    if len(images) < COMPARED:
        return False
    shown = rows[rows["id"].isin(images.keys())]
    theirs = np.array([images[face].mean(axis=(0, 1)) for face in shown["id"]])  # (N, 3)
    ours = np.concatenate([to_uint8(faces.images).mean(axis=(1, 2)) for faces in archive.batches(BATCH, rows=shown)])
    warmth, warmth_before = (colors[:, 0] - colors[:, 2] for colors in (theirs, ours))  # red minus blue
    exchanged = _correlate(warmth, warmth_before) < -0.5 and warmth.mean() * warmth_before.mean() < 0
    return bool(exchanged and _correlate(theirs[:, 1], ours[:, 1]) > -0.5)


def _correlate(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's correlation; 0 if one of both does not vary."""
    return float(np.corrcoef(first, second)[0, 1]) if first.std() and second.std() else 0.0


def _explain_unknown(unknown: list[str], expected: Set[str], found: Set[str]) -> str:
    """What is wrong with the files ``unknown``. ``expected``: the names of the faces. ``found``: all names of a folder.

    Most programs that rename add one suffix to all names.
    """
    stems = [Path(name).stem for name in unknown]
    suffixes = Counter(stem[DIGITS:] for stem in stems if stem[:DIGITS] in expected)
    suffix, count = suffixes.most_common(1)[0] if suffixes else ("", 0)
    if 2 * count > len(unknown):
        return f"the name is not that of an exported face; add `--suffix={shlex.quote(suffix)}`"
    if not expected & found:
        return "these names are of other faces (another scale or dataset, or an earlier export): export the faces again"
    return "the name is not that of an exported face; remove the file"


def _list_names(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def register(root: Path, scale: str, name: str, block: Mapping[str, object]) -> Path:
    """Write the variant ``name`` of the method `imported` for one scale. Returns the file, which holds nothing else."""
    file = root / SCALES / IMPORTED / f"{scale}.yaml"
    before = overlays.read_yaml(file) if file.is_file() else {"methods": {IMPORTED: {"params": {}, "variants": {}}}}
    merged = overlays.overlay(before, {"methods": {IMPORTED: {"variants": {name: dict(block)}}}})
    write_text(file, overlays.format_yaml(merged))
    return file


def find_images(scale: str, dataset: str, name: str) -> Path:
    """The path of the images of a program in the repository."""
    return Path(Paths(scale).imported.format(dataset=dataset, variant=name))

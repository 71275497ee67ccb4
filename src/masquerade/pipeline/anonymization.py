"""Anonymizes or recovers the faces of one archive, in batches, and writes them to a new archive.

No face is left out, and an original is never written in the place of a result. A face without a result is a refusal
with its reason.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from masquerade.core import discovery, sealing
from masquerade.core.annotations import ANNOTATION
from masquerade.core.errors import PictureError, ProtocolError
from masquerade.core.images import OK, REFUSED, ArchiveWriter, FaceArchive, Faces, MemoryArchive, to_uint8
from masquerade.core.keys import Keys
from masquerade.methods import Method

TOLERANCE = 1.0 / 255.0  # half a gray level, which rounding to 8 bits removes
NO_LANDMARKS = "its 68 landmarks are not known, and the method needs them"
UNCHANGED = "the method returned the original image"
Result = TypeVar("Result")
Progress = Callable[[int], None]
KeysOf = Callable[[Faces], Sequence[bytes]]
"""Faces -> the key of each one."""
RECORD = "record"
"""The column of an index with the sealed records; '' for a face without one."""


@dataclass(frozen=True)
class Refusal:
    """A face has no result."""

    reason: str


@dataclass(frozen=True)
class Plan:
    """How the faces of an archive are anonymized. ``batch``: the most faces that the method gets at once."""

    variant: str
    seed: int
    batch: int
    for_release: bool = False
    """Whether people will get the images: then a control may not return the original either."""


@dataclass(frozen=True)
class GivenKeys:
    """The keys of faces, and what the archive says of them."""

    of_faces: KeysOf
    key_id: str = "secret"


def anonymize(
    archive: FaceArchive,
    output: Path | MemoryArchive,
    method: Method,
    rows: pd.DataFrame,
    plan: Plan,
    keys: GivenKeys | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the faces ``rows`` of the index, anonymized by ``method``, to the archive ``output``.

    Rows keep their order, id, identity and attributes. ``source_id`` is the id of the original. A face is refused if

    - the original was refused (same reason),
    - the method needs landmarks and the face has none,
    - the result is not finite or leaves [-1, 1],
    - the result equals the original. A control may return the original, but not for a release.

    ``keys``: for a keyed method; None: each face has a key of its own, which follows from seed and id
    (`experiment_keys`). ``progress`` is called with the number of faces done. Raises ProtocolError if a result has a
    wrong shape or type.
    """
    refused = list_refusals(rows)
    if method.capabilities.landmarks:
        refused = {**dict.fromkeys(_list_without_landmarks(rows), NO_LANDMARKS), **refused}
    kind = method.capabilities.keys
    if kind and keys is None:
        keys = GivenKeys(experiment_keys(kind, plan.seed), f"experiment {plan.seed}")
    usable, batch = rows[~rows["id"].isin(refused.keys())], method.choose_batch_size(plan.batch)
    if len(usable):
        method.observe(archive.batches(batch, rows=usable))

    def work(faces: Faces) -> np.ndarray:
        return method.anonymize(faces, plan.seed, keys.of_faces(faces) if keys else None)

    forbidden = None if method.capabilities.control and not plan.for_release else UNCHANGED
    results = _yield_results(archive, usable, method, work, batch, forbidden, progress)
    key_id = keys.key_id if kind and keys else ""
    about = {"method": _find_name(method), "variant": plan.variant, "key_id": key_id, "seed": plan.seed}
    statement = method.statement() if len(usable) else {}  # without a face the method has observed nothing
    metadata = {**archive.metadata, **about, "statement": statement}
    write(output, rows, refused, results, about, metadata)


def select_subset(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most ``most`` rows (0: all). They are the same for every method: the first by a hash of their ids."""
    if not most or len(rows) <= most:
        return rows
    order = rows["id"].map(lambda name: hashlib.sha256(name.encode()).digest())
    return rows.loc[order.sort_values().index[:most]].sort_index()


def experiment_keys(kind: Keys, seed: int, *purpose: object) -> KeysOf:
    """The keys of an experiment: another one for each face, and for each ``purpose``."""
    return lambda faces: [kind.experiment(seed, *purpose, name) for name in faces.ids]


def recover(
    archive: FaceArchive, output: Path | MemoryArchive, method: Method, keys_of: KeysOf, batch: int,
    progress: Progress | None = None, maker: str = "",
) -> None:  # fmt: skip
    """Write the faces that ``method`` recovers with their keys from the images of an anonymized ``archive``.

    ``keys_of`` gives the keys of faces. A face with a sealed record (the column ``record``) is drawn from it, and all
    others are recovered from their images alone. ``maker``: what the records are sealed with, besides the key. Refusals
    as in `anonymize`. Raises ProtocolError also if the method is not invertible.
    """
    if not method.capabilities.invertible:
        raise ProtocolError(f"{_find_name(method)} is not invertible: its images cannot be recovered.")
    rows = archive.select(status=None)
    refused = list_refusals(rows)
    usable = rows[~rows["id"].isin(refused.keys())]

    def work(faces: Faces) -> np.ndarray:
        records = faces.index[RECORD].tolist() if RECORD in faces.index else []
        if any(records) and not all(records):  # some of each kind: one by one
            return np.concatenate([work(_take_face(faces, place)) for place in range(len(faces))])
        keys = keys_of(faces)
        if not any(records):
            return method.recover(faces.images, keys)
        parts = zip(keys, records, to_uint8(faces.images), strict=True)
        return method.draw_described([sealing.open_sealed(*part, maker) for part in parts])

    results = _yield_results(archive, usable, method, work, batch, None, progress)
    write(output, rows, refused, results, {}, {**archive.metadata, "recovered_by": _find_name(method)})


def draw_sample(source: Path, derived: Path, count: int = 8) -> np.ndarray | None:
    """The first originals and their results below: uint8 (2 H, count W, 3). Returns None when all were refused."""
    results, originals = FaceArchive(derived), FaceArchive(source)
    rows = results.select().head(count)
    if rows.empty:
        return None
    sources = originals.index.set_index("id", drop=False).loc[rows["source_id"]]
    lines = [to_uint8(originals.load(rows=sources).images), to_uint8(results.load(rows=rows).images)]
    return np.concatenate([np.concatenate(list(pictures), axis=1) for pictures in lines], axis=0)


def _find_name(method: Method) -> str:
    return discovery.find_name(type(method))


def list_refusals(rows: pd.DataFrame) -> dict[str, str]:
    """id -> reason of every refused row."""
    refused = rows[rows["status"] != OK]
    return dict(zip(refused["id"], refused["reason"], strict=True))


def _list_without_landmarks(rows: pd.DataFrame) -> list[str]:
    points = Faces(np.empty(0), rows).landmarks
    return rows["id"][~np.isfinite(points).all(axis=(1, 2))].tolist()


def _yield_results(
    archive: FaceArchive,
    rows: pd.DataFrame,
    method: Method,
    work: Callable[[Faces], np.ndarray],
    batch: int,
    forbidden: str | None,
    progress: Progress | None,
) -> Iterator[tuple[np.ndarray | None, str]]:
    """(image, '') or (None, reason) for each of ``rows``, in order."""
    done = 0
    for faces in archive.batches(batch, rows=rows):
        results = list(_check_results(faces, method, work, forbidden))
        done += len(faces)
        if progress:
            progress(done)
        yield from results


def _check_results(
    faces: Faces, method: Method, work: Callable[[Faces], np.ndarray], forbidden: str | None
) -> Iterator[tuple[np.ndarray | None, str]]:
    """As `_yield_results`, for one batch."""
    for part, images in apply_or_refuse(work, faces):
        if isinstance(images, Refusal):
            yield None, images.reason
            continue
        check_protocol(images, part, method)
        for image, original in zip(images, part.images, strict=True):
            reason = find_fault(image, original, forbidden)
            yield (None, reason) if reason else (to_uint8(image), "")


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
            yield from apply_or_refuse(work, *(_take_face(batch, place) for batch in (faces, *partners)))
        return
    yield faces, result


def _take_face(faces: Faces, place: int) -> Faces:
    return Faces(faces.images[[place]], faces.index.iloc[[place]])


def check_protocol(images: object, faces: Faces, method: Method) -> None:
    """Raises ProtocolError unless ``images`` has the type and shape that a method must return for ``faces``."""
    returned = f"{type(images).__name__}"
    if isinstance(images, np.ndarray):
        returned = f"{images.dtype} {images.shape}"
        if images.dtype == np.float32 and images.shape == faces.images.shape:
            return
    raise ProtocolError(
        f"methods/{_find_name(method)}.py must return a float32 array of shape {faces.images.shape}; it returned "
        f"{returned}."
    )


def find_fault(image: np.ndarray, original: np.ndarray, forbidden: str | None) -> str:
    """The reason why a result may not be written, or '' if it may.

    ``forbidden``: the reason to give for a result that equals the original; None allows such a result.
    """
    if not np.isfinite(image).all():
        return "the method returned values that are not finite"
    if np.abs(image).max() > 1.0 + TOLERANCE:
        return f"the method returned values outside [-1, 1] ({image.min():.3g} to {image.max():.3g})"
    if forbidden and np.array_equal(to_uint8(image), to_uint8(original)):
        return forbidden
    return ""


def write(
    output: Path | MemoryArchive,
    rows: pd.DataFrame,
    refused: dict[str, str],
    results: Iterator[tuple[np.ndarray | None, str]],
    about: dict,
    metadata: dict,
) -> None:
    """Write the archive that is derived from ``rows``, in their order.

    ``refused``: id -> reason of the rows that are refused from the start. ``results``: for each other row, (image
    uint8 (H, W, 3), '') or (None, reason). ``about``: columns with one value for all rows. ``metadata``: that of the
    archive.
    """
    with ArchiveWriter(output, metadata) as out:
        for source in rows.to_dict("records"):
            picture, reason = (None, refused[source["id"]]) if source["id"] in refused else next(results)
            status = REFUSED if picture is None else OK
            out.add(picture, {**inherit_columns(source), **about, "status": status, "reason": reason})


def inherit_columns(source: dict) -> dict:
    """The columns that a derived face takes from the row of its source.

    The landmarks become ``source_landmarks``, because the new face may lie at another place.
    """
    inherited = {
        name: value
        for name, value in source.items()
        if name in ("id", "identity", "split", "file", "source_landmarks", "method", "variant", "key_id", "seed")
        or name.startswith(ANNOTATION)
    }
    points = {"source_landmarks": source["landmarks"]} if "landmarks" in source else {}
    return {**inherited, "source_id": source.get("source_id", source["id"]), **points}

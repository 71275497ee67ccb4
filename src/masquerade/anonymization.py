"""One archive of faces -> the same faces anonymized, or recovered: in batches, and nothing skipped in silence.

The original is never written in place of a result: a face that a method cannot do is a refusal with its reason.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from masquerade.errors import PictureError, ProtocolError
from masquerade.images import OK, REFUSED, ArchiveWriter, FaceArchive, Faces, to_uint8
from masquerade.methods import Method

TOLERANCE = 1.0 / 255.0  # half a grey level: what rounding to 8 bits may hide
NO_LANDMARKS = "its 68 landmarks are not known, and the method needs them"
UNCHANGED = "the method returned the original picture"
Progress = Callable[[int], None]


def anonymize(
    archive: FaceArchive,
    output: Path,
    method: Method,
    variant: str,
    split: str | None,
    seed: int,
    batch: int,
    key: bytes | None = None,
    progress: Progress | None = None,
    for_release: bool = False,
    most: int = 0,
) -> None:
    """Write the faces of ``split`` (None: all), anonymized by ``method``, to the archive ``output``.

    Rows keep their order, id, identity and attributes; ``source_id`` names the original. A face is refused where the
    original was (same reason), where landmarks are missing that the method needs, where the result is not finite
    or leaves [-1, 1], and where it is the original itself and the method is no control (``for_release``: even then). A
    keyed method that gets no ``key`` uses the experiment key of the seed. ``progress`` hears the number of faces done.
    ``most``: only so many faces (0: all), see `chosen`.
    Raises ProtocolError where the result has a wrong shape or type.
    """
    rows = chosen(archive.select(split, status=None), most)
    known = refusals(rows)
    if method.capabilities.landmarks:
        known = {**dict.fromkeys(_without_landmarks(rows), NO_LANDMARKS), **known}
    key_id = ""
    if method.capabilities.keys:
        key_id = f"experiment {seed}" if key is None else "secret"
        key = method.capabilities.keys.experiment(seed) if key is None else key
    usable = rows[~rows["id"].isin(known.keys())]
    if len(usable):
        method.observe(archive.batches(batch, rows=usable))

    def work(faces: Faces) -> np.ndarray:
        return method.anonymize(faces, seed, key)

    forbidden = None if method.capabilities.control and not for_release else UNCHANGED
    results = _results(archive, usable, method, work, batch, forbidden, progress)
    about = {"method": _name(method), "variant": variant, "key_id": key_id, "seed": seed}
    statement = method.statement() if len(usable) else {}  # without a face, nothing was observed to speak of
    facts = {**archive.facts, **about, "statement": statement}
    write(output, rows, known, results, about, facts)


def chosen(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most ``most`` rows (0: all), the same for every method: the first in the order of a hash of their ids."""
    if not most or len(rows) <= most:
        return rows
    order = rows["id"].map(lambda name: hashlib.sha256(name.encode()).digest())
    return rows.loc[order.sort_values().index[:most]].sort_index()


def recover(
    archive: FaceArchive, output: Path, method: Method, key: bytes, batch: int, progress: Progress | None = None
) -> None:
    """Write what ``method`` recovers with ``key`` from the pictures of an anonymized ``archive``, and nothing else.

    Refusals as in `anonymize`. Raises ProtocolError also where the method is not invertible.
    """
    if not method.capabilities.invertible:
        raise ProtocolError(f"{_name(method)} is not invertible: nothing can be recovered from its pictures.")
    rows = archive.select(status=None)
    known = refusals(rows)
    usable = rows[~rows["id"].isin(known.keys())]

    def work(faces: Faces) -> np.ndarray:
        return method.recover(faces.images, key)

    results = _results(archive, usable, method, work, batch, None, progress)
    write(output, rows, known, results, {}, {**archive.facts, "recovered_by": _name(method)})


def sample(source: Path, derived: Path, count: int = 8) -> np.ndarray | None:
    """The first faces and, below each, what became of it: uint8 (2 H, count W, 3); None where all were refused."""
    results, originals = FaceArchive(derived), FaceArchive(source)
    rows = results.select().head(count)
    if rows.empty:
        return None
    known = originals.index.set_index("id", drop=False).loc[rows["source_id"]]
    shown = [to_uint8(originals.load(rows=known).images), to_uint8(results.load(rows=rows).images)]
    return np.concatenate([np.concatenate(list(pictures), axis=1) for pictures in shown], axis=0)


def _name(method: Method) -> str:
    return type(method).__module__.rsplit(".", 1)[-1]


def refusals(rows: pd.DataFrame) -> dict[str, str]:
    """id -> reason of every refused row."""
    refused = rows[rows["status"] != OK]
    return dict(zip(refused["id"], refused["reason"], strict=True))


def _without_landmarks(rows: pd.DataFrame) -> list[str]:
    points = Faces(np.empty(0), rows).landmarks
    return rows["id"][~np.isfinite(points).all(axis=(1, 2))].tolist()


def _results(
    archive: FaceArchive,
    rows: pd.DataFrame,
    method: Method,
    work: Callable[[Faces], np.ndarray],
    batch: int,
    forbidden: str | None,
    progress: Progress | None,
) -> Iterator[tuple[np.ndarray | None, str]]:
    """(picture, '') or (None, reason) for each of ``rows``, in order."""
    done = 0
    for faces in archive.batches(batch, rows=rows):
        found = list(_attempt(faces, method, work, forbidden))
        done += len(faces)
        if progress:
            progress(done)
        yield from found


def _attempt(
    faces: Faces, method: Method, work: Callable[[Faces], np.ndarray], forbidden: str | None
) -> Iterator[tuple[np.ndarray | None, str]]:
    """One batch; where the method refuses it with a PictureError, each face alone, to find which one it means."""
    try:
        images = work(faces)
    except PictureError as error:
        if len(faces) == 1:
            yield None, str(error)
            return
        for place in range(len(faces)):
            one = Faces(faces.images[place : place + 1], faces.index.iloc[place : place + 1])
            yield from _attempt(one, method, work, forbidden)
        return
    check_protocol(images, faces, method)
    for image, original in zip(images, faces.images, strict=True):
        reason = fault(image, original, forbidden)
        yield (None, reason) if reason else (to_uint8(image), "")


def check_protocol(images: object, faces: Faces, method: Method) -> None:
    """Raises ProtocolError unless ``images`` are what a method must return for ``faces``."""
    told = f"{type(images).__name__}"
    if isinstance(images, np.ndarray):
        told = f"{images.dtype} {images.shape}"
        if images.dtype == np.float32 and images.shape == faces.images.shape:
            return
    raise ProtocolError(
        f"methods/{_name(method)}.py must return a float32 array of shape {faces.images.shape}; it returned {told}."
    )


def fault(image: np.ndarray, original: np.ndarray, forbidden: str | None) -> str:
    """Why this result may not be written; '' where it may."""
    if not np.isfinite(image).all():
        return "the method returned values that are not finite"
    if np.abs(image).max() > 1.0 + TOLERANCE:
        return f"the method returned values outside [-1, 1] ({image.min():.3g} to {image.max():.3g})"
    if forbidden and np.array_equal(to_uint8(image), to_uint8(original)):
        return forbidden
    return ""


def write(
    output: Path,
    rows: pd.DataFrame,
    known: dict[str, str],
    results: Iterator[tuple[np.ndarray | None, str]],
    about: dict,
    facts: dict,
) -> None:
    """Write the archive that is derived from ``rows``, in their order: refusals where they are ``known``, else what
    ``results`` give, (picture uint8 (H, W, 3), '') or (None, reason). ``about`` goes into every row, ``facts`` beside.
    """
    with ArchiveWriter(output, facts) as out:
        for source in rows.to_dict("records"):
            picture, reason = (None, known[source["id"]]) if source["id"] in known else next(results)
            status = REFUSED if picture is None else OK
            out.add(picture, {**carried(source), **about, "status": status, "reason": reason})


def carried(source: dict) -> dict:
    """What a derived face keeps of its source's row. The landmarks are the source's: the new face may lie elsewhere."""
    kept = {
        name: value
        for name, value in source.items()
        if name in ("id", "identity", "split", "file", "source_landmarks", "method", "variant", "key_id", "seed")
        or name.startswith("attribute.")
    }
    points = {"source_landmarks": source["landmarks"]} if "landmarks" in source else {}
    return {**kept, "source_id": source.get("source_id", source["id"]), **points}

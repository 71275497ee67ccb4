"""Writes all attempts to recover the faces of a cell, with right and wrong keys: one archive for each cell.

An attempt is an image with a name: ``recovered`` (from the anonymized image and the right key alone), ``wrong``
(with another key), ``near.<what>`` (with an almost right key), ``saved`` and ``saved_wrong`` (from the representation
that could be kept), ``file`` (from the sealed record in the file of the image, which no other key opens), ``pasted``
(on the background of the ORIGINAL, as in a published evaluation), ``key`` (anonymized again, all faces with ONE other
key), ``view.<name>`` (other images for a figure). ``number`` counts the images of one name. Except in ``key``, every
face has a key of its own. Rows of the index:

    id                  source_id  attempt    number  status   reason
    p3_0.recovered.0    p3_0       recovered  0       ok
    p3_0.wrong.1        p3_0       wrong      1       ok
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from masquerade.core.errors import ProtocolError
from masquerade.core.images import OK, REFUSED, ArchiveWriter, FaceArchive, Faces, to_uint8
from masquerade.methods import Method
from masquerade.params.protocols import RecoverySettings
from masquerade.pipeline import anonymization
from masquerade.pipeline.anonymization import Refusal

Attempts = dict[tuple[str, int], np.ndarray]
"""(attempt, number) -> images of the same faces, float32 (N, 3, H, W)."""
Progress = Callable[[int], None]


def recover_all(
    originals: FaceArchive,
    anonymized: FaceArchive,
    output: Path,
    method: Method,
    settings: RecoverySettings,
    batch: int,
    progress: Progress | None = None,
) -> None:
    """Write all attempts on the faces of ``anonymized`` to the archive ``output``: one row for each attempt.

    The keys are those of the experiment that made ``anonymized``. A face that cannot be recovered is a refusal with its
    reason. A method that takes a key and recovers nothing is anonymized with other keys alone. ``progress`` is called
    with the number of faces done. Raises ProtocolError if the method recovers nothing and takes no key, or returns
    images of a wrong shape or type.
    """
    able = method.capabilities
    if not (able.invertible or able.saves or able.keys):
        raise ProtocolError(
            f"{anonymized.metadata['method']} is not invertible and takes no key: there is nothing to attempt."
        )
    rows = anonymization.select_subset(anonymized.select(), settings.pictures)
    sources = originals.index.set_index("id", drop=False)
    seed, done = anonymized.metadata["seed"], 0

    def work(faces: Faces, source: Faces) -> Attempts:
        return dict(try_keys(faces, source, method, seed, settings))

    metadata = {name: value for name, value in anonymized.metadata.items() if name != "checksum"}
    with ArchiveWriter(output, metadata) as out:
        for faces in anonymized.batches(batch, rows=rows):
            source = originals.load(rows=sources.loc[faces.index["source_id"]])
            parts = list(anonymization.apply_or_refuse(work, faces, source))
            successes = [attempts for _, attempts in parts if not isinstance(attempts, Refusal)]
            names = list(dict.fromkeys(name for attempts in successes for name in attempts))
            for part, attempts in parts:
                _write(out, part, attempts, method, names or [(_first_attempt(method), 0)])
            done += len(faces)
            if progress:
                progress(done)


def draw_sample(originals: FaceArchive, attempts: FaceArchive, count: int = 6) -> np.ndarray | None:
    """One line for each face, with the original and each attempt: uint8 (H, W, 3). Returns None without attempts."""
    good = attempts.select()
    faces = good["source_id"].drop_duplicates().head(count)
    if faces.empty:
        return None
    sources, lines = originals.index.set_index("id", drop=False), []
    for face in faces:
        pictures = [
            originals.load(rows=sources.loc[[face]]).images,
            attempts.load(rows=good[good["source_id"] == face]).images,
        ]
        lines.append(np.concatenate(list(to_uint8(np.concatenate(pictures))), axis=1))
    return np.concatenate([line for line in lines if line.shape == lines[0].shape], axis=0)


def try_keys(
    faces: Faces, source: Faces, method: Method, seed: int, settings: RecoverySettings
) -> Iterator[tuple[tuple[str, int], np.ndarray]]:
    """((attempt, number), images) of every attempt on the anonymized ``faces``, whose originals are ``source``."""
    able = method.capabilities

    def draw_keys(*purpose: object) -> Sequence[bytes] | None:
        return anonymization.experiment_keys(able.keys, seed, *purpose)(source) if able.keys else None

    right = draw_keys()
    if able.invertible:
        yield ("recovered", 0), method.recover(faces.images, right)
    if able.pastes:
        assert right is not None  # a method that pastes takes a key
        yield ("pasted", 0), method.recover_onto(faces.images, right, source.images)
    for name, images in method.views(source).items():
        yield (f"view.{name}", 0), images
    if able.keys is None:
        if able.saves:
            yield ("saved", 0), method.recover_saved(method.save(source, seed, None), None)
        return
    assert right is not None
    if able.invertible:
        for number in range(settings.wrong_keys):
            yield ("wrong", number), method.recover(faces.images, draw_keys("wrong", number))
        for number in range(settings.near_keys):
            for what, images in method.try_near_keys(faces.images, right, number).items():
                yield (f"near.{what}", number), images
    if able.saves:
        saved = method.save(source, seed, right)
        yield ("saved", 0), method.recover_saved(saved, right)
        yield ("saved_wrong", 0), method.recover_saved(saved, draw_keys("wrong", 0))
    if able.describes:
        yield ("file", 0), method.draw_described(method.describe(source))
    for number in range(settings.other_keys):
        shared_key = able.keys.experiment(seed, "other", number)
        yield ("key", number), method.anonymize(source, seed, [shared_key] * len(source))


def _first_attempt(method: Method) -> str:
    """The attempt of which a face without any gets a row."""
    able = method.capabilities
    return "recovered" if able.invertible else "saved" if able.saves else "key"


def _write(
    out: ArchiveWriter, faces: Faces, attempts: Attempts | Refusal, method: Method, names: list[tuple[str, int]]
) -> None:
    """Add the rows of ``attempts``. ``names``: the attempts on other faces; a refused face gets a row for each one."""
    if isinstance(attempts, Refusal):
        for row in faces.index.to_dict("records"):
            for attempt, number in names:
                out.add(None, _make_row(row, attempt, number) | {"status": REFUSED, "reason": attempts.reason})
        return
    for (attempt, number), images in attempts.items():
        anonymization.check_protocol(images, faces, method)
        for image, row in zip(images, faces.index.to_dict("records"), strict=True):
            reason = anonymization.find_fault(image, image, None)
            picture = None if reason else to_uint8(image)
            status = REFUSED if reason else OK
            out.add(picture, _make_row(row, attempt, number) | {"status": status, "reason": reason})


def _make_row(row: dict, attempt: str, number: int) -> dict:
    name = f"{row['id']}.{attempt}.{number}"
    return anonymization.inherit_columns(row) | {"id": name, "attempt": attempt, "number": number}

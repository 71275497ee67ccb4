"""Every way in which anonymized faces are brought back, by right and by wrong means: one archive of attempts a cell.

An attempt is a picture with a name: ``recovered`` (the anonymized picture and the right key, nothing else), ``wrong``
(another key), ``near.<what>`` (a key that is almost right), ``saved`` and ``saved_wrong`` (from the representation that
could be kept), ``pasted`` (on the ORIGINAL's background, as a published evaluation did), ``key`` (anonymized anew with
another key), ``view.<name>`` (what else a figure shows). ``number`` counts within a name.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade import anonymization
from masquerade.errors import PictureError, ProtocolError
from masquerade.images import OK, REFUSED, ArchiveWriter, FaceArchive, Faces, to_uint8
from masquerade.methods import Method
from masquerade.settings import Settings

Attempts = dict[tuple[str, int], np.ndarray]
"""(attempt, number) -> pictures of the same faces, float32 (N, 3, H, W)."""
Progress = Callable[[int], None]


class RecoverySettings(Settings):
    """How much is tried on each cell."""

    pictures: Annotated[int, Field(ge=0)]
    """Faces of the test split, the same for every method; 0: all."""
    wrong_keys: Annotated[int, Field(ge=1)]
    """Other keys with which each face is recovered."""
    other_keys: Annotated[int, Field(ge=1)]
    """Other keys with which each face is anonymized (diversity: ifadit section 4.4)."""


def attempt_all(
    originals: FaceArchive,
    anonymized: FaceArchive,
    output: Path,
    method: Method,
    settings: RecoverySettings,
    batch: int,
    progress: Progress | None = None,
) -> None:
    """Write all attempts on the faces of ``anonymized`` to the archive ``output``, one row an attempt.

    The key is that of the experiment which made ``anonymized``. What cannot be recovered is a refusal with its reason.
    Raises ProtocolError where the method brings nothing back, or returns pictures of a wrong shape or type.
    """
    if not (method.capabilities.invertible or method.capabilities.saves):
        raise ProtocolError(f"{anonymized.facts['method']} is not invertible: there is nothing to try.")
    rows = anonymization.chosen(anonymized.select(), settings.pictures)
    sources = originals.index.set_index("id", drop=False)
    seed, done = anonymized.facts["seed"], 0
    facts = {name: value for name, value in anonymized.facts.items() if name != "checksum"}
    with ArchiveWriter(output, facts) as out:
        for faces in anonymized.batches(batch, rows=rows):
            source = originals.load(rows=sources.loc[faces.index["source_id"]])
            parts = list(_attempted(faces, source, method, seed, settings))
            names = list(dict.fromkeys(name for _, made in parts if isinstance(made, dict) for name in made))
            for part, attempts in parts:
                _write(
                    out,
                    part,
                    attempts,
                    method,
                    names or [("recovered" if method.capabilities.invertible else "saved", 0)],
                )
            done += len(faces)
            if progress:
                progress(done)


def sample(originals: FaceArchive, attempts: FaceArchive, count: int = 6) -> np.ndarray | None:
    """A row a face: the original, then each attempt: uint8 (rows, columns, 3); None where nothing was recovered."""
    good = attempts.select()
    faces = good["source_id"].drop_duplicates().head(count)
    if faces.empty:
        return None
    known, lines = originals.index.set_index("id", drop=False), []
    for face in faces:
        shown = [
            originals.load(rows=known.loc[[face]]).images,
            attempts.load(rows=good[good["source_id"] == face]).images,
        ]
        lines.append(np.concatenate(list(to_uint8(np.concatenate(shown))), axis=1))
    return np.concatenate([line for line in lines if line.shape == lines[0].shape], axis=0)


def _attempted(
    faces: Faces, source: Faces, method: Method, seed: int, settings: RecoverySettings
) -> Iterator[tuple[Faces, Attempts | str]]:
    """(faces, their attempts), or one face and the reason why it cannot be done."""
    try:
        yield faces, dict(tries(faces, source, method, seed, settings))
    except PictureError as error:
        if len(faces) == 1:
            yield faces, str(error)
            return
        for place in range(len(faces)):
            one, original = (Faces(of.images[[place]], of.index.iloc[[place]]) for of in (faces, source))
            yield from _attempted(one, original, method, seed, settings)


def tries(
    faces: Faces, source: Faces, method: Method, seed: int, settings: RecoverySettings
) -> Iterator[tuple[tuple[str, int], np.ndarray]]:
    """((attempt, number), pictures) of everything that is tried on anonymized ``faces`` of ``source``."""
    able = method.capabilities
    key = able.keys.experiment(seed) if able.keys else None
    if able.invertible:
        yield ("recovered", 0), method.recover(faces.images, key)
    if able.pastes:
        yield ("pasted", 0), method.recover_onto(faces.images, key, source.images)
    for name, images in method.views(source).items():
        yield (f"view.{name}", 0), images
    if able.keys is None:
        if able.saves:
            yield ("saved", 0), method.recover_saved(method.save(source, seed, key), key)
        return
    wrong = [able.keys.experiment(seed, "wrong", number) for number in range(settings.wrong_keys)]
    for number, other in enumerate(wrong):
        yield ("wrong", number), method.recover(faces.images, other)
    for what, images in method.recover_nearly(faces.images, key).items():
        yield (f"near.{what}", 0), images
    if able.saves:
        saved = method.save(source, seed, key)
        yield ("saved", 0), method.recover_saved(saved, key)
        yield ("saved_wrong", 0), method.recover_saved(saved, wrong[0])
    for number in range(settings.other_keys):
        yield ("key", number), method.anonymize(source, seed, able.keys.experiment(seed, "other", number))


def _write(
    out: ArchiveWriter, faces: Faces, attempts: Attempts | str, method: Method, names: list[tuple[str, int]]
) -> None:
    """``names``: the attempts that are made on others; a face that cannot be done is refused in each of them."""
    if isinstance(attempts, str):
        for row in faces.index.to_dict("records"):
            for attempt, number in names:
                out.add(None, _row(row, attempt, number) | {"status": REFUSED, "reason": attempts})
        return
    for (attempt, number), images in attempts.items():
        anonymization.check_protocol(images, faces, method)
        for image, row in zip(images, faces.index.to_dict("records"), strict=True):
            reason = anonymization.fault(image, image, None)
            picture = None if reason else to_uint8(image)
            status = REFUSED if reason else OK
            out.add(picture, _row(row, attempt, number) | {"status": status, "reason": reason})


def _row(row: dict, attempt: str, number: int) -> dict:
    kept = anonymization.carried(row)
    return {**kept, "id": f"{row['id']}.{attempt}.{number}", "attempt": attempt, "number": number}

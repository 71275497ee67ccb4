"""What a recovery finds beside anonymized pictures: their originals, names, salts and checks."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from masquerade.core.errors import MasqueradeError, PictureError
from masquerade.faces.folder import Folder
from masquerade.faces.photographs.names import folder_of, text
from masquerade.faces.photographs.names import names as names_below
from masquerade.params.parameters import Parameters
from masquerade.pipeline import makers, reports, salts
from masquerade.pipeline.makers import Maker
from masquerade.pipeline.photographs import choosing
from masquerade.pipeline.release import Original, Row, originals_of
from masquerade.pipeline.reports import REPORT
from masquerade.pipeline.salts import PersonalKey


def originals(parameters: Parameters, pictures: Path, source: Path) -> dict[str, Original]:
    """Name of an anonymized picture, without its ending -> its original in the photographs at ``source``.

    Raises MasqueradeError if none is there.
    """
    names = _names_when_written(pictures)
    photographs = choosing.photographs_at(parameters, source, faces="all", alignment="ffhq")
    known = originals_of(photographs, parameters.image.size, set(names.values()))
    faces = {stem: known[name] for stem, name in names.items() if name in known}
    if not faces:
        raise MasqueradeError(f"{source} holds no original of these pictures. Name the folder that was anonymized.")
    return faces


def _names_when_written(pictures: Path) -> dict[str, str]:
    """Name of an anonymized picture -> the name that it was written with, both without an ending."""
    folder, names = folder_of(pictures), {}
    written = reports.Written(reports.read(folder / REPORT))
    for name in map(text, names_below(pictures)):
        with suppress(PictureError):  # the report of the recovery has the reason
            row = written.row(name)
            names[PurePosixPath(name).stem] = PurePosixPath(row["output"] if row else name).stem
    return names


def facts_of(folder: Folder, maker: Maker, key: PersonalKey, no_salt: bool) -> Callable[[Row], Row]:
    """Finds salt and check of an anonymized picture: in its PNG, or in the report beside it, if it lies in a folder.

    ``no_salt``: a picture without a known salt was anonymized without one. Raises PictureError if anything else than
    ``maker`` or ``key`` made the picture, and if its salt is lost.
    """
    lies = bool(folder.params.path)  # and is not in memory
    written = reports.Written(reports.read(folder_of(folder.location) / REPORT) if lies else [])
    unsalted = not any(row.get(salts.SALT) for row in written)

    def facts(row: Row) -> Row:
        texts = folder.texts(row["file_id"])
        listed = None if salts.states(texts) else written.row(row["file"])
        stated = salts.stated(texts) if listed is None else listed
        maker.check(stated.get(makers.MAKER, ""))
        without = salts.states(texts) or (listed is not None and unsalted) or no_salt
        salt, check = stated.get(salts.SALT, ""), stated.get(salts.CHECK, "")
        salts.check_known(salt, without)
        key.verify(salt, check)
        return {salts.SALT: salt, salts.CHECK: check}

    return facts

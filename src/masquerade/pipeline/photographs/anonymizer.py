"""A method with its networks: it anonymizes and recovers single photographs and folders of them."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from PIL import Image

from masquerade.core import files
from masquerade.core.errors import KeyFormatError, MasqueradeError, ParameterError
from masquerade.core.images import FaceArchive, MemoryArchive
from masquerade.faces.folder import Folder
from masquerade.methods import Method
from masquerade.params.parameters import Parameters
from masquerade.pipeline import anonymization, release
from masquerade.pipeline.inspection import MARGIN, Inspector, Threshold
from masquerade.pipeline.makers import Maker
from masquerade.pipeline.outputs import FolderOutput, MemoryOutput, Output
from masquerade.pipeline.photographs import batches, calls, choosing, continuing, placing, recovering, single
from masquerade.pipeline.photographs.choosing import Several, Small
from masquerade.pipeline.photographs.contents import Contents
from masquerade.pipeline.photographs.single import AnonymizedPhotograph, Picture
from masquerade.pipeline.release import Row
from masquerade.pipeline.salts import PersonalKey
from masquerade.pipeline.whole_photographs import WholePhotographs

Key = str | bytes
"""A secret: text, or the content of a key file."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Batch:
    """The results of a folder. ``rows``: those of report.csv. ``statement``: facts of the method, such as epsilon."""

    rows: list[Row]
    statement: dict[str, object] = field(default_factory=dict)


class Anonymizer:
    """A method whose networks are loaded, for any number of photographs. `load` makes it.

    Nothing is returned that a recognizer still takes for somebody of the photograph, and nothing such is written
    without the option ``keep_recognizable`` of `anonymize_folder`.

    Examples:
        >>> import masquerade
        >>> from skimage.data import astronaut
        >>> weak = masquerade.load("gaussian_blur", "size_7", scale="mini")
        >>> weak.threshold.distance
        0.65
        >>> weak.anonymize(astronaut()[:300, 80:380])
        Traceback (most recent call last):
        masquerade.core.errors.StillRecognized: still recognized (distance ...; threshold 0.650)
        >>> weak.anonymize("CHANGELOG.md")
        Traceback (most recent call last):
        masquerade.core.errors.PictureError: not a picture in a format that is read (JPEG, PNG, WEBP, TIFF, BMP)
    """

    def __init__(self, root: Path, parameters: Parameters, method: Method, maker: Maker, seed: int | None):
        self._root, self._parameters, self._method, self._seed = root, parameters, method, seed
        self._judge = Inspector()
        self.maker = maker
        """Method, variant, scale, and a hash of the networks."""

    def __repr__(self) -> str:
        return f"<Anonymizer {self.maker}>"

    def __reduce__(self) -> str:
        raise MasqueradeError("A loaded method cannot be sent to another process. Call masquerade.load in each worker.")

    @property
    def title(self) -> str:
        """The name of the method in its paper, with its name and variant here."""
        mark = ", a latent stand-in" if self.maker.method in self._parameters.latent_stand_ins else ""
        return f"{self._method.title} ({self.maker.method}/{self.maker.variant}{mark})"

    @property
    def takes_key(self) -> bool:
        """Whether each face is anonymized with a key."""
        return self._method.capabilities.keys is not None

    @property
    def caution(self) -> str:
        """What to know before the results are used, such as terms of use; '' for nothing."""
        return (self._parameters.caution or "").strip()

    @cached_property
    def threshold(self) -> Threshold:
        """The distance up to which a result counts as recognized, and where it comes from."""
        return self._published_threshold.with_margin(MARGIN)

    @cached_property
    def _published_threshold(self) -> Threshold:
        return choosing.judge_threshold(self._root, self._parameters)

    @calls.call()
    def anonymize(
        self, picture: Picture, *, faces: Literal["one", "largest", "all"] = "one", small: Small | None = None,
        key: Key | None = None, salted: bool | None = None, checked: bool | None = None, large: bool = False,
    ) -> AnonymizedPhotograph:  # fmt: skip
        """Anonymize one photograph.

        ``picture``: a path, a PIL image, or an array uint8 (H, W, 3) of RGB. ``faces``: the photograph shows ``one``
        face; or take the ``largest``; or ``all``, and the image of the result is the whole photograph. ``small``: with
        ``all``, ``hide`` under coarse blocks the faces that are too small for a method or cannot be cut out (the
        default), or ``refuse`` the photograph. ``key``: for a method with keys. ``salted``, ``checked``: whether each
        face gets a salt, and a check of the key (default: yes). ``large``: with the generator's pictures of 1024
        pixels.

        Raises StillRecognized, NoFace, SeveralFaces or FaceLeft (all of PictureError, which also says that something
        is no picture), and KeyFormatError for a key of the wrong form.
        """
        choosing.check_choice("faces", faces, single.CHOICES)
        choosing.check_faces(None, faces == "all", small)
        folder, output = self._photograph(picture, single.CHOICES[faces]), MemoryOutput()
        work, publisher, facts = self._steps(
            folder, output, self._personal_key(key), salted, checked, faces == "all", small != "refuse", large
        )
        batch = self._in_memory(folder, work, publisher, facts)
        return single.result(batch.rows, output, batch.statement)

    @calls.call()
    def anonymize_folder(
        self, source: Path, output: Path, *, faces: Several | None = None, whole: bool = False,
        small: Small | None = None, key: Key | None = None, salted: bool | None = None, checked: bool | None = None,
        large: bool = False, keep_recognizable: bool = False, overwrite: bool = False, go_on: bool = False,
        readers: int = 0, progress: Progress = lambda text: None,
    ) -> Batch:  # fmt: skip
        """Anonymize a folder of photographs, or one file, into ``output``: one PNG for each face, and report.csv.

        ``faces``: by default ``refuse``, and with ``whole`` ``all``. ``whole``: also write whole photographs,
        in which ``small`` faces are hidden by default (`anonymize`).
        ``keep_recognizable``: write what is still recognized, too. ``overwrite``, ``go_on``: the folder holds results
        to replace, or to keep and complete. ``readers``: so many processes find the faces beside this one, for which a
        script needs ``if __name__ == "__main__"``. ``progress`` is called with a text. The other options are those of
        `anonymize`. Raises MasqueradeError; a photograph that is refused has a row with the reason.
        """
        source, output = files.expand_home(source), files.expand_home(output)
        choosing.check_faces(faces, whole, small)
        batches.check_output(output, source, overwrite, go_on)
        personal = self._personal_key(key)
        folder = self._photographs(source, faces or ("all" if whole else "refuse"))
        work, publisher, facts = self._steps(
            folder, FolderOutput(output / placing.UNFINISHED), personal, salted, checked, whole, small != "refuse",
            large, keep_recognizable, progress,
        )  # fmt: skip
        with batches.reserve(output, overwrite, go_on):
            contents, kept = Contents(output), []
            if go_on:
                kept = continuing.resume(output, folder, contents, self._method, self.maker, personal, large, whole)
            contents.begin({row["file"] for row in kept})
            return Batch(*batches.process(
                folder, output, self._parameters.image.size, work, self._method.observes, progress, publisher, facts,
                kept=kept, readers=readers, contents=contents,
            ))  # fmt: skip

    @calls.call()
    def recover(self, picture: Picture, *, key: Key, salt: str | None = None) -> Image.Image:
        """The face that a picture showed before it was anonymized with ``key``.

        ``picture``: the face of a result, as of `anonymize`. ``salt``: of that face; None takes the one that the
        picture, its file or the report.csv beside it states, and '' says that it has none. Raises WrongKey if the check
        of the picture says so; without a check a wrong key gives somebody else. Raises PictureError if the salt is
        lost or another method made the picture, and ParameterError for a method that recovers nothing with a key.
        """
        folder = self._photograph(picture, "refuse", "none", single.texts(picture, salt))
        output = MemoryOutput()
        work, publisher, facts = self._steps_back(folder, output, key, no_salt=salt == "")
        return single.recovered(self._in_memory(folder, work, publisher, facts).rows, output)

    @calls.call()
    def recover_folder(
        self, pictures: Path, output: Path, *, key: Key, originals: Path | None = None, no_salt: bool = False,
        overwrite: bool = False, progress: Progress = lambda text: None,
    ) -> Batch:  # fmt: skip
        """Recover the faces of a folder of anonymized pictures, or of one file, into ``output``, with report.csv.

        ``originals``: the photographs before, to say how near the results come. ``no_salt``: pictures whose salt is not
        known have none. Raises MasqueradeError; a picture that is refused has a row with the reason.
        """
        pictures, output = files.expand_home(pictures), files.expand_home(output)
        batches.check_output(output, pictures, overwrite)
        folder = self._photographs(pictures, "refuse", alignment="none")
        work, publisher, facts = self._steps_back(
            folder, FolderOutput(output / placing.UNFINISHED), key, no_salt, originals and files.expand_home(originals)
        )
        with batches.reserve(output, overwrite):
            return Batch(*batches.process(
                folder, output, self._parameters.image.size, work, False, progress, publisher, facts, batches.ours,
            ))  # fmt: skip

    def check_recovers(self) -> None:
        """Raises ParameterError for a method that recovers no face with a key."""
        if not (self._method.capabilities.invertible and self.takes_key):
            raise ParameterError(
                f"'{self.maker.method}' has no key that recovers a face. Choose an invertible method with keys."
            )

    def _personal_key(self, key: Key | None) -> PersonalKey | None:
        """The key of a person; None for a method without keys. Raises KeyFormatError."""
        kind = self._method.capabilities.keys
        if kind is None:
            if key is not None:
                raise ParameterError(f"'{self.maker.method}' takes no key. Leave it out.")
            return None
        if not isinstance(key, str | bytes):
            raise KeyFormatError(
                f"The method '{self.maker.method}' needs a key: text, or the bytes of a key file. "
                + ("There is none." if key is None else f"It was given a value of the type {type(key).__name__}.")
            )
        return PersonalKey(kind, key.encode(errors="surrogateescape") if isinstance(key, str) else key)

    def _photographs(self, source: Path | None, faces: Several, alignment: str = "ffhq") -> Folder:
        return choosing.photographs_at(self._parameters, source, faces, alignment)

    def _photograph(
        self, picture: Picture, faces: Several, alignment: str = "ffhq", stated: Mapping[str, str] | None = None
    ) -> Folder:
        """One photograph. ``stated``: texts in place of those of its file. Raises PictureError if it is none."""
        path = single.path_of(picture)
        if path and stated is None:
            return self._photographs(path, faces, alignment)
        params = self._photographs(None, faces, alignment).params
        return single.Photograph(params, single.pixels_of(picture, params.megapixels), stated or {})

    def _in_memory(
        self, folder: Folder, work: batches.Work, publisher: release.Anonymized | release.Recovered,
        facts: Callable[[Row], Row] | None,
    ) -> Batch:  # fmt: skip
        """The results of one photograph, of which nothing is written."""
        records = folder.records(self._parameters.image.size, 0, workers=1)
        (rows, statement, _), *_ = batches.release_parts(records, work, True, lambda text: None, publisher, facts)
        return Batch(rows, statement)

    def _steps(
        self, folder: Folder, output: Output, personal: PersonalKey | None, salted: bool | None, checked: bool | None,
        whole: bool, hide: bool, large: bool, keep_recognizable: bool = False, progress: Progress = lambda text: None,
    ) -> tuple[batches.Work, release.Anonymized, Callable[[Row], Row] | None]:  # fmt: skip
        """What anonymizes faces, what releases them, and what gives the salt and the check of a face."""
        kind = self._method.capabilities.keys
        for option in [name for name, wanted in (("salt", salted), ("key-check", checked)) if wanted and not kind]:
            raise ParameterError(f"'{self.maker.method}' takes no key, so it needs no {option}. Leave --{option} out.")
        facts = personal.new_facts(self._seed, salted is not False, checked is not False) if personal else None
        seed = secrets.randbits(63) if self._seed is None else self._seed

        def work(originals: FaceArchive, results: MemoryArchive) -> None:
            count = len(originals.select())
            anonymization.anonymize(
                originals, results, self._method, self.maker.variant, None, seed, batches.BATCH,
                personal and personal.of_faces, lambda done: progress(f"Anonymizing: {done} of {count} faces"),
                for_release=True,
            )  # fmt: skip

        return work, self._release(folder, output, keep_recognizable, whole, large, hide), facts

    def _steps_back(
        self, folder: Folder, output: Output, key: Key, no_salt: bool, originals: Path | None = None
    ) -> tuple[batches.Work, release.Recovered, Callable[[Row], Row]]:
        """What recovers faces, what releases them, and what finds the salt and the check of a face."""
        self.check_recovers()
        personal = self._personal_key(key)
        assert personal is not None  # the method takes a key
        known = recovering.originals(self._parameters, folder.location, originals) if originals else {}

        def work(anonymized: FaceArchive, results: MemoryArchive) -> None:
            anonymization.recover(anonymized, results, self._method, personal.of_faces, batches.BATCH)

        publisher = release.Recovered(output, self._judge, self._published_threshold, known)
        return work, publisher, recovering.facts_of(folder, self.maker, personal, no_salt)

    def _release(
        self, folder: Folder, output: Output, keep_recognizable: bool, whole: bool, large: bool, hide: bool
    ) -> release.Anonymized:
        """How faces are released into ``output``. Raises ParameterError if the method has no ``large`` pictures."""
        enlarge = self._method.enlarge() if large or whole else None
        if large and enlarge is None:
            raise ParameterError(
                f"{self._method.title} has no pictures of 1024 pixels here: those come from a method with the "
                "generator of the scale photo, such as falco, riddle and lreorg. Leave --large out."
            )
        photographs = (
            WholePhotographs(folder, output, self._judge, self.threshold, keep_recognizable, hide) if whole else None
        )
        return release.Anonymized(
            output, self._judge, self.threshold, keep_recognizable, photographs, enlarge, large, self.maker,
            self.takes_key, self._method.resample,
        )  # fmt: skip

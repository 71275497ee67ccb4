"""A method with its networks: it anonymizes and recovers single photographs and folders of them."""

import dataclasses
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from PIL import Image

from masquerade.core import discovery, files, seeding
from masquerade.core.errors import (
    KeyFormatError,
    MasqueradeError,
    ParameterError,
    explain_missing_packages,
    suggest_nearest,
)
from masquerade.core.images import FaceArchive, MemoryArchive
from masquerade.faces.folder import Folder
from masquerade.methods import Method
from masquerade.params import repository
from masquerade.params.parameters import Parameters
from masquerade.pipeline import anonymization, method_files, release
from masquerade.pipeline.image_texts import PersonalKey, ProvenanceTag
from masquerade.pipeline.inspection import MARGIN, Inspector, ReleaseRule, Threshold
from masquerade.pipeline.outputs import FolderOutput, MemoryOutput, Output
from masquerade.pipeline.photographs import batches, choosing, earlier_runs, single
from masquerade.pipeline.photographs.batches import Part, Steps
from masquerade.pipeline.photographs.choosing import Batch, FolderOptions, LoadOptions, RecoveryOptions, Several, Small
from masquerade.pipeline.photographs.earlier_runs import Contents
from masquerade.pipeline.photographs.single import AnonymizedPhotograph, Picture
from masquerade.pipeline.whole_photographs import WholePhotographs

Key = str | bytes
"""A secret: text, or the content of a key file."""


_TURN = threading.RLock()


@cache
def _first_process() -> int:
    """The process that was the first to load networks: this one, or the one of which it is a fork."""
    return os.getpid()


@contextmanager
def call() -> Iterator[None]:
    """A call of a program. Threads take turns, because the detectors and the networks are shared and hold state.

    Raises errors of libraries that a person can mend as MasqueradeError, as the command line does, and MasqueradeError
    in a fork of a process that loaded networks: the threads of PyTorch and OpenCV are missing there, and it would wait
    for them forever.
    """
    if _first_process() != os.getpid():
        raise MasqueradeError(
            f"This process is a fork of process {_first_process()}, which had called masquerade.load. A fork lacks the "
            "threads that compute. Call masquerade.load in each worker, and in no process before the fork: gunicorn "
            'without --preload, multiprocessing with get_context("spawn").'
        )
    with _TURN, explain_missing_packages(), seeding.explain_nondeterminism():
        yield


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
        masquerade.core.errors.PictureError: not an image in a format that is read (JPEG, PNG, WEBP, TIFF, BMP)
    """

    def __init__(self, root: Path, parameters: Parameters, method: Method, tag: ProvenanceTag, seed: int | None):
        self._root, self._parameters, self._method, self._seed = root, parameters, method, seed
        self._judge = Inspector()
        self.maker = tag
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
        return choosing.find_threshold(self._root, self._parameters)

    @call()
    def anonymize(
        self, picture: Picture, *, faces: Literal["one", "largest", "all"] = "one", small: Small | None = None,
        key: Key | None = None, salted: bool | None = None, record: bool = False, large: bool = False,
    ) -> AnonymizedPhotograph:  # fmt: skip
        """Anonymize one photograph.

        ``picture``: a path, a PIL image, or an array uint8 (H, W, 3) of RGB. ``faces``: the photograph shows ``one``
        face; or take the ``largest``; or ``all``, and the image of the result is the whole photograph. ``small``: with
        ``all``, ``hide`` under coarse blocks the faces that are too small for a method or cannot be cut out (the
        default), or ``refuse`` the photograph. ``key``: for a method with keys. ``salted``: whether each face gets a
        salt (default: yes). ``record``: each image gets a record of the original face, sealed under its key, from which
        the key brings the face back (default: no). ``large``: with the generator's images of 1024 pixels.

        Raises StillRecognized, NoFace, SeveralFaces or FaceLeft (all of PictureError, which also says that something
        is no image), and KeyFormatError for a key of the wrong form.
        """
        choosing.check_choice("faces", faces, single.CHOICES)
        choosing.check_faces(None, faces == "all", small)
        folder, output = self._photograph(picture, single.CHOICES[faces]), MemoryOutput()
        options = FolderOptions(small=small, salted=salted, record=record, large=large)
        steps = self._anonymizing(folder, output, self._personal_key(key), faces == "all", options)
        part = self._process_in_memory(folder, steps)
        return single.make_result(part.rows, output, part.statement)

    @call()
    def anonymize_folder(
        self, source: Path, output: Path, *, faces: Several | None = None, whole: bool = False, key: Key | None = None,
        overwrite: bool = False, options: FolderOptions | None = None,
    ) -> Batch:  # fmt: skip
        """Anonymize a folder of photographs, or one file, into ``output``: one PNG for each face, and report.csv.

        ``faces``: by default ``refuse``, and with ``whole`` ``all``. ``whole``: also write whole photographs,
        in which small faces are hidden by default (`anonymize`). ``overwrite``: the folder holds results to replace.
        ``options``: the rarer ones. Raises MasqueradeError; a photograph that is refused has a row with the reason.
        """
        options = options or FolderOptions()
        source, output = files.expand_home(source), files.expand_home(output)
        choosing.check_faces(faces, whole, options.small)
        batches.check_output(output, source, overwrite, options.go_on)
        personal = self._personal_key(key)
        folder = self._photographs(source, faces or ("all" if whole else "refuse"))
        steps = self._anonymizing(folder, FolderOutput(output / batches.UNFINISHED), personal, whole, options)
        with batches.reserve(output, overwrite, options.go_on):
            contents, done = Contents(output), []
            if options.go_on:
                done = earlier_runs.resume(contents, folder, self._method, self.maker, personal, whole, options)
            contents.begin({row["file"] for row in done})
            return Batch(*batches.process(
                folder, output, steps, done=done, readers=options.readers, remember=contents.add
            ))  # fmt: skip

    @call()
    def recover(self, picture: Picture, *, key: Key, salt: str | None = None, from_image: bool = False) -> Image.Image:
        """The face that an image showed before it was anonymized with ``key``.

        It comes from the sealed record in the image's file, if there is one; otherwise, and with ``from_image``, from
        the image alone. Which of both it was stands in the ``info`` of the result: ``recovered_from``, "file" or
        "image".

        ``picture``: the face of a result, as of `anonymize`. ``salt``: of that face; None takes the one that the
        image, its file or the report.csv beside it states, and '' says that it has none. Raises WrongKey if the check
        of the image says so, and SealError if its record does not open; without check and record a wrong key gives
        somebody else. Raises PictureError if the salt is lost or another method made the image, and ParameterError for
        a method that recovers nothing with a key.
        """
        folder = self._photograph(picture, "refuse", "none", single.read_texts(picture, salt))
        output = MemoryOutput()
        options = RecoveryOptions(no_salt=salt == "", from_image=from_image)
        steps = self._recovering(folder, output, key, options, {})
        return single.read_recovered(self._process_in_memory(folder, steps).rows, output)

    @call()
    def recover_folder(
        self, pictures: Path, output: Path, *, key: Key, overwrite: bool = False,
        options: RecoveryOptions | None = None,
    ) -> Batch:  # fmt: skip
        """Recover the faces of a folder of anonymized images, or of one file, into ``output``, with report.csv.

        ``options``: the rarer ones. Raises MasqueradeError; an image that is refused has a row with the reason.
        """
        options = options or RecoveryOptions()
        pictures, output = files.expand_home(pictures), files.expand_home(output)
        batches.check_output(output, pictures, overwrite)
        folder = self._photographs(pictures, "refuse", alignment="none")
        face_originals = {}
        if options.originals:
            self.check_recovers()
            face_originals = earlier_runs.find_originals(
                self._parameters, folder.location, files.expand_home(options.originals)
            )
        steps = self._recovering(folder, FolderOutput(output / batches.UNFINISHED), key, options, face_originals)
        with batches.reserve(output, overwrite):
            return Batch(*batches.process(folder, output, steps, skip=batches.is_not_a_face))

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
        return choosing.open_photographs(self._parameters, source, faces, alignment)

    def _photograph(
        self, picture: Picture, faces: Several, alignment: str = "ffhq", stated: Mapping[str, str] | None = None
    ) -> Folder:
        """One photograph. ``stated``: texts in place of those of its file. Raises PictureError if it is none."""
        path = single.find_path(picture)
        if path and stated is None:
            return self._photographs(path, faces, alignment)
        params = self._photographs(None, faces, alignment).params
        return single.Photograph(params, single.read_pixels(picture, params.megapixels), stated or {})

    def _process_in_memory(self, folder: Folder, steps: Steps) -> Part:
        """The results of one photograph, of which nothing is written."""
        records = folder.records(steps.size, 0, workers=1)
        part, *_ = batches.release_parts(records, dataclasses.replace(steps, together=True))
        return part

    def _anonymizing(
        self, folder: Folder, output: Output, personal: PersonalKey | None, whole: bool, options: FolderOptions
    ) -> Steps:
        """What anonymizes the faces of ``folder`` and releases them into ``output``."""
        kind, method = self._method.capabilities.keys, self._method
        for option, wanted in (("salt", options.salted), ("key-check", options.checked)):
            if wanted and not kind:
                raise ParameterError(
                    f"'{self.maker.method}' takes no key, so it needs no {option}. Leave --{option} out."
                )
        if options.record and not method.capabilities.describes:
            able = [
                name for name in discovery.list_programs() if discovery.load("methods", name).capabilities.describes
            ]
            raise ParameterError(
                f"'{self.maker.method}' stores no record of the original faces. These do: {', '.join(able)}."
            )
        find_facts = None
        if personal:
            find_facts = personal.draw_facts(self._seed, options.salted is not False, options.checked is not False)
        seed = secrets.randbits(63) if self._seed is None else self._seed

        def work(originals: FaceArchive, results: MemoryArchive) -> None:
            count = len(originals.select())
            plan = anonymization.Plan(self.maker.variant, seed, batches.BATCH, for_release=True)
            anonymization.anonymize(
                originals, results, method, originals.select(status=None), plan,
                anonymization.GivenKeys(personal.of_faces) if personal else None,
                lambda done: options.progress(f"Anonymizing: {done} of {count} faces"),
            )  # fmt: skip

        rule = ReleaseRule(self._judge, self.threshold, options.keep_recognizable)
        photographs = WholePhotographs(folder, output, rule, options.small != "refuse") if whole else None
        publisher = release.Anonymized(
            output, rule, method, self.maker, photographs, options.large, personal if options.record else None
        )
        return Steps(work, publisher, find_facts, self._parameters.image.size, method.observes, options.progress)

    def _recovering(
        self, folder: Folder, output: Output, key: Key, options: RecoveryOptions,
        originals: Mapping[str, release.Original],
    ) -> Steps:  # fmt: skip
        """What recovers the faces of ``folder`` and releases them into ``output``. ``originals``: those known."""
        self.check_recovers()
        personal = self._personal_key(key)
        assert personal is not None  # the method takes a key

        def work(anonymized: FaceArchive, results: MemoryArchive) -> None:
            anonymization.recover(
                anonymized, results, self._method, personal.of_faces, batches.BATCH, maker=str(self.maker)
            )

        publisher = release.Recovered(output, self._judge, self._published_threshold, originals)
        find_facts = earlier_runs.find_facts(folder, self.maker, personal, options.no_salt, options.from_image)
        return Steps(work, publisher, find_facts, self._parameters.image.size, progress=options.progress)


@call()
def load(
    method: str, variant: str | None = None, *, scale: str | None = None, checkpoint: Path | str | None = None,
    seed: int | None = None, root: Path | str | None = None, options: LoadOptions | None = None,
) -> Anonymizer:  # fmt: skip
    """Load a method and its networks once, for any number of photographs.

    ``method``, ``variant``: their names in params.yaml; by default the first variant. ``scale``: whose networks; by
    default ``photo`` if they are there, else that of params.yaml. ``checkpoint``: a file of the method's own network,
    in place of that of the scale. ``seed``: makes results predictable, for experiments alone. ``root``: the clone; by
    default the current folder. ``options``: the rarer ones, such as the attributes to keep.

    Raises ParameterError for an unknown name or option, CheckpointError for a missing or unfitting network, and
    MissingPackage.
    """
    if not isinstance(seed, int | None):
        raise ParameterError(f"seed is {seed!r}; it must be a whole number, or None.")
    options, method = options or LoadOptions(), str(method)
    folder = repository.find_repository(files.expand_home(str(root)) if root else None)
    folder = folder.absolute()  # it stays when the program changes its folder
    if method not in (names := discovery.list_programs()):
        raise ParameterError(f"There is no '{method}' in methods/. {suggest_nearest(method, names)}")
    parameters, sentence = method_files.choose_scale(folder, method, variant, scale)
    options.say(sentence)
    weights = files.expand_home(str(checkpoint)).absolute() if checkpoint else None
    built, tag = choosing.build_method(folder, parameters, method, variant, seed is None, weights, options)
    anonymizer = Anonymizer(folder, parameters, built, tag, seed)
    if anonymizer.caution:
        options.say(f"Scale {parameters.scale}: {anonymizer.caution}")
    return anonymizer

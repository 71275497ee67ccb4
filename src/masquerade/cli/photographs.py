"""The commands ``masquerade anonymize`` and ``masquerade recover``.

A key comes from a file or a prompt, never from the command line.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from masquerade.cli.common import AnyRoot, print_error, read_options

if TYPE_CHECKING:
    from masquerade.pipeline.photographs.anonymizer import Anonymizer

Method = Annotated[
    str,
    typer.Option("--method", help="The method that anonymizes: the name of a block under `methods:` in params.yaml."),
]
Source = Annotated[Path, typer.Option("--input", help="The folder with the images, or a single image.", exists=True)]
Output = Annotated[Path, typer.Option("--output", help="The folder into which the results and report.csv are written.")]
Variant = Annotated[
    str | None, typer.Option("--variant", help="The variant of the method. Default: the first one in params.yaml.")
]
KeyFile = Annotated[
    Path | None, typer.Option("--key-file", help="The file that holds the key. Default: you are asked for the key.")
]
Scale = Annotated[
    str | None,
    typer.Option("--scale", help="The scale whose networks are used. Default: `photo`, if its networks are installed."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Write into the output folder even if it is not empty.")]


@dataclass(frozen=True)
class AnonymizeOptions:
    """The options of `anonymize`."""

    method: Method
    pictures: Source
    output: Output
    variant: Variant = None
    faces: Annotated[
        Literal["refuse", "largest", "all"] | None,
        typer.Option(
            help="What happens to an image of several people: refuse it, take its largest face, or take all "
            "faces. Default: `refuse`, or `all` with `--photographs`."
        ),
    ] = None
    whole: Annotated[
        bool, typer.Option("--photographs", help="Also write the whole photographs, in which every face is replaced.")
    ] = False
    small: Annotated[
        Literal["hide", "refuse"] | None,
        typer.Option(
            help="What happens, with `--photographs`, to faces that are too small or cannot be cut out: hide them "
            "under coarse blocks, or refuse their photograph. Default: `hide`."
        ),
    ] = None
    keep_recognizable: Annotated[
        bool,
        typer.Option(
            "--keep-recognizable",
            help="Also write results in which dlib still recognizes the original person. They are refused otherwise.",
        ),
    ] = False
    hide: Annotated[
        str | None,
        typer.Option(
            help="The attributes that a method with keywords (LReOrg) hides, separated by commas, such as "
            "`identity,age`. Default: those of the variant."
        ),
    ] = None
    keep: Annotated[
        str | None,
        typer.Option(
            help="The attributes that it keeps, separated by commas; an empty text keeps nothing. Default: those "
            "of the variant."
        ),
    ] = None
    large: Annotated[
        bool, typer.Option("--large", help="Also write the generator's images of 1024 pixels, into the folder large/.")
    ] = False
    seed: Annotated[
        int | None,
        typer.Option(
            help="A seed that makes the result repeatable, and therefore predictable: for experiments only. "
            "Default: randomness of the operating system."
        ),
    ] = None
    key_file: KeyFile = None
    salt: Annotated[
        bool | None,
        typer.Option(
            help="Store a random salt in each image and mix it into the key, so that faces under one key cannot "
            "be linked. Default: on."
        ),
    ] = None
    key_check: Annotated[
        bool | None,
        typer.Option(
            help="Store a check of the key beside the salt, with which `recover` recognizes a wrong key. Default: on."
        ),
    ] = None
    record: Annotated[
        bool,
        typer.Option(
            "--record",
            help="Store a record of each original face in its image, sealed under the key. `recover` draws the face "
            "from it; without it, from the image alone, which rarely succeeds.",
        ),
    ] = False
    scale: Scale = None
    overwrite: Overwrite = False
    go_on: Annotated[bool, typer.Option("--continue", help="Continue a batch that was interrupted.")] = False
    root: AnyRoot = Path()


@read_options
def anonymize(given: AnonymizeOptions) -> None:
    """Anonymize the faces in photographs, and write one PNG for each face and a report.csv.

    A result in which dlib's face recognizer still recognizes the original person is not written. The exit status is 0
    if every file has all of its results, 3 if some results are missing, and 1 after an error or without any result.
    """
    from masquerade.cli import outcome
    from masquerade.pipeline.photographs import anonymizer, batches
    from masquerade.pipeline.photographs.choosing import FolderOptions, LoadOptions

    batches.check_output(given.output, given.pictures, given.overwrite, given.go_on)
    method = anonymizer.load(
        given.method,
        given.variant,
        scale=given.scale,
        seed=given.seed,
        root=given.root,
        options=LoadOptions(hide=_split_words(given.hide), keep=_split_words(given.keep), say=_warn),
    )
    key = _read_key(given.key_file, confirm=True) if method.takes_key else None
    _announce(method, seeded=given.seed is not None)
    with Console(stderr=True).status("") as status:
        options = FolderOptions(
            small=given.small,
            salted=given.salt,
            checked=given.key_check,
            record=given.record,
            large=given.large,
            keep_recognizable=given.keep_recognizable,
            go_on=given.go_on,
            readers=batches.count_readers(given.pictures),
            progress=status.update,
        )
        batch = method.anonymize_folder(
            given.pictures,
            given.output,
            faces=given.faces,
            whole=given.whole,
            key=key,
            overwrite=given.overwrite,
            options=options,
        )
    outcome.summarize(batch.rows, given.output, method.title, batch.statement, "anonymized")


@dataclass(frozen=True)
class RecoverOptions:
    """The options of `recover`."""

    method: Method
    pictures: Source
    output: Output
    variant: Annotated[
        str | None,
        typer.Option("--variant", help="The variant. Default: the one that the images name, else the first."),
    ] = None
    originals: Annotated[
        Path | None,
        typer.Option(
            help="The original photographs. If they are given, the report says how similar each result is to its "
            "original.",
            exists=True,
        ),
    ] = None
    key_file: KeyFile = None
    no_salt: Annotated[
        bool,
        typer.Option(
            "--no-salt",
            help="Assume that images without a known salt were anonymized without one. They are refused otherwise.",
        ),
    ] = False
    from_image: Annotated[
        bool,
        typer.Option("--from-image", help="Recover from the image alone, also if its file holds a sealed record."),
    ] = False
    scale: Annotated[
        str | None,
        typer.Option(
            "--scale", help="The scale whose networks are used. Default: the one that the images name, else `photo`."
        ),
    ] = None
    overwrite: Overwrite = False
    root: AnyRoot = Path()


@read_options
def recover(given: RecoverOptions) -> None:
    """Recover the faces that an invertible method has anonymized, with the key.

    They come from the sealed records in the files (`anonymize --record`), else from the anonymized images alone.
    An image is refused if its salt is lost, if the key is wrong, or if another program anonymized it. The exit status
    is 0 if every file has all of its results, 3 if some results are missing, and 1 after an error or without any
    result.
    """
    from masquerade.cli import outcome
    from masquerade.pipeline import image_texts
    from masquerade.pipeline.photographs import anonymizer, batches
    from masquerade.pipeline.photographs.choosing import LoadOptions, RecoveryOptions

    batches.check_output(given.output, given.pictures, given.overwrite)
    scale, variant = given.scale, given.variant
    tag = image_texts.find_tag(given.pictures)
    if tag and tag.method == given.method:
        scale, variant = scale or tag.scale, variant or tag.variant
    method = anonymizer.load(given.method, variant, scale=scale, root=given.root, options=LoadOptions(say=_warn))
    method.check_recovers()
    with Console(stderr=True).status("") as status:
        batch = method.recover_folder(
            given.pictures,
            given.output,
            key=_read_key(given.key_file, confirm=False),
            overwrite=given.overwrite,
            options=RecoveryOptions(
                originals=given.originals,
                no_salt=given.no_salt,
                from_image=given.from_image,
                progress=status.update,
            ),
        )
    outcome.summarize(batch.rows, given.output, method.title, {}, "recovered")


def _read_key(key_file: Path | None, confirm: bool) -> bytes:
    """The key of the user: the content of a file, or hidden input from a prompt."""
    if key_file is None:
        return typer.prompt("Key", hide_input=True, confirmation_prompt=confirm).encode(errors="surrogateescape")
    return key_file.read_bytes()


def _warn(text: str) -> None:
    """Shows a sentence that the user should read before the results."""
    print_error(text, "yellow")


def _announce(method: "Anonymizer", seeded: bool) -> None:
    """Shows what to know before the results: whether a seed was given, and the threshold."""
    if not seeded:
        print_error("The randomness comes from the operating system and is not kept.", "dim")
    threshold = method.threshold
    print_error(f"Still recognized: distance up to {threshold.distance:.3f}; {threshold.origin}.", "dim")


def _split_words(words: str | None) -> list[str] | None:
    """The words between commas. Returns None for None, and [] for an empty text."""
    return None if words is None else [word.strip() for word in words.split(",") if word.strip()]

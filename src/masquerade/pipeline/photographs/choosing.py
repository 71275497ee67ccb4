"""What a person chooses for photographs: the options, the method with its networks, and the photographs."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ValidationError

from masquerade.core import discovery, seeding
from masquerade.core.errors import ParameterError
from masquerade.core.settings import Settings
from masquerade.faces.folder import Folder
from masquerade.methods import Method
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import image_texts, method_files
from masquerade.pipeline.image_texts import ProvenanceTag
from masquerade.pipeline.inspection import FAR, Threshold, choose_threshold
from masquerade.pipeline.method_files import Say
from masquerade.pipeline.photographs.batches import Progress
from masquerade.pipeline.release import Row

logger = logging.getLogger(__name__)
Several = Literal["refuse", "largest", "all"]
"""What to do with a photograph of several people."""
Small = Literal["hide", "refuse"]
"""What to do with a face in a whole photograph that is too small for a method, or that cannot be cut out."""

# Values of a variant's knobs for real photographs, if it has these knobs: noise that cannot be repeated, and a
# sensitivity that holds for every face, not only for the faces of this folder.
STRICT = {"sampler": "opendp", "sensitivity": "bound"}


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """The rarer options of `masquerade.load`.

    ``hide``, ``keep``: keywords that replace those of the variant, for a method that selects attributes. ``say`` gets
    the sentences that a person should read before the results, such as terms of use; by default they are logged.
    """

    hide: Sequence[str] | None = None
    keep: Sequence[str] | None = None
    say: Say = logger.warning


@dataclass(frozen=True, kw_only=True)
class FolderOptions:
    """The rarer options of `Anonymizer.anonymize_folder`.

    ``small``, ``salted``, ``record``, ``large``: as of `Anonymizer.anonymize`. ``checked``: whether each face gets a
    check of the key (default: yes). ``keep_recognizable``: write what is still recognized, too. ``go_on``: the folder
    holds results to keep and complete. ``readers``: so many processes find the faces beside this one, for which a
    script needs ``if __name__ == "__main__"``. ``progress`` is called with a text.
    """

    small: Small | None = None
    salted: bool | None = None
    checked: bool | None = None
    record: bool = False
    large: bool = False
    keep_recognizable: bool = False
    go_on: bool = False
    readers: int = 0
    progress: Progress = lambda text: None


@dataclass(frozen=True, kw_only=True)
class RecoveryOptions:
    """The rarer options of `Anonymizer.recover_folder`.

    ``originals``: the photographs before, to say how near the results come. ``no_salt``: images whose salt is not known
    have none. ``from_image``: as of `Anonymizer.recover`. ``progress`` is called with a text.
    """

    originals: Path | str | None = None
    no_salt: bool = False
    from_image: bool = False
    progress: Progress = lambda text: None


@dataclass(frozen=True)
class Batch:
    """The results of a folder. ``rows``: those of report.csv. ``statement``: facts of the method, such as epsilon."""

    rows: list[Row]
    statement: dict[str, object] = field(default_factory=dict)


def build_method(
    root: Path, parameters: Parameters, name: str, variant: str | None, strict: bool, checkpoint: Path | None = None,
    options: LoadOptions | None = None,
) -> tuple[Method, ProvenanceTag]:  # fmt: skip
    """The loaded method with its variant (None: the first one), and what its results state. ``strict``: with STRICT.

    ``checkpoint``: a file in place of that of the scale. Raises ParameterError for an unknown variant or keyword, and
    CheckpointError when a file is missing.
    """
    options = options or LoadOptions()
    seeding.declare_determinism(parameters.compute.deterministic)
    cls = discovery.load("methods", name)
    if name not in parameters.methods:
        raise ParameterError(f"params.yaml has no block methods.{name} at scale {parameters.scale}.")
    block = parameters.methods[name]
    variant = variant or next(iter(block.variants))
    if variant not in block.variants:
        raise ParameterError(f"'{name}' has no variant '{variant}'. It has: {', '.join(block.variants)}.")
    if not (block.photographs or checkpoint):
        raise ParameterError(
            f"{cls.title}: people still recognize whom its networks of scale {parameters.scale} hide, whatever a "
            "recognizer says. They are for the tables alone. Take another method (docs/which_method.md), or a network "
            "of your own from Python (`checkpoint` of `masquerade.load`)."
        )
    knobs = block.variants[variant]
    if strict:
        changes = {knob: value for knob, value in STRICT.items() if knob in type(knobs).model_fields}
        knobs = type(knobs)(**{**knobs.model_dump(), **changes})
    if options.hide is not None or options.keep is not None:
        knobs = replace_keywords(name, cls, knobs, options.hide, options.keep)
    resources = method_files.find_resources(root, parameters, name, variant, options.say, checkpoint)
    tag = image_texts.compute_tag(name, variant, parameters.scale, resources)
    return cls(parameters.training_params(name, variant), knobs, resources), tag


def replace_keywords(
    name: str, cls: type[Method], knobs: Any, hide: Sequence[str] | None, keep: Sequence[str] | None
) -> Settings:
    """The knobs of a variant with other keywords. A keyword that is named for one list leaves the default of the other.

    Raises ParameterError for a method that cannot select attributes, and for a contradiction.
    """
    if not cls.capabilities.attribute_selective:
        methods = {method: discovery.load("methods", method) for method in discovery.list_programs()}
        selective = [method for method, cls in methods.items() if cls.capabilities.attribute_selective]
        raise ParameterError(f"'{name}' does not let you choose what it hides. These do: {', '.join(selective)}.")
    to_hide = [keyword for keyword in knobs.hide if keyword not in keep] if hide is None else hide
    to_keep = [keyword for keyword in knobs.keep if keyword not in hide] if keep is None else keep
    try:
        return type(knobs)(**{**knobs.model_dump(), "hide": to_hide, "keep": to_keep})
    except ValidationError as error:
        reasons = "; ".join(item["msg"].removeprefix("Value error, ") for item in error.errors())
        raise ParameterError(f"--hide {','.join(to_hide)} --keep {','.join(to_keep)}: {reasons}.") from error


def check_faces(faces: Several | None, whole: bool, small: Small | None) -> None:
    """Raises ParameterError for an unknown choice, and for choices that contradict each other."""
    check_choice("faces", faces, (None, *get_args(Several)))
    check_choice("small", small, (None, *get_args(Small)))
    if whole and faces not in (None, "all"):
        raise ParameterError(f"--photographs replaces all faces; --faces {faces} leaves some. Leave --faces out.")
    if small and not whole:
        raise ParameterError(
            f"--small {small} says what becomes of small faces in a whole photograph. Add --photographs (from Python: "
            "faces='all', or whole=True), or leave --small out."
        )


def check_choice(name: str, given: object, choices: Iterable[str | None]) -> None:
    """Raises ParameterError unless ``given`` is one of ``choices``."""
    if given not in list(choices):
        raise ParameterError(f"{name} is {given!r}; it must be one of {', '.join(filter(None, choices))}.")


def open_photographs(parameters: Parameters, path: Path | None, faces: str, alignment: str) -> Folder:
    """The photographs at ``path`` (None: none), with the limits of params.yaml. Nobody's identity is known."""
    if "folder" not in parameters.datasets:
        raise ParameterError(f"params.yaml has no block datasets.folder at scale {parameters.scale}.")
    limits = parameters.datasets["folder"].model_dump()
    changes = {"path": str(path or ""), "faces": faces, "alignment": alignment, "identity": "unknown"}
    return Folder(Folder.Params(**{**limits, **changes}))


def find_threshold(root: Path, parameters: Parameters) -> Threshold:
    """The threshold of the judge, with the calibration people of this repository where they were measured."""
    dataset, split = parameters.matrix.train_on, parameters.matrix.calibrate_on
    measurements = Path(Paths(parameters.scale).source_measurements.format(dataset=dataset))
    return choose_threshold(root / measurements, dataset, split, FAR)

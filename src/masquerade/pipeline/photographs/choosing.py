"""Loads the method that a person chose for photographs, and says which photographs it gets."""

import logging
from collections.abc import Iterable, Sequence
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
from masquerade.pipeline import makers, method_files
from masquerade.pipeline.inspection import FAR, Threshold, threshold
from masquerade.pipeline.makers import Maker
from masquerade.pipeline.method_files import Say

logger = logging.getLogger(__name__)
Several = Literal["refuse", "largest", "all"]
"""What to do with a photograph of several people."""
Small = Literal["hide", "refuse"]
"""What to do with a face in a whole photograph that is too small for a method, or that cannot be cut out."""

# Values of a variant's knobs for real photographs, if it has these knobs: noise that cannot be repeated, and a
# sensitivity that holds for every face, not only for the faces of this folder.
STRICT = {"sampler": "opendp", "sensitivity": "bound"}


def method(
    root: Path, parameters: Parameters, name: str, variant: str | None, strict: bool,
    hide: Sequence[str] | None = None, keep: Sequence[str] | None = None, say: Say = logger.info,
    checkpoint: Path | None = None,
) -> tuple[Method, Maker]:  # fmt: skip
    """The loaded method with its variant (None: the first one), and what its results state. ``strict``: with STRICT.

    ``hide`` and ``keep`` replace the variant's own keywords, if the method can select attributes. ``say`` and
    ``checkpoint`` are those of `method_files.resources`. Raises ParameterError for an unknown variant or keyword, and
    CheckpointError when a file is missing.
    """
    seeding.declare_determinism(parameters.compute.deterministic)
    cls = discovery.load("methods", name)
    if name not in parameters.methods:
        raise ParameterError(f"params.yaml has no block methods.{name} at scale {parameters.scale}.")
    block = parameters.methods[name]
    variant = variant or next(iter(block.variants))
    if variant not in block.variants:
        raise ParameterError(f"'{name}' has no variant '{variant}'. It has: {', '.join(block.variants)}.")
    knobs = block.variants[variant]
    if strict:
        changes = {knob: value for knob, value in STRICT.items() if knob in type(knobs).model_fields}
        knobs = type(knobs)(**{**knobs.model_dump(), **changes})
    if hide is not None or keep is not None:
        knobs = _with_keywords(name, cls, knobs, hide, keep)
    resources = method_files.resources(root, parameters, name, variant, say, checkpoint)
    maker = makers.of(name, variant, parameters.scale, resources)
    return cls(parameters.trained(name, variant), knobs, resources), maker


def _with_keywords(
    name: str, cls: type[Method], knobs: Any, hide: Sequence[str] | None, keep: Sequence[str] | None
) -> Settings:
    """The knobs of a variant with other keywords. A keyword that is named for one list leaves the default of the other.

    Raises ParameterError for a method that cannot select attributes, and for a contradiction.
    """
    if not cls.capabilities.attribute_selective:
        selective = [
            one for one in discovery.names("methods") if discovery.load("methods", one).capabilities.attribute_selective
        ]
        raise ParameterError(f"'{name}' does not let you choose what it hides. These do: {', '.join(selective)}.")
    hidden = [one for one in knobs.hide if one not in keep] if hide is None else hide
    kept = [one for one in knobs.keep if one not in hide] if keep is None else keep
    try:
        return type(knobs)(**{**knobs.model_dump(), "hide": hidden, "keep": kept})
    except ValidationError as error:
        reasons = "; ".join(item["msg"].removeprefix("Value error, ") for item in error.errors())
        raise ParameterError(f"--hide {','.join(hidden)} --keep {','.join(kept)}: {reasons}.") from error


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


def photographs_at(parameters: Parameters, path: Path | None, faces: str, alignment: str) -> Folder:
    """The photographs at ``path`` (None: none), with the limits of params.yaml. Nobody's identity is known."""
    if "folder" not in parameters.datasets:
        raise ParameterError(f"params.yaml has no block datasets.folder at scale {parameters.scale}.")
    limits = parameters.datasets["folder"].model_dump()
    changes = {"path": str(path or ""), "faces": faces, "alignment": alignment, "identity": "unknown"}
    return Folder(Folder.Params(**{**limits, **changes}))


def judge_threshold(root: Path, parameters: Parameters) -> Threshold:
    """The threshold of the judge, with the calibration people of this repository where they were measured."""
    dataset, split = parameters.matrix.train_on, parameters.matrix.calibrate_on
    measured = Path(Paths(parameters.scale).measured_source.format(dataset=dataset))
    return threshold(root / measured, dataset, split, FAR)

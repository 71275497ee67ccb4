"""Typed, closed parameters: params.yaml, the overlay of one scale, and what is told to a person who mistypes.

params.yaml holds what the papers say; ``scales/<scale>.yaml`` says how that scale differs (a mapping is merged, any
other value replaces, ``null`` removes the key). The blocks of datasets, backbones, judges, metrics and methods are
typed by the modules of those rooms, so a new module brings its own block.
"""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from masquerade import assets, discovery
from masquerade.errors import ParameterError
from masquerade.guessing import GuessingSettings
from masquerade.imported.settings import ImportedMethod
from masquerade.recovery import RecoverySettings
from masquerade.settings import Name, Settings

PARAMS, SCALES, SCHEMA = "params.yaml", "scales", "schemas/params.schema.json"


class ImageSettings(Settings):
    size: Annotated[int, Field(ge=32, le=1024)]
    """Side of every picture in pixels (256: identitydp, section V.A)."""


class MatrixSettings(Settings):
    train_on: Name
    """The dataset whose train split every backbone and method learns from."""
    calibrate_on: Literal["validation"]
    """The split whose identities set verification thresholds; disjoint from the test split."""
    evaluate: dict[Name, list[str]]
    """Dataset -> patterns ``method/variant`` (``*`` allowed) of what is anonymized and measured on its test split."""


class FakesSettings(Settings):
    count: Annotated[int, Field(ge=2)]
    """Faces of nobody; more than the faces of any set that is anonymized with them (falco section 3.2)."""
    psi: Annotated[float, Field(gt=0, le=1)]
    """Truncation: 1 draws W as it is, less pulls it towards its mean."""


class MeasureSettings(Settings):
    batch: Annotated[int, Field(ge=1)]
    """Pictures that are held in memory and judged at a time."""
    judges: list[Name]
    """The judges that look at every set."""


class StandIns(Settings):
    datasets: dict[str, Name]
    """A paper's dataset -> the one that stands in its place at this scale."""
    judges: dict[str, Name]
    """A paper's judge -> the one that stands in its place at this scale."""


class AttributeSettings(Settings):
    """FALCO's attribute protocol (falco section 4.1): a classifier learns from anonymized faces."""

    size: Annotated[int, Field(ge=32, multiple_of=32)]
    """Side in pixels of what the classifier sees (224: Sandler et al. 2018)."""
    frozen_blocks: Annotated[int, Field(ge=0)]
    """How many of its blocks keep ImageNet's weights; 0: all are trained."""
    train_pictures: Annotated[int, Field(ge=0)]
    """Faces of the train split that are anonymized and learnt from, the same for every method; 0: all."""
    labeller_pictures: Annotated[int, Field(ge=0)]
    """Real faces from which the two labellers learn; 0: all."""
    epochs: Annotated[int, Field(ge=1)]
    """Passes over the faces."""
    batch: Annotated[int, Field(ge=2)]
    """Faces in a batch."""
    learning_rate: Annotated[float, Field(gt=0)]
    """The largest one of Adam; it falls as a cosine."""
    test_share: Annotated[float, Field(gt=0, lt=1)]
    """Share of a dataset without a train split that is tested on (0.2: falco section 4.1)."""


class AttributeProtocol(AttributeSettings):
    cells: dict[Name, list[str]]
    """dataset -> patterns ``method/variant`` of the cells that are put through the protocol; '*' matches anything."""


class RecoveryProtocol(RecoverySettings):
    judges: list[Name]
    """The judges that look at what was recovered."""
    cells: dict[Name, list[str]]
    """dataset -> patterns ``method/variant`` of the cells whose faces are brought back."""


class GuessingProtocol(GuessingSettings):
    cells: dict[Name, list[str]]
    """dataset -> patterns ``method/variant`` of the cells whose keys are guessed."""


class LightJobs(Settings):
    partition: str
    """SLURM partition ('' = the cluster's default)."""
    minutes: Annotated[int, Field(ge=1)]
    """Time limit."""
    memory_gb: Annotated[float, Field(gt=0)]
    """Memory in GiB."""


class Submission(LightJobs):
    constraint: str
    """Features that a node must have, as ``sbatch --constraint`` takes them ('' = any node)."""
    gpus: Annotated[int, Field(ge=0)]
    """GPUs of one job."""
    tasks: Annotated[int, Field(ge=1)]
    """Processes of one job, on one node; more than one train data-parallel, each on its share of the GPUs."""


class ComputeSettings(Settings):
    launcher: Literal["in_process", "local", "slurm"]
    """Where trainings and networks run: in the job's own process, in one made by submitit here, or on SLURM."""
    threads: dict[Literal["data", "backbone", "train", "anonymize", "measure"], Annotated[int, Field(ge=1)]]
    """CPU threads of one job of each kind."""
    account: str
    """SLURM account ('' = the user's default)."""
    setup: list[str]
    """Shell lines before each submitted training or inference, such as ``module load cuda``."""
    grace_seconds: Annotated[int, Field(ge=1)]
    """How long before its time limit a job is told to save itself: more than a step and a write of the state take."""
    requeues: Annotated[int, Field(ge=0)]
    """How often one training may run into its time limit before it is given up."""
    light: LightJobs
    """One job of Snakemake's SLURM executor: faces, classical anonymization, measurements, metrics, tables."""
    training: Submission
    """One training."""
    inference: Submission
    """One job of networks that were trained: anonymization, recovery, inversion."""
    own: dict[Annotated[str, Field(pattern=r"^(training|inference)/[a-z0-9_]+$")], dict[str, Any]]
    """``training/<name>`` or ``inference/<name>`` -> what differs there from `training` or `inference`."""

    @model_validator(mode="after")
    def _submissions_are_possible(self) -> "ComputeSettings":
        for job in ["inference/", *self.own]:
            if self.submission(*job.split("/")).tasks > 1 and job.startswith("inference"):
                raise ValueError(f"{job.rstrip('/')} has one task: only trainings are shared by several processes")
        return self

    def submission(self, kind: str, name: str) -> Submission:
        """What the jobs of a kind (``training`` or ``inference``) of a method or backbone ask SLURM for."""
        return Submission(**getattr(self, kind).model_dump() | self.own.get(f"{kind}/{name}", {}))


class Common(Settings):
    """What every params.yaml holds beside the blocks of the rooms."""

    scale: Name
    """Which overlay of scales/ applies."""
    seeds: Annotated[list[int], Field(min_length=1)]
    """Each seed is a training and an anonymization of its own; tables give mean and spread over them."""
    data_seed: int
    """Seed of the procedural faces, the splits and the backbones."""
    rehearsal: bool
    """Whether this is only to see that everything runs: all that is made is marked, and no table is made of it."""
    caution: str
    """What every table and figure must say of this scale; '' where there is nothing to say."""
    fakes: FakesSettings
    image: ImageSettings
    matrix: MatrixSettings
    measure: MeasureSettings
    attributes: AttributeProtocol
    recovery: RecoveryProtocol
    guessing: GuessingProtocol
    stand_ins: StandIns
    papers: list[Name]
    """Which papers' tables and figures are built (folders of reference/)."""
    imported: dict[Name, ImportedMethod]
    """Methods whose pictures another program made, by the name that tables know them by; `masquerade import-method`."""
    compute: ComputeSettings


class _Made(Settings):
    """A block that is made of others and has no source text of its own, which pydantic would look for at length."""

    model_config = ConfigDict(use_attribute_docstrings=False)


def _method_block(name: str) -> type[Settings]:
    method = discovery.load("methods", name)
    block = create_model(
        f"Method_{name}",
        __base__=_Made,
        params=(method.Params, ...),
        variants=(dict[Name, method.Variant], ...),
        ablations=(dict[Name, dict[str, Any]] | None, None),
    )
    block.__doc__ = (
        f"{method.title}: `params` make the checkpoint, `variants` are anonymizations with it; a variant of "
        "`ablations` has a checkpoint of its own, trained with these other params."
    )
    return block


def _room(room: str) -> type[Settings]:
    """The block of one room: every module that it holds, each optional, none else."""
    typed = {
        name: _method_block(name) if room == "methods" else discovery.load(room, name).Params
        for name in discovery.names(room)
    }
    return create_model(room, __base__=_Made, **{name: (block | None, None) for name, block in typed.items()})


@cache
def model() -> type[Common]:
    """The type of the whole of params.yaml, made of the modules that exist."""
    rooms = {
        "datasets": "faces",
        "backbones": "backbones",
        "judges": "judges",
        "metrics": "metrics",
        "methods": "methods",
    }
    return create_model("Parameters", __base__=Common, **{key: (_room(room), ...) for key, room in rooms.items()})


class Parameters:
    """Validated parameters of one scale. ``tree`` is the effective params.yaml as plain JSON values."""

    def __init__(self, typed: Common):
        self.typed = typed
        self.tree: dict[str, Any] = typed.model_dump(mode="json", exclude_none=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.typed, name)

    @cached_property
    def datasets(self) -> dict[str, Settings]:
        return self._present("datasets")

    @cached_property
    def backbones(self) -> dict[str, Settings]:
        return self._present("backbones")

    @cached_property
    def judges(self) -> dict[str, Settings]:
        return self._present("judges")

    @cached_property
    def metrics(self) -> dict[str, Settings]:
        return self._present("metrics")

    @cached_property
    def methods(self) -> dict[str, Any]:
        return self._present("methods")

    def _present(self, room: str) -> dict[str, Any]:
        block = getattr(self.typed, room)
        return {name: getattr(block, name) for name in type(block).model_fields if getattr(block, name) is not None}

    def slice(self, keys: tuple[str, ...]) -> dict[str, Any]:
        """The named parts, e.g. ``methods.falco.params``, by their dotted keys; one with a ``?`` behind may be missing.

        Raises ParameterError.
        """
        asked = {key.removesuffix("?"): key.endswith("?") for key in keys}
        return {key: self._at(key) for key, optional in asked.items() if not optional or self._has(key)}

    def ablations(self, method: str) -> dict[str, dict[str, Any]]:
        """variant -> the knobs in which its training differs from that of the method's other variants."""
        return getattr(self.methods[method], "ablations", None) or {}

    def _has(self, key: str) -> bool:
        node = self.tree
        for name in key.split("."):
            if not isinstance(node, dict) or name not in node:
                return False
            node = node[name]
        return True

    def _at(self, key: str) -> Any:
        node = self.tree
        for name in key.split("."):
            if not isinstance(node, dict) or name not in node:
                raise ParameterError(f"params.yaml has no '{key}' at scale {self.scale}.")
            node = node[name]
        return node


class _Loader(yaml.CSafeLoader):
    """YAML 1.2, as DVC reads and writes it when an experiment sets a knob: ``no`` is a word, and ``1e-05`` a number."""

    yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in forms if tag.rpartition(":")[2] not in ("bool", "float")]
        for first, forms in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$|\.(?:nan|NaN|NAN)$"),
    list("-+.0123456789"),
)


def read(path: Path) -> dict[str, Any]:
    """A YAML file as a mapping. Raises ParameterError naming file and line."""
    if not path.is_file():
        raise ParameterError(f"{path} is missing.")
    return parse(path.read_text(encoding="utf-8"), path)


def parse(text: str, name: object) -> dict[str, Any]:
    """YAML text as a mapping. Raises ParameterError that says where in ``name`` it is none."""
    try:
        tree = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader with other words for true and false
    except yaml.YAMLError as error:
        raise ParameterError(f"{name} is not valid YAML: {error}") from error
    if not isinstance(tree, dict):
        raise ParameterError(f"{name} must be a mapping of names to values.")
    return tree


def overlay(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``over`` laid on top: mappings merge, other values replace, None removes."""
    merged = dict(base)
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = overlay(merged[key], value)
        else:
            merged[key] = value
    return merged


def scales(root: Path = Path()) -> list[str]:
    """The scales that have an overlay."""
    return sorted(path.stem for path in (root / SCALES).glob("*.yaml"))


def load(root: Path = Path(), scale: str | None = None) -> Parameters:
    """params.yaml of the repository at ``root`` with the overlay of ``scale`` (default: its own ``scale:``).

    Raises ParameterError, written for the person who made the mistake.
    """
    base = read(root / PARAMS)
    scale = scale or base.get("scale")
    if scale not in scales(root):
        raise ParameterError(f"{PARAMS}: there is no scale '{scale}'. {_nearest(str(scale), scales(root))}")
    over = read(root / SCALES / f"{scale}.yaml")
    _check_removals(base, over, f"{SCALES}/{scale}.yaml")
    merged = overlay(overlay(base, over), {"scale": scale})
    try:
        parameters = Parameters(model()(**merged))
    except ValidationError as error:
        raise ParameterError(_for_people(error, over, scale)) from error
    _check_references(parameters)
    return parameters


def _check_references(parameters: Parameters) -> None:
    """Names in one block that must exist in another."""
    known = {
        "matrix.train_on": ([parameters.matrix.train_on], parameters.datasets),
        "matrix.evaluate": (parameters.matrix.evaluate, parameters.datasets),
        "measure.judges": (parameters.measure.judges, parameters.judges),
        "recovery.judges": (parameters.recovery.judges, parameters.judges),
        "guessing.judge": ([parameters.guessing.judge] if parameters.guessing.cells else [], parameters.judges),
    }
    for name, block in parameters.backbones.items():
        if role := discovery.load("backbones", name)(block).asset:
            weights = {role for role, entry in assets.registry().items() if isinstance(entry, assets.Weights)}
            known[f"backbones.{name}.published"] = ([role], weights)
    for method, block in parameters.methods.items():
        known[f"methods.{method}.ablations"] = (parameters.ablations(method), block.variants)
    for method, block in parameters.imported.items():
        if method in discovery.names("methods"):
            raise ParameterError(
                f"imported.{method} has the name of a module of methods/. Give it another, such as {method}_theirs."
            )
        for variant, sets in block.variants.items():
            known[f"imported.{method}.variants.{variant}"] = (sets, parameters.datasets)
    for where, (used, defined) in known.items():
        for name in used:
            if name not in defined:
                raise ParameterError(f"{PARAMS}: {where} names '{name}'. {_nearest(name, defined)}")
    for method in parameters.methods:
        for variant, knobs in parameters.ablations(method).items():
            try:
                trained_with(discovery.load("methods", method), parameters.tree["methods"][method]["params"], knobs)
            except ValidationError as error:
                told = "; ".join(f"'{'.'.join(map(str, item['loc']))}': {item['msg']}" for item in error.errors())
                raise ParameterError(f"{PARAMS}: methods.{method}.ablations.{variant}: {told}.") from error


def trained_with(cls: type, knobs: Mapping[str, Any], ablation: Mapping[str, Any] | None = None) -> Settings:
    """The Params of a method with the other knobs of an ablation. Raises pydantic's ValidationError."""
    return cls.Params(**overlay(knobs, ablation or {}))


def _check_removals(base: Mapping[str, Any], over: Mapping[str, Any], file: str, above: str = "") -> None:
    """Raises ParameterError where ``over`` removes (null) what ``base`` has not: a slip that would pass in silence."""
    for key, value in over.items():
        if value is None and key not in base:
            raise ParameterError(
                f"{file}: '{above}{key}' is null, which removes it, and {PARAMS} has no such key. "
                f"{_nearest(str(key), base)}"
            )
        if isinstance(value, Mapping):
            inside = base.get(key)
            _check_removals(inside if isinstance(inside, Mapping) else {}, value, file, f"{above}{key}.")


def _nearest(name: str, known: Iterator[str]) -> str:
    known = sorted(known)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return (f"Did you mean '{near[0]}'? " if near else "") + f"Known: {', '.join(known) or 'none'}."


def _for_people(error: ValidationError, over: Mapping[str, Any], scale: str) -> str:
    lines = []
    for item in error.errors():
        where = [part for part in item["loc"] if not (isinstance(part, str) and part.startswith("function-"))]
        file = f"{SCALES}/{scale}.yaml" if _holds(over, where) else PARAMS
        key = ".".join(map(str, where))
        if item["type"] == "extra_forbidden":
            lines.append(f"{file}: unknown parameter '{key}'. {_nearest(str(where[-1]), _fields(where[:-1]))}")
        elif item["type"] == "missing":
            lines.append(f"{PARAMS}: '{key}' is missing; it has no default, so that every knob is visible.")
        else:
            lines.append(f"{file}: '{key}' is {item['input']!r}: {item['msg'][0].lower() + item['msg'][1:]}.")
    return "\n".join(dict.fromkeys(lines))


def _holds(tree: Any, where: list) -> bool:
    for part in where:
        if not isinstance(tree, Mapping) or part not in tree:
            return False
        tree = tree[part]
    return True


def _fields(where: list) -> list[str]:
    """The names that are allowed at a place of the tree."""
    node: Any = model()
    for part in where:
        if part not in node.model_fields:  # the key of a mapping or the place in a list: its type was found already
            continue
        annotation = node.model_fields[part].annotation
        node = next((item for item in [annotation, *getattr(annotation, "__args__", ())] if _is_model(item)), None)
        if node is None:
            return []
    return sorted(node.model_fields)


def _is_model(item: Any) -> bool:
    return isinstance(item, type) and issubclass(item, BaseModel)


def schema_text() -> str:
    """The JSON schema of params.yaml, as committed in schemas/."""
    return json.dumps(model().model_json_schema(), indent=1, sort_keys=True) + "\n"


def template(method: str) -> str:
    """The block to paste into params.yaml for a new method, each knob with its description as a comment."""
    fields = discovery.load("methods", method)
    lines = [f"  {method}:", "    params:"]
    for name, knob in fields.Params.model_fields.items():
        lines += [f"      {name}:   # {(knob.description or '').strip()}"]
    lines += ["    variants:", "      default:"]
    for name, knob in fields.Variant.model_fields.items():
        lines += [f"        {name}:   # {(knob.description or '').strip()}"]
    return "\n".join(lines) + "\n"

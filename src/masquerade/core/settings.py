"""The closed, frozen base class of every block of params.yaml."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
"""The name of a module, method, variant, dataset or scale; it becomes a part of paths."""
Share = Annotated[float, Field(ge=0, le=1)]
"""A part of a whole, from none to all."""
Decay = Annotated[float, Field(ge=0, lt=1)]
"""The decay of a moving average, or a beta of Adam."""
Channels = Annotated[int, Field(ge=8)]
"""The width of a network with strided 1 x 1 convolutions. With fewer than 8 channels oneDNN writes outside its memory
when it computes their gradients with AVX2, and the training crashes (uxlfoundation/oneDNN, issue 6035)."""


class Settings(BaseModel):
    """A block of parameters. Closed: an unknown key is an error. Frozen: its values cannot be changed.

    A parameter for which a paper has a value, or that a user decides, has no default, so that params.yaml shows it. A
    default is for what no paper has: adopted weights, our additions for small scales (`SmallScale`), sample images, and
    the options of a cluster. The text below a field is its description, with unit and source (`read_descriptions`).
    pydantic itself would look for these texts in every process that imports a block, which takes a fifth of the time of
    planning.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Inherited parameter -> its value in the paper and the source, or what else is special: the end of its description.
    sources: ClassVar[Mapping[str, str]] = {}
    # Knobs in the metadata of a checkpoint that change how a trained network is used, and not the network.
    after_training: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in read_descriptions(cls).items():
            properties[name]["description"] = text
        return schema


def read_descriptions(block: type[Settings]) -> dict[str, str]:
    """Field -> the text below it, for the fields that have one."""
    texts = {}
    for base in reversed(block.__mro__):
        if issubclass(base, Settings) and base is not Settings:
            try:
                source = inspect.getsource(base)
            except OSError:  # `create_model` composed it of other blocks
                continue
            texts |= dict(_described_fields(ast.parse(textwrap.dedent(source)).body[0]))
            for name, text in vars(base).get("sources", {}).items():
                texts[name] = f"{texts[name].removesuffix('.')} ({text})."
    return texts


def _described_fields(block: ast.stmt) -> Iterator[tuple[str, str]]:
    for field, description in pairwise(block.body if isinstance(block, ast.ClassDef) else []):
        match field, description:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)


class SmallScale(Settings):
    """The base of a block ``small_scale``: how a network or a training may differ from its paper at a small scale.

    Every field has a default, with which nothing differs from the paper. params.yaml, which holds the values of the
    papers, therefore does not list the block, and the overlay of a small scale sets what it needs::

        class FalcoSmallScale(SmallScale):
            kernel_rate: Annotated[float, Field(ge=0)] = 0.0   # and below it, its description

        class FalcoParams(Settings):
            small_scale: FalcoSmallScale = FalcoSmallScale()

        # scales/mini.yaml
        methods: {falco: {params: {small_scale: {kernel_rate: 0.01}}}}
    """

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        required = [name for name, field in cls.model_fields.items() if field.is_required()]
        if required:
            raise TypeError(f"{cls.__name__}: {', '.join(required)} must have a default with which nothing changes")


class NoParameters(Settings):
    """A block without parameters."""

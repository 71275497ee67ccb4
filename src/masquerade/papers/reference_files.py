"""Reads YAML files of ``reference/``. An error names the file, the key, what is wrong, and the nearest known name."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from masquerade.core.errors import ReferenceFileError, suggest_nearest

Block = TypeVar("Block", bound=BaseModel)


def read(path: Path) -> Any:
    """The tree of a file, with strings as leaves: a printed 1.0280 keeps its last zero. Raises ReferenceFileError."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CBaseLoader)
    except OSError as error:
        raise ReferenceFileError(f"{path} cannot be read: {error.strerror}.") from error
    except yaml.YAMLError as error:
        raise ReferenceFileError(f"{path} is not valid YAML: {error}") from error


def entries(path: Path, contents: str) -> list[dict[str, Any]]:
    """The entries of a file that is a list of ``contents``. Raises ReferenceFileError."""
    tree = read(path)
    if not isinstance(tree, list) or not all(isinstance(item, dict) for item in tree):
        raise ReferenceFileError(f"{path} must be a list of {contents}, each with its keys.")
    return tree


def check(kind: type[Block], fields: Mapping[str, Any], place: str, given: Collection[str] = ()) -> Block:
    """``fields`` as an object of ``kind``. ``given``: the fields that do not stand in the file.

    Raises ReferenceFileError with a line for each mistake, which begins with ``place``.
    """
    try:
        return kind(**fields)
    except ValidationError as error:
        texts = dict.fromkeys(_mistakes(error, kind, given))
        raise ReferenceFileError("\n".join(f"{place}: {text}" for text in texts)) from error


def _mistakes(error: ValidationError, kind: type[BaseModel], given: Collection[str]) -> Iterator[str]:
    for item in error.errors():
        place = item["loc"]
        key = ".".join(map(str, place))
        if item["type"] == "extra_forbidden":
            known = _fields(kind, place[:-1], given)
            yield f"unknown key '{key}'. {suggest_nearest(str(place[-1]), known)}"
        elif item["type"] == "missing":
            yield f"'{key}' is missing."
        else:
            yield f"{f'{key}: ' * bool(key)}{item['msg'].removeprefix('Value error, ')}."


def _fields(kind: type[BaseModel], place: Iterable[str | int], given: Collection[str]) -> list[str]:
    """The keys that are allowed at one place of a file."""
    model = kind
    for part in place:
        if part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return [name for name in model.model_fields if model is not kind or name not in given]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model class inside an annotation such as ``tuple[Column, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)

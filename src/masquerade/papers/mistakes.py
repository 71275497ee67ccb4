"""The texts of errors in a reference file: the key, what is wrong, and the nearest known name."""

from collections.abc import Collection, Iterable
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from masquerade.core.suggestions import nearest


def lines(error: ValidationError, kind: type[BaseModel], given: Collection[str] = ()) -> list[str]:
    """One line for each mistake in a file of one ``kind``; ``given`` are the fields that do not stand in the file."""
    texts = []
    for item in error.errors():
        place = item["loc"]
        key = ".".join(map(str, place)) or "the file"
        if item["type"] == "extra_forbidden":
            known = _fields(kind, place[:-1], given)
            texts.append(f"unknown key '{key}'. {nearest(str(place[-1]), known)}")
        elif item["type"] == "missing":
            texts.append(f"'{key}' is missing.")
        else:
            texts.append(f"{key}: {item['msg'].removeprefix('Value error, ')}.")
    return list(dict.fromkeys(texts))


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

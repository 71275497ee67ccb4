"""What is told to the person who mistyped a reference file: the key, what is wrong, and the nearest name."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError


def told(error: ValidationError, kind: type[BaseModel], given: Collection[str] = ()) -> list[str]:
    """One line a mistake in a file of one ``kind``; ``given`` are the fields that do not stand in the file."""
    lines = []
    for item in error.errors():
        where = item["loc"]
        key = ".".join(map(str, where)) or "the file"
        if item["type"] == "extra_forbidden":
            lines.append(f"unknown key '{key}'. {nearest(str(where[-1]), _fields(kind, where[:-1], given))}")
        elif item["type"] == "missing":
            lines.append(f"'{key}' is missing.")
        else:
            lines.append(f"{key}: {item['msg'].removeprefix('Value error, ')}.")
    return list(dict.fromkeys(lines))


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is meant, if one is near, and all that there are."""
    known = list(known)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return (f"Did you mean '{near[0]}'? " if near else "") + f"Known: {', '.join(known) or 'none'}."


def _fields(kind: type[BaseModel], where: Iterable[str | int], given: Collection[str]) -> list[str]:
    """The keys that are allowed at one place of a file."""
    model = kind
    for part in where:
        if part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return sorted(name for name in model.model_fields if model is not kind or name not in given)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The Settings class that an annotation such as ``tuple[Column, ...]`` is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)

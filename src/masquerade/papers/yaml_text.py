"""Reads a YAML file as text, without YAML's guessing of types: a printed 1.0280 keeps its last zero."""

from pathlib import Path
from typing import Any

import yaml

from masquerade.core.errors import ReferenceFileError


def read(path: Path) -> Any:
    """The tree of a file, with strings as leaves. Raises ReferenceFileError naming a file that cannot be read."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CBaseLoader)
    except OSError as error:
        raise ReferenceFileError(f"{path} cannot be read: {error.strerror}.") from error
    except yaml.YAMLError as error:
        raise ReferenceFileError(f"{path} is not valid YAML: {error}") from error

"""Finds methods, attackers, backbones, judges, metrics and datasets by their names, which are the keys of params.yaml.

The name of a class is the text that it states as ``name``, or that of its file if it states none. So a file may hold a
whole family, such as ``metrics/frechet.py`` with ``frechet_distance`` and ``frechet_distance_to_target``, and a new
metric needs one new file and nothing else. There is no registry.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from masquerade.core.errors import ProtocolError, suggest_nearest

PACKAGE = Path(__file__).parents[1]
CONTENTS = {
    "faces": "dataset",
    "backbones": "backbone",
    "judges": "judge",
    "methods": "method",
    "metrics": "metric",
    "attackers": "attacker",
}
"""Room -> what it holds. In a folder ``<room>/<name>/`` the module of that name defines the class."""

IMPORTED = "imported"
"""The method that runs nothing. Its variants are what other programs made, and params.yaml has no block of it."""


def list_names(room: str) -> list[str]:
    """The public names of ``masquerade.<room>``, sorted: of its files and its folders. No module is imported.

    Left out is shared code: a folder without that module, and a file whose name begins with an underscore, which only
    its own room imports. A process lists a room once.
    """
    return list(_files_by_name(PACKAGE / room, f"{CONTENTS[room]}.py"))


def list_programs() -> list[str]:
    """The methods that compute their images: all but `IMPORTED`."""
    return [name for name in list_names("methods") if name != IMPORTED]


@cache
def _files_by_name(folder: Path, module: str) -> Mapping[str, Path]:
    """Name -> the file that defines it. Raises ProtocolError when two files state one name."""
    files = [(path, path.stem) for path in folder.glob("*.py")]
    files += [(path, path.parent.name) for path in folder.glob(f"*/{module}")]
    file_of: dict[str, Path] = {}
    for path, file_name in files:
        if file_name.startswith("_"):
            continue
        for name in list(_stated_names(path)) or [file_name]:
            if name in file_of:
                raise ProtocolError(f"{file_of[name]} and {path} both define '{name}'. Give one of them another name.")
            file_of[name] = path
    return dict(sorted(file_of.items()))


def _stated_names(path: Path) -> Iterator[str]:
    """The names that the classes of a file state, each as a line ``name = "psnr"``."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        for line in statement.body if isinstance(statement, ast.ClassDef) else ():
            match line:
                case ast.Assign(targets=[ast.Name(id="name")], value=ast.Constant(value=str(name))):
                    yield name


def find_module(room: str, name: str) -> Path:
    """The file that defines ``name`` in ``room``. Raises ProtocolError, which names the nearest known one."""
    if name not in list_names(room):
        raise ProtocolError(f"There is no '{name}' in {room}/. {suggest_nearest(name, list_names(room))}")
    return _files_by_name(PACKAGE / room, f"{CONTENTS[room]}.py")[name]


def find_name(cls: type) -> str:
    """The name under which `load` finds a class: the one that it states, or that of its file or folder below the room.

    Of a class outside the library, such as one in a test, it is the name of the module.
    """
    path = cls.__module__.removeprefix("masquerade.").split(".")  # room, name, ...
    return vars(cls).get("name") or (path[1] if len(path) > 1 else path[0])


@cache
def load(room: str, name: str) -> type:
    """The one class that ``name`` defines for ``room``: a subclass of the room's ``BASE``.

    Raises ProtocolError when the file defines no such class, several, or one with abstract methods left.
    """
    path = find_module(room, name)
    base = importlib.import_module(f"masquerade.{room}").BASE
    relative = path.relative_to(PACKAGE).with_suffix("")
    module = importlib.import_module(".".join(("masquerade", *relative.parts)))
    classes: list[Any] = [
        item
        for _, item in inspect.getmembers(module, inspect.isclass)
        if issubclass(item, base) and item.__module__ == module.__name__ and find_name(item) == name
    ]
    if len(classes) != 1:
        names = f": {', '.join(item.__name__ for item in classes)}" if classes else ""
        raise ProtocolError(
            f"{relative}.py must define exactly one subclass of {base.__name__} with the name '{name}'; it defines "
            f"{len(classes)}{names}."
        )
    if inspect.isabstract(classes[0]):
        missing = ", ".join(sorted(classes[0].__abstractmethods__))
        raise ProtocolError(f"{classes[0].__name__} in {relative}.py does not define: {missing}.")
    return classes[0]

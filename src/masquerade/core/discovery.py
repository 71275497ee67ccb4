"""Finds methods, attackers, backbones, judges, metrics and datasets: name = module = key of params.yaml.

There is no registry.
"""

import importlib
import inspect
from functools import cache
from pathlib import Path
from typing import Any

from masquerade.core.errors import ProtocolError
from masquerade.core.suggestions import nearest

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


def names(room: str) -> list[str]:
    """The public names of ``masquerade.<room>``, sorted: its files and its folders. No module is imported.

    Left out is shared code: a folder without that module, and a name that begins with an underscore, which only its
    own room imports. A process lists a room once.
    """
    return list(_listed(PACKAGE / room, f"{CONTENTS[room]}.py"))


@cache
def _listed(folder: Path, module: str) -> tuple[str, ...]:
    files = [path.stem for path in folder.glob("*.py")]
    folders = [path.parent.name for path in folder.glob(f"*/{module}")]
    return tuple(sorted(name for name in (*files, *folders) if not name.startswith("_")))


def module_path(room: str, name: str) -> Path:
    """The file that defines ``name`` in ``room``. Raises ProtocolError, which names the nearest known one."""
    if name not in names(room):
        raise ProtocolError(f"There is no '{name}' in {room}/. {nearest(name, names(room))}")
    file = PACKAGE / room / f"{name}.py"
    return file if file.is_file() else PACKAGE / room / name / f"{CONTENTS[room]}.py"


def name_of(cls: type) -> str:
    """The name under which `load` finds a class: that of its file or folder below the room.

    Of a class outside the library, such as one in a test, it is the name of the module.
    """
    path = cls.__module__.removeprefix("masquerade.").split(".")  # room, name, ...
    return path[1] if len(path) > 1 else path[0]


@cache
def load(room: str, name: str) -> type:
    """The one class that ``name`` defines for ``room``: a subclass of the room's ``BASE``.

    Raises ProtocolError when the module defines no such class, several, or one with abstract methods left.
    """
    path = module_path(room, name)
    base = importlib.import_module(f"masquerade.{room}").BASE
    relative = path.relative_to(PACKAGE).with_suffix("")
    module = importlib.import_module(".".join(("masquerade", *relative.parts)))
    classes: list[Any] = [
        item
        for _, item in inspect.getmembers(module, inspect.isclass)
        if issubclass(item, base) and item.__module__ == module.__name__
    ]
    if len(classes) != 1:
        listed = f": {', '.join(item.__name__ for item in classes)}" if classes else ""
        raise ProtocolError(
            f"{relative}.py must define exactly one subclass of {base.__name__}; it defines {len(classes)}{listed}."
        )
    if inspect.isabstract(classes[0]):
        missing = ", ".join(sorted(classes[0].__abstractmethods__))
        raise ProtocolError(f"{classes[0].__name__} in {relative}.py does not define: {missing}.")
    return classes[0]

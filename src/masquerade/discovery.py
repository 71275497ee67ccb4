"""Finds what a room holds: name = module = key in params.yaml. Nothing is registered by hand."""

import importlib
import inspect
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from masquerade.errors import ProtocolError

ROOT = Path(__file__).parent


def names(room: str) -> list[str]:
    """The public modules of ``masquerade.<room>``, sorted, without importing any of them."""
    return sorted(path.stem for path in (ROOT / room).glob("*.py") if not path.stem.startswith("_"))


def module_path(room: str, name: str) -> Path:
    """The file that defines ``name`` in ``room``. Raises ProtocolError, naming the nearest known one."""
    if name not in names(room):
        near = get_close_matches(name, names(room), n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise ProtocolError(f"There is no '{name}' in {room}/.{hint} Known: {', '.join(names(room))}.")
    return ROOT / room / f"{name}.py"


@cache
def load(room: str, name: str) -> type:
    """The one class that the module ``masquerade.<room>.<name>`` defines for its room.

    The room's ``__init__`` names its base class in ``BASE``. Raises ProtocolError where the module
    defines no subclass of it, or several.
    """
    module_path(room, name)
    base = importlib.import_module(f"masquerade.{room}").BASE
    module = importlib.import_module(f"masquerade.{room}.{name}")
    found = [
        item
        for _, item in inspect.getmembers(module, inspect.isclass)
        if issubclass(item, base) and item.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise ProtocolError(
            f"{room}/{name}.py must define exactly one subclass of {base.__name__}; it defines "
            f"{len(found)}{': ' + ', '.join(item.__name__ for item in found) if found else ''}."
        )
    if inspect.isabstract(found[0]):
        missing = ", ".join(sorted(found[0].__abstractmethods__))
        raise ProtocolError(f"{found[0].__name__} in {room}/{name}.py does not define: {missing}.")
    return found[0]

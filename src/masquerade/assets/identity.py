"""Which bytes a role has, as one small file that jobs declare as their input in place of the asset itself.

Licences forbid that most assets are handed on, so a colleague who pulls a build has its results, the lock, and not the
assets: the identity says that nothing is out of date all the same, and changes when the lock does. Nor does every
planning hash what lies in ``assets/``; who opens an asset checks it (`checking.checked`).
"""

import json
import uuid
from pathlib import Path

from masquerade import rehearsal
from masquerade.assets import lock
from masquerade.assets.checking import FOLDER, how_to_get, missing, state
from masquerade.assets.entries import asset
from masquerade.assets.lock import LOCK

IDENTITIES = Path(".masquerade/assets")


def identity(role: str, root: Path = Path()) -> dict[str, str]:
    """Name of each part of a role -> its SHA-256 by the lock, or else as published; '' where nobody knows it yet."""
    found, seen = asset(role), lock.read(root).get(role, {})
    published = {file.name: file.sha256 or "" for file in found.parts} | {tree.name: "" for tree in found.trees}
    return {name: seen[name].sha256 if name in seen else sha256 for name, sha256 in published.items()}


def write_identity(role: str, root: Path = Path()) -> Path:
    """Write the identity of a role where it changed, and return its file, relative to ``root``."""
    file = IDENTITIES / f"{role}.json"
    text = json.dumps(identity(role, root), indent=0) + "\n"
    target = root / file
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{role}.{uuid.uuid4().hex}.part")  # many jobs may plan at one time
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(target)
    return file


def role_of(path: str | Path) -> str:
    """The role whose identity a file is; '' for any other file."""
    return Path(path).stem if Path(path).parent == IDENTITIES else ""


def unready(role: str, root: Path = Path()) -> str:
    """Why a job that needs a role cannot run, and what to do; '' where it can. By presence and sizes, unhashed."""
    word = state(role, root)
    if word == "missing":
        return f"{FOLDER / role / missing(role, root)[0]} is missing ({asset(role).title}). {how_to_get(role)}"
    if word == "altered":
        return f"'{role}' is cut or altered: `masquerade assets verify {role}` says which file."
    if word == "unrecorded":
        return f"'{role}' is there, but not in {LOCK}: `masquerade assets verify {role}` records it, if you trust it."
    if word == "rehearsal" and not rehearsal.on():
        return f"'{role}' was placed for a rehearsal: it only plays the part of the published file. {how_to_get(role)}"
    return ""

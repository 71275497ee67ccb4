"""The identity of a role: a small file with the hashes of its parts, which jobs declare as input in place of the asset.

Most licenses forbid redistribution, so a colleague who pulls a build gets the lock and not the assets. The identity
follows the lock, so for Snakemake nothing is out of date. It also spares Snakemake the hashing of ``assets/``;
`checking.checked` does that when an asset is opened.
"""

import json
from pathlib import Path

from masquerade.assets import lock
from masquerade.assets.checking import FOLDER, how_to_get, missing, state
from masquerade.assets.entries import asset
from masquerade.assets.lock import LOCK
from masquerade.assets.packaged import stand_in
from masquerade.core import files, rehearsal

IDENTITIES = Path(".masquerade/assets")


def identity(role: str, root: Path = Path()) -> dict[str, str]:
    """Name of each part of a role -> its SHA-256 from the lock, else as published, else ''."""
    entry, records = asset(role), lock.read(root).get(role, {})
    published = {file.name: file.sha256 or "" for file in entry.parts} | {tree.name: "" for tree in entry.trees}
    return {name: records[name].sha256 if name in records else sha256 for name, sha256 in published.items()}


def write_identity(role: str, root: Path = Path()) -> Path:
    """Write the identity of a role if it changed, and return its path relative to ``root``."""
    file = IDENTITIES / f"{role}.json"
    files.write_if_changed(root / file, json.dumps(identity(role, root), indent=0) + "\n")
    return file


def role_of(path: str | Path) -> str:
    """The role of an identity file, or '' for any other file."""
    return Path(path).stem if Path(path).parent == IDENTITIES else ""


def unready(role: str, root: Path = Path()) -> str:
    """Why a job that needs a role cannot run, and what to do, or '' if it can. Hashes nothing (`checking.state`)."""
    current = state(role, root)
    if current == "missing" and stand_in(role):
        return ""
    if current == "missing":
        return f"{FOLDER / role / missing(role, root)[0]} is missing ({asset(role).title}). {how_to_get(role)}"
    if current == "altered":
        return f"'{role}' is cut or altered: `masquerade assets verify {role}` names the file."
    if current == "unrecorded":
        return f"'{role}' is there, but not in {LOCK}: `masquerade assets verify {role}` records it, if you trust it."
    if current == "rehearsal" and not rehearsal.is_rehearsing():
        return f"'{role}' was placed for a rehearsal: it only stands in for the published file. {how_to_get(role)}"
    return ""

"""The build of a commit: dvc.lock, params.yaml and the code, read through git. Nothing is checked out.

Files that DVC keeps are read from the working copy if their bytes are the same there, else from DVC's cache.
"""

import subprocess
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from masquerade.core.fingerprints import fingerprint_of, md5
from masquerade.lineage import stage_files
from masquerade.lineage.history import LineageError
from masquerade.lineage.stage_files import LOCK
from masquerade.params import blocks, overlays, paths


class Revision:
    """One commit, or the working copy if ``name`` is ''."""

    def __init__(self, name: str, root: Path = Path()):
        self.root, self.name = root, name
        commit = (
            self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}") if name else b""
        )
        if not commit and name:
            raise LineageError(f"git has no revision '{name}'. Give a commit, a branch, a tag, HEAD~1, ...")
        self.commit = (commit or b"").decode().strip()
        locks = self._locks()
        if not locks:
            raise LineageError(
                f"{LOCK} is not in {self}: no build was committed. Check that commit out, build it with "
                f"`snakemake all`, run `git add {LOCK} {stage_files.FOLDER}` and commit (see docs/lineage.md)."
            )
        self.stages = stage_files.stages(locks)
        self.made = {out["path"]: name for name, stage in self.stages.items() for out in stage.get("outs", ())}

    def __str__(self) -> str:
        return self.commit[:12] or "the working copy"

    @cached_property
    def scale(self) -> str:
        return self._yaml(blocks.PARAMS)["scale"]

    @cached_property
    def md5s(self) -> dict[str, str]:
        """Path -> md5 of every file that a stage read or wrote."""
        return {
            item["path"]: item["md5"]
            for stage in self.stages.values()
            for item in (*stage.get("deps", ()), *stage.get("outs", ()))
        }

    def parameters(self, keys: Iterable[str]) -> dict[str, Any]:
        """Parameters by dotted keys, without keys that are missing: params.yaml with the overlay of the scale."""
        values = {key: overlays.at(self._effective, key) for key in keys}
        return {key: value for key, value in values.items() if value is not overlays.MISSING}

    @cached_property
    def _effective(self) -> dict[str, Any]:
        layers = overlays.chain(self.scale, self._yaml)
        effective = dict(self._yaml(blocks.PARAMS))
        for layer in layers.values():
            effective = overlays.overlay(effective, layer)
        return effective

    def rule(self, stage: str) -> str:
        """The hash of the rule's command."""
        return self.stages[stage]["cmd"].rpartition("# rule ")[2]

    def content(self, path: str) -> bytes | None:
        """The bytes of a file that DVC keeps. Returns None when they are not on this machine."""
        digest, file = self.md5s[path], self.root / path
        if file.is_file() and md5(file) == digest:
            return file.read_bytes()
        cached = self._cache / digest[:2] / digest[2:]
        return cached.read_bytes() if cached.is_file() else None

    def read(self, path: str) -> str:
        """The text of a file that DVC keeps. Raises LineageError if it is not on this machine."""
        content = self.content(path)
        if content is None:
            raise LineageError(f"{path} of {self} is not in DVC's cache. Fetch it with `dvc fetch --all-commits`.")
        return content.decode()

    def fingerprint(self, source: str) -> str:
        """The fingerprint of a source file, '' if the revision has no such file."""
        text = self._text(source)
        return fingerprint_of(text, source) if text is not None else ""

    @cached_property
    def _cache(self) -> Path:
        from dvc.repo import Repo

        with Repo(str(self.root)) as repo:
            return Path(repo.cache.local.path)

    def _yaml(self, path: Path | str) -> Mapping[str, Any]:
        return yaml.load(self._text(str(path)) or "{}", Loader=yaml.CSafeLoader)

    def _locks(self) -> list[str]:
        """The text of every dvc.lock."""
        if not self.name:
            return [path.read_text(encoding="utf-8") for path in stage_files.present(LOCK, self.root)]
        listed = self._git("ls-tree", "-r", "--name-only", self.commit, LOCK, f"{stage_files.FOLDER.as_posix()}/")
        names = [name for name in (listed or b"").decode().splitlines() if name.rpartition("/")[2] == LOCK]
        return [text for name in names if (text := self._text(name)) is not None]

    def _text(self, path: str) -> str | None:
        if not self.name:
            file = self.root / path
            return file.read_text(encoding="utf-8") if file.is_file() else None
        content = self._git("cat-file", "blob", f"{self.commit}:./{path}", missing=None)
        return None if content is None else content.decode()

    def _git(self, *arguments: str, missing: bytes | None = b"") -> bytes | None:
        try:
            done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, check=False, timeout=60)
        except OSError as error:
            raise LineageError(f"git does not run ({error}), and revisions are read with it. Install git.") from error
        return missing if done.returncode else done.stdout


def is_code(path: str) -> bool:
    """Whether a dependency is the file of fingerprints of a step's code."""
    return path.startswith(f"{paths.CODE}/")


def is_slice(path: str) -> bool:
    """Whether a dependency is the file of a slice of the parameters."""
    return path.startswith(".masquerade/params/")

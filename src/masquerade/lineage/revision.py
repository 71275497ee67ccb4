"""A build as a commit knows it: dvc.lock, params.yaml and the code, read through git; nothing is checked out.

Bytes that DVC keeps are read from the working copy where they are the same, else from DVC's cache.
"""

import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from masquerade import params
from masquerade.lineage.fingerprints import fingerprint_of, md5
from masquerade.lineage.history import CODE, LineageError

LOCK = "dvc.lock"


class Revision:
    """One commit, or the working copy (``name`` '')."""

    def __init__(self, name: str, root: Path = Path()):
        self.root, self.name = root, name
        self.commit = (
            self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}") if name else b""
        )
        if name and not self.commit:
            raise LineageError(f"git knows no revision '{name}'. Give a commit, a branch, a tag, HEAD~1, ...")
        self.commit = self.commit.decode().strip()
        lock = self._text(LOCK)
        if lock is None:
            raise LineageError(
                f"{LOCK} is not in {self}: its build was never committed. Check that commit out, build it with "
                f"`snakemake all`, then `git add {LOCK}` and commit (see docs/lineage.md)."
            )
        self.stages: dict[str, Any] = yaml.load(lock, Loader=yaml.CSafeLoader)["stages"]
        self.made = {out["path"]: name for name, stage in self.stages.items() for out in stage.get("outs", ())}

    def __str__(self) -> str:
        return self.commit[:12] or "the working copy"

    @cached_property
    def scale(self) -> str:
        return self._yaml(params.PARAMS)["scale"]

    @cached_property
    def md5s(self) -> dict[str, str]:
        """Path -> md5 of everything that stages read and wrote."""
        return {
            item["path"]: item["md5"]
            for stage in self.stages.values()
            for item in (*stage.get("deps", ()), *stage.get("outs", ()))
        }

    def parameters(self, stage: str) -> dict[str, Any]:
        """What a stage was made with, by dotted keys: params.yaml with the overlay of the scale."""
        files = self.stages[stage].get("params", {})
        over = files.get(f"{params.SCALES}/{self.scale}.yaml", {})
        base = files.get(str(params.PARAMS), {})
        return {
            key: params.overlay({"": base.get(key)}, {"": over[key]}).get("") if key in over else base[key]
            for key in {**base, **over}
        }

    def rule(self, stage: str) -> str:
        """The hash of the rule's command."""
        return self.stages[stage]["cmd"].rpartition("# rule ")[2]

    def content(self, path: str) -> bytes | None:
        """What DVC keeps under a path; None where its bytes are not on this machine."""
        known, here = self.md5s[path], self.root / path
        if here.is_file() and md5(here) == known:
            return here.read_bytes()
        cached = self._cache / known[:2] / known[2:]
        return cached.read_bytes() if cached.is_file() else None

    def read(self, path: str) -> str:
        """The text that DVC keeps under a path. Raises LineageError where its bytes are not on this machine."""
        found = self.content(path)
        if found is None:
            raise LineageError(f"{path} of {self} is not in DVC's cache: `dvc fetch --all-commits` brings it.")
        return found.decode()

    def fingerprint(self, source: str) -> str:
        """The fingerprint of a source file; '' where there is none."""
        text = self._text(source)
        return fingerprint_of(text, source) if text is not None else ""

    @cached_property
    def _cache(self) -> Path:
        from dvc.repo import Repo

        with Repo(str(self.root)) as repo:
            return Path(repo.cache.local.path)

    def _yaml(self, path: Path) -> Mapping[str, Any]:
        return yaml.load(self._text(str(path)) or "{}", Loader=yaml.CSafeLoader)

    def _text(self, path: str) -> str | None:
        if not self.name:
            file = self.root / path
            return file.read_text(encoding="utf-8") if file.is_file() else None
        found = self._git("cat-file", "blob", f"{self.commit}:./{path}", missing=None)
        return None if found is None else found.decode()

    def _git(self, *arguments: str, missing: bytes | None = b"") -> bytes | None:
        try:
            done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, check=False, timeout=60)
        except OSError as error:
            raise LineageError(f"git cannot be run ({error}); revisions are read through it.") from error
        return missing if done.returncode else done.stdout


def is_code(path: str) -> bool:
    """Whether a dependency is the fingerprints of a step's code."""
    return path.startswith(CODE)

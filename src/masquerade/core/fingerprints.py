"""Hashes of files, the commit of the working copy, and fingerprints of code.

The code of a step is its import closure, without comments, layout and docstrings.
"""

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from masquerade.core import files

SOURCE = Path(__file__).parents[2]
PACKAGES = (Path(__file__).parents[1].name, "drawnpeople")
"""The packages of this repository: their modules are the code of a step."""
RECORDERS = ("lineage/tracking.py", "lineage/publishing.py", "lineage/provenance.py")
"""Modules that record or check a step and cannot change what it computes: an edit of them reruns nothing."""
CACHE = ".known.json"
"""The file beside the fingerprints that keeps what was parsed before. It may be deleted at any time."""


def find_closure(*roots: Path) -> list[Path]:
    """The given files and every module of the PACKAGES that they import, directly or indirectly.

    Imports inside functions count. Imports for type checkers and the RECORDERS do not.
    """
    closed: set[Path] = set()
    waiting = [Path(root).resolve() for root in roots]
    while waiting:
        path = waiting.pop()
        if path in closed or path.as_posix().endswith(RECORDERS):
            continue
        closed.add(path)
        waiting += _imports(path)
    return sorted(closed)


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    modules = _modules(SOURCE)
    imported: set[Path] = set()
    for name in _source(path).imports:
        parts = name.split(".")
        for length in range(1, len(parts) + 1):  # importing a.b.c runs a/__init__ and a/b/__init__ too
            imported |= modules.get(".".join(parts[:length]), set())
    return tuple(sorted(imported))


@cache
def _modules(source: Path) -> dict[str, set[Path]]:
    """Module -> its files. Lists the folder once, because single look-ups are slow on the disk of a cluster."""
    modules: dict[str, set[Path]] = {}
    for path in (path for package in PACKAGES for path in (source / package).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        modules.setdefault(".".join(parts[:-1] if parts[-1] == "__init__" else parts), set()).add(path)
    return modules


def fingerprint(path: Path) -> str:
    """A hash of the syntax tree of a source file, without comments, layout and docstrings."""
    return _source(path).fingerprint


def fingerprint_source(source: str, name: str = "<source>") -> str:
    """The `fingerprint` of a file with this content. ``name`` is for the text of a SyntaxError."""
    return _without_docstrings(ast.parse(source, name))


class _Source(NamedTuple):
    """What follows from the text of a source file alone."""

    fingerprint: str
    imports: list[str]
    """The names that it imports from the PACKAGES: modules, and names in modules."""


_parsed: dict[str, _Source] = {}
"""Hash of the text -> what follows from it. Parsing takes time, and few files change between two runs."""


@cache
def _source(path: Path) -> _Source:
    text = path.read_bytes()
    key = hashlib.sha256(_rules() + text).hexdigest()
    if key not in _parsed:
        tree = ast.parse(text, str(path))
        imports = sorted(name for name in _list_imports(tree) if name.split(".")[0] in PACKAGES)
        _parsed[key] = _Source(_without_docstrings(tree), imports)
    return _parsed[key]


@cache
def _rules() -> bytes:
    """What a fingerprint depends on besides the text: this module, and the syntax trees of this Python."""
    return f"{PACKAGES} {sys.version_info[:2]}".encode() + Path(__file__).read_bytes()


def _list_imports(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in _walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _walk(node: ast.AST) -> Iterable[ast.AST]:
    """Every node except the bodies of ``if TYPE_CHECKING:``."""
    yield node
    for child in ast.iter_child_nodes(node):
        checking = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        yield from (() if checking else _walk(child))


def _without_docstrings(tree: ast.Module) -> str:
    node: Any
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [item for item in body if not _is_docstring(item)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def write_fingerprints(output: Path, roots: Iterable[Path], root: Path) -> Path:
    """Write the fingerprints of the closure of ``roots`` to ``output`` (JSON) if they changed, and return ``output``.

    The file ``CACHE`` beside it spares the next process the parsing.
    """
    cache_file = output.with_name(CACHE)
    recall(cache_file)
    count = len(_parsed)
    files.write_if_changed(output, _text({_relative(path, root): fingerprint(path) for path in find_closure(*roots)}))
    if len(_parsed) > count:
        files.write_if_changed(cache_file, json.dumps(_parsed))
    return output


def closure_sha256(fingerprints: Mapping[str, str]) -> str:
    """The SHA-256 of the file that `write_fingerprints` writes for these fingerprints (source file -> fingerprint)."""
    return hashlib.sha256(_text(fingerprints).encode()).hexdigest()


def _text(fingerprints: Mapping[str, str]) -> str:
    return json.dumps(fingerprints, indent=0)


@cache
def recall(cache_file: Path) -> None:
    """Spare this process the parsing of the sources whose fingerprints are in a file ``CACHE``."""
    with suppress(OSError, ValueError):  # missing or damaged: everything is parsed again
        entries = json.loads(cache_file.read_text(encoding="utf-8"))
        _parsed.update({key: _Source(*value) for key, value in entries.items()})


@cache
def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root.resolve()).as_posix()


def md5(path: Path) -> str:
    """The MD5 of a file's content in hexadecimal, as DVC writes it."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def describe_commit() -> str:
    """The commit of the current folder, with ``+`` if it has uncommitted changes.

    'unknown' for a folder without ``.git``, such as a copy of the files inside another repository. Changes of dvc.lock
    and records/ do not count, because a build writes these files. `git status` also updates git's index: otherwise git
    reads the files of a fresh clone each time, because they are as old as the index.
    """
    try:
        head = run_git(Path(), "rev-parse", "HEAD")
        written = [f":(top,exclude){name}" for name in ("dvc.lock", "records")]
        changed = run_git(Path(), "status", "--porcelain", "--untracked-files=no", "--", ":/", *written)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return "unknown" if head.returncode or changed.returncode else f"{head.stdout.strip()}{'+' * bool(changed.stdout)}"


GIT_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
)
"""Variables that name another repository. Git sets some of them for its hooks."""
GIT_SECONDS = 60.0
"""Seconds after which git is stopped."""


def run_git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in ``root``, the top folder of a working copy. What it prints is read as UTF-8.

    It fails (``returncode``) in a folder without ``.git``, also when that folder lies inside another repository: the
    commit of that one says nothing about the code here. Raises OSError if git does not run, and
    subprocess.TimeoutExpired after LONGEST seconds.
    """
    environment = {name: value for name, value in os.environ.items() if name not in GIT_VARIABLES}
    environment["GIT_CEILING_DIRECTORIES"] = str(root.resolve().parent)
    return subprocess.run(
        ["git", *arguments], cwd=root, env=environment, capture_output=True, encoding="utf-8", errors="replace",
        check=False, timeout=GIT_SECONDS,
    )  # fmt: skip

"""Which code made a number: the import closure of a step, hashed so that comments and layout do not count."""

import ast
import hashlib
import json
import subprocess
import sys
import uuid
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2]
PACKAGE = Path(__file__).parents[1].name
# They watch a step and cannot change what it computes: an edit there reruns nothing.
RECORDERS = ("tracking.py", "provenance.py")
KNOWN = ".known.json"
"""Beside the fingerprints: what was learnt of each text, a line an edit; it may be deleted at any time."""


def closure(*roots: Path) -> list[Path]:
    """The given files and every module of the package that they import, directly or through others.

    Imports inside functions count; imports for type checkers alone do not, nor do the RECORDERS.
    """
    found: set[Path] = set()
    waiting = [Path(root).resolve() for root in roots]
    while waiting:
        path = waiting.pop()
        if path in found or path.name in RECORDERS:
            continue
        found.add(path)
        waiting += _imports(path)
    return sorted(found)


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    there = _modules(SOURCE)
    files: set[Path] = set()
    for name in _source(path).imports:
        parts = name.split(".")
        for length in range(1, len(parts) + 1):  # importing a.b.c runs a/__init__ and a/b/__init__ too
            files |= there.get(".".join(parts[:length]), set())
    return tuple(sorted(files))


@cache
def _modules(source: Path) -> dict[str, set[Path]]:
    """The files of each module: listed once, because asking for one file at a time is slow on a cluster's disk."""
    found: dict[str, set[Path]] = {}
    for path in (source / PACKAGE).rglob("*.py"):
        parts = path.relative_to(source).with_suffix("").parts
        found.setdefault(".".join(parts[:-1] if parts[-1] == "__init__" else parts), set()).add(path)
    return found


def fingerprint(path: Path) -> str:
    """A hash of what a source file does: its syntax tree without comments, layout and docstrings."""
    return _source(path).fingerprint


def fingerprint_of(source: str, name: str = "<source>") -> str:
    """The `fingerprint` of a file with this content; ``name`` is told where it is not valid Python."""
    return _without_docstrings(ast.parse(source, name))


class _Source(NamedTuple):
    """What is known of a source file from its text alone."""

    fingerprint: str
    imports: list[str]
    """The names in the package that it imports, whether a module or something in one."""


_known: dict[str, _Source] = {}
"""By a hash of the text: a syntax tree takes time, and few files change between two plannings."""


@cache
def _source(path: Path) -> _Source:
    text = path.read_bytes()
    key = hashlib.sha256(_rules() + text).hexdigest()
    if key not in _known:
        tree = ast.parse(text, str(path))
        imports = sorted(name for name in _imported(tree) if name.split(".")[0] == PACKAGE)
        _known[key] = _Source(_without_docstrings(tree), imports)
    return _known[key]


@cache
def _rules() -> bytes:
    """What decides on a fingerprint beside the text: this module, and how this Python writes syntax trees."""
    return f"{PACKAGE} {sys.version_info[:2]}".encode() + Path(__file__).read_bytes()


def _imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in _walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _walk(node: ast.AST) -> Iterable[ast.AST]:
    """Every node but the bodies of ``if TYPE_CHECKING:``."""
    yield node
    for child in ast.iter_child_nodes(node):
        checking = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        yield from (() if checking else _walk(child))


def _without_docstrings(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [item for item in body if not _is_docstring(item)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def write_fingerprints(output: Path, roots: Iterable[Path], root: Path) -> Path:
    """Write the fingerprints of the closure of ``roots`` to ``output`` (JSON), but only if they changed.

    What was learnt of the files stays beside it, in ``KNOWN``, for the next process.
    """
    memory = output.with_name(KNOWN)
    _recall(memory)
    known = len(_known)
    _write(output, json.dumps({_relative(path, root): fingerprint(path) for path in closure(*roots)}, indent=0))
    if len(_known) > known:
        _write(memory, json.dumps(_known))
    return output


@cache
def _recall(memory: Path) -> None:
    with suppress(OSError, ValueError):  # there is none yet, or none that can be read: all is learnt anew
        _known.update({key: _Source(*value) for key, value in json.loads(memory.read_text(encoding="utf-8")).items()})


def _write(output: Path, text: str) -> None:
    if not output.is_file() or output.read_text(encoding="utf-8") != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary = output.with_name(f".{output.name}.{uuid.uuid4().hex}.part")  # many jobs may plan at one time
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(output)


@cache
def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root.resolve()).as_posix()


def md5(path: Path) -> str:
    """The hash of a file's content, as DVC writes it."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


@cache
def commit() -> str:
    """The commit of the working copy, with ``+`` where it has uncommitted changes; 'unknown' outside git.

    dvc.lock does not count: it is what a build writes of itself.
    """
    try:
        head = _git("rev-parse", "HEAD").stdout.strip()
        changed = _git("diff", "--quiet", "HEAD", "--", ":/", ":(top,exclude)dvc.lock", check=False).returncode
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{head}{'+' if changed else ''}"


def _git(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=check, timeout=20)

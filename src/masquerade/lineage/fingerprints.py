"""Which code made a number: the import closure of a step, hashed so that comments and layout do not count."""

import ast
import hashlib
import json
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2]
PACKAGE = Path(__file__).parents[1].name
# They watch a step and cannot change what it computes: an edit there reruns nothing.
RECORDERS = ("tracking.py", "provenance.py")


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
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    names: set[str] = set()
    for node in _walk(_tree(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    files: set[Path] = set()
    for name in names:
        parts = name.split(".")
        if parts[0] == PACKAGE:
            for length in range(1, len(parts) + 1):  # importing a.b.c runs a/__init__ and a/b/__init__ too
                files |= _files(SOURCE.joinpath(*parts[:length]))
    return tuple(sorted(files))


def _walk(node: ast.AST) -> Iterable[ast.AST]:
    """Every node but the bodies of ``if TYPE_CHECKING:``."""
    yield node
    for child in ast.iter_child_nodes(node):
        checking = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        yield from (() if checking else _walk(child))


def _files(stem: Path) -> set[Path]:
    return {path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()}


@cache
def fingerprint(path: Path) -> str:
    """A hash of what a source file does: its syntax tree without comments, layout and docstrings."""
    return fingerprint_of(path.read_text(encoding="utf-8"), str(path))


def fingerprint_of(source: str, name: str = "<source>") -> str:
    """The `fingerprint` of a file with this content; ``name`` is told where it is not valid Python."""
    tree = ast.parse(source, name)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [item for item in body if not _is_docstring(item)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def write_fingerprints(output: Path, roots: Iterable[Path], root: Path) -> Path:
    """Write the fingerprints of the closure of ``roots`` to ``output`` (JSON), but only if they changed."""
    text = json.dumps({_relative(path, root): fingerprint(path) for path in closure(*roots)}, indent=0)
    if not output.is_file() or output.read_text(encoding="utf-8") != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary = output.with_name(f".{output.name}.part")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(output)
    return output


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

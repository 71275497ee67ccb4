"""Where DVC's stages lie: each rule has a folder in workflow/stages/, and in it each of its methods or papers has one.

A folder holds a dvc.yaml and a dvc.lock. DVC reads and writes a whole dvc.lock whenever a stage has run, at 7 ms a
stage of the file. The stages that no other stage needs lie in the root, because ``dvc repro`` there runs them and all
that they depend on.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

DVC_YAML, LOCK = "dvc.yaml", "dvc.lock"
FOLDER = Path("workflow/stages")


def of_rule(rule: str, subject: str = "") -> str:
    """The dvc.yaml with the stages of a rule for one method or paper, or of a rule that has neither."""
    return (FOLDER / rule / subject / DVC_YAML).as_posix()


def root_from(file: str) -> str:
    """The root of the repository, relative to the folder of a file of `of_rule`: DVC's ``wdir``."""
    return "/".join([".."] * (len(Path(file).parts) - 1))


def present(name: str, root: Path = Path()) -> list[Path]:
    """Every file with this name (DVC_YAML or LOCK) below ``root``."""
    return [path for path in (root / name, *sorted((root / FOLDER).glob(f"**/{name}"))) if path.is_file()]


def read(name: str, root: Path = Path()) -> dict[str, Any]:
    """Name -> content of the stages in every file with this name."""
    return stages(path.read_text(encoding="utf-8") for path in present(name, root))


def stages(texts: Iterable[str]) -> dict[str, Any]:
    """Name -> content of the stages in several files."""
    contents = (yaml.load(text, Loader=yaml.CSafeLoader) for text in texts)  # a safe loader
    return {name: stage for content in contents for name, stage in content.get("stages", {}).items()}


def write(texts: dict[str, str], root: Path = Path()) -> None:
    """Write every dvc.yaml (path -> text). Removes the folders of rules that have no stages."""
    for path in present(DVC_YAML, root):
        if path.relative_to(root).as_posix() not in texts:
            path.unlink()
            path.with_name(LOCK).unlink(missing_ok=True)
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")

"""The option ``--root`` of the commands of the pipeline, which need a clone."""

from pathlib import Path
from typing import Annotated

import typer


def _clone(given: Path) -> Path:
    from masquerade.params import repository

    return repository.require_clone(given)


Root = Annotated[Path, typer.Option("--root", callback=_clone, help="The clone. Default: the current folder.")]

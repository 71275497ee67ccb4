"""Whose faces may leave this machine: those of real people only if `share_originals` in params.yaml names the dataset.

A dataset is private otherwise. Its own files below data/ hold its faces and whatever is made of single faces: latent
codes, embeddings, measurements, anonymized and recovered images. `is_private` is true of them: DVC ignores them, and
MLflow, figures, the report and the crate take nothing from them. Numbers, tables and networks leave.
"""

import os
from collections.abc import Collection, Iterable
from pathlib import Path, PurePath

from masquerade.core import discovery
from masquerade.params.paths import DATA

VARIABLE = "MASQUERADE_PRIVATE"
"""Environment variable of a job: the private datasets. If it is missing, no dataset of real people is shared."""
IGNORE = Path(".dvcignore")
HEAD = "# Faces of real people stay on this machine. Snakemake writes these lines: docs/sharing.md."


def list_private_datasets(
    shared: Iterable[str] = (), train_on: str = "", evaluated: Iterable[str] = ()
) -> frozenset[str]:
    """The datasets whose faces stay here: those of real people that ``shared`` does not name.

    If the dataset that methods learn from stays here, every evaluated one does: galleries show its people.
    """
    real = {name for name in discovery.list_names("faces") if not discovery.load("faces", name).synthetic}
    private = real - {*shared}
    return frozenset(private.union(evaluated) if train_on in private else private)


def declare(private: Collection[str]) -> None:
    """State the private datasets to this process and to the jobs that it starts."""
    os.environ[VARIABLE] = " ".join(sorted(private))


def read_declared() -> frozenset[str]:
    """The private datasets that were stated to this process."""
    names = os.environ.get(VARIABLE)
    return list_private_datasets() if names is None else frozenset(names.split())


def is_private(path: PurePath | str, private: Collection[str]) -> bool:
    """Whether a file stays on this machine, because it is one of a private dataset below data/."""
    _, folder, names = f"/{PurePath(path).as_posix()}".partition(f"/{DATA}")
    return bool(folder) and any(name.split(".")[0] in private for name in names.split("/"))


def explain_withheld(dataset: str) -> str:
    """The sentence in the place of images of a private dataset."""
    return (
        f"No image of {dataset} is shown: its faces are of real people, or made of theirs, and params.yaml does not "
        "share them (share_originals)."
    )


def write_dvcignore(private: Collection[str], root: Path = Path()) -> bool:
    """Make .dvcignore name the files that `is_private` is true of. Returns whether it lacked some of them before."""
    file = root / IGNORE
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    lines = [line for name in sorted(private) for line in (f"/{DATA}**/{name}/", f"/{DATA}**/{name}.*")]
    expected = "\n".join([text.partition(HEAD)[0].rstrip("\n"), "", HEAD, *lines, ""])
    if expected != text:
        file.write_text(expected, encoding="utf-8")
    return not {*lines} <= {*text.splitlines()}

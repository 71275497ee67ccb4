"""What a crate says of single things: files with their licenses and hashes, people, and whatever else has a name."""

from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade.assets.entries import asset
from masquerade.assets.identity import identity, role_of
from masquerade.lineage.history import History, LineageError
from masquerade.lineage.licenses import SPDX, of_faces
from masquerade.params import paths, sharing

if TYPE_CHECKING:
    from rocrate.model import Entity

SUFFIXES = {
    ".csv": "text/csv", ".md": "text/markdown", ".tex": "application/x-tex", ".json": "application/json",
    ".png": "image/png", ".svg": "image/svg+xml", ".yaml": "application/yaml", ".py": "text/x-python",
    ".zip": "application/zip", ".parquet": "application/vnd.apache.parquet",
}  # fmt: skip


class Things:
    """The things of a crate, each added once. ``with_data``: the files of data/ and checkpoints/ are inside.

    ``terms``: terms of use of the run's files; '' for none. ``private``: the datasets whose files stay outside.
    """

    def __init__(
        self, root: Path, history: History, with_data: bool, terms: str = "", private: Collection[str] = frozenset()
    ):
        from rocrate.rocrate import ROCrate

        self.root, self.history, self.with_data, self.terms = root, history, with_data, terms
        self.private = private
        self.crate = ROCrate(version="1.1")
        self.files: dict[str, Entity] = {}

    def add(self, identifier: str, kind: str, /, **properties: Any) -> "Entity":
        """A thing of this kind of schema.org."""
        from rocrate.model import ContextEntity

        return self.crate.add(ContextEntity(self.crate, identifier, properties={"@type": kind, **properties}))

    def license(self, identifier: str) -> "Entity":
        """A license by its SPDX identifier; ``LicenseRef-...`` for one that is not on SPDX's list."""
        place = f"#{identifier}" if identifier.startswith("LicenseRef-") else f"{SPDX}{identifier}"
        return self.crate.get(place) or self.add(place, "CreativeWork", name=identifier, identifier=place)

    def person(self, number: int, author: dict[str, str]) -> "Entity":
        """The author with this number of CITATION.cff, a person or an organization."""
        if "name" in author:
            return self.add(f"#author-{number}", "Organization", name=author["name"])
        name = f"{author.get('given-names', '')} {author.get('family-names', '')}".strip()
        return self.add(author.get("orcid", f"#author-{number}"), "Person", name=name)

    def file(self, path: str, license: str | None = None) -> "Entity":
        """A file of the run. Files of data/ and checkpoints/ are outside the crate, with their hashes, by default."""
        if path in self.files:
            return self.files[path]
        if role := role_of(path):
            self.files[path] = self._outside(role)
            return self.files[path]
        kind = SUFFIXES.get(Path(path).suffix, "application/octet-stream" if self.history.maker(path) else "text/plain")
        about: dict[str, Any] = {"name": path, "encodingFormat": kind}
        job = self.history.maker(path)
        if job and job.outputs[path]:
            about["identifier"] = f"md5:{job.outputs[path]}"
        stated = license or of_faces("the datasets", self._drawn, self.terms)
        about["license"] = self.license(stated) if " " not in stated else stated
        source = self.root / path
        folders = paths.BUILT if self.with_data else (paths.RESULTS,)
        inside = license is not None or (path.startswith(folders) and not sharing.stays(path, self.private))
        if source.is_file():
            about["contentSize"] = str(source.stat().st_size)
        elif inside:
            raise LineageError(f"{path} is missing. Build it with `snakemake {path}`, or fetch it with `dvc pull`.")
        self.files[path] = (
            self.crate.add_file(source, path, properties=about)
            if inside
            else self.add(f"#{path}", "CreativeWork", **about)
        )
        return self.files[path]

    def _outside(self, role: str) -> "Entity":
        """A weight file or dataset from outside, with the hashes of its parts. It never goes into the crate."""
        entry = asset(role)
        hashes = [f"sha256:{sha256}" for sha256 in identity(role, self.root).values() if sha256]
        return self.add(
            f"#outside-{role}", "CreativeWork", name=f"{role}: {entry.title}", description=entry.source,
            license=entry.license if " " in entry.license else self.license(entry.license),
            conditionsOfAccess=f"Redistribution: {entry.redistribution}.",
            **({"identifier": one(hashes)} if hashes else {}), **({"usageInfo": entry.terms} if entry.terms else {}),
        )  # fmt: skip

    @cached_property
    def _drawn(self) -> bool:
        """Whether all datasets of this run are drawn, so that none was made from files."""
        jobs = (self.history.maker(path) for path in self.history.outputs())
        return all(job.drawn for job in jobs if job and job.rule == "faces")


def one(values: list[Any]) -> Any:
    """A list with one value becomes the value, as RO-Crate writes it."""
    return values[0] if len(values) == 1 else values

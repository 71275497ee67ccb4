"""A registry of a few files in a repository of its own, for tests of assets."""

import bz2
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

from masquerade import assets
from masquerade.assets import entries, installing

BYTES = b"weights of a network" * 1000
SHA256 = hashlib.sha256(BYTES).hexdigest()


def remote(**known):
    return {"urls": (), "size": None, "sha256": None, "md5": None, "vouched": ""} | known


def about(**known):
    return {
        "title": "a network", "source": "a test", "roughly": "", "license": "MIT", "terms": "", "steps": (),
        "redistribution": "anybody", "papers": (),
    } | known  # fmt: skip


def weights(name="net.pt", archives=(), more=None, **known):
    file = entries.File(name=name, **remote(**known))
    return entries.Weights(**about(**(more or {})), file=file, archives=archives, layout="", loader="",
                            preprocessing=None)  # fmt: skip


def toy_registry(monkeypatch, tmp_path):
    """A registry of a few roles in a separate repository, which is the working directory."""
    archive = entries.Archive(name="net.tar", member="inside/net.pt", **remote())
    pictures = (
        entries.Folder(name="pictures", count=2, instead_of=("pictures.zip",)),
        entries.Folder(name="more", count=None, instead_of=()),
    )
    lists = tuple(entries.File(name=name, **remote()) for name in ("list.txt", "pictures.zip"))
    roles = {
        "unknown": weights(archives=(archive,)),
        "published": weights(size=len(BYTES), sha256=SHA256),
        "by_md5": weights(md5=hashlib.md5(BYTES).hexdigest()),
        "form": weights(more={"steps": ("Ask nicely.", "Place it.")}),
        "people": entries.Dataset(**about(), files=lists, folders=pictures, within=("Anno",)),
    }
    monkeypatch.setattr(entries, "registry", lambda: roles)
    monkeypatch.setattr(assets, "registry", lambda: roles)
    monkeypatch.chdir(tmp_path)
    return roles


def put(role: str, content: bytes = BYTES, name: str = "net.pt") -> Path:
    file = Path("assets", role, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def given_file(content: bytes = BYTES, name: str = "download.pt") -> Path:
    Path(name).write_bytes(content)
    return Path(name)


def placed(role: str, content: bytes = BYTES, name: str = "download.pt", rehearsal: bool = False) -> list[str]:
    messages = []
    installing.place(given_file(content, name), role, rehearsal, messages.append)
    return messages


def archive(kind: str, members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as made:
            for name, content in members.items():
                made.writestr(name, content)
    elif kind == "bz2":
        return bz2.compress(members[""])
    else:
        with tarfile.open(fileobj=stream, mode=kind) as made:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                made.addfile(info, io.BytesIO(content))
    return stream.getvalue()

"""A canary: a marked secret goes through both commands, and then every file that was written is searched for it."""

import base64
import gzip
import hashlib
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from PIL import Image
from skimage.data import astronaut

from masquerade.core import keys

pytestmark = pytest.mark.workflow
CANARY = b"/".join([b"Canary-7f3Q", b"yellow bird+singing=2026"])  # in two pieces: this file is searched as well


def encodings(secret: bytes) -> dict[str, bytes]:
    """The secret as it could have slipped into a file: as text and as bytes, and what is derived from it."""
    text = secret.decode()
    found = {
        "itself": secret,
        "reversed": secret[::-1],
        "UTF-16": text.encode("utf-16-le"),
        "URL": quote(text).encode(),
    }
    for name, value in {
        "secret": secret,
        "key": keys.stretched(secret),
        "sha256": hashlib.sha256(secret).digest(),
        "md5": hashlib.md5(secret).digest(),
    }.items():
        found |= {f"{name}, hex": value.hex().encode(), f"{name}, HEX": value.hex().upper().encode()}
        # base64 may begin at any byte of what surrounds it: the middle is the same in one of three alignments
        for shift in range(3):
            found[f"{name}, base64 {shift}"] = base64.b64encode(b"\0" * shift + value)[4:-4]
        if name != "secret":
            found[f"{name}, bytes"] = value
        found[f"{name}, escaped"] = repr(value)[2:-1].encode()
        found[f"{name}, numbers"] = ", ".join(map(str, value)).encode()
    return found


def contents(path: Path) -> Iterator[bytes]:
    """The bytes of a file, and what is packed in it."""
    data = path.read_bytes()
    yield data
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as entries:
            for name in entries.namelist():
                yield name.encode() + entries.read(name)
    elif path.suffix == ".parquet":
        table = pq.read_table(path)
        yield repr(table.schema.metadata).encode() + repr(table.to_pydict()).encode()
    elif path.suffix == ".db":
        with sqlite3.connect(path) as database:
            yield "\n".join(database.iterdump()).encode()
    elif data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data)
    elif path.suffix == ".png":
        with Image.open(path) as picture:
            yield picture.tobytes() + repr(picture.info).encode()


def leaks(root: Path, secret: bytes, but: Path) -> list[str]:
    """Where the secret can be found below ``root``: file and encoding; ``but`` is the key file itself."""
    wanted = encodings(secret)
    return [
        f"{path.relative_to(root)}: {how}"
        for path in sorted(root.rglob("*"))
        if path.is_file() and path != but
        for data in [str(path).encode(), *contents(path)]
        for how, needle in wanted.items()
        if needle in data
    ]


def test_search_finds_what_is_hidden(tmp_path):
    (tmp_path / "log").write_text(f"key={base64.b64encode(b'x' + CANARY).decode()}")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("note", CANARY)
    (tmp_path / "derived").write_text(keys.stretched(CANARY).hex())
    (tmp_path / "innocent").write_text("a bird sang")
    found = {line.split(":")[0] for line in leaks(tmp_path, CANARY, tmp_path / "key")}
    assert found == {"log", "archive.zip", "derived"}


def test_secret_of_a_person_is_found_in_no_file(built, tmp_path):
    photographs, key = tmp_path / "photographs", tmp_path / "key"
    photographs.mkdir()
    Image.fromarray(astronaut()[0:300, 80:380]).save(photographs / "somebody.jpg", quality=95)
    key.write_bytes(CANARY + b"\n")
    (tmp_path / "temporary").mkdir()
    built.environment |= {"TMPDIR": str(tmp_path / "temporary")}
    said = ""
    for method in ("ifadit", "riddle", "fit"):
        hidden, shown = tmp_path / f"hidden_{method}", tmp_path / f"shown_{method}"
        for command, source, target in (("anonymize", photographs, hidden), ("recover", hidden, shown)):
            places = ("--input", str(source), "--output", str(target), "--key-file", str(key))
            seed = ("--seed", "1") if command == "anonymize" else ()
            said += built.run("masquerade", "--debug", command, "--method", method, *places, *seed)
        assert list(shown.glob("*.png")), said
    assert not [how for how, needle in encodings(CANARY).items() if needle in said.encode()]
    assert leaks(tmp_path, CANARY, key) == []

"""A canary: both commands get a marked secret. Afterwards every file that they wrote is searched for it."""

import base64
import gzip
import hashlib
import json
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
from masquerade.pipeline.outputs import REPORT, read_report

pytestmark = pytest.mark.workflow
CANARY = b"/".join([b"Canary-7f3Q", b"yellow bird+singing=2026"])  # in two pieces: this file is searched, too


def encodings(secret: bytes) -> dict[str, bytes]:
    """Every form in which the secret could be in a file: as text, as bytes, and as values derived from it."""
    text = secret.decode()
    encoded = {
        "itself": secret,
        "reversed": secret[::-1],
        "UTF-16": text.encode("utf-16-le"),
        "URL": quote(text).encode(),
    }
    for name, value in {
        "secret": secret,
        "key": keys.stretch(secret),
        "sha256": hashlib.sha256(secret).digest(),
        "md5": hashlib.md5(secret).digest(),
    }.items():
        encoded |= {f"{name}, hex": value.hex().encode(), f"{name}, HEX": value.hex().upper().encode()}
        # base64 of surrounding bytes can start anywhere; its middle equals one of three alignments
        for shift in range(3):
            encoded[f"{name}, base64 {shift}"] = base64.b64encode(b"\0" * shift + value)[4:-4]
        if name != "secret":
            encoded[f"{name}, bytes"] = value
        encoded[f"{name}, escaped"] = repr(value)[2:-1].encode()
        encoded[f"{name}, numbers"] = ", ".join(map(str, value)).encode()
    return encoded


def contents(path: Path) -> Iterator[bytes]:
    """The bytes of a file, and the unpacked contents of archives, tables, databases and images."""
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


def holds_key(path: Path, key: bytes) -> bool:
    """Whether a file holds the key of an image, as bytes or in digits."""
    return any(needle in data for data in contents(path) for needle in (key, key.hex().encode(), base64.b64encode(key)))


def leaks(root: Path, secret: bytes, key: Path) -> list[str]:
    """File and encoding of every occurrence of the secret in a file below ``root`` that is not older than ``key``.

    ``key``: the key file, which is left out.
    """
    encoded, since = encodings(secret), key.stat().st_mtime
    return [
        f"{path.relative_to(root)}: {how}"
        for path in sorted(root.rglob("*"))
        if path.is_file() and path != key and path.stat().st_mtime >= since
        for data in [str(path).encode(), *contents(path)]
        for how, needle in encoded.items()
        if needle in data
    ]


def test_search_finds_an_encoded_secret(tmp_path):
    (tmp_path / "key").write_bytes(CANARY)
    (tmp_path / "log").write_text(f"key={base64.b64encode(b'x' + CANARY).decode()}")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("note", CANARY)
    (tmp_path / "derived").write_text(keys.stretch(CANARY).hex())
    (tmp_path / "innocent").write_text("a bird sang")
    files = {line.split(":")[0] for line in leaks(tmp_path, CANARY, tmp_path / "key")}
    assert files == {"log", "archive.zip", "derived"}


COMMANDS = """
import json, sys
from masquerade.cli import main
for arguments in json.loads(sys.argv[1]):
    try:
        main.main(arguments)
    except SystemExit as end:
        assert not end.code, arguments
"""
"""Several commands in one process: each would import its libraries for seconds."""


def test_no_file_holds_the_secret_of_a_person(narrow, tmp_path):
    photographs, key = tmp_path / "photographs", tmp_path / "key"
    photographs.mkdir()
    Image.fromarray(astronaut()[0:300, 80:380]).save(photographs / "somebody.jpg", quality=95)
    key.write_bytes(CANARY + b"\n")
    (tmp_path / "temporary").mkdir()
    narrow.environment |= {"TMPDIR": str(tmp_path / "temporary")}
    commands, folders = [], []
    for method in ("ifadit", "riddle", "fit"):
        anonymized, recovered = tmp_path / f"anonymized_{method}", tmp_path / f"recovered_{method}"
        for command, source, target in (("anonymize", photographs, anonymized), ("recover", anonymized, recovered)):
            places = ("--input", str(source), "--output", str(target), "--key-file", str(key))
            record = ["--record"] if method in ("ifadit", "riddle") else []
            more = ("--seed", "1", "--keep-recognizable", *record) if command == "anonymize" else ()
            commands.append(["--debug", command, "--method", method, *places, *more])
        folders.append(recovered)
    output = narrow.run("python", "-c", COMMANDS, json.dumps(commands))
    assert all(list(recovered.glob("*.png")) for recovered in folders), output
    sources = [row["recovered_from"] for folder in folders for row in read_report(folder / REPORT)]
    assert sources == ["file", "file", "image"]
    for image in tmp_path.glob("anonymized_*/*.png"):  # the key of an image opens its record
        salt = bytes.fromhex(Image.open(image).info["masquerade salt"])
        own = keys.Secret().add_salt(keys.stretch(CANARY), salt)
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and holds_key(path, own)]
    assert not [how for how, needle in encodings(CANARY).items() if needle in output.encode()]
    assert leaks(tmp_path, CANARY, key) == []

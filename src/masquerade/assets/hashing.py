"""Hashes of files and folders, with a progress bar for large ones."""

import hashlib
from pathlib import Path

from tqdm import tqdm

CHUNK = 1 << 22
QUICK = 1 << 28  # bytes; smaller files get no bar


def hashes(path: Path) -> tuple[str, str]:
    """SHA-256 and MD5 of a file in hexadecimal; the file is read once."""
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    size = path.stat().st_size
    bar = tqdm(total=size, desc=f"hashing {path.name}", unit="B", unit_scale=True, disable=size < QUICK or None)
    with bar, path.open("rb") as file:
        while chunk := file.read(CHUNK):
            sha256.update(chunk)
            md5.update(chunk)
            bar.update(len(chunk))
    return sha256.hexdigest(), md5.hexdigest()


def tree(folder: Path) -> tuple[int, int, str]:
    """(number of files, bytes, SHA-256 of the sorted lines "<sha256>  <path>") of a folder without its hidden files."""
    below = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    visible = sorted(name for name in below if not any(part.startswith(".") for part in name.split("/")))
    together, size = hashlib.sha256(), 0
    for name in tqdm(visible, desc=f"hashing {folder.name}", unit="file", disable=None):
        with below[name].open("rb") as file:
            together.update(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n".encode())
        size += below[name].stat().st_size
    return len(visible), size, together.hexdigest()

"""What the bytes of a file or a folder are: read once, with a bar where that takes time."""

import hashlib
from pathlib import Path

from tqdm import tqdm

CHUNK = 1 << 22
QUICK = 1 << 28  # bytes that need no bar


def hashes(path: Path) -> tuple[str, str]:
    """SHA-256 and MD5 of a file."""
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
    """(files, bytes, SHA-256 of the sorted lines "<sha256>  <path>") of a folder; hidden files do not count."""
    below = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    shown = sorted(name for name in below if not any(part.startswith(".") for part in name.split("/")))
    together, size = hashlib.sha256(), 0
    for name in tqdm(shown, desc=f"hashing {folder.name}", unit="file", disable=None):
        with below[name].open("rb") as file:
            together.update(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n".encode())
        size += below[name].stat().st_size
    return len(shown), size, together.hexdigest()

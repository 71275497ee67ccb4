"""The options about keys. A key comes from a file or a prompt, never from the command line."""

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path | None, typer.Option("--key-file", help="The file with the key. Default: a prompt.")]
Salt = Annotated[
    bool | None,
    typer.Option(help="A salt for each face, so that faces under one key cannot be linked. Default: on."),
]
Check = Annotated[
    bool | None,
    typer.Option(help="A check of the key beside each salt, so that recover tells a wrong key. Default: on."),
]
NoSalt = Annotated[
    bool, typer.Option("--no-salt", help="Pictures whose salt is not known were anonymized without one.")
]


def read_key(key_file: Path | None, confirm: bool) -> bytes:
    """The key of the user: the content of a file, or hidden input from a prompt."""
    if key_file is None:
        return typer.prompt("Key", hide_input=True, confirmation_prompt=confirm).encode(errors="surrogateescape")
    return key_file.read_bytes()

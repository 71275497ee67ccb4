"""``masquerade faces``: a sheet of rendered faces."""

from pathlib import Path
from typing import Annotated

import typer

from masquerade.core.errors import MasqueradeError

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
QUALITY = 95  # of a JPEG


def faces(
    people: Annotated[int, typer.Option("--people", help="Number of people, one image each.", min=1, max=1000)] = 24,
    size: Annotated[int, typer.Option("--size", help="Side of an image in pixels.", min=16, max=1024)] = 256,
    seed: Annotated[int, typer.Option("--seed", help="Another seed draws other people.")] = 0,
    wild: Annotated[bool, typer.Option("--wild", help="Strong pose and light, and objects before the face.")] = False,
    output: Annotated[Path, typer.Option("--output", help="The file to write: .png or .jpg.")] = Path("faces.png"),
) -> None:
    """Draw people in three dimensions, who are nobody, on one sheet. The first use compiles the renderer: a minute."""
    kind = FORMATS.get(output.suffix.lower())
    if kind is None:
        raise MasqueradeError(f"{output}: the sheet is a PNG or JPEG file. Name it .png, .jpg or .jpeg.")
    from PIL import Image

    from drawnpeople.sheet import sheet
    from masquerade.core.files import write_atomically

    picture = Image.fromarray(sheet(people, size, seed, wild))
    with write_atomically(output) as path:
        picture.save(path, format=kind, quality=QUALITY)
    typer.echo(f"{output}: {people} people, seed {seed}")

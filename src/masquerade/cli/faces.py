"""``masquerade faces``: a sheet of rendered faces."""

from pathlib import Path
from typing import Annotated

import typer

from masquerade.core.errors import MasqueradeError

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
QUALITY = 95  # of a JPEG


def faces(
    people: Annotated[
        int, typer.Option("--people", help="Number of people, each with one image.", min=1, max=1000)
    ] = 24,
    size: Annotated[int, typer.Option("--size", help="Side of an image in pixels.", min=16, max=1024)] = 256,
    seed: Annotated[int, typer.Option("--seed", help="The seed; another seed gives other people.")] = 0,
    wild: Annotated[
        bool, typer.Option("--wild", help="Render strong poses and light, and objects in front of the face.")
    ] = False,
    output: Annotated[Path, typer.Option("--output", help="The file to write, which ends in .png or .jpg.")] = Path(
        "faces.png"
    ),
) -> None:
    """Render a sheet of people who do not exist. The first use compiles the renderer, which takes a minute."""
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

"""The commands ``masquerade params show | check | schema | template``."""

from pathlib import Path
from typing import Annotated

import typer

from masquerade.core.errors import ParameterError

app = typer.Typer(no_args_is_help=True, help="Show params.yaml, check it, and keep its schema.")

Scale = Annotated[str | None, typer.Option("--scale", help="The scale. Default: `scale:` in params.yaml.")]
Root = Annotated[Path, typer.Option("--root", help="The repository, with params.yaml and scales/.")]


@app.command()
def show(scale: Scale = None, root: Root = Path()) -> None:
    """Print the parameters of a scale, with its overlay, as YAML."""
    import yaml

    from masquerade.params import loading

    typer.echo(yaml.safe_dump(loading.load(root, scale).tree, sort_keys=False, allow_unicode=True), nl=False)


@app.command()
def check(root: Root = Path()) -> None:
    """Check params.yaml with the overlay of every scale."""
    from masquerade.params import loading, matrix

    for scale in loading.scales(root):
        parameters = loading.load(root, scale)
        typer.echo(f"{scale}: valid, {len(matrix.cells(parameters))} cells")


@app.command("schema")
def check_schema(
    fix: Annotated[bool, typer.Option("--fix", help="Write the schema again.")] = False, root: Root = Path()
) -> None:
    """Check that the committed JSON schema is up to date with the code."""
    from masquerade.params import blocks, schema

    file, text = root / blocks.SCHEMA, schema.schema_text()
    if fix:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    elif not file.is_file() or file.read_text(encoding="utf-8") != text:
        raise ParameterError(f"{file} is not the schema of the code. Run `masquerade params schema --fix`.")
    typer.echo(f"{file}: {'written' if fix else 'up to date'}")


@app.command()
def template(method: Annotated[str, typer.Argument(help="A module or folder of methods/.")]) -> None:
    """Print the block of params.yaml for a new method, with the description of each knob."""
    from masquerade.params import schema

    typer.echo(schema.template(method), nl=False)

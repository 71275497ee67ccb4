"""The commands ``masquerade params show | check | schema | template``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from masquerade.cli.clones import Root

app = typer.Typer(no_args_is_help=True, help="Show and check params.yaml; its schema, and the block of a new method.")

Scale = Annotated[str | None, typer.Option("--scale", help="The scale. Default: `scale:` in params.yaml.")]


@app.command()
def show(
    scale: Scale = None,
    origin: Annotated[
        str | None,
        typer.Option("--origin", help="A dotted key: print it, or each value below it, with the file that sets it."),
    ] = None,
    root: Root = Path(),
) -> None:
    """Print the parameters of a scale, with its overlay, as YAML."""
    from masquerade.params import loading, origins, yaml_files

    if origin is None:
        typer.echo(yaml_files.format_yaml(loading.load(root, scale).tree), nl=False)
        return
    for key, values in origins.find_origins(origin, root, scale).items():
        (file, value), *replaced = ((file, json.dumps(value, ensure_ascii=False)) for file, value in values.items())
        before = ", ".join(f"{value} ({file})" for file, value in replaced)
        typer.echo(f"{key}: {value}  # {file}" + (f", in place of {before}" if before else ""))


@app.command()
def check(root: Root = Path()) -> None:
    """Check params.yaml with the overlay of every scale."""
    from masquerade.params import loading, matrix
    from masquerade.pipeline import adopted_networks

    for scale in loading.list_scales(root):
        parameters = loading.load(root, scale)
        problem = adopted_networks.package_problem(parameters)
        typer.echo(f"{scale}: valid, {len(matrix.plan_cells(parameters))} cells{f'. {problem}' if problem else ''}")


@app.command("schema")
def print_schema(
    output: Annotated[Path | None, typer.Option("--output", help="The file to write. Default: print it.")] = None,
) -> None:
    """Print the JSON schema of params.yaml, with which an editor completes and checks it."""
    from masquerade.params import schema

    if output is None:
        typer.echo(schema.format_schema(), nl=False)
    else:
        output.write_text(schema.format_schema(), encoding="utf-8")


@app.command()
def template(method: Annotated[str, typer.Argument(help="A module or folder of methods/.")]) -> None:
    """Print the block of params.yaml for a new method, with the description of each knob."""
    from masquerade.params import schema

    typer.echo(schema.format_template(method), nl=False)

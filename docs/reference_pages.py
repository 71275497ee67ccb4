"""Writes the generated parts of docs/configuration.md and docs/commands.md: `make generated`, and a test compares.

What these pages say is written where a programmer looks first: the text below a field of a class of parameters, and the
`help` of an option. A page keeps what stands above its marker line.
"""

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer

from masquerade.cli.main import app
from masquerade.params import loading, model

MARKER = "<!-- `make generated` writes everything below this line -->\n"
SCALES = ("paper", "evening", "mini", "photo")
"""The scales whose values are listed."""
METHOD_KEYS = {
    "every_variant": "",  # a loaded block has none
    "published": "The weights that replace the training: `weights:NAME`, or `asset:ROLE` for an official file. An "
    "empty text means that the method is trained here.",
    "published_ablations": "The same for the training of each variant in `ablations`.",
    "ablations": "The variants that have a checkpoint of their own, each with the values that replace those of "
    "`params` in its training.",
}
"""Keys that every method may have, which `model` composes without a text. Unset ones are left out."""
LONGEST = 60
"""The most characters of a value that is printed."""
LISTED_ONCE = {"Arithmetic"}
"""Blocks that stand in many places: only the first one lists its parameters, and the others have them in one value."""


class Parameter(NamedTuple):
    """One row of the reference."""

    name: str
    meaning: str
    kind: str
    value: str


Values = dict[str, list[Any]]
"""Scale -> the value of a parameter, or of a parameter of every variant: one value for each of them."""
Listed = dict[str, tuple[str, str]]
"""Type of a block -> the first place that has it, and the meaning of that place."""


def write(root: Path, page: str) -> str:
    """The text of a page of `PAGES`, with its generated part written anew."""
    above, marker, _ = (root / page).read_text(encoding="utf-8").partition(MARKER)
    if not marker:
        raise ValueError(f"{page} has no line {MARKER.strip()!r}, below which the generated part stands")
    return f"{above}{MARKER}\n{PAGES[page](root)}"


def format_configuration(root: Path) -> str:
    """Every parameter of params.yaml: a section for each block, and one for each module of a room."""
    schema = model.build_model().model_json_schema()
    trees = {scale: loading.load(root, scale).typed.model_dump(mode="json") for scale in SCALES}
    parts: list[str] = []
    general: list[Parameter] = []
    listed: Listed = {}
    for name, node in schema["properties"].items():
        values = {scale: [tree[name]] for scale, tree in trees.items()}
        block = schema["$defs"].get(_find_block(node))
        if not block:
            general += _list_parameters(schema, node, name, values, listed)
        elif name in model.ROOMS:
            parts += [f"## `{name}`", *_format_room(schema, block, name, values, listed)]
        else:
            rows = [*_list_parameters(schema, node, "", values, listed, f"{name}.")]
            parts += [f"## `{name}`", _wrap(block["description"].partition("\n\n")[0]), _format_table(rows)]
    return "\n\n".join(["## Keys outside of any block", _format_table(general), *parts]) + "\n"


def _format_room(schema: Any, room: Any, name: str, values: Values, listed: Listed) -> Iterator[str]:
    """A section for each module of a room that has parameters, and a sentence about the others."""
    without = []
    for module, node in room["properties"].items():
        inner = {scale: [tree[module] for tree in trees] for scale, trees in values.items()}
        rows = [*_list_parameters(schema, node, "", inner, listed, f"{name}.{module}.")]
        if not rows:
            without.append(f"`{module}`")
            continue
        yield f"### `{name}.{module}`"
        yield _format_table(rows)
    if without:
        yield textwrap.fill(f"Without parameters: {', '.join(without)}.", 116, break_on_hyphens=False)


def _list_parameters(
    schema: Any, node: Any, name: str, values: Values, listed: Listed, place: str = ""
) -> Iterator[Parameter]:
    """The rows of a parameter: its own, and those of the block that it holds.

    A block that was ``listed`` before has one row if no scale sets it, or if it is in `LISTED_ONCE`. ``place``: what
    stands before ``name`` in a dotted key.
    """
    meaning = _format_text(node.get("description") or (METHOD_KEYS.get(name, "") if place else ""))
    unset = all(tree is None for trees in values.values() for tree in trees)
    if name in METHOD_KEYS and unset:
        return
    block = _find_block(node)
    if not block:
        if meaning:
            yield Parameter(name, meaning, _describe_kind(node), _format_values(values))
        return
    entries = _find_entries(node)
    if entries is not None:
        inner = {scale: [entry for tree in trees if tree for entry in tree.values()] for scale, trees in values.items()}
        if meaning:
            yield Parameter(name, meaning, "block for each name", "")
        yield from _list_parameters(schema, entries, f"{name}.NAME", inner, listed, place)
        return
    if name and block in listed and (unset or block in LISTED_ONCE):
        first, its_meaning = listed[block]
        meaning = f"See `{first}`." if meaning == its_meaning else f"{meaning} See `{first}`."
        yield Parameter(name, meaning, "block", _format_values(values))
        return
    if name and meaning:
        yield Parameter(name, meaning, "block", "unset" if unset else "")
    listed.setdefault(block, (f"{place}{name}", meaning))
    for key, child in schema["$defs"][block].get("properties", {}).items():
        inner = {scale: [tree[key] for tree in trees if tree is not None] for scale, trees in values.items()}
        yield from _list_parameters(schema, child, f"{name}.{key}".strip("."), inner, listed, place)


def _without_null(node: Any) -> Any:
    """The type of a value that may also be null."""
    choices = [choice for choice in node.get("anyOf", ()) if choice.get("type") != "null"]
    return choices[0] if len(choices) == 1 else node


def _find_entries(node: Any) -> Any:
    """The type of the entries of a mapping whose names are free, or None for any other type."""
    node = _without_null(node)
    entries = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
    return entries[0] if isinstance(entries[0], dict) else None


def _find_block(node: Any) -> str:
    """The name in ``$defs`` of the block that a parameter holds, also in the entries of a mapping; '' for a value."""
    node = _without_null(node)
    entries = _find_entries(node)
    return node.get("$ref", "").rpartition("/")[2] if entries is None else _find_block(entries)


WORDS = {
    "string": "text", "boolean": "true or false", "object": "mapping", "str": "text", "int": "integer",
    "float": "number", "list[str]": "texts", "int range": "integer", "dir": "folder",
}  # fmt: skip
"""Type of JSON schema or of Python -> what a reader calls it; any other has its own name."""
ENDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def _describe_kind(node: Any) -> str:
    """The type and range of a value, such as "number > 0, < 1"."""
    node = _without_null(node)
    choices = node.get("enum") or ([node["const"]] if "const" in node else [])
    if choices:
        return " or ".join(f"`{choice}`" for choice in choices)
    if "anyOf" in node:
        return " or ".join(_describe_kind(choice) for choice in node["anyOf"])
    if node.get("type") == "array":
        items = node.get("items") or {}
        entries = node.get("prefixItems") or [items] * (
            node["minItems"] if node.get("minItems") == node.get("maxItems") and "minItems" in node else 0
        )
        kinds = dict.fromkeys(_describe_kind(entry) for entry in entries)
        return f"{len(entries)} × {' and '.join(kinds)}" if entries else f"list of: {_describe_kind(items)}"
    entries = _find_entries(node)
    if entries is not None:
        return f"mapping to {_describe_kind(entries)}"
    limits = [f"{sign} {node[end]:g}" for end, sign in ENDS.items() if end in node]
    kind: str = node.get("type", "any value")
    return " ".join([WORDS.get(kind, kind), ", ".join(limits)]).strip()


def _format_values(values: Values) -> str:
    """The value of a parameter; if scales differ, each value with its scales."""
    scales: dict[str, list[str]] = {}
    for scale, entries in values.items():
        text = " / ".join(dict.fromkeys(map(_format_value, entries)))
        scales.setdefault(text or "unset", []).append(scale)
    if len(scales) == 1:
        return next(iter(scales))
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in scales.items())


def _format_value(value: Any) -> str:
    if value is None:
        return "unset"
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return f"`{text}`" if len(text) <= LONGEST else "…"


def _format_table(rows: list[Parameter]) -> str:
    head = ["| Parameter | Meaning | Type and range | Value |", "|---|---|---|---|"]
    lines = [f"| `{row.name}` | {row.meaning} | {_escape(row.kind)} | {_escape(row.value)} |" for row in rows]
    return "\n".join([*head, *lines])


def _format_text(text: str) -> str:
    """A description as Markdown in one line; a page of the manual that it names is a link."""
    words = _escape(" ".join(text.replace("``", "`").split()))
    return re.sub(r"`?\bdocs/(\w+\.md)\b`?", r"[more](\1)", words)


def _escape(text: str) -> str:
    """The text with the signs escaped that have a meaning in a table, outside of code."""
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [piece.replace("<", "&lt;") for piece in pieces[::2]]
    return "".join(pieces).replace("|", "\\|")


def format_commands(root: Path) -> str:
    """Every command of the program, with its options."""
    program = typer.main.get_command(app)
    parts = ["## Options of the program", _format_options(program)]
    for words, command in _list_commands("masquerade", program):
        if hasattr(command, "commands"):
            parts += [f"## `{words}`", _wrap(command.help)]
        else:
            level = "###" if words.count(" ") > 1 else "##"
            parts += [f"{level} `{words}`", _wrap(command.help), _format_options(command)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _list_commands(words: str, group: Any) -> Iterator[tuple[str, Any]]:
    """The words that call each command, and the command; a group stands before its own."""
    for name, command in sorted(group.commands.items()):
        yield f"{words} {name}", command
        if hasattr(command, "commands"):
            yield from _list_commands(f"{words} {name}", command)


def _format_options(command: Any) -> str:
    """The table of the arguments and options of a command; empty if it has none."""
    rows = [_format_option(parameter) for parameter in command.params]
    return "\n".join(["| Option | What it does | Value | Default |", "|---|---|---|---|", *rows]) if rows else ""


def _format_option(option: Any) -> str:
    """The row of an option. What its help says after "Default:" is its default."""
    is_argument = option.param_type_name == "argument"
    is_switch = not is_argument and option.is_flag
    names = [(option.metavar or option.name).upper()] if is_argument else [*option.opts, *option.secondary_opts]
    meaning, _, default = option.help.replace("\\[", "[").partition(" Default: ")
    if not default:
        default = _name_default(option.default, is_switch, option.required)
    value = "" if is_switch else option.display_type(typer.Context(typer.main.get_command(app))).strip("<>")
    cells = [
        " ".join(f"`{name}`" for name in names),
        _format_text(meaning),
        _escape(" or ".join(f"`{word}`" for word in value.split("|")) if "|" in value else WORDS.get(value, value)),
        _format_text(default.rstrip(".")),
    ]
    return f"| {' | '.join(cells)} |"


def _name_default(default: Any, is_switch: bool, is_required: bool) -> str:
    if is_required:
        return "required"
    if is_switch:
        return "off"
    return f"`{default}`" if default not in (None, "") else "none"


def _wrap(text: str) -> str:
    """A docstring as paragraphs of Markdown."""
    paragraphs = (_format_text(paragraph) for paragraph in text.split("\n\n"))
    return "\n\n".join(textwrap.fill(part, 116, break_on_hyphens=False, break_long_words=False) for part in paragraphs)


PAGES = {"docs/configuration.md": format_configuration, "docs/commands.md": format_commands}
"""Page -> the function of the repository that gives its generated part."""

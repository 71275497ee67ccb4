"""The hooks of MkDocs (mkdocs.yml): the menu, links out of the manual, and a check that no page loads from the net."""

import re
from pathlib import Path
from posixpath import normpath
from typing import Any

from mkdocs.exceptions import PluginError


def on_config(config: Any) -> Any:
    """Take the menu from docs/README.md: a heading is a section, and each of its entries a page with its title."""
    index = Path(config.docs_dir, "README.md").read_text(encoding="utf-8")
    menu: list[Any] = ["README.md"]
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        entries = re.findall(r"^- \[([^\]]+)\]\((\S+\.md)\):", body.replace("`", ""), re.MULTILINE)
        pages = [{title: _address(page, config) if page.startswith("../") else page} for title, page in entries]
        menu += [{heading: pages}] if pages else []
    outside = {"Report": config.extra["report"], "Repository": config.extra["repository"]}
    config.nav = [*menu, *({title: address} for title, address in outside.items() if address)]
    return config


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Turn links to files outside docs/ into links to the repository."""
    return re.sub(r"\]\((\.\./[^)#\s]*)", lambda link: f"]({_address(link[1], config)}", markdown)


def _address(link: str, config: Any) -> str:
    """The address in the repository of a file that a page of docs/ names."""
    return f"{config.extra['repository']}/blob/main/{normpath(f'docs/{link}')}"


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Raises PluginError if a browser would load a part of the page from the net."""
    loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*"((?:https?:)?//[^"]+)"', output)
    if loaded:
        raise PluginError(f"{page.file.src_path} loads from the net: {', '.join(loaded)}")
    return output

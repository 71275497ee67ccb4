"""The hooks of MkDocs (mkdocs.yml): the menu, links out of the manual, and a check that no page loads from the net."""

import re
from pathlib import Path
from posixpath import normpath
from typing import Any

from mkdocs.exceptions import PluginError


def on_config(config: Any) -> Any:
    """Take the menu from docs/README.md: a heading is a section, and each of its entries a page."""
    index = Path(config.docs_dir, "README.md").read_text(encoding="utf-8")
    sections = [section.partition("\n") for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]]
    entries = {title: re.findall(r"^- \[\S+\]\((\S+\.md)\):", body, re.MULTILINE) for title, _, body in sections}
    menu: list[Any] = [{title: pages} for title, pages in entries.items() if pages]
    config.nav = ["README.md", *menu, {"Repository": config.extra["repository"]}]
    return config


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Turn links to notes and to files outside docs/ into links to the repository."""

    def address(link: re.Match[str]) -> str:
        return f"]({config.extra['repository']}/blob/main/{normpath(f'docs/{link[1]}')}"

    return re.sub(r"\]\(((?:\.\./|notes/)[^)#\s]*)", address, markdown)


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Raises PluginError if a browser would load a part of the page from the net."""
    loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*"((?:https?:)?//[^"]+)"', output)
    if loaded:
        raise PluginError(f"{page.file.src_path} loads from the net: {', '.join(loaded)}")
    return output

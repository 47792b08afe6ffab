"""Every link inside the built site leads somewhere: to a file that is there, and to a place on its page.

MkDocs looks at the links of documents alone; these are those of notebooks and of generated pages as well.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mkdocs.plugins import get_plugin_logger

_OF_THE_THEME = "__skip"
log = get_plugin_logger("links")


class Page(HTMLParser):
    """The places that a page has, and where it leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read a tag."""
        own = dict(attrs)
        self.places |= {own[name] or "" for name in ("id", "name") if name in own}
        self.links |= {own[name] or "" for name in ("href", "src") if name in own}


def on_post_build(config: Any) -> None:
    """A warning for each dead link, which ends a strict build."""
    root = Path(config["site_dir"])
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in root.rglob("*.html")}
    for path, page in pages.items():
        for link in sorted(page.links):
            if not _leads_somewhere(link, path, root, pages):
                log.warning(f"{path.relative_to(root)} leads to {link}, which is not there")


def _leads_somewhere(link: str, path: Path, root: Path, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or parts.fragment == _OF_THE_THEME:
        return True
    place = unquote(parts.path)
    found = path if not place else (root / place[1:] if place.startswith("/") else path.parent / place).resolve()
    found = found / "index.html" if found.is_dir() else found
    return found.exists() and (
        not parts.fragment or found not in pages or unquote(parts.fragment) in pages[found].places
    )

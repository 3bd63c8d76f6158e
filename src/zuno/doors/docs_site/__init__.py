"""This project's pages as a static site: HTML, a search index, and the same words for models."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final

from zuno.kernel.view import View
from zuno.present.document import Document, document, facts
from zuno.present.values import count

HERE: Final = Path(__file__).parent
SUMMARY: Final = (
    "A desk of arguing agents for Uniswap v4 liquidity and crypto trading: a model reasons, code owns every number. "
    "Paper by default, not advice."
)
README: Final = "about.md"
"""The project's own, which lies beside the folder."""
_TOKENS_END: Final = "*, *::before"
"""Where the page's stylesheet has named its colours."""


def find_docs() -> Path | None:
    """This project's pages: in the package where it is installed, beside it in a checkout."""
    package = HERE.parents[1]
    places = (package / "docs", package.parents[1] / "docs")
    return next((place for place in places if (place / "commands.md").is_file()), None)


class DocsSiteView(View):
    folder: str
    pages: int
    files: int

    def to_document(self) -> Document:
        return document(
            f"Documentation written to {self.folder}; open index.html there, or put the folder on any web server",
            facts(("pages", count(self.pages)), ("files", count(self.files))),
        )


@dataclass(frozen=True, slots=True)
class Page:
    path: PurePosixPath
    """Of its Markdown in the site."""
    source: str
    text: str

    @property
    def url(self) -> str:
        name = "index.md" if self.path.name == "README.md" else self.path.name
        return str(self.path.with_name(name).with_suffix(".html"))

    @property
    def title(self) -> str:
        return self.text.partition("\n")[0].lstrip("# ").replace("`", "")

    @property
    def about(self) -> str:
        lines = (line.strip() for line in self.text.splitlines()[1:])
        return next((line for line in lines if line and not line.startswith(("|", "#", "-", "`", "!", "<"))), "")


def read_pages(docs: Path) -> list[Page]:
    """Guides, then the reference, then decisions; the README of the project last."""
    paths = [*sorted(docs.glob("guides/*.md")), *sorted(docs.glob("*.md")), *sorted(docs.glob("decisions/*.md"))]
    named = [(PurePosixPath(path.relative_to(docs).as_posix()), path) for path in paths]
    if (readme := docs.parent / "README.md").is_file():
        named.append((PurePosixPath(README), readme))
    return [Page(path, os.path.relpath(file, docs.parent), file.read_text(encoding="utf-8")) for path, file in named]


def build_site(docs: Path, base: str = "") -> dict[str, bytes]:
    """Every file of the site by its path. `base`: where it is served, for links that models follow."""
    from markdown_it import MarkdownIt

    pages = read_pages(docs)
    decisions = [page for page in pages if page.path.parts[0] == "decisions"]
    listed = "\n".join(f"- [{page.title}]({page.path.name})" for page in decisions)
    every = [*pages, Page(PurePosixPath("decisions/README.md"), "docs/decisions/README.md", f"# Decisions\n\n{listed}")]
    places = {page.source: page.url for page in every} | {"docs/decisions": "decisions/index.html"}
    others = [path.relative_to(docs).as_posix() for path in docs.rglob("*.*") if path.suffix != ".md"]
    places |= {f"docs/{name}": name for name in others}
    layout = (HERE / "layout.html").read_text(encoding="utf-8")
    renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
    files = {name: (docs / name).read_bytes() for name in others}
    index: list[dict[str, str]] = []
    for page in every:
        tokens = renderer.parse(page.text)
        name_headings(tokens)
        rewrite_links(tokens, page, places)
        index += split_sections(tokens, page)
        root = "../" * (len(page.path.parts) - 1)
        body = renderer.renderer.render(tokens, renderer.options, {}).replace("<th></th>", "<td></td>")
        body = re.sub("<(pre|table)>", r'<\1 tabindex="0">', body)
        nav = build_navigation(page, pages, root)
        files[page.url] = layout.format(title=escape(page.title), root=root, nav=nav, body=body).encode()
    files |= {str(page.path): page.text.encode() for page in pages}
    static = HERE.parent / "web" / "static"
    colours = (static / "app.css").read_text(encoding="utf-8").partition(_TOKENS_END)[0]
    files["site.css"] = (colours + (HERE / "site.css").read_text(encoding="utf-8")).encode()
    files |= {"theme.js": (static / "theme.js").read_bytes(), "site.js": (HERE / "site.js").read_bytes()}
    files["search.json"] = json.dumps(index, ensure_ascii=False, separators=(",", ":")).encode()
    files["llms.txt"] = list_pages(pages, base).encode()
    whole = (f"<!-- {page.path} -->\n\n{page.text}" for page in pages if page not in decisions)
    files["llms-full.txt"] = "\n\n".join(["# Zuno", f"> {SUMMARY}", *whole]).encode()
    return files


def name_headings(tokens: Sequence[Any]) -> None:
    """Anchors as the pages' links have them."""
    seen: dict[str, int] = {}
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            name = re.sub(r"[^\w\- ]", "", inline.content.lower()).replace(" ", "-")
            seen[name] = seen.get(name, -1) + 1
            token.attrSet("id", f"{name}-{seen[name]}" if seen[name] else name)


def rewrite_links(tokens: Sequence[Any], page: Page, places: Mapping[str, str]) -> None:
    """Between pages to their HTML; what is not part of the site loses its link."""
    for token in chain.from_iterable(block.children or () for block in tokens):
        kind = {"link_open": "href", "image": "src"}.get(token.type)
        if kind is None or re.match(r"[a-z]+:|#", str(token.attrGet(kind))):
            continue
        target, _, anchor = str(token.attrGet(kind)).partition("#")
        place = places.get(os.path.normpath(os.path.join(os.path.dirname(page.source), target)))
        if place is None:
            del token.attrs[kind]
        else:
            link = os.path.relpath(place, os.path.dirname(page.url) or ".")
            token.attrSet(kind, f"{link}#{anchor}" if anchor else link)


def split_sections(tokens: Sequence[Any], page: Page) -> Iterator[dict[str, str]]:
    """What is searched: the words below each heading."""
    section: dict[str, str] = {}
    for token, before in zip(tokens, [None, *tokens], strict=False):
        if token.type == "heading_open":
            if section:
                yield section
            section = {"page": page.title, "url": f"{page.url}#{token.attrGet('id')}", "text": ""}
        elif token.type in ("inline", "fence", "code_block") and section:
            words = " ".join(child.content for child in token.children or [token] if child.content)
            if before is not None and before.type == "heading_open":
                section["heading"] = words
            else:
                section["text"] += f"{words} "
    if section:
        yield section


def build_navigation(current: Page, pages: Sequence[Page], root: str) -> str:
    def link(url: str, title: str) -> str:
        here = ' aria-current="page"' if url == current.url else ""
        return f'<li><a href="{root}{url}"{here}>{escape(title)}</a></li>'

    guides = "".join(link(page.url, page.title) for page in pages if page.path.parts[0] == "guides")
    others = "".join(link(page.url, page.title) for page in pages if len(page.path.parts) == 1)
    decisions = link("decisions/index.html", "Decisions")
    return f"<h2>Guides</h2><ul>{guides}</ul><h2>Reference</h2><ul>{others}{decisions}</ul>"


def list_pages(pages: Sequence[Page], base: str = "") -> str:
    """What is written about Zuno, as llmstxt.org asks for it: a title, a sentence, and a link with a sentence each."""
    lines: dict[bool, list[str]] = {True: [], False: []}
    for page in pages:
        about = f": {page.about}" if page.about else ""
        lines[page.path.parts[0] == "decisions"].append(f"- [{page.title}]({base}{page.path}){about}")
    first = ["# Zuno", "", f"> {SUMMARY}", "", "## Docs", "", *lines[False]]
    return "\n".join([*first, "", "## Optional", "", *lines[True], ""])

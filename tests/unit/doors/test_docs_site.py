"""The documentation as a site: every link leads somewhere, nothing is fetched from elsewhere, nothing is run."""

from __future__ import annotations

import json
import posixpath
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from tests.paths import CHECKOUT
from tests.wire.commands import run_zuno
from zuno.doors.docs_site import build_site, find_docs, list_pages, read_pages

DOCS = CHECKOUT / "docs"


@pytest.fixture(scope="module")
def site() -> dict[str, bytes]:
    assert find_docs() is not None
    return build_site(DOCS)


class Links(HTMLParser):
    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: list[str] = []
        self.tags: set[str] = set()
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.tags.add(tag)
        self.anchors += [named["id"] or ""] if "id" in named else []
        place = named.get("href") or named.get("src")
        if place:
            (self.links if tag == "a" else self.fetched).append(place)


def test_every_link_anchor_and_picture_is_there(site: dict[str, bytes]) -> None:
    pages = {name: Links(content) for name, content in site.items() if name.endswith(".html")}
    broken, own = [], 0
    for name, page in pages.items():
        for link in [*page.links, *page.fetched]:
            target = urlsplit(urljoin(f"https://here/{name}", link))
            if target.netloc != "here":
                assert link in page.links, f"{name} fetches {link}"
                continue
            own += 1
            place = target.path.lstrip("/")
            if place not in site or (target.fragment and target.fragment not in pages[place].anchors):
                broken.append((name, link))
    assert broken == []
    assert own > 2_000
    assert len({anchor for page in pages.values() for anchor in page.anchors}) > 300
    for name, page in pages.items():
        assert len(page.anchors) == len(set(page.anchors)), name


def test_a_broken_link_would_be_seen(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "README.md").write_text("# All\n\n[here](a.md#two) [gone](b.md) [out](../src/x.py) ![p](none.png)\n")
    (docs / "a.md").write_text(
        "# A\n\n## Two\n\n## Two\n\n| a | b |\n|---|---|\n| `x` | <b>y</b> |\n\n```sh\nzuno\n```\n"
    )
    site = build_site(docs)
    index, page = Links(site["index.html"]), Links(site["a.html"])
    assert [link for link in index.links if "#" in link and link != "#main"] == ["a.html#two"]
    assert not any(gone in link for link in index.links for gone in ("b.", "src")), "no link that leads nowhere"
    assert {"two", "two-1"} < set(page.anchors)
    assert {"table", "pre", "code"} < page.tags
    assert "b" not in page.tags
    assert b"&lt;b&gt;y" in site["a.html"]


HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(1)> [x](javascript:alert(1)) [y](data:text/html,z)"


def test_what_is_html_in_a_page_is_shown_and_not_run(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "README.md").write_text(f"# {HOSTILE}\n\n{HOSTILE}\n\n```\n{HOSTILE}\n```\n")
    page = build_site(docs)["index.html"].decode()
    assert page.count("<script") == 2, "its own two"
    assert "<img" not in page
    assert 'href="javascript' not in page
    assert 'href="data' not in page


def test_what_is_searched_is_all_that_is_written(site: dict[str, bytes]) -> None:
    index = json.loads(site["search.json"])
    assert len(index) > 300
    found = [section["url"] for section in index if "fee cover" in section["text"].lower()]
    assert any(url.startswith("glossary.html") for url in found)
    assert {posixpath.basename(section["url"].partition("#")[0]) for section in index} >= {"commands.html", "web.html"}
    assert all(section["heading"] and section["page"] for section in index)
    assert len(site["search.json"]) < 700_000


def test_models_get_the_same_words(site: dict[str, bytes]) -> None:
    pages = read_pages(DOCS)
    listed, whole = site["llms.txt"].decode(), site["llms-full.txt"].decode()
    for page in pages:
        assert f"]({page.path})" in listed
        assert site[str(page.path)].decode() == page.text
        assert (page.text in whole) == (page.path.parts[0] != "decisions")
    assert "](/base/docs/web.md)" in list_pages(pages, "/base/docs/")


def test_nothing_of_it_names_another_host(site: dict[str, bytes]) -> None:
    for name in ("site.js", "site.css", "theme.js"):
        assert b"http" not in site[name]
        assert b"@import" not in site[name]


def test_the_command_writes_it_whole(site: dict[str, bytes], home: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"
    ran = run_zuno(home, "docs", "build", "--out", str(out), "--json")
    assert (ran.code, ran.document["files"]) == (0, len(site))
    written = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert written == site
    (tmp_path / "file").write_text("")
    assert run_zuno(home, "docs", "build", "--out", str(tmp_path / "file" / "under")).code == 3

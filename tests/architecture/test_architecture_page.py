"""docs/architecture.md names every room, and what it sends a reader to exists."""

from __future__ import annotations

import re

from tests.paths import CHECKOUT, DEVNET, SOURCE

PAGE = (CHECKOUT / "docs" / "architecture.md").read_text()
MOST_WORDS = 1500
MOST_PATHS = 3


def rows() -> list[list[str]]:
    """Of the table that says where to change what: the paths of each row."""
    table = PAGE.split("## To change X, open Y")[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return [re.findall(r"`([^`*]+)`", line.split("|")[2]) for line in lines]


def test_every_room_is_named() -> None:
    tree = PAGE.split("```")[1]
    named = set(re.findall(r"[a-z_]+", tree))
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    for room in ("lp", "trading", "doors", "adapters"):
        rooms |= {path.parent.name for path in (SOURCE / room).glob("*/__init__.py")}
    assert (rooms | {DEVNET.name}) - named == set()


def test_no_room_is_named_that_is_not_there() -> None:
    """In the drawing of the desks; what is planned is said in a sentence of its own."""
    for desk in ("lp", "trading"):
        (line,) = re.findall(rf"├ {desk}/ +(.+)", PAGE)
        assert {part.strip() for part in line.split("·")} == {
            path.parent.name for path in (SOURCE / desk).glob("*/__init__.py")
        }


def test_the_table_has_twenty_rows_and_every_path_exists() -> None:
    found = rows()
    assert len(found) >= 20
    assert all(found)
    missing = [path for paths in found for path in paths if "/" in path and not (CHECKOUT / path).exists()]
    assert missing == []


def test_a_row_points_to_at_most_three_paths() -> None:
    assert [paths for paths in rows() if sum("/" in path for path in paths) > MOST_PATHS] == []


def test_the_page_is_one_page() -> None:
    assert len(PAGE.split()) < MOST_WORDS

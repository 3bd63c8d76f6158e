"""The documentation speaks of what is there: every command, every setting, and the README's own code."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.paths import CHECKOUT
from tools.commands_page import EXAMPLES, render_page, runs_alone
from zuno.doors.cli.main import build_command
from zuno.doors.mcp.tools import TOOLS
from zuno.doors.telegram.command_table import COMMANDS
from zuno.doors.web.app import STATIC
from zuno.settings import Settings, file_fields, variables
from zuno.trading.agents.learned import FAILURE_POINTS, LESSON_POINTS, MOST_POINTS
from zuno.trading.learn.recall import MIN_SHARED
from zuno.trading.measure.similarity import LEAST_ALIKE
from zuno.trading.service.memory import SEARCH_CHARS

DOCS = CHECKOUT / "docs"
GUIDES = sorted((DOCS / "guides").glob("*.md"))
GUIDE_WORDS = 900
ENTRY_WORDS = 50
PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(CHECKOUT.glob("*.md"))]


def commands(group: Any, prefix: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if runs_alone(command):
            yield f"{prefix}{name}"
        yield from commands(command, f"{prefix}{name} ") if hasattr(command, "commands") else ()


@cache
def whole_tree() -> Any:
    return build_command()


def parses(line: str) -> bool:
    """Whether a line that begins with `zuno` is a command with arguments and options that it takes, or a group."""
    command = root = whole_tree()
    words = shlex.split(line)[1:]
    while words and hasattr(command, "commands") and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    if command is root or words == ["--help"]:
        return words in ([], ["--help"])  # the other options of `zuno` alone act while they are parsed
    if hasattr(command, "commands") and words and not words[0].startswith("-"):
        return False
    try:
        command.make_context("zuno", words)
    except typer.TyperException:
        return not words and hasattr(command, "commands")
    return True


def command_lines(page: Path) -> list[str]:
    """What a page tells its reader to type, in blocks of code and in sentences; a sentence may also name a command."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    lines = [line.split(" #")[0] for block in blocks for line in block.splitlines()]
    lines += [span for span in spans if span.removeprefix("zuno ") not in EXAMPLES]
    parts = [part.strip() for line in lines for part in re.split(r"; |&&| > | &$", line)]
    typed = [re.sub(r"^([A-Z_]+=\S+ )+", "", part) for part in parts]
    return [line for line in typed if re.match(r"zuno( |$)", line) and "COMMAND" not in line]


def test_the_reference_of_commands_is_what_the_command_tree_says() -> None:
    """`make docs` writes it."""
    assert (DOCS / "commands.md").read_text(encoding="utf-8") == render_page()


def test_every_command_has_an_example_of_its_own() -> None:
    assert sorted(EXAMPLES) == sorted(commands(build_command()))
    assert [name for name, line in EXAMPLES.items() if not f"{line} ".startswith(f"zuno {name} ")] == []


def test_every_command_of_the_tree_has_a_heading() -> None:
    headings = re.findall(r"^##+ zuno (.+)$", (DOCS / "commands.md").read_text(), re.MULTILINE)
    assert set(commands(build_command())) <= set(headings)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: str(page.relative_to(CHECKOUT))
)
def test_every_command_line_of_a_page_can_be_typed(page: Path) -> None:
    assert [line for line in command_lines(page) if not parses(line)] == []


def test_every_command_the_page_names_can_be_typed() -> None:
    """The studies of the lab's empty list among them."""
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in sorted(STATIC.rglob("*.js")))
    named = set(re.findall(r'"(zuno [a-z][^"{$]*)"', scripts))
    assert {line for line in named if line.startswith("zuno lab ")}, "the lab names commands where it has no report"
    assert [line for line in sorted(named) if not parses(line)] == []


def test_command_lines_are_found_and_wrong_ones_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`zuno lp pnl 1`\n```sh\nA=1 zuno lp pols; zuno logs -n x # remark\n```\n", encoding="utf-8")
    assert [(line, parses(line)) for line in command_lines(page)] == [
        ("zuno lp pols", False),
        ("zuno logs -n x", False),
        ("zuno lp pnl 1", True),
    ]


def test_a_guide_is_short() -> None:
    assert {page.stem for page in GUIDES} == {
        "first-hour",
        "going-live",
        "hedged-liquidity",
        "lab-liquidity",
        "liquidity",
        "lp-mandate",
        "the-lab",
        "trading",
        "which-pool",
        "your-data",
    }
    assert {
        page.stem: len(page.read_text().split()) for page in GUIDES if len(page.read_text().split()) >= GUIDE_WORDS
    } == {}


def test_the_changelog_is_by_release_and_short() -> None:
    releases = re.findall(r"^## (\S+)", (text := (CHECKOUT / "CHANGELOG.md").read_text()), re.MULTILINE)
    version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"]
    assert releases[:2] == ["Unreleased", version]
    entries = re.split(r"\n- |\n#+ |\n\n", text)
    assert [entry for entry in entries if len(entry.split()) > ENTRY_WORDS] == []


def test_the_runbook_is_one_table_of_symptoms() -> None:
    text = (DOCS / "runbook.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == "| symptom | cause | what to do |"
    assert "\n".join(rows) in text
    assert len(rows) > 100
    assert [row for row in rows if len(re.split(r"(?<!\\)\|", row)) != 5] == []


def test_every_command_of_the_chat_is_in_its_page() -> None:
    told = set(re.findall(r"/([a-z_]+)", (DOCS / "telegram.md").read_text()))
    assert {name for command in COMMANDS for name in (command.name, *command.aliases)} <= told


def test_every_tool_of_an_assistant_is_in_its_page() -> None:
    rows = re.findall(r"^\| (`.+?`|▶ .+?) \|", (DOCS / "mcp.md").read_text(), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)} == set(TOOLS)


def test_pictures_are_small_and_each_is_shown() -> None:
    """`make pictures` takes them."""
    pictures = {path.name: path.stat().st_size for path in DOCS.rglob("*.png")}
    assert sum(pictures.values()) < 300_000
    shown = {name for page in PAGES for name in re.findall(r"!\[[^]]+\]\((?:docs/)?([^)]+)\)", page.read_text())}
    assert shown == set(pictures)


def test_every_page_is_in_the_index() -> None:
    listed = set(re.findall(r"\]\(([^)]+\.md)\)", (DOCS / "README.md").read_text()))
    assert listed == {str(path.relative_to(DOCS)) for path in [*DOCS.glob("*.md"), *GUIDES]} - {"README.md"}


def test_every_setting_has_a_row_with_its_default_and_every_row_a_setting() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| `?(.*?)`? \|", (DOCS / "settings.md").read_text(), re.MULTILINE)
    defaults = (field.get_default(call_default_factory=True) for field in Settings.model_fields.values())
    texts = (",".join(value) if isinstance(value, tuple) else value for value in defaults)
    shown = ("–" if value in (None, "", {}) else str(value) for value in texts)
    said = [(name, {"true": "True", "false": "False"}.get(default, default)) for name, default in rows]
    assert said == list(zip(variables(), shown, strict=True))


def test_every_setting_stands_with_its_name_in_the_file() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \|.*\| (?:`(.*?)`|–) \|$", (DOCS / "settings.md").read_text(), re.MULTILINE)
    fields = {field.variable: str(field) for field in file_fields().values()}
    assert rows == [(name, fields.get(name, "")) for name in variables()]


def test_the_pages_say_how_memory_is_used_as_the_code_has_it() -> None:
    guide, evidence = ((DOCS / name).read_text() for name in ("guides/trading.md", "evidence.md"))
    decision = next((DOCS / "decisions").glob("0030-*.md")).read_text()
    shared = r"setups?\s+shares? at least ([\d.]+) of the\s+phrases"
    assert [float(*re.findall(shared, text)) for text in (guide, decision)] == [MIN_SHARED, MIN_SHARED]
    assert [float(share) for share in re.findall(r"`MIN_SHARED` ([\d.]+)", evidence)] == [MIN_SHARED]
    assert [int(points) for points in re.findall(r"`FAILURE_POINTS` (\d+)", evidence)] == [FAILURE_POINTS]
    (claimed,) = re.findall(
        r"claims (\d+) points\s+of probability less.*?and (\d+) for each lesson.*?(\d+) at most", guide, re.DOTALL
    )
    assert tuple(map(int, claimed)) == (FAILURE_POINTS, LESSON_POINTS, MOST_POINTS)
    assert [float(alike) for alike in re.findall(r"has a likeness of ([\d.]+), nothing", guide)] == [LEAST_ALIKE]
    assert re.findall(r"reads the first ([\d,]+) characters of a query", guide) == [f"{SEARCH_CHARS:,}"]


def test_the_readme_opens_with_the_two_commands() -> None:
    block = (CHECKOUT / "README.md").read_text().split("```")[1]
    assert [line.split("#")[0].strip() for line in block.strip().splitlines()] == ["make demo", "make test"]


def test_the_readme_code_runs_and_gives_the_number_it_says() -> None:
    code = re.search(r"```python\n(.+?)```", (CHECKOUT / "README.md").read_text(), re.DOTALL)
    assert code is not None
    *statements, last = code[1].strip().splitlines()
    expression, comment = last.split("#")
    scope: dict[str, Any] = {}
    exec("\n".join(statements), scope)
    assert repr(eval(expression.strip(), scope)) == comment.split(": ")[1].strip()


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_links_point_to_something(page: Path) -> None:
    for target, _, anchor in re.findall(r"\]\(([^)#]*)(#([^)]+))?\)", page.read_text(encoding="utf-8")):
        place = page.parent / target if target else page
        assert target.startswith("http") or place.exists(), target
        assert not anchor or anchor in anchors(place), (target, anchor)


def test_every_error_is_drawn_in_its_tree() -> None:
    """The four branches and their kinds stand in the docstring a newcomer reads first."""
    from zuno.kernel import errors

    drawn = errors.__doc__ or ""
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.ZunoError) and not issubclass(kind, errors.PoolRefusal):
            assert name in drawn, name

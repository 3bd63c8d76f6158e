"""The documentation speaks of what is there: every command, every setting, and the README's own code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from tests.paths import CHECKOUT
from zuno.doors.cli.main import app
from zuno.doors.mcp.tools import TOOLS
from zuno.doors.telegram.command_table import COMMANDS
from zuno.settings import variables
from zuno.trading.agents.learned import FAILURE_POINTS, LESSON_POINTS, MOST_POINTS
from zuno.trading.learn.recall import MIN_SHARED
from zuno.trading.measure.similarity import LEAST_ALIKE
from zuno.trading.service.memory import SEARCH_CHARS

DOCS = CHECKOUT / "docs"


def commands(group: Any, prefix: str) -> Iterator[str]:
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        if inner is None or command.callback.__name__ != "help_alone":
            yield f"{prefix} {name}"
        if inner is not None:
            yield from commands(command, f"{prefix} {name}")


@pytest.mark.slow
def test_every_command_has_a_heading_and_every_heading_a_command() -> None:
    headings = re.findall(r"^## (zuno .+)$", (DOCS / "commands.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(commands(typer.main.get_command(app), "zuno"))


def test_every_command_of_the_chat_is_in_its_page() -> None:
    told = set(re.findall(r"/([a-z_]+)", (DOCS / "telegram.md").read_text()))
    assert {name for command in COMMANDS for name in (command.name, *command.aliases)} <= told


def test_every_tool_of_an_assistant_is_in_its_page() -> None:
    assert set(
        re.findall(r"`((?:lp|plan|trade|analysis|memory|journal)_[a-z_]+)`", (DOCS / "mcp.md").read_text())
    ) == set(TOOLS)


def test_every_page_is_in_the_index() -> None:
    listed = set(re.findall(r"\]\(([^)]+\.md)\)", (DOCS / "README.md").read_text()))
    assert listed == {path.name for path in DOCS.glob("*.md")} - {"README.md"}


def test_every_setting_has_a_row_and_every_row_a_setting() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \|", (DOCS / "settings.md").read_text(), re.MULTILINE)
    assert rows == list(variables())


def test_the_pages_say_how_memory_is_used_as_the_code_has_it() -> None:
    pages = {name: (DOCS / name).read_text() for name in ("commands.md", "evidence.md")}
    decision = next((DOCS / "decisions").glob("0030-*.md")).read_text()
    shared = [
        float(said)
        for text in (pages["commands.md"], decision)
        for said in re.findall(r"setups?\s+shares? at least ([\d.]+) of the\s+phrases", text)
    ]
    assert shared == [MIN_SHARED, MIN_SHARED]
    assert not re.findall(r"share half of the\s+phrases", pages["commands.md"])
    assert [float(said) for said in re.findall(r"`MIN_SHARED` ([\d.]+)", pages["evidence.md"])] == [MIN_SHARED]
    assert [int(said) for said in re.findall(r"`FAILURE_POINTS` (\d+)", pages["evidence.md"])] == [FAILURE_POINTS]
    (claimed,) = re.findall(
        r"claim (\d+) points of probability less.*?and (\d+) for each lesson.*?(\d+) at most",
        pages["commands.md"],
        re.DOTALL,
    )
    assert tuple(map(int, claimed)) == (FAILURE_POINTS, LESSON_POINTS, MOST_POINTS)
    (alike,) = re.findall(r"no setup has a likeness of ([\d.]+), nothing is alike", pages["commands.md"])
    assert float(alike) == LEAST_ALIKE
    (read,) = re.findall(r"Of a query beyond ([\d,]+) characters", pages["commands.md"])
    assert int(read.replace(",", "")) == SEARCH_CHARS


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


@pytest.mark.parametrize(
    "page", sorted(str(path.relative_to(CHECKOUT)) for path in [*DOCS.glob("*.md"), *CHECKOUT.glob("*.md")])
)
def test_links_point_to_something(page: str) -> None:
    path = CHECKOUT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert target.startswith("http") or (path.parent / target).exists(), target


def test_every_error_is_drawn_in_its_tree() -> None:
    """The four branches and their kinds stand in the docstring a newcomer reads first."""
    from zuno.kernel import errors

    drawn = errors.__doc__ or ""
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.ZunoError) and not issubclass(kind, errors.PoolRefusal):
            assert name in drawn, name

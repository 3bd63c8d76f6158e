"""What the package says of itself: bounded dependencies, private groups, licences and editions in their pages."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.paths import CHECKOUT, SOURCE
from zuno.lp.model import ballot
from zuno.trading.model import cycle

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
PUBLISHED = {"base": PROJECT["project"]["dependencies"], **PROJECT["project"]["optional-dependencies"]}
# Versions that are dates, of which only newer ones are right.
UNBOUNDED = {"tzdata"}


@pytest.mark.parametrize("extra", PUBLISHED)
def test_every_published_dependency_has_an_upper_bound(extra: str) -> None:
    for requirement in map(Requirement, PUBLISHED[extra]):
        bounded = any(part.operator in ("<", "<=", "==", "~=") for part in requirement.specifier)
        assert bounded or requirement.name in UNBOUNDED, requirement


def test_what_only_a_checkout_needs_is_not_published() -> None:
    assert {"dev", "peers"} <= set(PROJECT["dependency-groups"])
    assert not {"dev", "peers"} & set(PUBLISHED)


def test_every_published_dependency_has_a_licence_in_the_page() -> None:
    page = (CHECKOUT / "docs" / "licences.md").read_text()
    rows = {
        line.split(" | ")[0].removeprefix("| "): line.split(" | ")[1] for line in page.splitlines() if " | " in line
    }
    absent = page.rsplit("environment: ", 1)[-1].strip(" .\n").split(", ")
    for requirement in (Requirement(line) for lines in PUBLISHED.values() for line in lines):
        name = canonicalize_name(requirement.name)
        assert rows.get(name) or name in absent, name


def test_every_edition_has_its_row() -> None:
    liquidity, trading = (CHECKOUT / "docs" / "editions.md").read_text().split("## Trading")
    for text, newest in ((liquidity, ballot.EDITION), (trading, cycle.EDITION)):
        rows = [int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
        assert rows == list(range(newest, 0, -1))


def test_no_private_part_of_web3_is_imported() -> None:
    paths = [*SOURCE.rglob("*.py"), *(CHECKOUT / "tests").rglob("*.py")]
    for path in (path for path in paths if "web3._" in path.read_text()):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            assert not any(module.startswith("web3._") for module in modules), path

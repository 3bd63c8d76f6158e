"""Write docs/platforms.md: where there is a wheel for everything that Zuno brings, and what has to be built elsewhere.

`make platforms` asks the package index for every pinned package on every Python and platform; it needs the network and
takes minutes, so no test runs it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import Distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.licences_page import collect_packages

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "platforms.md"
UV = str(Path(sys.executable).with_name("uv"))
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "Linux x86-64": ("x86_64-manylinux_2_28", "linux", "x86_64"),
    "Linux arm64": ("aarch64-manylinux_2_28", "linux", "aarch64"),
    "Alpine (musl) x86-64": ("x86_64-unknown-linux-musl", "linux", "x86_64"),
    "macOS 14, Apple silicon": ("aarch64-apple-darwin", "darwin", "arm64"),
    "macOS 13, Intel": ("x86_64-apple-darwin", "darwin", "x86_64"),
    "Windows x86-64": ("x86_64-pc-windows-msvc", "win32", "AMD64"),
}
MACOS = {
    "aarch64-apple-darwin": {"MACOSX_DEPLOYMENT_TARGET": "14.0"},
    "x86_64-apple-darwin": {"MACOSX_DEPLOYMENT_TARGET": "13.0"},
}
INTRODUCTION = """\
# Platforms

For each platform and Python: does everything that Zuno and its extras bring have a wheel in the tested
versions (`constraints.txt`)? Where a name stands, that package has to be built there, which needs its compiler.
`make platforms` wrote this page from the package index. **Run by all tests: Python 3.11 on Linux, x86-64 and arm64.**
All other cells are checked for wheels and untested, but for these, on Linux x86-64:

- Python 3.13.0: the unit and architecture tests of `make check` without the slow ones. 10,196 passed; of 20 that did
  not, 4 meet a vendor's library that warns while it is compiled, 13 a database that is closed later than 3.13 likes,
  and 3 are mended.
- Python 3.12.1: every module is imported, and a wheel was installed and answered.
- Python 3.14.2: its WebAssembly build alone could be had. All 763 modules were imported, with stand-ins for compiled
  packages but pydantic's. No test has run on 3.14.

From 3.12 on `sum` of floats rounds otherwise, so a record is replayed on the Python that made it. A test imports every
module without what 3.12, 3.13 and 3.14 removed.

Zuno itself is pure Python. Windows is untested: use WSL. On Alpine use a Debian image. On a Mac with an Intel processor
iroh has no wheel, so the mesh between machines needs AXL there.
"""


def read_name(line: str) -> str:
    return canonicalize_name(Requirement(line).name)


def find_unbuilt(python: str, triple: str, requirements: list[str]) -> list[str]:
    """Names of those packages that have no wheel there: the resolver names one at a time."""
    waiting = list(requirements)
    unbuilt: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder, "in.txt")
        while True:
            asked.write_text("\n".join(waiting) + "\n")
            command = [UV, "pip", "compile", "-q", "--no-deps", "--only-binary", ":all:", str(asked)]
            command += ["--python-version", python, "--python-platform", triple]
            done = subprocess.run(
                command, env=os.environ | MACOS.get(triple, {}), capture_output=True, text=True, timeout=600
            )
            if done.returncode == 0:
                return sorted(unbuilt)
            named = re.search(r"ecause (?:only )?([A-Za-z0-9._-]+)==\S+ has no (?:usable )?wheels", done.stderr)
            if named is None:
                raise RuntimeError(f"{triple}, Python {python}: {done.stderr.strip()}")
            unbuilt.append(named[1])
            waiting.remove(next(line for line in waiting if read_name(line) == canonicalize_name(named[1])))


def is_pure(package: Distribution) -> bool:
    """Whether its wheel is the same everywhere."""
    return "Root-Is-Purelib: true" in (package.read_text("WHEEL") or "") and "none-any" in (
        package.read_text("WHEEL") or ""
    )


def list_requirements(sets: dict[str, list[str]], python: str, system: str, machine: str) -> dict[str, list[str]]:
    """The pinned packages of the base and of all extras on that platform, without what only the other brings."""
    pins = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        requirement = Requirement(line)
        place = {"python_full_version": python + ".0", "python_version": python, "sys_platform": system}
        place |= {"platform_machine": machine, "implementation_name": "cpython"}
        if requirement.marker is None or requirement.marker.evaluate(place):
            requirement.marker = None
            pins[read_name(line)] = str(requirement)
    base, _ = collect_packages(sets["base"])
    extras: dict[str, Distribution] = {}
    for lines in sets.values():
        extras |= collect_packages(lines)[0]
    return {
        part: [pins[name] for name, package in sorted(packages.items()) if name in pins and not is_pure(package)]
        for part, packages in (("base", base), ("extras", {n: p for n, p in extras.items() if n not in base}))
    }


def write_page() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sets = {"base": project["dependencies"], **project["optional-dependencies"]}
    tables = {"base": ["## Base"], "extras": ["", "## Extras"]}
    for rows in tables.values():
        rows += ["", f"| | {' | '.join(f'Python {python}' for python in PYTHONS)} |", "|---|" + "---|" * len(PYTHONS)]
    for label, (triple, system, machine) in PLATFORMS.items():
        cells: dict[str, list[str]] = {"base": [], "extras": []}
        for python in PYTHONS:
            for part, lines in list_requirements(sets, python, system, machine).items():
                cells[part].append(", ".join(find_unbuilt(python, triple, lines)) or "all wheels")
                sys.stderr.write(f"{label}, Python {python}, {part}: {cells[part][-1]}\n")
        for part, row in cells.items():
            tables[part].append(f"| {label} | {' | '.join(row)} |")
    return "\n".join([INTRODUCTION, *tables["base"], *tables["extras"]]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(write_page())

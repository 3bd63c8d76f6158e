"""The Makefile's environment: made from a Python that can make it, or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

# Stands for an installed interpreter: answers questions as the real one would, and makes environments of itself.
PYTHON = """#!/bin/sh
echo "$@" >> "{calls}"
case "$1 $2" in
  "-c "*) exec {real} -c "import sys; sys.modules.setdefault('pip', sys); {pretence}
exec(sys.argv[1])" "$2" ;;
  "-m venv") mkdir -p .venv/bin && cp "{inner}" .venv/bin/python {made} ;;
  "-m pip") {install} ;;
esac
"""


@dataclass
class Site:
    """A checkout with nothing installed, and interpreters to order."""

    place: Path

    @property
    def calls(self) -> list[str]:
        return (self.place / "calls").read_text().splitlines() if (self.place / "calls").exists() else []

    def interpreter(self, *, pretence: str = "", made: str = "", install: str = "exit 0") -> str:
        name = str(self.place / "some-python")
        for path in (name, name + "-inside"):
            text = PYTHON.format(
                calls=self.place / "calls",
                real=sys.executable,
                inner=name + "-inside",
                pretence=pretence,
                made=made,
                install=install,
            )
            Path(path).write_text(text)
            Path(path).chmod(0o755)
        return name

    def make(self, python: str) -> subprocess.CompletedProcess[str]:
        command = ["make", "--no-print-directory", ".venv/.base", f"PYTHON={python}"]
        outside = {
            name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
        }
        return subprocess.run(
            command, cwd=self.place, env=outside, capture_output=True, text=True, timeout=60, check=False
        )

    @property
    def made(self) -> bool:
        return (self.place / ".venv").exists()

    @property
    def stamped(self) -> bool:
        return (self.place / ".venv" / ".base").exists()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(CHECKOUT / name, tmp_path / name)
    return Site(tmp_path)


@pytest.mark.slow
def test_a_sound_python_makes_the_environment_once(site: Site) -> None:
    python = site.interpreter()
    done = site.make(python)
    assert done.returncode == 0, done.stderr
    assert site.stamped
    before = len(site.calls)
    assert site.make(python).returncode == 0
    assert len(site.calls) == before, "nothing to do"


@pytest.mark.slow
@pytest.mark.parametrize("pretence", ["sys.version_info = (3, 9, 18)", "sys.modules['ensurepip'] = None"])
def test_a_python_that_cannot_is_told_in_a_sentence(site: Site, pretence: str) -> None:
    _refused(site, site.interpreter(pretence=pretence))


@pytest.mark.parametrize("python", ["/bin/false", "/bin/true", "no-such-python"])
def test_what_is_no_python_is_told_in_a_sentence(site: Site, python: str) -> None:
    _refused(site, python)


def _refused(site: Site, python: str) -> None:
    done = site.make(python)
    assert done.returncode != 0
    first = done.stderr.splitlines()[0]
    assert "3.11" in first
    assert f"PYTHON={python}" in first
    assert "Traceback" not in done.stderr
    assert not site.made


@pytest.mark.slow
@pytest.mark.parametrize("accident", ["&& exit 1", "&& rm .venv/bin/python", "&& kill -TERM $PPID"])
def test_a_half_made_environment_is_removed(site: Site, accident: str) -> None:
    assert site.make(site.interpreter(made=accident)).returncode != 0
    assert not site.made


@pytest.mark.slow
@pytest.mark.parametrize("flaw", ["sys.modules['pip'] = None", "sys.version_info = (3, 9, 18)", "sys.exit(0)"])
def test_an_unsound_environment_that_was_left_is_made_anew(site: Site, flaw: str) -> None:
    inside = site.place / ".venv" / "bin" / "python"
    inside.parent.mkdir(parents=True)
    shutil.copy(site.interpreter(pretence=flaw), inside)
    done = site.make(site.interpreter())
    assert done.returncode == 0, done.stderr
    assert any(call.startswith("-m venv --clear") for call in site.calls)


@pytest.mark.slow
def test_an_interrupted_install_is_not_taken_for_done(site: Site) -> None:
    assert site.make(site.interpreter(install="kill -KILL $$")).returncode != 0
    assert not site.stamped
    shutil.rmtree(site.place / ".venv")
    assert site.make(site.interpreter()).returncode == 0
    assert site.stamped


def test_what_was_installed_under_the_old_name_goes_before_the_new_comes(site: Site) -> None:
    old = site.place / ".venv" / "lib" / "python3.11" / "site-packages" / "zuno-1.0.0.dist-info"
    old.mkdir(parents=True)
    inside = site.place / ".venv" / "bin" / "python"
    inside.parent.mkdir()
    shutil.copy(site.interpreter(), inside)
    done = site.make(site.interpreter())
    assert done.returncode == 0, done.stderr
    removed = [place for place, call in enumerate(site.calls) if "pip uninstall" in call]
    added = [place for place, call in enumerate(site.calls) if "install" in call and " -e " in call]
    assert len(removed) == 1
    assert site.calls[removed[0]].split()[-1] == "zuno"
    assert removed[0] < added[0]

"""What is under deploy/: every file that is copied exists, every command is one of ours, nothing runs as root."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path

import pytest

from tests.paths import CHECKOUT
from tests.wire.commands import run_zuno

DEPLOY = CHECKOUT / "deploy"
IMAGES = re.compile(r"(python:3\.1[12]-slim|postgres:1[5-9])")


def read_steps(text: str) -> Iterator[tuple[str, str]]:
    """Instructions of a container file with their words; continued lines are one."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            instruction, _, words = line.strip().partition(" ")
            yield instruction, words.strip()


STEPS = list(read_steps((DEPLOY / "Containerfile").read_text()))


def check_command(home: Path, *words: str) -> None:
    """One of the command tree, by its own help."""
    name = words[0]
    assert run_zuno(home, name, "--help").code == 0


def test_every_copied_path_exists() -> None:
    copies = [shlex.split(words) for instruction, words in STEPS if instruction == "COPY"]
    sources = [path for words in copies if not words[0].startswith("--from") for path in words[:-1]]
    assert len(sources) >= 6
    assert [path for path in sources if not (CHECKOUT / path).exists()] == []
    extras = re.search(r"\[([a-z,]+)\]", next(words for name, words in STEPS if "pip install" in words))
    assert extras is not None
    declared = (CHECKOUT / "pyproject.toml").read_text()
    assert [extra for extra in extras[1].split(",") if f"\n{extra} = [" not in declared] == []


def test_images_are_named_plainly_and_nothing_runs_as_root() -> None:
    compose = (DEPLOY / "compose.yaml").read_text()
    images = [words.split()[0] for name, words in STEPS if name == "FROM"] + re.findall(r"image: (\S+)", compose)
    assert len(images) == 3
    assert [image for image in images if not IMAGES.fullmatch(image)] == []
    users = [place for place, (name, _) in enumerate(STEPS) if name == "USER"]
    assert [STEPS[place][1] for place in users] == ["10001"]
    assert not [name for name, _ in STEPS[users[-1] :] if name in ("RUN", "COPY")]
    for line in ("read_only: true", 'user: "10001:10001"', "cap_drop: [ALL]", "/readyz", "condition: service_healthy"):
        assert line in compose
    assert not re.search(r"(?i)password: +[^$\s]", compose), "no secret is in the file"
    assert re.search(r"ZUNO_WEB_PROXIES: (\S+)", compose)[1] == re.search(r"gateway: (\S+)", compose)[1]  # type: ignore[index]


def test_the_health_check_asks_for_readiness() -> None:
    checks = [words for name, words in STEPS if name == "HEALTHCHECK"]
    assert len(checks) == 1
    assert "http://127.0.0.1:8420/readyz" in checks[0]
    program = re.search(r"CMD (\[.*\])", checks[0])
    assert program is not None
    command = eval(program[1])  # a JSON list
    compile(command[2], "healthcheck", "exec")
    assert (DEPLOY / "compose.yaml").read_text().count(command[2]) == 1


def read_unit() -> RawConfigParser:
    unit = RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read(DEPLOY / "zuno.service")
    return unit


def test_the_unit_is_watched_and_locked_down() -> None:
    service = read_unit()["Service"]
    assert service["Type"] == "notify"
    assert int(service["WatchdogSec"]) >= 30
    assert service["User"] == "zuno"
    assert service["RestartPreventExitStatus"] == "2 5"
    assert read_unit()["Unit"]["StartLimitIntervalSec"] == "0"  # a database that is down for an hour comes back
    for name in ("ProtectSystem", "ProtectHome", "NoNewPrivileges", "PrivateTmp", "RestrictSUIDSGID"):
        assert service[name] in ("strict", "true")
    program, *words = shlex.split(service["ExecStart"])
    assert (Path(program).name, words) == ("zuno", ["serve"])
    assert Path(program).is_absolute()


def test_the_started_command_is_one_of_the_command_tree(tmp_path: Path) -> None:
    (entry,) = [words for name, words in STEPS if name == "ENTRYPOINT"]
    (words,) = [words for name, words in STEPS if name == "CMD"]
    assert entry == '["zuno"]'
    check_command(tmp_path, "web", "--host")
    check_command(tmp_path, *re.findall(r'"([^"]*)"', words))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "zuno.service"
    text = (DEPLOY / "zuno.service").read_text()
    unit.write_text(text.replace("/opt/zuno/bin/zuno", sys.executable).replace("User=zuno", "User=root"))
    read = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert "Unknown" not in read.stderr


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_the_steps_of_the_container_file_make_a_page_that_starts(tmp_path: Path) -> None:
    """One by one in a clean folder, without an image builder: /build and /opt/zuno are folders of the test."""
    build, prefix = tmp_path / "build", tmp_path / "zuno"
    build.mkdir()
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    clean |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    done = 0
    for name, words in STEPS[: [step[0] for step in STEPS].index("FROM", 1)]:
        if name == "COPY":
            *sources, target = shlex.split(words)
            for source in sources:
                place = build / target / (Path(source).name if target == "./" else "")
                if (CHECKOUT / source).is_dir():
                    shutil.copytree(CHECKOUT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(CHECKOUT / source, place)
        elif name == "RUN":
            command = words.replace("/opt/zuno", str(prefix)).replace("python -m venv", f"{sys.executable} -m venv")
            subprocess.run(["/bin/sh", "-ec", command], cwd=build, env=clean, check=True, capture_output=True)
        done += name in ("COPY", "RUN")
    assert done >= 5
    home = {"ZUNO_HOME": str(tmp_path / "home"), "PATH": f"{prefix}/bin", "HOME": str(tmp_path)}
    for line in (["--help"], ["web", "--help"], ["web", "factor", "add", "totp", "phone"], ["lp", "positions"]):
        ran = subprocess.run([prefix / "bin" / "zuno", *line], env=home, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    refused = subprocess.run(
        [prefix / "bin" / "zuno", "web", "--host", "0.0.0.0", "--port", "0"], env=home, capture_output=True, check=False
    )
    assert refused.returncode == 2, "every address at once is for a page with a public URL"

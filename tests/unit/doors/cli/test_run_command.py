"""What becomes of an answer that cannot be shown, and of a home that cannot be written."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from zuno.doors.cli.main import build_command, run
from zuno.doors.cli.run_command import BUG, Failed, Session, answer
from zuno.doors.zuno import Zuno
from zuno.kernel.view import View
from zuno.wiring import open_zuno

NOBODY = 65_534


class Unseen(View):
    """An answer that no screen was made for."""

    what: str = "unseen"


async def unseen(zuno: Zuno) -> Unseen:
    return Unseen()


def test_a_bug_in_the_showing_is_a_sentence_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Failed) as failed:
        answer(Session(open_zuno, str(tmp_path)), False, unseen)
    said = capsys.readouterr()
    assert failed.value.code == BUG
    found = re.fullmatch(r"zuno: Zuno has a bug \(TypeError\); please report it with (\S+)\.\n", said.err)
    assert found is not None
    evidence = Path(found[1])
    assert "Unseen has no document" in evidence.read_text()
    evidence.unlink()


@contextmanager
def powerless() -> Iterator[None]:
    """Root may write anywhere, so for a moment this process is somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def sealed_home() -> Iterator[Path]:
    """A home with a saved world that everyone can read and we cannot write."""
    home = Path(tempfile.mkdtemp(prefix="zuno-sealed-"))
    assert run(["sim", "move", "--percent", "3", "--home", str(home)], open_zuno) == 0
    for path in home.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)  # files of a home are the owner's alone; here anybody reads them
    assert run(["lp", "pnl", "1", "--since", "3d", "--home", str(home)], open_zuno) == 0  # all it needs is loaded now
    home.chmod(0o555)
    yield home
    home.chmod(0o755)
    shutil.rmtree(home)


@pytest.mark.slow
def test_a_home_that_cannot_be_written_can_be_read(sealed_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    for command in (["lp", "pools"], ["lp", "pnl", "1", "--since", "3d"]):
        with powerless():
            code = run([*command, "--json", "--home", str(sealed_home)], open_zuno)
        said = capsys.readouterr()
        assert code == 0, said.err
        assert re.search(r'"(toB|b)lock":731\b', said.out)  # the saved world with its move, not the embedded one
        assert re.fullmatch(rf"zuno: .*{re.escape(str(sealed_home))} \(Permission denied\); sim .*\n", said.err)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["sim", "reset"],
        ["sim", "move", "--percent", "1"],
        ["lp", "recommend", "rebalance", "1"],
        ["lp", "pools", "--chain", "devnet"],
        ["devnet", "status"],
    ],
    ids=" ".join,
)
def test_what_must_be_kept_is_refused_there(
    sealed_home: Path, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run([*command, "--home", str(tmp_path)], open_zuno)  # all it needs is loaded now: somebody else may not read it
    capsys.readouterr()
    with powerless():
        assert run([*command, "--home", str(sealed_home)], open_zuno) == 4
    assert re.search(rf"{re.escape(str(sealed_home))} .*\(Permission denied\)", capsys.readouterr().err)


@pytest.mark.slow
def test_the_journal_of_a_home_that_cannot_be_written_is_read(
    sealed_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argued = tmp_path / "argued"
    assert run(["lp", "recommend", "rebalance", "1", "--json", "--home", str(argued)], open_zuno) == 0
    plan = json.loads(capsys.readouterr().out)["planId"]
    commands = (["plan", "list"], ["journal", "verify"], ["journal", "tail"], ["plan", "show", plan], ["replay", plan])
    for command in commands:  # all they need is loaded now
        assert run([*command, "--json", "--home", str(argued)], open_zuno) == 0
    sealed_home.chmod(0o755)
    shutil.copytree(argued, sealed_home, dirs_exist_ok=True)
    for path in (*sealed_home.rglob("*"), sealed_home):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o555 if path.is_dir() else 0o400)
    before = sorted(path.name for path in sealed_home.rglob("*"))
    for command in commands:
        capsys.readouterr()
        with powerless():
            code = run([*command, "--json", "--home", str(sealed_home)], open_zuno)
        said = capsys.readouterr()
        assert code == 0, said.err
        assert plan in said.out or "entries" in said.out or "identical" in said.out
    assert sorted(path.name for path in sealed_home.rglob("*")) == before
    capsys.readouterr()
    with powerless():
        assert run(["lp", "close", "1", "--home", str(sealed_home)], open_zuno) == 4  # what is to be kept is refused
    os.chown(sealed_home, os.geteuid(), os.getegid())


@pytest.mark.slow
def test_a_home_that_cannot_even_be_made_has_the_embedded_world(
    sealed_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    with powerless():
        assert run(["lp", "pools", "--json", "--home", str(sealed_home / "new")], open_zuno) == 0
    assert '"block":730' in capsys.readouterr().out


@pytest.mark.slow
def test_a_saved_world_that_cannot_be_read_is_not_replaced_by_another(
    sealed_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    (sealed_home / "sim.json").chmod(0o000)
    with powerless():
        assert run(["lp", "pools", "--home", str(sealed_home)], open_zuno) == 4
    assert re.search(r"\bsim\.json .*\(Permission denied\).*--home\b", capsys.readouterr().err)


@pytest.mark.slow
def test_a_first_word_needs_its_own_part_of_the_grammar_alone() -> None:
    def names(*words: str) -> set[str]:
        return set(getattr(build_command(words), "commands"))  # noqa: B009

    whole = names()
    assert len(whole) > 20
    assert {word: names(word) for word in whole} == {word: {word} for word in whole}
    assert names("--home", "lp") == names("pla") == names("--help") == whole


@pytest.mark.parametrize("words", [(), ("lp",), ("lp", "recommend")])
def test_help_is_the_same_with_as_much_of_the_grammar_as_it_needs(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    asked, helps = [*words, "--help"], []
    for grammar in (build_command(asked), build_command()):
        assert grammar(asked, prog_name="zuno", standalone_mode=False, obj=Session(open_zuno)) == 0
        helps.append(capsys.readouterr().out)
    assert helps[0] == helps[1] != ""

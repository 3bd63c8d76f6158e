"""Where a passphrase may come from, and what is said where it may not."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from zuno.adapters.keys import passphrases
from zuno.adapters.keys.passphrases import FEWEST, InputEnded, Passphrases, ask_hidden
from zuno.kernel.errors import Refused, Unavailable


class Person:
    """Somebody at a terminal, who answers in this order."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, prompt: str) -> SecretStr | None:
        self.asked.append(prompt)
        return SecretStr(self.answers.pop(0))


def nobody(prompt: str) -> None:
    return None


def written(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    file = folder / "passphrase"
    file.write_bytes(content)
    file.chmod(mode)
    return file


@pytest.mark.parametrize(
    ("content", "passphrase"),
    [
        (b"correct horse\n", "correct horse"),
        (b"correct horse", "correct horse"),
        (b"correct horse\r\nsecond line\n", "correct horse"),
        (b"  blanks count  \n", "  blanks count  "),
        ("größer als\n".encode(), "größer als"),
    ],
)
def test_the_first_line_of_a_file(tmp_path: Path, content: bytes, passphrase: str) -> None:
    person = Person()
    source = Passphrases(written(tmp_path, content), person)
    assert source.of("0x12").get_secret_value() == passphrase
    assert source.new().get_secret_value() == passphrase
    assert person.asked == [], "a file is set so that nobody is asked"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o602, 0o610, 0o601])
def test_a_file_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    file = written(tmp_path, b"correct horse\n", mode)
    with pytest.raises(Refused, match="chmod 600") as caught:
        Passphrases(file, nobody).of("0x12")
    assert "correct" not in str(caught.value)
    assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\nsecond\n", "is empty"),
        (b"x" * 5_000, "longer than 4096 bytes"),
        (b"secret \xff\xfe\n", "not UTF-8"),
    ],
)
def test_a_file_without_a_passphrase(tmp_path: Path, content: bytes, why: str) -> None:
    with pytest.raises(Refused, match=why) as caught:
        Passphrases(written(tmp_path, content), nobody).of("0x12")
    assert caught.value.__context__ is None, "what could not be read is not in the trace either"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="ZUNO_PASSPHRASE_FILE"):
        Passphrases(tmp_path / "none", nobody).of("0x12")
    with pytest.raises(Unavailable, match="ZUNO_PASSPHRASE_FILE"):
        Passphrases(tmp_path, nobody).of("0x12")


def test_a_file_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, b"correct horse\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Passphrases(Path("~/passphrase"), nobody).of("0x12").get_secret_value() == "correct horse"


def test_a_person_is_asked_once_to_open_and_twice_to_choose() -> None:
    person = Person("first word", "second word", "second word")
    source = Passphrases(None, person)
    assert source.of("0x12").get_secret_value() == "first word"
    assert source.new().get_secret_value() == "second word"
    assert person.asked == ["Passphrase of 0x12: ", "New passphrase: ", "The same again: "]


def test_two_words_that_differ_are_no_choice() -> None:
    with pytest.raises(Refused, match="differ"):
        Passphrases(None, Person("second word", "second  word")).new()


@pytest.mark.parametrize("word", ["", "1234567"])
def test_a_short_one_is_refused_for_a_new_wallet_alone(tmp_path: Path, word: str) -> None:
    with pytest.raises(Refused, match=f"{len(word)} characters.*{FEWEST}"):
        Passphrases(None, Person(word, word)).new()
    assert Passphrases(None, Person(word)).of("0x12").get_secret_value() == word
    assert Passphrases(None, Person("8 signs!", "8 signs!")).new().get_secret_value() == "8 signs!"
    if word:
        with pytest.raises(Refused, match=rf"\b{len(word)} .*\b{FEWEST}\b"):
            Passphrases(written(tmp_path, word.encode()), nobody).new()


def test_a_strangers_file_is_opened_by_the_person_or_else_by_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, b"of the house\n")
    assert Passphrases(file, Person("of another")).of_stranger("it").get_secret_value() == "of another"
    assert Passphrases(file, nobody).of_stranger("it").get_secret_value() == "of the house"
    with pytest.raises(Refused, match="ZUNO_PASSPHRASE_FILE"):
        Passphrases(None, nobody).of_stranger("it")


def test_without_a_terminal_it_says_what_to_set(tmp_path: Path) -> None:
    for ask in (Passphrases(None, nobody).new, lambda: Passphrases(None, nobody).of("0x12")):
        with pytest.raises(Refused, match="ZUNO_PASSPHRASE_FILE"):
            ask()
    with pytest.raises(Refused, match="terminal"):
        Passphrases(written(tmp_path, b"correct horse\n"), nobody).key()


def test_keys_that_are_no_text_are_refused_and_appear_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def typed(prompt: str) -> str:
        return b"se\xffcret".decode()

    monkeypatch.setattr("getpass.getpass", typed)
    monkeypatch.setattr(passphrases, "_may_ask", lambda: True)
    with pytest.raises(Refused, match="text") as caught:
        ask_hidden("Passphrase: ")
    assert caught.value.__context__ is None, "what could not be read is not in the trace either"


BACKGROUND = """
import fcntl, os, pty, signal, termios
from zuno.adapters.keys.passphrases import ask_hidden

os.setsid()
person, terminal = pty.openpty()
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
child = os.fork()
if not child:
    os.setpgid(0, 0)  # as a shell does for a job with &
    os._exit(0 if ask_hidden("Passphrase: ") is None else 1)
os.setpgid(child, child)
_, status = os.waitpid(child, os.WUNTRACED)
if os.WIFSTOPPED(status):
    os.kill(child, signal.SIGKILL)
    raise SystemExit("stopped")
raise SystemExit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.slow
def test_a_process_in_the_background_of_a_terminal_asks_nobody_and_is_not_stopped() -> None:
    done = subprocess.run([sys.executable, "-c", BACKGROUND], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_end_of_input_is_told_from_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def typed(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("getpass.getpass", typed)
    monkeypatch.setattr(passphrases, "_may_ask", lambda: True)
    with pytest.raises(InputEnded):
        ask_hidden("Passphrase: ")

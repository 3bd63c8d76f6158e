"""A wallet unlocked once, when a long-running process starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from zuno.adapters.keys import passphrases
from zuno.adapters.keys.passphrases import InputEnded, Passphrases
from zuno.adapters.keys.wallets import WalletFolder
from zuno.kernel.errors import Refused
from zuno.settings import Settings
from zuno.wiring.shared import Signers

KEY = "46" * 32
WORD = "correct horse"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    answers = [KEY, WORD, WORD]
    WalletFolder(tmp_path / "wallets", Passphrases(None, lambda prompt: SecretStr(answers.pop(0))), rounds=2).add_key()
    return tmp_path


def answer_with(monkeypatch: pytest.MonkeyPatch, *answers: str | None) -> list[str]:
    """What a person at the terminal types; the prompts that were put to them."""
    left, prompts = list(answers), []

    def ask(prompt: str) -> SecretStr | None:
        prompts.append(prompt)
        if not left:
            raise InputEnded("end of input")
        typed = left.pop(0)
        return None if typed is None else SecretStr(typed)

    monkeypatch.setattr(passphrases, "ask_hidden", ask)
    return prompts


def test_a_wallet_unlocked_at_the_terminal_is_not_asked_for_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = answer_with(monkeypatch, WORD)
    signers = Signers(Settings(home=home))
    assert signers.unlock() == signers.of("base").address
    signers.of("base").ready()
    assert len(prompts) == 1


@pytest.mark.parametrize("typed", [("",), (None,), ()], ids=["empty", "nobody", "end of input"])
def test_a_wallet_left_locked_is_refused_later_and_nobody_is_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch, typed: tuple[str | None, ...]
) -> None:
    prompts = answer_with(monkeypatch, *typed)
    signers = Signers(Settings(home=home))
    assert signers.unlock() is None
    with pytest.raises(Refused, match="ZUNO_PASSPHRASE_FILE"):
        signers.of("base").ready()
    assert len(prompts) == 1


def test_a_wrong_passphrase_is_refused_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, "wrong horse")
    with pytest.raises(Refused):
        Signers(Settings(home=home)).unlock()


def test_the_passphrase_file_unlocks_without_a_terminal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = answer_with(monkeypatch)
    file = home / "passphrase"
    file.write_text(WORD)
    file.chmod(0o600)
    signers = Signers(Settings(home=home, passphrase_file=file))
    assert signers.unlock() is not None
    assert prompts == []


def test_without_a_wallet_nobody_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = answer_with(monkeypatch)
    assert Signers(Settings(home=tmp_path)).unlock() is None
    assert prompts == []

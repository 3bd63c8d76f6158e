"""`zuno wallet` as a person and as a service run it: with a terminal, with a passphrase file, and with neither."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from pydantic import SecretBytes, SecretStr

from tests.wire.commands import Ran, shell
from tests.wire.forked import ZunoProcess, run_words
from zuno.adapters.chain.world import WALLET
from zuno.adapters.keys.keystore import write_keystore
from zuno.adapters.keys.passphrases import Passphrases
from zuno.adapters.keys.wallets import WalletFolder
from zuno.kernel.errors import Refused
from zuno.kernel.units import Address, Wei
from zuno.lp.model.gas import FeeBound
from zuno.lp.ports.spending import Call, Fees, Unsigned
from zuno.wiring import open_zuno

Zuno = Callable[..., Any]
WORD = "correct horse battery"
KEY = "46" * 32
OWN = "0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f"
WATCHED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
TX = Unsigned(
    1, 0, Call(Address("0x" + "ab" * 20), 1, b""), 21_000, Fees(Wei(2), Wei(1)), FeeBound(Wei(2), Wei(1), Wei(42_000))
)


@pytest.fixture
def passphrase(tmp_path: Path) -> str:
    file = tmp_path / "passphrase"
    file.write_text(f"{WORD}\n")
    file.chmod(0o600)
    return str(file)


def lone(home: Path, *arguments: str, **environment: str) -> Ran:
    """A process without any terminal, as a service is."""
    done = run_words(
        list(arguments),
        env=shell(home, environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        timeout=120,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def typed(home: Path, *arguments: str, answers: tuple[tuple[str, bytes], ...]) -> tuple[int, str, str]:
    """A process with a terminal of its own; each answer is typed when its question stands there.

    Returns the exit code, what stood on the terminal, and stdout.
    """
    person, terminal = pty.openpty()
    try:
        process = ZunoProcess(
            list(arguments),
            env=shell(home, {}),
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal,
            start_new_session=True,
        )
        seen = ""
        for question, answer in answers:
            while question not in seen:
                seen += os.read(person, 4_096).decode()
            wait_until_hidden(person)
            head, _, seen = seen.rpartition(question)
            seen = head.replace(question, "") + seen
            os.write(person, answer)
        out, _ = process.communicate(timeout=120)
        os.set_blocking(person, False)
        with suppress(BlockingIOError):
            seen += os.read(person, 65_536).decode()
        return process.returncode, seen, out.decode()
    finally:
        os.close(person)
        os.close(terminal)


def wait_until_hidden(person: int) -> None:
    for _ in range(1_000):
        if not termios.tcgetattr(person)[3] & termios.ECHO:
            return
        time.sleep(0.01)
    raise AssertionError("the terminal shows what is typed")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.soak
def test_a_service_makes_a_wallet_that_acts(zuno: Zuno, home: Path, passphrase: str) -> None:
    made = zuno("wallet", "create", "--json", ZUNO_PASSPHRASE_FILE=passphrase)
    assert (made.code, made.err) == (0, "")
    address, file = made.document["address"], Path(made.document["file"])
    assert file == home / "wallets" / f"{address}.json"
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    document = json.loads(file.read_text())
    assert (document["version"], document["crypto"]["kdf"], document["crypto"]["kdfparams"]["n"]) == (
        3,
        "scrypt",
        1 << 18,
    )
    opened = Account.from_key(Account.decrypt(document, WORD))
    assert opened.address == made.document["checksummed"]
    shown = zuno("wallet", "show", "--json").document
    assert shown["acting"] == address
    assert [(one["address"], one["acts"], one["watchOnly"]) for one in shown["wallets"]] == [(address, True, False)]
    assert opened.address in zuno("wallet", "show").out
    everything = made.out + made.err + file.read_text() + json.dumps(shown)
    assert WORD not in everything
    assert opened.key.hex() not in everything


def test_a_keystore_is_imported_once_and_by_its_passphrase(home: Path, tmp_path: Path, passphrase: str) -> None:
    file = tmp_path / "UTC--2026--keystore"
    file.write_bytes(write_keystore(SecretBytes(bytes.fromhex(KEY)), SecretStr(WORD), rounds=2))
    file.chmod(0o644)
    first = lone(home, "wallet", "import", str(file), "--json", ZUNO_PASSPHRASE_FILE=passphrase)
    assert (first.code, first.document["address"]) == (0, OWN)
    assert "chmod 600" in first.document["notes"][0]
    again = lone(home, "wallet", "import", str(file), "--json", ZUNO_PASSPHRASE_FILE=passphrase)
    assert (again.code, again.document["error"]["kind"]) == (3, "refused")
    assert OWN in again.err
    Path(passphrase).write_text("another word entirely\n")
    wrong = lone(tmp_path / "there", "wallet", "import", str(file), ZUNO_PASSPHRASE_FILE=passphrase)
    assert (wrong.code, wrong.out) == (3, "")
    assert "passphrase" in wrong.err
    assert "another word" not in wrong.err
    assert not (tmp_path / "there" / "wallets").exists()


def test_without_a_terminal_it_says_what_to_set(home: Path) -> None:
    made = lone(home, "wallet", "create", "--json")
    assert made.code == 3
    assert made.document["error"]["kind"] == "refused"
    assert "set ZUNO_PASSPHRASE_FILE" in made.err
    key = lone(home, "wallet", "import")
    assert key.code == 3
    assert "terminal" in key.err
    assert not (home / "wallets").exists()


def test_a_passphrase_is_neither_an_argument_nor_a_variable(zuno: Zuno, home: Path, passphrase: str) -> None:
    for arguments in (("create", "--passphrase", WORD), ("import", "--key", KEY), ("import", "--private-key", KEY)):
        refused = zuno("wallet", *arguments)
        assert refused.code == 2
    variable = zuno("wallet", "create", ZUNO_PASSPHRASE=WORD)
    assert variable.code == 2
    assert "ZUNO_PASSPHRASE_FILE" in variable.err
    assert WORD not in variable.err
    Path(passphrase).chmod(0o644)
    open_to_all = zuno("wallet", "create", ZUNO_PASSPHRASE_FILE=passphrase)
    assert open_to_all.code == 3
    assert "chmod 600" in open_to_all.err
    assert not (home / "wallets").exists()


def test_addresses_that_are_none_are_not_watched(zuno: Zuno, home: Path) -> None:
    for nonsense in ("", "0x", "0x12", "vitalik.eth", WATCHED[:-1] + "D", WATCHED[2:], "0x" + "g" * 40):
        assert zuno("wallet", "import", "--watch", nonsense).code == 2, nonsense
    assert zuno("wallet", "import", "some-file", "--watch", WATCHED).code == 2
    assert zuno("wallet", "import", str(home / "none.json")).code == 2
    assert not (home / "wallets").exists()


def test_a_watched_wallet_is_told_as_such(zuno: Zuno, home: Path) -> None:
    watched = zuno("wallet", "import", "--watch", WATCHED, "--json").document
    assert (watched["address"], watched["watchOnly"], watched["acts"]) == (WATCHED.lower(), True, True)
    assert mode(Path(watched["file"])) == 0o600
    assert zuno("wallet", "import", "--watch", WATCHED.lower()).code == 3
    assert "elsewhere" in zuno("wallet", "show").out
    signer = open_zuno(str(home))._signers.of("base")
    assert (signer.address, signer.watch_only) == (WATCHED.lower(), True)


def test_a_person_types_a_key_and_nobody_sees_it(home: Path) -> None:
    word = f"{WORD}\n".encode()
    code, seen, out = typed(
        home,
        *("wallet", "import", "--json"),
        answers=(("not shown): ", f"{KEY}\n".encode()), ("New passphrase: ", word), ("The same again: ", word)),
    )
    assert code == 0, seen
    assert json.loads(out)["address"] == OWN
    assert KEY not in seen + out
    assert WORD not in seen + out


def test_two_words_that_differ_and_ctrl_c_write_nothing(home: Path) -> None:
    code, seen, _ = typed(
        home,
        *("wallet", "create"),
        answers=(("New passphrase: ", b"one long word\n"), ("The same again: ", b"another word\n")),
    )
    assert code == 3
    assert "differ" in seen
    code, seen, _ = typed(home, "wallet", "create", answers=(("New passphrase: ", b"\x03"),))
    assert code == 130, "one Ctrl-C is enough"
    assert not (home / "wallets").exists()


def test_which_wallet_acts(home: Path, zuno: Zuno, passphrase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_BASE_RPC_URL", "http://127.0.0.1:9")
    with pytest.raises(Refused, match="`zuno wallet create`"):
        open_zuno(str(home))._signers.of("base")
    for local in ("sim", "devnet", " SIM "):
        assert open_zuno(str(home))._signers.of(local).address == WALLET
    zuno("wallet", "import", "--watch", WATCHED)
    one = open_zuno(str(home))
    assert one._signers.of("base").address == WATCHED.lower()
    assert one._signers.of("base") is one._signers.of("mainnet"), "a passphrase is asked for once"
    made = WalletFolder(home / "wallets", Passphrases(Path(passphrase)), rounds=2).create().address
    with pytest.raises(Refused, match=rf"\b2 wallets\b.*{made}"):
        open_zuno(str(home))._signers.of("base")
    monkeypatch.setenv("ZUNO_AGENT_WALLET_ADDRESS", made.upper().replace("X", "x"))
    monkeypatch.setenv("ZUNO_PASSPHRASE_FILE", passphrase)
    acting = open_zuno(str(home))._signers.of("base")
    assert not acting.watch_only
    assert Account.recover_transaction(acting.sign(TX).raw).lower() == made == acting.address
    stranger = "0x" + "cd" * 20
    monkeypatch.setenv("ZUNO_AGENT_WALLET_ADDRESS", stranger)
    assert open_zuno(str(home))._signers.of("base").watch_only
    shown = zuno("wallet", "show", "--json", ZUNO_AGENT_WALLET_ADDRESS=stranger).document
    assert (shown["acting"], len(shown["wallets"])) == (stranger, 3)


async def test_the_wallet_that_acts_is_the_one_that_is_watched(
    home: Path, zuno: Zuno, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZUNO_BASE_RPC_URL", "http://127.0.0.1:9")
    seen: list[str | None] = []
    for add in (None, WATCHED, "0x" + "cd" * 20):
        if add is not None:
            zuno("wallet", "import", "--watch", add)
        house = open_zuno(str(home))
        seen.append(await house._chains.open_chain("base").wallet())
        await house.close()
    assert seen == [None, WATCHED.lower(), None], "two leave a choice"


def test_balances_and_allowances_of_the_embedded_world(zuno: Zuno) -> None:
    balance = zuno("wallet", "balance", "--json").document
    assert (balance["chain"], balance["wallet"]) == ("sim", WALLET)
    assert [one["token"]["symbol"] for one in balance["balances"]] == ["ETH", "WETH", "USDC"]
    assert all(int(one["amount"]) > 0 for one in balance["balances"])
    allowances = zuno("wallet", "allowances", "--json").document
    assert {one["spenderName"] for one in allowances["allowances"]} == {"Permit2", "PositionManager"}
    assert all(one["unlimited"] and one["amountHuman"] == "unlimited" for one in allowances["allowances"])
    assert "USDC" in zuno("wallet", "balance").out
    assert "unlimited" in zuno("wallet", "allowances").out
    assert zuno("wallet", "balance", "--chain", "nowhere").code == 2
    assert zuno("wallet", "balance", "--chain", "base").code == 4


def test_the_devnet_says_the_same_as_the_embedded_world(devnet: Zuno) -> None:
    real = devnet("wallet", "allowances", "--chain", "devnet", "--json").document
    sim = devnet("wallet", "allowances", "--chain", "sim", "--json").document
    assert real["allowances"] == sim["allowances"]
    held = devnet("wallet", "balance", "--chain", "devnet", "--json").document
    told = devnet("wallet", "balance", "--chain", "sim", "--json").document
    assert [one["token"] for one in held["balances"]] == [one["token"] for one in told["balances"]]
    assert held["balances"][1:] == told["balances"][1:], "gas apart, which the story's first blocks paid in ether"

"""A newcomer's first hour on the embedded world, through the real command line."""

from __future__ import annotations

import errno
import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from tests import paths
from tests.examples import mark_all_but
from tests.wire.commands import shell
from tests.wire.forked import run_words

POSITION_FIELDS = {
    "id": str,
    "chain": str,
    "pool": dict,
    "tickLower": int,
    "tickUpper": int,
    "liquidity": str,
    "amount0": str,
    "amount1": str,
    "fees0": str,
    "fees1": str,
    "amount0Human": str,
    "amount1Human": str,
    "fees0Human": str,
    "fees1Human": str,
    "inRange": bool,
    "block": int,
}
POOL_FIELDS = {"id": str, "currency0": dict, "currency1": dict, "fee": int, "tickSpacing": int, "hooks": str}


def check_shape(position: dict[str, Any]) -> None:
    """The public shape of a position, on every chain."""
    for name, kind in POSITION_FIELDS.items():
        assert type(position[name]) is kind, name
    for name, kind in POOL_FIELDS.items():
        assert type(position["pool"][name]) is kind, name
    for side in ("currency0", "currency1"):
        assert {"address", "symbol", "decimals"} <= position["pool"][side].keys()
    for name in ("amount0", "amount1", "fees0", "fees1", "liquidity", "id"):
        int(position[name])


def test_positions_are_in_the_public_shape(process: Any) -> None:
    ran = process("lp", "positions", "--chain", "sim", "--json")
    assert ran.code == 0
    assert ran.err == ""
    assert [one["id"] for one in ran.document["positions"]] == ["1", "2"]
    for position in ran.document["positions"]:
        check_shape(position)
    first = ran.document["positions"][0]
    assert first["pool"]["fee"] == 500
    assert first["inRange"] is True
    assert 0 < float(first["edgeDistancePercent"]) < 15


def test_sim_is_the_default_chain(zuno: Any) -> None:
    assert zuno("lp", "pools", "--json").document["chain"] == "sim"


def test_inspect_carries_market_facts_with_source_and_age(zuno: Any) -> None:
    seen = zuno("lp", "inspect", "1", "--chain", "sim", "--json").document
    check_shape(seen)
    for fact in (seen["market"]["referencePrice"], seen["market"]["realizedVol"], seen["market"]["nativePrice"]):
        assert fact["source"] == "seed"
        assert fact["ageSeconds"] == 0
        assert fact["stale"] is False
        assert float(fact["value"]) > 0
    assert 350 < float(seen["market"]["realizedVol"]["value"]) < 600
    assert float(seen["market"]["gasPrice"]["value"]) > 0
    assert seen["market"]["l1DataFee"]["value"] is None


def test_one_pool_is_shown_by_pair_and_by_id(zuno: Any) -> None:
    by_pair = zuno("lp", "pool", "ETH/USDC", "0.3%", "--json").document
    assert (by_pair["label"], by_pair["chain"], by_pair["currency0"]["verified"]) == ("ETH/USDC 0.30 %", "sim", True)
    shown = zuno("lp", "pool", by_pair["id"]).out
    price = f"{float(by_pair['price']):,.2f} USDC per ETH"
    for figure in (by_pair["id"], price, str(by_pair["tick"]), "60 ticks", "hooks"):
        assert figure in shown


def test_a_move_is_said_back_in_plain_digits(zuno: Any) -> None:
    assert zuno("sim", "move", "--percent", "1e1", "--json").document["percent"] == "10"


def test_separate_commands_see_one_world(zuno: Any, home: Path) -> None:
    before = zuno("lp", "inspect", "1", "--json").document
    moved = zuno("sim", "move", "--percent", "-6", "--json").document
    after = zuno("lp", "inspect", "1", "--json").document
    assert after["block"] == before["block"] + 1 == moved["block"]
    assert float(after["price"]) == pytest.approx(float(before["price"]) * 0.94, rel=1e-6)
    assert after["inRange"] is False
    for pool in moved["pools"]:
        assert float(pool["after"]) == pytest.approx(float(moved["referenceAfter"]), rel=5e-4)
    assert after["market"]["referencePrice"]["value"] == moved["referenceAfter"]
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert zuno("sim", "reset").code == 0
    again = zuno("lp", "inspect", "1", "--json").document
    assert again["price"] == before["price"]


@pytest.mark.soak
def test_a_seed_is_a_world(zuno: Any) -> None:
    first = zuno("sim", "reset", "--seed", "5", "--json").document
    a = zuno("lp", "pools", "--json").document
    zuno("sim", "reset", "--seed", "6")
    b = zuno("lp", "pools", "--json").document
    zuno("sim", "reset", "--seed", "5")
    c = zuno("lp", "pools", "--json").document
    assert first["seed"] == 5
    assert a == c
    assert a["pools"] != b["pools"]


def test_pnl_is_exact_from_the_mint_and_from_any_moment(zuno: Any) -> None:
    zuno("sim", "move", "--percent", "3.5")
    whole = zuno("lp", "pnl", "1", "--json").document
    week = zuno("lp", "pnl", "1", "--since", "7d", "--json").document
    for pnl in (whole, week):
        assert pnl["exact"] is True
        assert pnl["inToken1"]["residual"] == pnl["inToken0"]["residual"] == "0"
        assert float(pnl["inToken1"]["lvr"]) > 0
    assert whole["inToken1"]["navStart"] == "0"
    assert float(week["inToken1"]["navStart"]) > 0
    assert float(week["inToken1"]["fees"]) < float(whole["inToken1"]["fees"])
    assert week["inToken1"]["navEnd"] == whole["inToken1"]["navEnd"]


def test_demo_runs_and_leaves_nobody_elses_world_changed(zuno: Any) -> None:
    before = zuno("lp", "pools", "--json").document
    ran = zuno("demo", OPENAI_API_KEY="not-a-key")  # a key changes nothing: the tour is offline
    assert ran.code == 0
    assert "Where the money went" in ran.out
    assert "exact" in ran.out
    assert "The desk argues" in ran.out
    assert "the tour asks no model" in ran.out
    assert "SIMULATED" in ran.out
    assert "\x1b" not in ran.out  # no colours when not a terminal
    assert "approved" in ran.out
    assert "applied" in ran.out
    assert ": confirmed" in ran.out
    ending = ran.out.partition("Try next")[2]
    assert all(f"  {door}  " in ending for door in ("zuno", "zuno telegram setup", "zuno mcp", "zuno lab study"))
    (kept,) = re.findall(r"  zuno web --home (\S+) ", ending)
    events = json.loads((Path(kept) / "sim.json").read_text(encoding="utf-8"))["events"]
    rmtree(kept)
    assert events, "the page can be opened on the world that the tour changed"
    lines = ran.out.splitlines()
    assert len(lines) < 60
    assert ran.out.count("critic: Candidate 2, revise") == 1, "the argument is told once"
    sample = (paths.CHECKOUT / "README.md").read_text(encoding="utf-8").split("```")[3].strip("\n").splitlines()
    printed = iter(lines)
    assert [line for line in sample if line not in printed] == [], "the README shows these lines, in this order"
    assert max(map(len, lines)) <= 80
    assert all(line.strip().startswith("zuno") for line in lines[-3:])
    assert zuno("lp", "pools", "--json").document == before


def test_two_moves_at_once_take_turns(zuno: Any, process: Any) -> None:
    zuno("sim", "reset")
    with ThreadPoolExecutor(2) as both:
        runs = list(both.map(lambda percent: process("sim", "move", "--percent", percent, "--json"), ["1", "2"]))
    assert [ran.code for ran in runs] == [0, 0]
    assert {ran.document["block"] for ran in runs} == {731, 732}
    assert zuno("lp", "pools", "--json").document["block"] == 732


MISTAKES = [
    (["lp", "inspect", "abc"], 2, "usage"),
    (["lp", "inspect", "-1"], 2, "usage"),
    (["lp", "inspect", "1.5"], 2, "usage"),
    (["lp", "inspect", "9" * 90], 2, "usage"),
    (["lp", "inspect", "99"], 3, "refused"),
    (["lp", "pnl", "99"], 3, "refused"),
    (["lp", "pnl", "1", "--since", "soon"], 2, "usage"),
    (["lp", "pnl", "1", "--since", "2031-01-01"], 2, "usage"),
    (["lp", "positions", "--id", "x"], 2, "usage"),
    (["lp", "positions", "--id", "77"], 3, "refused"),
    (["lp", "positions", "--wallet", "0x12"], 2, "usage"),
    (["lp", "pool", "0x12"], 2, "usage"),
    (["lp", "pool", "ETH/USDC"], 2, "usage"),
    (["lp", "pool", "ETH/USDC", "0.01%"], 3, "refused"),
    (["lp", "pool", "0x" + "5a" * 32], 3, "refused"),
    (["lp", "pools", "--chain", "mars"], 2, "usage"),
    (["lp", "pools", "--chain", ""], 2, "usage"),
    (["lp", "recommend", "rebalance", "1", "--chain", ""], 2, "usage"),
    (["lp", "pools", "--chain", "base"], 4, "unavailable"),
    (["lp", "pools", "--chain", "devnet"], 4, "unavailable"),
    (["lp", "frobnicate"], 2, "usage"),
    (["sim", "move", "--percent", "lots"], 2, "usage"),
    (["sim", "move", "--percent", "nan"], 2, "usage"),
    (["sim", "move", "--percent", "-100"], 2, "usage"),
    (["sim", "move", "--percent", "-80"], 3, "refused"),
    (["sim", "reset", "--seed", "-3"], 2, "usage"),
    (["sim", "reset", "--seed", "７"], 2, "usage"),
    (["sim", "reset", "--seed", "1_0"], 2, "usage"),
    (["journal", "tail", "--count", "３"], 2, "usage"),
    (["lp", "recommend", "rebalance", "1", "--candidate", "٢"], 2, "usage"),
    (["devnet", "up", "--port", "８545"], 2, "usage"),
    (["devnet", "move", "--percent", "1"], 4, "unavailable"),
    (["devnet", "up", "--port", "99999"], 2, "usage"),
]


@pytest.mark.parametrize(("arguments", "code", "kind"), MISTAKES, ids=[" ".join(m[0])[:40] for m in MISTAKES])
def test_a_mistake_is_one_sentence_and_an_exit_code(zuno: Any, arguments: list[str], code: int, kind: str) -> None:
    ran = zuno(*arguments, "--json")
    assert ran.code == code
    error = ran.document["error"]
    assert error["kind"] == kind
    assert len(error["message"]) > 10
    assert "\n" not in error["message"]
    assert "Traceback" not in ran.out + ran.err
    assert error["message"] in ran.err


@pytest.mark.parametrize(
    ("arguments", "help_of"),
    [(["lp", "inspect"], "zuno lp inspect"), (["lp", "frobnicate"], "zuno lp"), (["--bogus"], "zuno")],
    ids=["argument", "command", "option"],
)
def test_a_mistyped_line_names_the_help_that_helps(zuno: Any, arguments: list[str], help_of: str) -> None:
    assert f"Try `{help_of} --help`." in zuno(*arguments).err


def test_devnet_without_packages_names_the_command(zuno: Any, tmp_path: Path) -> None:
    ran = zuno("devnet", "up", "--json", ZUNO_CONTRACTS_DIR=str(tmp_path))
    assert ran.code == 4
    assert "make devnet" in ran.document["error"]["message"]


def test_an_unknown_variable_is_refused_by_name(zuno: Any) -> None:
    ran = zuno("lp", "pools", ZUNO_RISK_PROFIL="balanced")
    assert ran.code == 2
    assert "ZUNO_RISK_PROFILE" in ran.err


def test_a_wallet_without_positions_is_an_answer(zuno: Any) -> None:
    ran = zuno("lp", "positions", "--wallet", "0x" + "ab" * 20, "--json")
    assert ran.code == 0
    assert ran.document["positions"] == []
    assert ran.document["complete"] is True
    assert zuno("lp", "positions", "--wallet", "0x" + "ab" * 20).out.startswith("No positions")


@pytest.mark.soak(every=5)
@pytest.mark.parametrize(
    "damage", ["{", "[" * 200_000, '{"format": 99}', "[]", '{"format": 1, "seed": 7, "moves": [], "head": "0x0"}']
)
def test_a_damaged_world_is_broken_and_says_the_repair(zuno: Any, home: Path, damage: str) -> None:
    home.mkdir()
    (home / "sim.json").write_text(damage)
    ran = zuno("lp", "pools", "--json")
    assert ran.code == 5
    assert ran.document["error"]["kind"] == "broken"
    assert "zuno sim reset" in ran.document["error"]["message"]
    assert zuno("sim", "reset").code == 0
    assert zuno("lp", "pools").code == 0


def test_a_home_that_cannot_be_made_is_unavailable(zuno: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = zuno("lp", "pools", "--json", "--home", str(tmp_path / "file" / "home"))
    assert ran.code == 4
    assert "--home" in ran.document["error"]["message"]


def test_home_may_stand_before_or_after_the_command(zuno: Any, tmp_path: Path) -> None:
    for index, arguments in enumerate((["--home", "{}", "sim", "reset"], ["sim", "reset", "--home", "{}"])):
        place = tmp_path / f"place{index}"
        assert zuno(*[part.format(place) for part in arguments]).code == 0
        assert json.loads((place / "sim.json").read_text())["seed"] == 1


def test_help_is_help(zuno: Any) -> None:
    for arguments in ([], ["--help"], ["lp"], ["lp", "--help"], ["lp", "pnl", "-h"]):
        ran = zuno(*arguments)
        assert ran.code == 0
        assert "Usage: zuno" in ran.out


@pytest.mark.soak
@pytest.mark.parametrize(
    "arguments", mark_all_but(3, [["lp", "pnl", "1"], ["lp", "inspect", "1", "--json"], ["demo"]], pytest.mark.soak)
)
def test_a_terminal_that_knows_only_ascii_gets_its_answer(home: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "zuno", *arguments]
    environment = shell(home, {"PYTHONIOENCODING": "ascii"})
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0
    assert ran.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["lp", "pools"],
        pytest.param(["lp", "pools", "--json"], marks=pytest.mark.soak),
        ["lp", "recommend", "rebalance", "1"],
    ],
)
def test_an_answer_nobody_can_take_is_no_traceback(home: Path, arguments: list[str]) -> None:
    command = [*arguments, "--home", str(home)]
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = run_words(command, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 4
    assert os.strerror(errno.ENOSPC) in done.stderr
    assert "Traceback" not in done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run_words(command, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert done.returncode == 141
    assert done.stderr == ""
    if "recommend" in arguments:  # nobody listened; the debates were had, and kept
        with sqlite3.connect(home / "journal.db") as journal:
            assert journal.execute("SELECT count(*) FROM entries WHERE kind = 'plan'").fetchone() == (2,)


@pytest.mark.parametrize(
    "arguments",
    mark_all_but(3, [["--help"], ["lp", "--help"], ["version"], ["lp", "inspct", "--json"]], pytest.mark.soak),
)
def test_help_and_mistakes_nobody_can_take_are_no_traceback_either(home: Path, arguments: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = run_words(arguments, stdout=full, stderr=subprocess.PIPE)
        told = run_words([*arguments, "x"], stdout=subprocess.PIPE, stderr=full)
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert told.returncode in (0, 2)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run_words(arguments, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert done.returncode == 141
    assert "Traceback" not in done.stderr


def test_flags_that_contradict_or_say_nothing_are_refused(zuno: Any) -> None:
    for arguments in (
        ["lp", "positions", "--id", "1", "--wallet", "0x" + "ab" * 20],
        ["lp", "positions", "--wallet", ""],
    ):
        assert zuno(*arguments).code == 2
    assert zuno("--home", "", "sim", "reset").code == 2
    assert zuno("version", "--json").document["version"]

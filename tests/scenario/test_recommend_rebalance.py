"""`zuno lp recommend rebalance` as a person runs it: the document, the journal behind it, and a byte changed in it."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

Zuno = Callable[..., Any]
RECOMMEND = ("lp", "recommend", "rebalance", "1", "--chain", "sim", "--json")

PLAN = {
    "planId": str,
    "requestId": str,
    "kind": str,
    "positionId": str,
    "profile": str,
    "verdict": str,
    "confidence": float,
    "decidedBy": str,
    "rounds": int,
    "recommended": dict,
    "candidates": list,
    "transcript": list,
    "sources": list,
    "hash": str,
}
POINT = {"medianHours": int, "p10Hours": int, "pExit24h": float, "inRangeShare": float}
CARRY = ("fees24h", "lvr24h", "net24h", "cost", "breakevenHours")
RECOMMENDED = {"index": int, "pool": dict, "priceLower": str, "priceUpper": str, "amount0": str, "amount1": str}
SOURCE = {"feed": str, "source": str, "asOf": int, "ageSeconds": int, "stale": bool}


def has(document: dict[str, Any], shape: dict[str, type]) -> None:
    for name, kind in shape.items():
        assert type(document[name]) is kind, name


def is_candidate(one: dict[str, Any]) -> None:
    assert one["kind"] in ("hold", "close", "widen", "tighten", "shift")
    closing = one["kind"] == "close"
    for name in ("tickLower", "tickUpper"):
        assert one[name] is None if closing else type(one[name]) is int
    if closing:
        assert one["stress"] is None
    else:
        assert set(one["stress"]) == {"x1", "x2", "x3"}
        for point in one["stress"].values():
            has(point, POINT)
            assert 0 <= point["pExit24h"] <= 1
            assert 0 <= point["inRangeShare"] <= 1
    assert set(CARRY) <= set(one["carry"])
    for name in CARRY:
        value = one["carry"][name]
        assert value is None or (type(value) is str and Decimal(value).is_finite() and "E" not in value.upper())
    known = [one["carry"][name] for name in ("fees24h", "lvr24h", "net24h")]
    if None not in known:
        fees, lvr, net = map(Decimal, known)
        assert abs(fees - lvr - net) <= Decimal("0.000002")
    assert one["verdict"] in ("accept", "revise", "veto")
    assert one["reason"]


@pytest.fixture
def plan(zuno: Zuno) -> dict[str, Any]:
    ran = zuno(*RECOMMEND)
    assert (ran.code, ran.err) == (0, "")
    document: dict[str, Any] = ran.document
    return document


def test_the_document_is_the_promised_one(plan: dict[str, Any]) -> None:
    has(plan, PLAN)
    assert re.fullmatch(r"plan_[0-9a-f]{12}", plan["planId"])
    assert re.fullmatch(r"req_[0-9a-f]{16}", plan["requestId"])
    assert re.fullmatch(r"[0-9a-f]{64}", plan["hash"])
    assert (plan["kind"], plan["positionId"], plan["profile"]) == ("rebalance", "1", "balanced")
    assert plan["verdict"] == "approve_with_caution"  # the simulation's prices are seeded
    assert 0 <= plan["confidence"] <= 1
    assert plan["decidedBy"] in ("critic", "arbiter")
    for one in plan["candidates"]:
        is_candidate(one)
    assert [one["kind"] for one in plan["candidates"][:2]] == ["hold", "close"]
    best = plan["recommended"]
    has(best, RECOMMENDED)
    is_candidate(best)
    beside = plan["candidates"][best["index"]]
    assert beside == {name: best[name] for name in beside}
    assert Decimal(best["priceLower"]) < Decimal(best["priceUpper"])
    assert plan["transcript"]
    for thought in plan["transcript"]:
        has(thought, {"role": str, "round": int, "text": str})
    turns = [("scout", "strategist", "critic", "arbiter").index(one["role"]) for one in plan["transcript"]]
    order = [(one["round"], turn) for one, turn in zip(plan["transcript"], turns, strict=True)]
    assert order == sorted(order)
    for source in plan["sources"]:
        has(source, SOURCE)
    assert {one["source"] for one in plan["sources"] if "price" in one["feed"]} >= {"seed"}


def test_the_same_command_twice_gives_the_same_hash(plan: dict[str, Any], zuno: Zuno) -> None:
    again = zuno(*RECOMMEND).document
    assert again["hash"] == plan["hash"]
    assert again["requestId"] != plan["requestId"]
    assert again["planId"] != plan["planId"]
    different = zuno(*RECOMMEND, "--profile", "conservative").document
    assert different["hash"] != plan["hash"]
    assert different["profile"] == "conservative"


def test_the_owner_takes_another(plan: dict[str, Any], zuno: Zuno) -> None:
    other = zuno(*RECOMMEND, "--candidate", "0").document
    assert (other["recommended"]["index"], other["decidedBy"]) == (0, "owner")
    assert other["hash"] != plan["hash"]
    assert zuno(*RECOMMEND, "--candidate", "17").code != 0


def test_no_rounds_is_the_arbiters_when_nothing_is_accepted(zuno: Zuno) -> None:
    ran = zuno(*RECOMMEND, ZUNO_MAX_DEBATE_ROUNDS="0")
    assert ran.code == 0
    assert ran.document["rounds"] == 0
    accepted = any(one["verdict"] == "accept" for one in ran.document["candidates"][2:])
    assert ran.document["decidedBy"] == ("critic" if accepted else "arbiter")


def test_the_journal_behind_it_holds_until_a_byte_is_changed(
    plan: dict[str, Any], zuno: Zuno, home: Path, tmp_path: Path
) -> None:
    whole = zuno("journal", "verify", "--json")
    assert (whole.code, whole.document["ok"]) == (0, True)
    assert whole.document["entries"] >= 4
    kept = tmp_path / "kept"
    shutil.copytree(home, kept)
    for seq in (1, whole.document["entries"] // 2, whole.document["entries"]):
        connection = sqlite3.connect(home / "journal.db", isolation_level=None)
        body = bytearray(connection.execute("SELECT body FROM entries WHERE seq = ?", (seq,)).fetchone()[0])
        body[len(body) // 3] ^= 1
        connection.execute("UPDATE entries SET body = ? WHERE seq = ?", (bytes(body), seq))
        connection.close()
        ran = zuno("journal", "verify", "--json")
        assert ran.code == 5
        assert ran.document["ok"] is False
        assert ran.document["firstBad"]["seq"] == seq
        shutil.rmtree(home)
        shutil.copytree(kept, home)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("99",), 3), (("one",), 2), (("1", "--profile", "reckless"), 2), (("1", "--chain", "x"), 2)],
)
def test_what_cannot_be_argued_about(zuno: Zuno, arguments: tuple[str, ...], code: int) -> None:
    ran = zuno("lp", "recommend", "rebalance", *arguments, "--json")
    assert ran.code == code, ran.err
    assert ran.err

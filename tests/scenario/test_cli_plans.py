"""Plans through the command line, from a recommendation to a new position, and every way in which that is refused."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.wire.commands import shell
from tests.wire.forked import ZunoProcess
from zuno.wiring import open_zuno

EDGE = "1"


def planned(zuno: Any, *extra: str, position: str = EDGE) -> dict[str, Any]:
    ran = zuno("lp", "recommend", "rebalance", position, *extra, "--json")
    assert ran.code == 0, ran.err
    plan: dict[str, Any] = ran.document
    return plan


def approved(zuno: Any, plan_id: str, **environment: str) -> Any:
    ran = zuno("plan", "approve", plan_id, "--yes", "--json", **environment)
    assert ran.code == 0, ran.err
    return ran.document


def state(zuno: Any, plan_id: str) -> str:
    ran = zuno("plan", "status", plan_id, "--json")
    assert ran.code == 0, ran.err
    return str(ran.document["state"])


# -- as it should go


def fees_by_day(home: Path, position: str) -> dict[int, str]:
    """What it earned by the UTC day that each period begins on, in the quote token."""

    async def look() -> dict[int, str]:
        opened = open_zuno(str(home))
        try:
            view = await opened.lp("sim").history(position)
        finally:
            await opened.close()
        return {day.from_timestamp // 86_400: day.fees1_human for day in view.fees}

    return asyncio.run(look())


def test_a_recommendation_becomes_a_position(zuno: Any, home: Path) -> None:
    before = fees_by_day(home, EDGE)
    plan = planned(zuno)
    plan_id, wanted = plan["planId"], plan["recommended"]
    tried = zuno("plan", "simulate", plan_id, "--json").document
    assert set(wanted["leftover"]) >= {"token0", "token1", "share", "why"}
    assert max(wanted["leftover"]["share"], tried["leftover"]["share"]) < 0.02
    assert tried["ok"] is True
    assert tried["how"] == "simulated"
    assert zuno("plan", "status", plan_id, "--json").document["next"] == f"`zuno plan approve {plan_id}`"
    assert state(zuno, plan_id) == "simulated"
    assert float(tried["priceImpactBps"]) > 0
    assert (tried["rangeLow"], tried["rangeHigh"]) == (wanted["priceLower"], wanted["priceUpper"])
    assert tried["priceUnit"] == "USDC per WETH"
    low, high = (float(tried["bounds"][name]) for name in ("priceLow", "priceHigh"))
    assert high / low == pytest.approx(1.0001**100, rel=1e-6)
    said = approved(zuno, plan_id)
    assert said["state"] == "approved"
    assert state(zuno, plan_id) == "approved"
    ran = zuno("plan", "apply", plan_id, "--yes", "--json")
    assert ran.code == 0, ran.err
    done = ran.document
    assert done["state"] == "confirmed"
    assert done["leftover"]["share"] < 0.02
    assert [step["state"] for step in done["steps"]] == ["final"] * len(done["steps"])
    assert all(step["txHash"].startswith("0x") and step["gasUsed"] > 0 for step in done["steps"])
    shown = zuno("lp", "inspect", done["newPositionId"], "--json").document
    assert (shown["tickLower"], shown["tickUpper"]) == (wanted["tickLower"], wanted["tickUpper"])
    after = fees_by_day(home, done["newPositionId"])
    assert len(after) == len(before) > 1
    assert all(float(earned) == pytest.approx(float(before[day]), rel=0.02) for day, earned in list(after.items())[:-1])
    assert zuno("lp", "inspect", EDGE).code == 3
    again = zuno("plan", "apply", plan_id, "--yes", "--json")
    assert again.code == 3
    assert re.search(rf"{plan_id} \w+ confirmed\b", again.err)
    assert zuno("journal", "verify").code == 0


def test_what_was_simulated_is_what_happens(zuno: Any) -> None:
    plan_id = planned(zuno)["planId"]
    before = balances(zuno)
    tried = zuno("plan", "simulate", plan_id, "--json").document
    approved(zuno, plan_id)
    assert zuno("plan", "apply", plan_id, "--yes", "--json").code == 0
    after = balances(zuno)
    expected = {one["symbol"]: int(one["amount"]) for one in tried["changes"]}
    for symbol in ("USDC", "WETH"):
        assert after[symbol] - before[symbol] == expected.get(symbol, 0)


def balances(zuno: Any) -> dict[str, int]:
    told = zuno("wallet", "balance", "--json").document["balances"]
    return {one["token"]["symbol"]: int(one["amount"]) for one in told}


def test_the_outcome_holds_the_attribution_of_what_was_closed(zuno: Any) -> None:
    plan_id = planned(zuno)["planId"]
    approved(zuno, plan_id)
    zuno("plan", "apply", plan_id, "--yes", "--json")
    outcome = zuno("plan", "status", plan_id, "--json").document["outcome"]
    assert outcome["inToken1"]["residual"] in ("0", "0.0")
    assert outcome["id"] == EDGE


def test_every_plan_without_a_debate(zuno: Any) -> None:
    def carried(*words: str) -> dict[str, Any]:
        made = zuno("lp", *words, "--json")
        assert made.code == 0, made.err
        assert made.document["state"] == "drafted"
        approved(zuno, made.document["planId"])
        done = zuno("plan", "apply", made.document["planId"], "--yes", "--json")
        assert done.code == 0, done.err
        document: dict[str, Any] = done.document
        assert document["state"] == "confirmed"
        return document

    def seen() -> dict[str, Any]:
        view: dict[str, Any] = zuno("lp", "inspect", EDGE, "--json").document
        return view

    start = seen()
    fees = (int(start["fees0"]), int(start["fees1"]))
    before = balances(zuno)
    carried("collect", EDGE)
    after = balances(zuno)
    assert (after["WETH"] - before["WETH"], after["USDC"] - before["USDC"]) == fees
    assert (seen()["fees0"], seen()["fees1"]) == ("0", "0")
    assert zuno("lp", "collect", EDGE).code == 3
    carried("add", EDGE, "--amount", "0.5 WETH")
    fuller = seen()
    assert int(fuller["liquidity"]) > int(start["liquidity"])
    spent = after["WETH"] - balances(zuno)["WETH"]
    assert 0.9 * 5 * 10**17 < spent <= 5 * 10**17
    carried("remove", EDGE, "--percent", "50")
    half = int(fuller["liquidity"])
    assert int(seen()["liquidity"]) == half - half // 2
    done = carried("close", EDGE)
    assert done["newPositionId"] is None
    assert zuno("lp", "inspect", EDGE).code == 3
    assert zuno("journal", "verify").code == 0


def carried_out(zuno: Any, *words: str) -> dict[str, Any]:
    made = zuno(*words, "--json")
    assert made.code == 0, made.err
    approved(zuno, made.document["planId"])
    done = zuno("plan", "apply", made.document["planId"], "--yes", "--json")
    assert done.code == 0, done.err
    document: dict[str, Any] = done.document
    return document


def test_fees_are_put_back_where_that_pays(zuno: Any) -> None:
    before = zuno("lp", "inspect", "1", "--json").document
    done = carried_out(zuno, "lp", "compound", "1")
    after = zuno("lp", "inspect", "1", "--json").document
    assert (done["state"], done["newPositionId"]) == ("confirmed", None)
    assert int(after["liquidity"]) > int(before["liquidity"])
    assert zuno("lp", "compound", "1").code == 3, "nothing is owed any more"
    zuno("sim", "move", "--percent", "0.05")
    zuno("sim", "move", "--percent", "-0.05")
    refused = zuno("lp", "compound", "1", "--json")
    assert (refused.code, refused.document["error"]["kind"]) == (3, "refused")
    made = zuno("lp", "compound", "1", "--anyway", "--json").document
    assert float(made["gasUsd"]) > 0
    assert 0 < float(made["net24hUsd"]) < float(made["fees24hUsd"])
    assert float(made["breakEvenHours"]) > 336
    assert float(made["bestInHours"]) > 0
    assert zuno("lp", "compound", "2").code == 3
    losing = zuno("lp", "compound", "2", "--anyway", "--json").document
    assert float(losing["net24hUsd"]) < 0 < float(losing["fees24hUsd"]), "LVR takes more than it earns"
    assert (losing["breakEvenHours"], losing["bestInHours"]) == (None, None)


@pytest.mark.soak
def test_everything_is_collected_closed_and_revoked_by_one_plan_each(zuno: Any) -> None:
    collected = carried_out(zuno, "lp", "collect", "--all")
    assert (collected["positionId"], collected["otherPositionIds"]) == ("1", ["2"])
    assert [step["kind"] for step in collected["steps"]] == ["collect", "collect"]
    assert zuno("lp", "collect", "--all").code == 3, "nothing is owed any more"
    assert zuno("wallet", "allowances", "--json").document["allowances"] != []
    revoked = carried_out(zuno, "lp", "revoke")
    assert {step["kind"] for step in revoked["steps"]} == {"approve_permit2", "permit2_approve"}
    assert zuno("wallet", "allowances", "--json").document["allowances"] == []
    again = zuno("lp", "revoke", "--json")
    assert (again.code, again.document["error"]["kind"]) == (3, "refused")
    closed = carried_out(zuno, "lp", "close", "--all")
    assert (closed["state"], len(closed["steps"])) == ("confirmed", 2)
    assert [outcome["positionIds"] for outcome in (closed["outcome"], *closed["otherOutcomes"])] == [["1"], ["2"]]
    assert zuno("lp", "positions", "--json").document["positions"] == []
    assert zuno("lp", "close", "--all").code == 3
    for words in (("lp", "close"), ("lp", "close", "1", "--all"), ("lp", "collect")):
        assert zuno(*words).code == 2


def test_a_create_from_a_sentence_is_carried_out(zuno: Any) -> None:
    plan = zuno("lp", "recommend", "create", "2 ETH passively", "--json").document
    if plan["recommended"]["kind"] == "hold":
        opening = next(one["index"] for one in plan["candidates"] if one["kind"] == "open" and one["verdict"] != "veto")
        words = ("lp", "recommend", "create", "2 ETH passively", "--candidate", str(opening), "--json")
        plan = zuno(*words).document
    assert plan["recommended"]["kind"] == "open"
    approved(zuno, plan["planId"])
    done = zuno("plan", "apply", plan["planId"], "--yes", "--json")
    assert done.code == 0, done.err
    shown = zuno("lp", "inspect", done.document["newPositionId"], "--json").document
    assert shown["tickLower"] == plan["recommended"]["tickLower"]
    assert shown["tickUpper"] == plan["recommended"]["tickUpper"]


# -- refused, with the number


def test_a_hold_is_nothing_to_do(zuno: Any) -> None:
    plan_id = planned(zuno, "--candidate", "0")["planId"]
    for words in (("simulate",), ("approve", "--yes"), ("apply", "--yes")):
        ran = zuno("plan", words[0], plan_id, *words[1:], "--json")
        assert ran.code == 3
        assert "hold" in ran.err
        assert state(zuno, plan_id) == "drafted"
    assert "zuno" not in zuno("plan", "status", plan_id, "--json").document["next"]


def test_apply_without_approval_is_refused(zuno: Any) -> None:
    plan_id = planned(zuno)["planId"]
    ran = zuno("plan", "apply", plan_id, "--yes", "--json")
    assert ran.code == 3
    assert f"`zuno plan approve {plan_id}`" in ran.err


def test_another_plan_s_id_is_not_approved_by_the_first(zuno: Any) -> None:
    first, second = planned(zuno)["planId"], planned(zuno)["planId"]
    assert first != second
    approved(zuno, first)
    assert zuno("plan", "apply", second, "--yes").code == 3
    assert zuno("plan", "apply", "plan_000000000000", "--yes").code == 3
    assert zuno("plan", "apply", "plan_xyz", "--yes").code == 2
    assert zuno("plan", "apply", "../../etc/passwd", "--yes").code == 2


def test_an_approval_runs_out_by_the_chain_s_own_time(zuno: Any) -> None:
    plan_id = planned(zuno)["planId"]
    approved(zuno, plan_id, ZUNO_APPROVAL_SECONDS="30")
    assert [line["planId"] for line in zuno("plan", "list", "--waiting", "--json").document["plans"]] == [plan_id]
    for _ in range(3):
        assert zuno("sim", "move", "--percent", "0.01").code == 0
    assert zuno("plan", "list", "--waiting", "--json").document["plans"] == []
    ran = zuno("plan", "apply", plan_id, "--yes", "--json")
    assert ran.code == 3
    assert "expired" in ran.err
    assert " s ago" in ran.err
    assert state(zuno, plan_id) == "expired"
    approved(zuno, plan_id)
    assert zuno("plan", "apply", plan_id, "--yes", "--json").code == 0


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("percent", ["-5", "6"])
def test_a_move_past_the_bound_is_refused_by_name_and_number(zuno: Any, percent: str) -> None:
    plan_id = planned(zuno)["planId"]
    approved(zuno, plan_id)
    zuno("sim", "move", "--percent", percent)
    ran = zuno("plan", "apply", plan_id, "--yes", "--json")
    assert ran.code == 3
    assert re.search(r"\btick -?\d+\b.*\b50\b", ran.err)
    assert state(zuno, plan_id) == "approved"
    assert zuno("lp", "inspect", EDGE).code == 0, "nothing moved"


def test_an_old_debate_is_not_approved_on_a_new_price(zuno: Any) -> None:
    plan_id = planned(zuno)["planId"]
    zuno("sim", "move", "--percent", "3")
    ran = zuno("plan", "approve", plan_id, "--yes", "--json")
    assert ran.code == 3
    assert re.search(r"\btick -?\d+\b.*\b50\b", ran.err)


def test_a_position_that_changed_meanwhile_is_refused(zuno: Any) -> None:
    plan_id = planned(zuno)["planId"]
    approved(zuno, plan_id)
    other = zuno("lp", "remove", EDGE, "--percent", "10", "--json").document["planId"]
    approved(zuno, other)
    assert zuno("plan", "apply", other, "--yes", "--json").code == 0
    ran = zuno("plan", "apply", plan_id, "--yes", "--json")
    assert ran.code == 3
    assert re.search(r"\bliquidity \d+\b.*\b\d+\b", ran.err)


def test_spending_caps_hold_for_a_plan_and_for_a_day(zuno: Any) -> None:
    made = zuno("lp", "add", EDGE, "--amount", "1 WETH", "--json").document["planId"]
    ran = zuno("plan", "approve", made, "--yes", "--json", ZUNO_SPEND_USD_PER_PLAN="100")
    assert ran.code == 3
    assert re.search(r"\$100\.00 .*\bZUNO_SPEND_USD_PER_PLAN\b", ran.err)
    first = float(re.search(r"take \$([0-9,.]+) from", ran.err)[1].replace(",", ""))  # type: ignore[index]
    approved(zuno, made)
    assert zuno("plan", "apply", made, "--yes", "--json").code == 0
    second = zuno("lp", "add", EDGE, "--amount", "0.1 WETH", "--json").document["planId"]
    ran = zuno("plan", "approve", second, "--yes", "--json", ZUNO_SPEND_USD_PER_DAY=str(first + 1))
    assert ran.code == 3
    assert re.search(rf"\${first:,.2f} .*\${first + 1:,.2f} .*\bZUNO_SPEND_USD_PER_DAY\b", ran.err)
    assert zuno("plan", "approve", second, "--yes", "--json", ZUNO_SPEND_USD_PER_DAY=str(2 * first)).code == 0


def test_more_than_the_wallet_has_is_refused(zuno: Any) -> None:
    made = zuno("lp", "add", EDGE, "--amount", "150 WETH", "--json").document["planId"]
    ran = zuno("plan", "approve", made, "--yes", "--json")
    assert ran.code == 3
    held, wanted = re.findall(r"([\d.]+) WETH", ran.err)
    assert float(held) < float(wanted)


def test_an_amount_that_cannot_go_in_is_said_at_once(zuno: Any) -> None:
    ran = zuno("lp", "add", "2", "--amount", "1000000 ETH")
    assert ran.code == 3
    assert re.search(r"\b1000000 ETH\b.*\b\d+\.\d+\b.*\b\d+(\.\d+)? USDC\b", ran.err)


def test_fees_are_collected_at_any_price(zuno: Any) -> None:
    made = zuno("lp", "collect", EDGE, "--json").document["planId"]
    zuno("sim", "move", "--percent", "-4")
    approved(zuno, made)
    assert zuno("plan", "apply", made, "--yes", "--json").code == 0


def test_an_approved_plan_shows_its_second_half_as_planned(zuno: Any) -> None:
    steps = approved(zuno, planned(zuno)["planId"])["steps"]
    assert [(step["kind"], step["part"], step["state"]) for step in (steps[0], steps[-1])] == [
        ("burn", "first", "planned"),
        ("swap_and_mint", "later", "planned"),
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("lp", "add", EDGE), "--amount"),
        (("lp", "add", EDGE, "--amount", "0.5"), "0.5 WETH"),
        (("lp", "add", EDGE, "--amount", "0.5 DAI"), "not of DAI"),
        (("lp", "add", EDGE, "--amount", "0 WETH"), "0"),
        (("lp", "add", EDGE, "--amount", "-1 WETH"), "above zero"),
        (("lp", "add", EDGE, "--amount", "1 WETH", "--amount", "2 WETH"), "twice"),
        (("lp", "add", EDGE, "--amount", "0.0000001 USDC"), "decimals; 0.0000001 has more"),
        (("lp", "remove", EDGE, "--percent", "0"), "share"),
        (("lp", "remove", EDGE, "--percent", "101"), "share"),
        (("lp", "remove", EDGE, "--percent", "half"), "share"),
        (("lp", "remove", EDGE), "percent"),
        (("lp", "close", "abc"), "position id"),
        (("plan", "approve", "plan_1"), "plan_ and 12 hex digits"),
    ],
)
def test_nonsense_is_a_usage_error(zuno: Any, words: tuple[str, ...], says: str) -> None:
    ran = zuno(*words)
    assert ran.code == 2
    assert says in ran.err


def test_a_stranger_s_position_is_refused(zuno: Any) -> None:
    ran = zuno("lp", "close", "3")
    assert ran.code == 3
    assert re.search(r"osition 3 .*\b0x[0-9a-fA-F]{40}\b", ran.err)


def test_without_a_terminal_the_word_cannot_be_typed(zuno: Any) -> None:
    plan_id = planned(zuno)["planId"]
    ran = zuno("plan", "approve", plan_id)
    assert ran.code == 2
    assert "terminal" in ran.err
    assert state(zuno, plan_id) == "drafted"


def test_a_cancelled_plan_stays_cancelled(zuno: Any) -> None:
    plan_id = planned(zuno)["planId"]
    approved(zuno, plan_id)
    ran = zuno("plan", "cancel", plan_id, "--json")
    assert ran.code == 0, ran.err
    assert ran.document["state"] == "cancelled"
    for words in (("approve", plan_id, "--yes"), ("apply", plan_id, "--yes"), ("cancel", plan_id)):
        again = zuno("plan", *words, "--json")
        assert again.code == 3
        assert re.search(rf"{plan_id} \w+ cancelled\b", again.err)


# -- forgery


def rows(home: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(home / "journal.db") as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM entries ORDER BY seq")]


def insert(home: Path, row: dict[str, Any]) -> None:
    with sqlite3.connect(home / "journal.db") as database:
        names = ", ".join(row)
        database.execute(f"INSERT INTO entries ({names}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))


def test_an_approval_typed_into_the_database_is_none(zuno: Any, home: Path) -> None:
    """Somebody copies another plan's approval, changes the plan in it, and makes the hash fit."""
    first, second = planned(zuno)["planId"], planned(zuno)["planId"]
    approved(zuno, first)
    last = rows(home)[-1]
    assert last["kind"] == "plan_approved"
    body = last["body"].replace(first.encode(), second.encode())
    forged = {**last, "seq": last["seq"] + 1, "request_id": second, "body": body}
    insert(home, forged)
    ran = zuno("plan", "apply", second, "--yes", "--json")
    assert ran.code == 5
    assert zuno("lp", "inspect", EDGE).code == 0, "nothing moved"
    assert zuno("journal", "verify").code == 5


def test_an_approval_whose_bounds_were_changed_is_none(zuno: Any, home: Path) -> None:
    plan_id = planned(zuno)["planId"]
    document = approved(zuno, plan_id)
    with sqlite3.connect(home / "journal.db") as database:
        longer = str(document["expires"] + 86_400)
        database.execute(
            "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB) WHERE kind = 'plan_approved'",
            (str(document["expires"]), longer),
        )
    assert zuno("plan", "apply", plan_id, "--yes", "--json").code == 5
    assert zuno("lp", "inspect", EDGE).code == 0


def test_the_transactions_behind_an_approval_cannot_be_exchanged(zuno: Any, home: Path) -> None:
    """The draft lies in a bundle under its own hash: other bytes under that name are found out."""
    plan_id = planned(zuno)["planId"]
    approved(zuno, plan_id)
    with sqlite3.connect(home / "journal.db") as database:
        database.execute("UPDATE bundles SET content = content || x'20'")
    assert zuno("plan", "apply", plan_id, "--yes", "--json").code == 5
    assert zuno("lp", "inspect", EDGE).code == 0


def test_a_spent_step_cut_out_of_the_journal_is_noticed(zuno: Any, home: Path) -> None:
    """Whoever takes the end of a plan out of the database does not get it applied again."""
    plan_id = planned(zuno)["planId"]
    approved(zuno, plan_id)
    assert zuno("plan", "apply", plan_id, "--yes", "--json").code == 0
    with sqlite3.connect(home / "journal.db") as database:
        database.execute("DELETE FROM entries WHERE kind LIKE 'step_%' OR kind IN ('plan_over', 'plan_outcome')")
    ran = zuno("plan", "apply", plan_id, "--yes", "--json")
    assert ran.code == 5


# -- two at once


def test_two_processes_apply_one_plan_once(zuno: Any, home: Path) -> None:
    plan_id = planned(zuno)["planId"]
    approved(zuno, plan_id)
    command = ["plan", "apply", plan_id, "--yes", "--json", "--home", str(home)]
    both = [ZunoProcess(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ended = [process.communicate(timeout=120) for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes == [0, 3], ended
    assert [one["id"] for one in zuno("lp", "positions", "--json").document["positions"]] == ["2", "4"]
    assert zuno("journal", "verify").code == 0


def test_a_home_without_room_signs_nothing(zuno: Any, home: Path) -> None:
    """The journal cannot be written any more when the plan is applied: nothing is sent, and later it is done."""
    plan_id = planned(zuno)["planId"]
    approved(zuno, plan_id)
    kept = home.parent / "kept.json"
    shutil.copy2(home / "sim.json", kept) if (home / "sim.json").exists() else kept.write_text("none")
    with sqlite3.connect(home / "journal.db") as database:
        database.execute("CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT RAISE(FAIL, 'disk full'); END")
    ran = zuno("plan", "apply", plan_id, "--yes", "--json")
    assert ran.code in (4, 5)
    now = (home / "sim.json").read_text() if (home / "sim.json").exists() else "none"
    assert now == kept.read_text(), "no transaction was sent"
    with sqlite3.connect(home / "journal.db") as database:
        database.execute("DROP TRIGGER full")
    done = zuno("plan", "apply", plan_id, "--yes", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["state"] == "confirmed"


# -- at a terminal


def at_terminal(home: Path, *words: str, typed: bytes) -> tuple[int, str]:
    """One command at a terminal of its own; `typed` is given when it asks."""
    terminal, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    environment = shell(home, {"TERM": "dumb", "COLUMNS": "80"})
    process = ZunoProcess(list(words), env=environment, start_new_session=True, **streams)
    os.close(theirs)
    said, asked, again = b"", False, 3
    try:
        while True:
            ready, _, _ = select.select([terminal], [], [], 20)
            if not ready and asked and again and typed == b"\x03":
                again -= (
                    1  # a signal in the very moment before the read is seen at the next one: a person types it again
                )
                os.write(terminal, typed)
                continue
            assert ready, f"nothing more was said: {said.decode(errors='replace')}"
            try:
                part = os.read(terminal, 65_536)
            except OSError:
                break
            if not part:
                break
            said += part
            if not asked and b": " in said.rsplit(b"\n", 1)[-1] and b"Type a" in said:
                asked = True
                os.write(terminal, typed)
    finally:
        code = process.wait()
        os.close(terminal)
    return code, said.decode(errors="replace")


def test_leaving_anyway_takes_a_word_of_its_own(zuno: Any, home: Path) -> None:
    plan_id = zuno("lp", "close", "1", "--anyway", "--json").document["planId"]
    assert at_terminal(home, "plan", "approve", plan_id, typed=b"approve\n")[0] == 3
    assert state(zuno, plan_id) == "drafted"
    code, said = at_terminal(home, "plan", "approve", plan_id, typed=b"anyway\n")
    assert code == 0, said
    assert "sandwich" in said
    assert state(zuno, plan_id) == "approved"


def test_the_word_is_typed_at_a_terminal_after_everything_was_shown(zuno: Any, home: Path) -> None:
    plan_id = planned(zuno)["planId"]
    code, said = at_terminal(home, "plan", "approve", plan_id, typed=b"yes\n")
    assert code == 3
    assert "confirmed" in said
    assert state(zuno, plan_id) == "drafted"
    code, said = at_terminal(home, "plan", "approve", plan_id, typed=b"approve\n")
    assert code == 0, said
    for shown in (
        "PositionManager (0x",
        "your wallet",
        "signed hash",
        "drift 50",
        "slippage",
        "at most",
        plan_id,
    ):
        assert shown in said
    assert re.search(r"\s[0-9a-f]{64}\s", said), "not broken in two"
    assert len(re.findall(r"– [\d,.]+ USDC per WETH", said)) == 3, "the range, and the band twice, in prices"
    assert state(zuno, plan_id) == "approved"
    code, said = at_terminal(home, "plan", "apply", plan_id, typed=b"apply\n")
    assert code == 0, said
    assert "Bounds: ticks" in said
    assert re.search(r"\bblock \d+", said)
    assert re.search(r"\s0x[0-9a-f]{64}\s", said), "not broken in two"
    assert state(zuno, plan_id) == "confirmed"


def test_ctrl_c_at_the_question_leaves_everything_as_it_was(zuno: Any, home: Path) -> None:
    plan_id = planned(zuno)["planId"]
    code, _ = at_terminal(home, "plan", "approve", plan_id, typed=b"\x03")
    assert code == 130
    assert state(zuno, plan_id) == "drafted"


def test_a_plan_that_only_brings_home_says_that_nothing_leaves(zuno: Any, home: Path) -> None:
    plan_id = zuno("lp", "collect", EDGE, "--json").document["planId"]
    assert zuno("plan", "simulate", plan_id, "--json").document["rangeLow"] is None
    code, said = at_terminal(home, "plan", "approve", plan_id, typed=b"\n")
    assert code == 3
    assert "nothing leaves the wallet, gas at most" in said

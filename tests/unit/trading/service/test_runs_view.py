"""A run in the names of the public JSON: what a script may rely on, and that no text in it can do harm."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.told import RUN, board, decided, held, ruled, spoilt, told, unfinished
from zuno.kernel.errors import Refused
from zuno.trading.model.cycle import Call, MissingInput, RuleChange
from zuno.trading.service.runs_view import RunsView, run_view, why_view

HOSTILE = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\u202eevil\u2066\u200b\x00\r\nline two"


def document(**changed: Any) -> Any:
    return json.loads(run_view(told(**changed)).model_dump_json(by_alias=True))


EV_KEYS = set(
    "p_judge fair edge lambda beta beta_se n duration_hours resolved profit_pct loss_pct fees_pct slippage_pct "
    "funding_pct llm_cost_usd ev_pct exploration gross_pct policy".split()
)


def test_the_document_has_every_key_it_promises() -> None:
    found = document()
    assert {
        *("runId", "symbol", "mode", "asOf", "bundleHash", "meta", "regime", "anomalies", "blackboard", "decision"),
        *("ev", "ruling", "sources", "degraded", "chart", "hash", "synthetic", "origin"),
    } <= set(found)
    assert {"regime", "rationale", "trust_directive", "risk_budget_pct", "risk_bias", "source"} <= set(found["meta"])
    assert set(found["blackboard"]) == {"liquidity", "microstructure", "macro", "vlm_geometry", "synthesis"}
    assert set(found["ev"]) >= EV_KEYS
    assert {"entry", "stop", "target", "quantity", "notional_usd", "loss_at_stop_usd", "liquidation"} <= set(
        found["ruling"]["card"]
    )
    assert set(found["ruling"]) == {
        *(
            "decision",
            "allocation_pct",
            "leverage",
            "target_exchange",
            "execution_style",
            "legs",
            "card",
            "closes",
            "veto",
        ),
        *("valid_until", "changes"),
    }
    assert {"venue", "side", "margin", "notional", "leverage"} <= set(found["ruling"]["legs"][0])
    assert set(found["ruling"]["changes"][0]) == {"by", "field", "from", "to", "why"}
    assert {"feed", "source", "asOf", "ageSeconds", "stale"} <= set(found["sources"][0])
    assert {"entry_price", "stop_loss", "take_profit", "reasoning", "win_probability_pct"} <= set(found["decision"])


def test_moments_are_written_as_people_read_them() -> None:
    found = document()
    assert found["asOf"] == "2026-01-01T00:00:00Z"
    assert found["sources"][1]["asOf"] == "2025-12-31T23:45:00Z"
    assert [one["stale"] for one in found["sources"]] == [False, True, False]


def test_an_invented_market_says_so_and_a_real_one_does_not() -> None:
    assert document()["synthetic"] is True
    assert document(origin="binance and others")["synthetic"] is False


def test_where_nothing_was_to_be_opened_the_keys_stay_and_the_cost_is_told() -> None:
    found = document(expectation=None, decision=decided(Call.HOLD), ruling=held())["ev"]
    assert found["llm_cost_usd"] == pytest.approx(0.0123)
    assert {name for name, value in found.items() if value is None} == set(document()["ev"]) - {"llm_cost_usd"}


def test_a_run_that_has_not_ended_is_refused_with_what_to_do() -> None:
    with pytest.raises(Refused, match=f"zuno trade resume {RUN}"):
        run_view(unfinished())


def test_no_text_of_a_model_keeps_what_could_do_harm() -> None:
    """Every text there is, wherever it stands."""
    found = spoilt(HOSTILE)
    for view in (run_view(found), why_view(found), RunsView(runs=(found.line,))):
        written = view.model_dump_json(by_alias=True)
        assert "alert(1)" in written  # it got that far
        for bad in ("\\u001b", "\x1b", "\\u0007", "\u202e", "\u2066", "\u200b", "\\u0000", "\\r", "\\n"):
            assert bad not in written, bad


def test_a_text_without_an_end_is_cut() -> None:
    view = run_view(told(degraded=(MissingInput(what="x", why="a" * 1_000_000),)))
    assert len(view.degraded[0].why) == 2_000


def test_why_has_every_attempt_and_every_rule_that_fired() -> None:
    changes = (RuleChange(by="ev", field="decision", from_="LONG", to="HOLD", why="below zero"),)
    view = why_view(told(ruling=held(changes=changes)))
    assert [(one.role, one.attempt, one.outcome) for one in view.attempts] == [
        ("meta", 1, "ok"),
        ("microstructure", 1, "malformed"),
        ("microstructure", 2, "ok"),
        ("macro", 1, "timeout"),
    ]
    assert view.attempts[0].usd == 0.001
    assert view.attempts[3].usd is None
    assert view.rules == changes
    assert view.run is not None
    assert view.run.ruling.veto == "ev"


def test_why_tells_of_a_run_that_has_not_ended() -> None:
    view = why_view(unfinished())
    assert (view.state, view.run, len(view.attempts)) == ("unfinished", None, 1)


def test_the_list_says_what_was_decided_and_what_became_of_it() -> None:
    ended, open_ = RunsView(
        runs=(
            told(ruling=held()).line,
            unfinished().line,
        )
    ).runs
    assert (ended.decision, ended.ruling, ended.veto, ended.state) == ("LONG", "HOLD", "ev", "ended")
    assert (open_.decision, open_.ruling, open_.veto, open_.state) == (None, None, None, "unfinished")


def test_an_absent_expert_is_null() -> None:
    assert document(board=board(vlm_geometry=None))["blackboard"]["vlm_geometry"] is None


def test_a_change_from_nothing_is_null() -> None:
    changes = (RuleChange(by="style", field="execution_style", from_=None, to="SMART_DCA", why="x"),)
    assert document(ruling=ruled(changes=changes))["ruling"]["changes"][0]["from"] is None


def test_texts_are_printed_from_the_runs_own_facts() -> None:
    entry = board().liquidity
    assert entry is not None
    said = entry.model_copy(
        update={"rationale": "Sure by {liquidity.confidence}; mood {fear_and_greed}; {imagined.one}."}
    )
    why = "The draft of {draft.allocation} at {draft.leverage} is too much."
    officer = RuleChange(by="cro_model", field="leverage", from_=2.0, to=1.0, why=why)
    cut = RuleChange(by="risk_budget", field="allocation_pct", from_=40.0, to=25.5, why="a rule's own 25.5 %")
    found = run_view(told(board=board(liquidity=said), ruling=ruled(changes=(cut, officer))))
    assert found.blackboard.liquidity is not None
    printed = f"Sure by {entry.confidence:.2f}; mood 40; [no fact imagined.one]."
    assert found.blackboard.liquidity.rationale == printed
    assert [change.why for change in found.ruling.changes] == [
        "a rule's own 25.5 %",
        f"The draft of 25.50 % at {decided().leverage}× is too much.",
    ]


def test_why_a_model_was_not_heard_is_quoted_as_it_is() -> None:
    meta = told().outcome.meta.model_copy(update={"why": "{price_now}k: a slot prints its own unit"})  # type: ignore[union-attr]
    assert run_view(told(meta=meta)).meta.why == "{price_now}k: a slot prints its own unit"

"""Runs of the trading desk as they would be on record, written by hand: for whoever shows them."""

from __future__ import annotations

import base64
from dataclasses import replace
from decimal import Decimal
from typing import Any

from zuno.kernel.units import Millis, Seconds
from zuno.llm.port import Attempt
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.agents.case import build_case
from zuno.trading.model import market
from zuno.trading.model.bundle import Absent, Block, Bundle, bundle_hash
from zuno.trading.model.cycle import (
    EDITION,
    AnomalyRecord,
    AnswerSource,
    Blackboard,
    Call,
    Chart,
    Closing,
    ConflictOpinion,
    Decision,
    DirectiveOpinion,
    Expectation,
    Expert,
    GeometryEntry,
    KeyLevelsOpinion,
    Leg,
    LiquidityEntry,
    MacroEntry,
    Meta,
    MicrostructureEntry,
    MissingInput,
    Node,
    Outcome,
    Reasoning,
    Regime,
    RiskBias,
    RuleChange,
    Ruling,
    Style,
    Synthesis,
    Target,
    TradeCard,
    with_hash,
)
from zuno.trading.model.market import Level, Mode, Side
from zuno.trading.run.record import MarketMoment, RunRequest, summarise_run
from zuno.trading.service.run_replay import compute_run_view
from zuno.trading.service.runs_view import RunRecord, run_line_view

AS_OF = Millis(1_767_225_600_000)
RUN = "run_00112233445566aa"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""One pixel."""


def bundle(origin: str = "SYNTHETIC seed 1") -> Bundle:
    book = Block(market.rates("binance", "USDC-USDT"), (Level(AS_OF, 1.0),), AS_OF, Seconds(4), Seconds(600))
    won = Block(
        market.rates("upbit", "KRW-USDT"),
        (Level(Millis(AS_OF - 900_000), 1_450.0),),
        Millis(AS_OF - 900_000),
        Seconds(900),
        Seconds(600),
        ("stands still",),
    )
    mood = Block(market.fear_greed("alternative.me"), (Level(AS_OF, 40.0),), AS_OF, Seconds(7_200), Seconds(129_600))
    absent = (Absent("memory", "nothing is remembered yet"),)
    return Bundle(Symbol("BTCUSDT"), Mode.SWING, AS_OF, origin, (book, won, mood), absent)


def board(**changed: Any) -> Blackboard:
    entries: dict[str, Any] = {
        "liquidity": LiquidityEntry(
            source="model",
            why="",
            anomaly="whale_cvd_divergence",
            confidence=0.62,
            target_entry=93_120.5,
            rationale="Whales bought $4.2M net into a flat day while CVD kept falling.",
            stance=1,
        ),
        "microstructure": MicrostructureEntry(
            source="repaired",
            why="a-small-model (malformed): confidence must be a number",
            anomaly="microstructure_imbalance",
            confidence=0.71,
            directional_bias="UP",
            rationale="Bids within 10 bps outweigh offers 6 to 1, and no wall vanished.",
            stance=1,
        ),
        "macro": MacroEntry(
            source="fallback",
            why="a-small-model (timeout): no answer within 30 s",
            anomaly="none",
            options_bias="BEARISH",
            confidence=0.4,
            rationale="Puts are 3.1 points dearer than calls at 30 days.",
            stance=-1,
        ),
        "vlm_geometry": GeometryEntry(
            source="deterministic",
            why="no key",
            anomaly="accumulation_range",
            directional_bias="NEUTRAL",
            confidence=0.5,
            key_levels=KeyLevelsOpinion(
                immediate_support=92_400.0,
                immediate_resistance=95_000.0,
                major_support=88_100.0,
                major_resistance=99_800.0,
                liquidation_pool_above=None,
                liquidation_pool_below=90_050.0,
                volume_poc=93_600.0,
            ),
            fibonacci_context="between 0.382 at 92,400 and 0.5 at 94,150",
            pattern="none",
            cvd_signal="divergence_bullish",
            funding_visual=None,
            rationale="Price has kept inside 92,400 to 95,000 for nine days.",
            stance=0,
        ),
        "synthesis": Synthesis(
            source="model",
            why="",
            consensus_signals=["Support near 92,400 is defended in book and tape."],
            conflicts=[
                ConflictOpinion(
                    between=[Expert.LIQUIDITY, Expert.MACRO],
                    expert_a_claim="Whales accumulate.",
                    expert_b_claim="Hedgers pay up for puts.",
                    tiebreaker="Whether skew eases once 95,000 is traded through.",
                ),
            ],
            dominant_signal="BULLISH",
            highest_confidence_expert=Expert.MICROSTRUCTURE,
            key_uncertainty="Is the bid real after the funding stamp?",
            regime_note="A range favours the book.",
            score=0.4322,
        ),
    }
    return Blackboard(**{**entries, **changed})


def decided(call: Call = Call.LONG, **changed: Any) -> Decision:
    opens = call.side is not None
    said: dict[str, Any] = {
        "source": "model",
        "why": "",
        "decision": call,
        "allocation_pct": 40 if opens else 0,
        "leverage": 2 if opens else 1,
        "entry_price": 93_600.0 if opens else None,
        "stop_loss": 92_050.0 if opens else None,
        "take_profit": 96_700.0 if opens else None,
        "hold_duration": "5d",
        "reasoning": Reasoning(
            counter_scenario="The put skew is right: a macro print breaks 92,400 and the longs above it are sold."
            if opens
            else "",
            meta_agent_context="A range with a bid.",
            technical="Higher lows on 4h above the point of control.",
            derivatives="Funding is flat.",
            experts="Two numeric experts agree; macro objects.",
            narrative="Quiet news.",
            final_logic="Buy the defended support with the stop below the pool.",
        ),
        "win_probability_pct": 55 if opens else 0,
        "expected_profit_pct": 3.3 if opens else 0.0,
        "expected_loss_pct": 1.7 if opens else 0.0,
        "ev_rationale": "Two to one.",
        "key_factors": ("book imbalance 0.71", "whales +$4.2M"),
    }
    return Decision(**{**said, **changed})


def ruled(**changed: Any) -> Ruling:
    said: dict[str, Any] = {
        "decision": Call.LONG,
        "allocation_pct": 12.0,
        "leverage": 2.0,
        "target_exchange": Target.BINANCE,
        "execution_style": Style.PASSIVE_MAKER,
        "legs": (
            Leg(
                venue=Venue("BINANCE"),
                side=Side.LONG,
                currency="USD",
                margin=240.0,
                notional=480.0,
                leverage=2.0,
                quantity=0.005,
            ),
        ),
        "card": TradeCard(
            side=Side.LONG,
            entry=93_600.0,
            stop=92_050.0,
            target=96_700.0,
            stop_pct=-1.65598,
            target_pct=3.31197,
            quantity=0.005,
            notional_usd=468.0,
            margin_usd=240.0,
            leverage=2.0,
            loss_at_stop_usd=8.14,
            loss_at_stop_pct=0.2374,
            reward_risk=2.0,
            liquidation=47_268.0,
            hold="5d",
            duration_hours=31.4,
            fair=1 / 3,
            edge=0.2,
            ev_pct=0.2434,
            gross_pct=0.3834,
            fees_pct=0.07,
            slippage_pct=0.0132,
            funding_pct=0.0465,
            llm_cost_pct=0.0026,
            fill=0.972,
            exploration=False,
        ),
        "veto": None,
        "valid_until": "2026-01-01T00:15:00Z",
        "changes": (
            RuleChange(by="budget", field="allocation_pct", from_=40.0, to=24.0, why="60 % of the risk budget"),
            RuleChange(by="cro_volatility", field="allocation_pct", from_=24.0, to=12.0, why="2s10s moved by 0.31 pp"),
            RuleChange(
                by="cro_style", field="execution_style", from_=None, to="PASSIVE_MAKER", why="spread of 0.8 bps"
            ),
        ),
    }
    return Ruling(**{**said, **changed})


ENDED = (
    Closing(venue=Venue("BINANCE"), what="position", id="pos_1", side=Side.SHORT, quantity=0.02),
    Closing(venue=Venue("UPBIT"), what="order", id="ord_2", side=Side.LONG, quantity=0.5),
)


def left(**changed: Any) -> Ruling:
    """An exit."""
    out = {
        "decision": Call.CANCEL_AND_CLOSE,
        "target_exchange": Target.SPLIT,
        "execution_style": Style.CASINO_EXIT,
    }
    return held(**{**out, "veto": None, "changes": (), "closes": ENDED, **changed})


def held(**changed: Any) -> Ruling:
    said: dict[str, Any] = {
        "decision": Call.HOLD,
        "allocation_pct": 0.0,
        "leverage": 1.0,
        "target_exchange": None,
        "execution_style": None,
        "legs": (),
        "card": None,
        "veto": "ev",
        "changes": (RuleChange(by="ev", field="decision", from_="LONG", to="HOLD", why="−0.021 % is not above zero"),),
    }
    return ruled(**{**said, **changed})


def outcome(**changed: Any) -> Outcome:
    said: dict[str, Any] = {
        "symbol": Symbol("BTCUSDT"),
        "mode": Mode.SWING,
        "as_of": AS_OF,
        "origin": "SYNTHETIC seed 1",
        "bundle": bundle_hash(bundle()),
        "meta": Meta(
            source="model",
            why="",
            regime=Regime.SIDEWAYS_ACCUMULATION,
            rationale="Narrow bands, and CVD climbs.",
            trust_directive=DirectiveOpinion(expert=Expert.MICROSTRUCTURE, note="In a range the book speaks first."),
            risk_budget_pct=60,
            risk_bias=RiskBias.NEUTRAL,
        ),
        "anomalies": (
            AnomalyRecord(
                rule="microstructure_imbalance", label=None, said="0.71 of the notional is bid, more than 0.70"
            ),
        ),
        "board": board(),
        "decision": decided(),
        "expectation": Expectation(
            p_judge=0.55,
            fair=1 / 3,
            edge=0.2,
            lambda_=0.4235,
            beta=0.93,
            beta_se=0.1372,
            n=60,
            duration_hours=31.4,
            resolved=0.9112,
            timed_out=0.0888,
            standard_error=0.0049,
            fill=0.972,
            profit_pct=3.312,
            loss_pct=1.656,
            fees_pct=0.07,
            slippage_pct=0.0132,
            funding_pct=0.0465,
            llm_cost_usd=0.0123,
            ev_pct=0.2434,
        ),
        "ruling": ruled(),
        "degraded": (MissingInput(what="macro", why="spoke as fallback: no answer within 30 s"),),
        "voices": (
            AnswerSource(role="meta", source="model", why="", model="gemini-3-flash-preview", tokens=2_100, usd=0.0011),
            AnswerSource(
                role="liquidity", source="model", why="", model="gemini-3-flash-preview", tokens=1_900, usd=0.001
            ),
            AnswerSource(
                role="microstructure",
                source="repaired",
                why="malformed: confidence must be a number",
                model="gemini-3-flash-preview",
                tokens=3_800,
                usd=0.002,
            ),
            AnswerSource(role="macro", source="fallback", why="no answer within 30 s", model=None, tokens=0, usd=None),
            AnswerSource(role="vlm_geometric", source="deterministic", why="no key", model=None, tokens=0, usd=0.0),
            AnswerSource(
                role="synthesis", source="model", why="", model="gemini-3-flash-preview", tokens=2_500, usd=0.0012
            ),
            AnswerSource(role="judge", source="model", why="", model="claude-sonnet-4-6", tokens=5_200, usd=0.007),
        ),
        "chart": Chart(sha256="0" * 64, media_type="image/png"),
        "run_id": RUN,
        "code": "0.1.0",
        "hash": "",
    }
    return with_hash(Outcome(**{**said, **changed}))


def attempts() -> tuple[Attempt, ...]:
    def one(role: str, attempt: int, outcome: Any, why: str = "", raw: str = "{}") -> Attempt:
        return Attempt(
            role=role,
            round=0,
            attempt=attempt,
            model="gemini-3-flash-preview",
            request="ab" * 32,
            outcome=outcome,
            why=why,
            raw=raw,
            cut=False,
            tokens_in=1_500,
            tokens_out=400,
            usd=None if outcome == "timeout" else Decimal("0.001"),
            estimated=outcome == "timeout",
            latency_ms=1_234,
        )

    return (
        one("meta", 1, "ok", raw='{"regime": "SIDEWAYS_ACCUMULATION"}'),
        one("microstructure", 1, "malformed", "confidence must be a number", '{"confidence": "high"}'),
        one("microstructure", 2, "ok", raw='{"confidence": 71}'),
        one("macro", 1, "timeout", "no answer within 30 s", ""),
    )


STARTED_AT = Millis(AS_OF + 3_600_000)


def ask_for(symbol: Symbol, mode: Mode) -> RunRequest:
    return RunRequest(symbol=symbol, mode=mode, as_of=None, live=False, chart=True, edition=EDITION)


def told(found: Outcome | None = None, picture: bytes | None = PNG, **changed: Any) -> RunRecord:
    """A run that has ended."""
    ended = found or outcome(**changed)
    end = summarise_run(ended)
    line = run_line_view(ended.run_id, STARTED_AT, ask_for(ended.symbol, ended.mode), end, end)
    view, _ = compute_run_view(ended, build_case(bundle(ended.origin)))
    return RunRecord(line, ended.origin, ended, view, attempts(), picture)


def unfinished() -> RunRecord:
    moment = MarketMoment(as_of=AS_OF, origin=bundle().origin)
    line = run_line_view(RUN, STARTED_AT, ask_for(Symbol("BTCUSDT"), Mode.SWING), moment, None)
    reached = (Node.COLLECT_DATA, Node.CONTEXT_GATHERING, Node.TRIAGE, Node.GENERATE_CHART, Node.META_AGENT)
    return RunRecord(line, moment.origin, None, None, attempts()[:1], None, reached)


FREE = frozenset(
    "rationale note why fibonacci_context expert_a_claim expert_b_claim tiebreaker key_uncertainty regime_note "
    "counter_scenario meta_agent_context technical derivatives experts narrative final_logic ev_rationale said what by "
    "field from to model consensus_signals key_factors veto notes".split()
)
"""Where words may be somebody else's."""


def spoilt(text: str) -> RunRecord:
    """A run in which everybody says the same, wherever there is room for it."""

    def said(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: said(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [said(one, name) for one in value]
        return text if isinstance(value, str) and name in FREE else value

    plain = outcome(ruling=held(), notes=("a note",)).model_dump(mode="json", by_alias=True)
    found = told(Outcome.model_validate(said(plain), strict=False))
    asked = tuple(one.model_copy(update={"raw": text, "why": text, "model": text}) for one in found.attempts)
    return replace(found, attempts=asked)

"""The Judge: weighs the blackboard, names the strongest argument against itself, and decides within the menu."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from zuno.agents.ask import Minds
from zuno.agents.question import Source, Spoken
from zuno.agents.reading import field_of
from zuno.core.account import Position, position_in
from zuno.core.board import entries, score, signal
from zuno.core.judging import FURTHEST_STOP, SECOND, objection, validated
from zuno.core.known import Missing
from zuno.core.menu import MARK, RANGE, Menu, MenuLevel
from zuno.core.provenance.figures import Figure, Unit
from zuno.desks.trading import knowledge
from zuno.desks.trading.briefing import Line, Section
from zuno.desks.trading.geometry import STRUCTURAL
from zuno.desks.trading.knowledge import price
from zuno.desks.trading.matter import Matter
from zuno.desks.trading.opinions import LONG_TEXT, SHORT_TEXT, JudgeOpinion, ReasoningOpinion
from zuno.desks.trading.speaking import Asking, Heard, hear, noted, voice_of
from zuno.domain.account import Resting
from zuno.domain.cycle import CONVICTION, DEFAULT_HOLD, Call, Expert, Regime, Signal
from zuno.domain.trading import HOUR_MS, Mode, Side
from zuno.messages.cycle import Blackboard, Decision, Meta, Reasoning

ROLE: Final = "judge"
EXIT_TAKEN: Final = "its exit is taken all the same, without its words"
EXIT: Final = -0.4
"""The weighted score against a position at which it is closed."""
CONVICTIONS: Final = ((0.45, 3), (0.30, 2), (0.0, 1))
"""From which score on a trade is worth how much conviction."""
ALLOCATIONS: Final[Mapping[int, int]] = {1: 20, 2: 35, 3: 50}
EDGE: Final = 0.45
"""How many points of probability a full score is worth beyond what the distances alone give."""
MOST_EDGE: Final = 0.22
NEAR_STOP: Final = 1.0
USUAL_STOP: Final = 1.5
"""In ATR: nearer than the first is noise; without structure the stop goes to the second."""
REWARD: Final = (1.3, 2.5)
"""What is to be won for what is risked, at least and at most: further away is not reached in time."""
LIKED: Final = 1.7
AGAINST_TREND: Final = 0.45
"""The score from which a trade against a regime of momentum is worth it."""
FLIP: Final = 0.30
"""The score from which a fresh decision is turned round."""
PAYING_HOLD: Final[Mapping[Mode, str]] = {Mode.SWING: "3d", Mode.POSITION: "4w"}
"""How long a trade may take that pays funding while it waits."""
SOON: Final[Mapping[Mode, int]] = {Mode.SWING: 12 * HOUR_MS, Mode.POSITION: 3 * 24 * HOUR_MS}


@dataclass(frozen=True, slots=True)
class Plan:
    """Prices of the menu, and what they amount to."""

    side: Side
    entry: float
    stop: float
    take: float

    @property
    def risk(self) -> float:
        return abs(self.entry - self.stop) / self.entry

    @property
    def reward(self) -> float:
        return abs(self.take - self.entry) / self.entry

    @property
    def fair(self) -> float:
        """How often the target comes first where nothing drifts."""
        return self.risk / (self.risk + self.reward)


async def decide(matter: Matter, meta: Meta, board: Blackboard, minds: Minds) -> Heard[Decision]:
    def objected(said: JudgeOpinion) -> str | None:
        return objection(_decision(said, "model", ""), matter.menu, matter.terms, board)

    spoken = await hear(
        Asking(
            role=ROLE,
            sections=(
                knowledge.market(matter),
                knowledge.anomalies(matter),
                knowledge.regime(meta),
                knowledge.said(matter, board),
                knowledge.levels(matter),
                knowledge.conflicts(board.synthesis),
                _held(matter),
                _before(matter),
                knowledge.derivatives(matter, 70),
                knowledge.flow(matter, 60),
                knowledge.forced(matter, 55),
                knowledge.options(matter, 50),
                knowledge.structure(matter, 45),
                knowledge.gauges(matter, weight=40),
                knowledge.economy(matter, 35),
                knowledge.narrative(matter),
                knowledge.news(matter),
            ),
            others={"directive": knowledge.directive(meta)},
            output=JudgeOpinion,
            twin=lambda: twin(matter, meta, board),
            texts=_texts,
            own=lambda said: own_figures(said, matter),
            judge=objected,
            max_output_tokens=3_000,
        ),
        minds,
    )
    raw = _decision(spoken.value, spoken.source, noted(spoken))
    if _says_exit(spoken) and holds(matter):
        raw = _exit(raw, noted(spoken, EXIT_TAKEN))
    return Heard(validated(raw, matter.menu, matter.terms, board), voice_of(ROLE, spoken))


def _says_exit(spoken: Spoken[JudgeOpinion]) -> bool:
    """Whether a model said so both times it was asked, and was not heard because of something else it said."""
    if spoken.source != "fallback" or len(spoken.attempts) < 2:
        return False
    return all(
        not one.cut and field_of(one.raw, "decision") == Call.CANCEL_AND_CLOSE.value for one in spoken.attempts[-2:]
    )


def _exit(raw: Decision, why: str) -> Decision:
    """A way out needs no reasons, and none that could not be checked are kept."""
    return raw.model_copy(
        update={
            "why": why,
            "decision": Call.CANCEL_AND_CLOSE,
            "allocation_pct": 0,
            "leverage": 1,
            "entry_price": None,
            "stop_loss": None,
            "take_profit": None,
            "reasoning": Reasoning(**dict.fromkeys(Reasoning.model_fields, "")),
            "win_probability_pct": 50,
            "expected_profit_pct": 0.0,
            "expected_loss_pct": 0.0,
            "ev_rationale": "",
            "key_factors": (),
        }
    )


def _decision(said: JudgeOpinion, source: Source, why: str) -> Decision:
    return Decision(
        source=source,
        why=why,
        decision=said.decision,
        allocation_pct=said.allocation_pct,
        leverage=said.leverage,
        entry_price=said.entry_price,
        stop_loss=said.stop_loss,
        take_profit=said.take_profit,
        hold_duration=said.hold_duration,
        reasoning=Reasoning(**said.reasoning.model_dump()),
        win_probability_pct=said.win_probability_pct,
        expected_profit_pct=said.expected_profit_pct,
        expected_loss_pct=said.expected_loss_pct,
        ev_rationale=said.ev_rationale,
        key_factors=tuple(said.key_factors),
    )


def _texts(said: JudgeOpinion) -> Iterator[str]:
    """An exit stands whatever is said about it."""
    if said.decision is Call.CANCEL_AND_CLOSE:
        return
    yield from said.reasoning.model_dump().values()
    yield said.ev_rationale
    yield from said.key_factors


def own_figures(said: JudgeOpinion, matter: Matter) -> tuple[Figure, ...]:
    """What the answer's own fields say; a price only where it is one of the menu's."""
    found = [
        *knowledge.figures("allocation", float(said.allocation_pct), Unit.PERCENT),
        *knowledge.figures("win probability", float(said.win_probability_pct), Unit.PERCENT),
        *knowledge.figures("loss probability", 100.0 - said.win_probability_pct, Unit.PERCENT),
        *knowledge.figures("leverage", float(said.leverage), Unit.RATIO),
    ]
    for name in ("entry_price", "stop_loss", "take_profit"):
        value = getattr(said, name)
        if value is not None and (level := matter.menu.snap(value)) is not None:
            found += knowledge.figures(name.replace("_", " "), level, Unit.PRICE)
            found += knowledge.figures(name.replace("_", " "), value, Unit.PRICE)
    entry, stop, take = said.entry_price, said.stop_loss, said.take_profit
    if entry and stop and take and entry not in (stop, take):
        plan = Plan(Side.LONG, entry, stop, take)
        found += knowledge.figures("profit", 100 * plan.reward, Unit.PERCENT)
        found += knowledge.figures("loss", 100 * plan.risk, Unit.PERCENT)
        found += knowledge.figures("reward for risk", plan.reward / plan.risk, Unit.RATIO)
        found += knowledge.figures("share by distance", 100 * plan.fair, Unit.PERCENT)
        found += knowledge.figures("edge", said.win_probability_pct - 100 * plan.fair, Unit.PERCENT)
        if not isinstance(matter.menu.atr, Missing):
            found += knowledge.figures("stop in ATR", abs(entry - stop) / matter.menu.atr, Unit.COUNT)
            found += knowledge.figures("target in ATR", abs(take - entry) / matter.menu.atr, Unit.COUNT)
    return tuple(found)


# -- what it is told beside what everybody knows


def position_of(matter: Matter) -> Position | None:
    account = matter.terms.account
    return None if isinstance(account, Missing) else position_in(account, matter.bundle.symbol)


def waiting(matter: Matter) -> tuple[Resting, ...]:
    """Orders of this symbol that would open something."""
    account = matter.terms.account
    if isinstance(account, Missing):
        return ()
    return tuple(one for one in account.pending if one.symbol is matter.bundle.symbol and not one.reduce_only)


def holds(matter: Matter) -> bool:
    """Whether there is anything to close or to cancel."""
    return position_of(matter) is not None or bool(waiting(matter))


def _held(matter: Matter) -> Section:
    """Its side, its entry and how it stands in per cent: a mind needs no dollars of the account."""
    account, standing = matter.terms.account, matter.standing
    if isinstance(account, Missing):
        return Section("position", 93, (knowledge.remark(f"unknown ({account.reason})"),))
    position = position_of(matter)
    lines = [Line("none is open in this symbol" if position is None else f"a {position.side} is open")]
    for one in () if position is None else position.holdings:
        if one.exchange.currency == "USD":
            lines.append(knowledge.fact("its entry price", one.entry, Unit.PRICE))
    if not isinstance(standing, Missing) and standing.gain_pct is not None:
        lines.append(knowledge.fact("its gain before leverage", standing.gain_pct, Unit.PERCENT, signed=True))
    for order in waiting(matter):
        lines.append(Line(f"an order for a {order.side} waits for its price"))
        if order.exchange.currency == "USD":
            lines.append(knowledge.fact("the price it waits for", order.price, Unit.PRICE))
    return Section("position", 93, tuple(lines))


def previous_of(matter: Matter) -> Mapping[str, Any] | None:
    """What was decided last about this symbol, in this mode."""
    slot = next((one for one in matter.bundle.slots if one.name == "previous_decision"), None)
    if slot is None or not isinstance(slot.content, Mapping):
        return None
    told: Mapping[str, Any] = slot.content
    return {**told, "as_of": slot.as_of} if told.get("mode") == matter.bundle.mode else None


def _before(matter: Matter) -> Section:
    before = previous_of(matter)
    if before is None:
        return Section("previous decision", 80, (Line("none is on record for this symbol and mode"),))
    hours = (matter.bundle.as_of - int(before["as_of"])) / HOUR_MS
    lines = [knowledge.remark(f"{before.get('decision')} in {before.get('regime')}, {hours:.0f} h ago")]
    for name in ("entry_price", "stop_loss", "take_profit"):
        if isinstance(value := before.get(name), int | float):
            lines.append(knowledge.fact(f"its {name.replace('_', ' ')}", float(value), Unit.PRICE))
    return Section("previous decision", 80, tuple(lines))


# -- the same by rule


def twin(matter: Matter, meta: Meta, board: Blackboard) -> JudgeOpinion:
    worth = score(board, matter.bundle.mode, meta.trust_directive.expert)
    for held in sides(matter):
        if why := exit_reason(matter, meta, held, worth):
            return _still(matter, meta, board, worth, Call.CANCEL_AND_CLOSE, why)
    for held in sides(matter):
        if signal(worth) is not Signal.NEUTRAL and _favour(held, worth) < 0:
            why = f"the score of {worth:+.2f} is against the {held} there is, but not by {-EXIT:g}: keep it"
            return _still(matter, meta, board, worth, Call.HOLD, why)
    leaning = signal(worth)
    if leaning is Signal.NEUTRAL:
        why = f"the score of {worth:+.2f} is within the dead band: nobody pays for a coin toss"
        return _still(matter, meta, board, worth, Call.HOLD, why)
    side = Side.LONG if leaning is Signal.BULLISH else Side.SHORT
    if why := _wavering(matter, side, worth) or _swimming(meta, side, worth):
        return _still(matter, meta, board, worth, Call.HOLD, why)
    if not _seconds(board, side):
        why = f"the score of {worth:+.2f} looks {side}, but no expert that reads numbers is sure enough to second it"
        return _still(matter, meta, board, worth, Call.HOLD, why)
    plan = planned(matter.menu, side)
    if plan is None:
        why = f"the score of {worth:+.2f} looks {side}, but the levels leave no trade in proportion"
        return _still(matter, meta, board, worth, Call.HOLD, why)
    drawn = _opening(matter, meta, board, worth, plan)
    refused = objection(_decision(drawn, "deterministic", ""), matter.menu, matter.terms, board)
    return drawn if refused is None else _still(matter, meta, board, worth, Call.HOLD, refused)


def sides(matter: Matter) -> tuple[Side, ...]:
    """That of the position, else of the orders that would open one."""
    position = position_of(matter)
    return (position.side,) if position is not None else tuple(dict.fromkeys(one.side for one in waiting(matter)))


def _favour(side: Side, worth: float) -> float:
    return worth if side is Side.LONG else -worth


def exit_reason(matter: Matter, meta: Meta, side: Side, worth: float) -> str:
    """Why what is held, or waits, on a side is to go; empty where it may stay."""
    favour = _favour(side, worth)
    if favour <= EXIT:
        return f"the score of {worth:+.2f} is against the {side} there is by {-EXIT:g} or more"
    panic = matter.terms.panic is True or meta.regime is Regime.VOLATILITY_PANIC
    day = matter.signs.day
    # Who does not know which way the panic runs goes by the score.
    runs = favour < 0 if isinstance(day, Missing) else _favour(side, day) < 0
    if panic and runs:
        return f"a panic runs against the {side} there is: the price changed by {_percent(matter)} in 24h"
    return ""


def _percent(matter: Matter) -> str:
    day = matter.signs.day
    return "an unknown amount" if isinstance(day, Missing) else f"{100 * day:+.2f} %"


def _wavering(matter: Matter, side: Side, worth: float) -> str:
    """A side is not turned round soon after without a signal that is more than a leaning."""
    before = previous_of(matter)
    if before is None or matter.bundle.as_of - int(before["as_of"]) > SOON[matter.bundle.mode]:
        return ""
    other = Call.SHORT if side is Side.LONG else Call.LONG
    if before.get("decision") == other and abs(worth) < FLIP:
        return f"the last word was {other}, and a score of {worth:+.2f} is no reason to turn round so soon"
    return ""


def _swimming(meta: Meta, side: Side, worth: float) -> str:
    """Against the current only with all one's strength."""
    current = {Regime.BULL_MOMENTUM: Side.LONG, Regime.BEAR_MOMENTUM: Side.SHORT}.get(meta.regime, side)
    if current is side or abs(worth) >= AGAINST_TREND:
        return ""
    return f"a score of {worth:+.2f} is too little for a {side} against {meta.regime}"


def _seconds(board: Blackboard, side: Side) -> list[Expert]:
    stance = 1 if side is Side.LONG else -1
    return [
        expert
        for expert, entry in entries(board).items()
        if expert.numeric and entry.stance == stance and entry.confidence >= SECOND
    ]


def planned(menu: Menu, side: Side) -> Plan | None:
    """In at the market; out beyond structure; the target at a level that pays for the risk."""
    if isinstance(menu.now, Missing) or isinstance(menu.atr, Missing):
        return None
    entry = next((one.price for one in menu.levels if one.kind == MARK), None)
    if entry is None:
        return None
    sign = 1 if side is Side.LONG else -1
    stop = _stop(menu.levels, entry, sign, menu.atr)
    if stop is None:
        return None
    risk = abs(entry - stop)
    ahead = [(sign * (one.price - entry), one) for one in menu.levels]
    fitting = [(far, one) for far, one in ahead if REWARD[0] * risk <= far <= REWARD[1] * risk]
    measured = [(far, one) for far, one in fitting if one.kind in STRUCTURAL]
    if not (measured or fitting):
        return None
    # A measured level near what is liked is better than a distance.
    _, take = min(measured or fitting, key=lambda each: (abs(each[0] - LIKED * risk), each[1].id))
    return Plan(side, entry, stop, take.price)


def _stop(levels: tuple[MenuLevel, ...], entry: float, sign: int, atr: float) -> float | None:
    """The first level beyond the nearest structure that is far enough not to be noise; else the usual distance."""
    behind = sorted((sign * (entry - one.price) / atr, one.price, one.kind) for one in levels)
    shelter = next((far for far, _, kind in behind if kind in STRUCTURAL and NEAR_STOP <= far <= USUAL_STOP), None)
    if shelter is not None:
        beyond = [value for far, value, _ in behind if shelter + 0.1 <= far <= FURTHEST_STOP]
        if beyond:
            return beyond[0]
    steps = [(far, value) for far, value, kind in behind if kind == RANGE and 0 < far <= FURTHEST_STOP]
    return min(steps, key=lambda each: abs(each[0] - USUAL_STOP))[1] if steps else None


def conviction(worth: float) -> int:
    return next(level for least, level in CONVICTIONS if abs(worth) >= least)


def _opening(matter: Matter, meta: Meta, board: Blackboard, worth: float, plan: Plan) -> JudgeOpinion:
    mode, level = matter.bundle.mode, conviction(worth)
    win = round(100 * (plan.fair + min(EDGE * abs(worth), MOST_EDGE)))
    call = Call.LONG if plan.side is Side.LONG else Call.SHORT
    for_it = ", ".join(_seconds(board, plan.side))
    logic = (
        f"The score of {worth:+.2f} looks {plan.side}, seconded by {for_it}; in at {price(plan.entry)}, wrong at "
        f"{price(plan.stop)}, done at {price(plan.take)}."
    )
    return JudgeOpinion(
        decision=call,
        allocation_pct=ALLOCATIONS[level],
        leverage=_leverage(matter, plan.side, level),
        entry_price=plan.entry,
        stop_loss=plan.stop,
        take_profit=plan.take,
        hold_duration=PAYING_HOLD[mode] if _pays(matter, plan.side) else DEFAULT_HOLD[mode],
        reasoning=_reasoning(matter, meta, board, logic, counter(matter, board, plan)),
        win_probability_pct=win,
        expected_profit_pct=round(100 * plan.reward, 4),
        expected_loss_pct=round(100 * plan.risk, 4),
        ev_rationale=(
            f"By distance alone the target comes first in {100 * plan.fair:.0f} % of paths; "
            f"the experts' score is worth {win - 100 * plan.fair:.0f} points more."
        ),
        key_factors=_factors(board),
    )


def _leverage(matter: Matter, side: Side, level: int) -> int:
    """By conviction alone, for what a mode may borrow is the risk officer's rule; whoever would pay funding for a long
    buys it with their own money instead."""
    return 1 if side is Side.LONG and _pays(matter, side) else level


def _pays(matter: Matter, side: Side) -> bool:
    """Whether holding that side costs funding, or nobody knows."""
    rate = matter.terms.funding_week
    return isinstance(rate, Missing) or (rate > 0) == (side is Side.LONG)


def _still(matter: Matter, meta: Meta, board: Blackboard, worth: float, call: Call, why: str) -> JudgeOpinion:
    """A decision that opens nothing."""
    logic = f"{call}: {why}."
    return JudgeOpinion(
        decision=call,
        allocation_pct=0,
        leverage=1,
        entry_price=None,
        stop_loss=None,
        take_profit=None,
        hold_duration=DEFAULT_HOLD[matter.bundle.mode],
        reasoning=_reasoning(matter, meta, board, logic[:LONG_TEXT], _other_side(matter, board, worth)),
        win_probability_pct=50,
        expected_profit_pct=0.0,
        expected_loss_pct=0.0,
        ev_rationale="Nothing is opened, so nothing is expected of it.",
        key_factors=_factors(board),
    )


def _reasoning(matter: Matter, meta: Meta, board: Blackboard, logic: str, against: str) -> ReasoningOpinion:
    return ReasoningOpinion(
        counter_scenario=against[:LONG_TEXT],
        meta_agent_context=(
            f"{meta.regime} with a risk budget of {meta.risk_budget_pct} %; {meta.trust_directive.expert} weighs more."
        ),
        technical=_of(board, Expert.GEOMETRY),
        derivatives=_derivatives(matter)[:LONG_TEXT],
        experts=_lines(board, matter.bundle.mode)[:LONG_TEXT],
        narrative="Rules read no news: what strangers write has no part in this.",
        final_logic=logic,
    )


def _of(board: Blackboard, expert: Expert) -> str:
    entry = entries(board).get(expert)
    return f"{expert} is absent." if entry is None else entry.rationale[:LONG_TEXT]


def _derivatives(matter: Matter) -> str:
    rate = matter.terms.funding_next
    if isinstance(rate, Missing):
        return f"Predicted funding is not known: {rate.reason}."
    payer = "longs pay" if rate > 0 else "shorts pay" if rate < 0 else "nobody pays"
    return f"Predicted funding is {100 * rate:+.4f} % as if for 8h: {payer}."


def _lines(board: Blackboard, mode: Mode) -> str:
    words = {1: "bullish", 0: "neutral", -1: "bearish"}
    there = entries(board)
    said = [
        f"{expert} {words[one.stance]} at {one.confidence:.2f}" if (one := there.get(expert)) else f"{expert} absent"
        for expert in CONVICTION[mode]
    ]
    return f"{', '.join(said)}."


def counter(matter: Matter, board: Blackboard, plan: Plan) -> str:
    """The strongest evidence on the other side, in words and figures."""
    stance = 1 if plan.side is Side.LONG else -1
    against = [(entry.confidence, expert, entry) for expert, entry in entries(board).items() if entry.stance == -stance]
    if against:
        sure, expert, entry = max(against, key=lambda each: (each[0], each[1]))
        return f"{expert} looks the other way with {sure:.2f}: {entry.rationale}"
    worse = "below" if plan.side is Side.LONG else "above"
    quiet = [expert for expert, entry in entries(board).items() if not entry.stance]
    unsaid = f"there is no confirmation by {', '.join(quiet)}" if quiet else "nobody objects, which is crowded"
    return f"{unsaid}; a close {worse} {price(plan.stop)} would show that the level did not hold."


def _other_side(matter: Matter, board: Blackboard, worth: float) -> str:
    """What would have been the trade, and who argues for it."""
    leaning = [(entry.confidence, expert, entry) for expert, entry in entries(board).items() if entry.stance]
    if not leaning:
        return "Nobody leans either way: a move would come without a sign that anybody saw."
    sure, expert, entry = max(leaning, key=lambda each: (each[0], each[1]))
    word = "up" if entry.stance > 0 else "down"
    return f"{expert} looks {word} with {sure:.2f}: {entry.rationale}"


def _factors(board: Blackboard) -> list[str]:
    found = sorted(entries(board).items(), key=lambda each: -each[1].confidence)
    return [_short(f"{expert}: {entry.rationale.partition(';')[0]}") for expert, entry in found if entry.stance]


def _short(text: str) -> str:
    """Never within a figure: a half one would be another."""
    return text if len(text) <= SHORT_TEXT else text[: SHORT_TEXT - 1].rpartition(" ")[0] + "…"

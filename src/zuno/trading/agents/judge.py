"""The Judge: weighs the blackboard, names the strongest argument against itself, and decides within the menu."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from zuno.llm.ask import ModelContext
from zuno.llm.question import Source, SourcedAnswer
from zuno.llm.reply import extract_field
from zuno.provenance.facts import FactSheet, Figure, Unit
from zuno.provenance.slots import cut
from zuno.trading.agents import prompt_facts
from zuno.trading.agents.ask import Asking, Heard, hear, noted, voice_of
from zuno.trading.agents.case import Matter
from zuno.trading.agents.geometry import STRUCTURAL
from zuno.trading.agents.prompt_budget import Line, Section
from zuno.trading.agents.schemas import LONG_TEXT, SHORT_TEXT, JudgeOpinion, ReasoningOpinion
from zuno.trading.model.account import RestingOrder
from zuno.trading.model.cycle import (
    CONVICTION,
    DEFAULT_HOLD,
    Blackboard,
    Call,
    Decision,
    Expert,
    Meta,
    Reasoning,
    Regime,
    Signal,
)
from zuno.trading.model.known import Missing
from zuno.trading.model.market import HOUR_MS, Mode, Side
from zuno.trading.rules.account import Position, position_in
from zuno.trading.rules.price_menu import MARK, RANGE, MenuLevel, PriceMenu
from zuno.trading.rules.score import board_entries, score_board, signal_of_score
from zuno.trading.rules.validate_decision import MAX_STOP_ATR, MIN_SUPPORT_CONFIDENCE, find_objection, validate_decision

ROLE: Final = "judge"
EXIT_TAKEN: Final = "its exit is taken all the same, without its words"
WORDS_LOST: Final = "its words cannot be used and are not kept"
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


async def decide(matter: Matter, meta: Meta, board: Blackboard, minds: ModelContext) -> Heard[Decision]:
    def objected(said: JudgeOpinion) -> str | None:
        return find_objection(_decision(said, "model", ""), matter.menu, matter.terms, board)

    spoken = await hear(
        Asking(
            role=ROLE,
            sections=(
                prompt_facts.market(matter),
                prompt_facts.anomalies(matter),
                prompt_facts.regime(meta),
                prompt_facts.said(matter, board),
                prompt_facts.levels(matter),
                prompt_facts.conflicts(matter, board),
                scored(matter, meta, board),
                held(matter),
                before(matter),
                prompt_facts.derivatives(matter, 70),
                prompt_facts.flow(matter, 60),
                prompt_facts.forced(matter, 55),
                prompt_facts.options(matter, 50),
                prompt_facts.structure(matter, 45),
                prompt_facts.gauges(matter, weight=40),
                prompt_facts.economy(matter, 35),
                prompt_facts.narrative(matter),
                prompt_facts.news(matter),
            ),
            others={"directive": prompt_facts.directive(meta)},
            output=JudgeOpinion,
            twin=lambda: twin(matter, meta, board),
            # An exit stands whatever is said about it.
            texts=lambda said: () if said.decision is Call.CANCEL_AND_CLOSE else _texts(said),
            own=lambda said: own_figures(said, matter),
            own_ids=OWN_IDS,
            judge=objected,
            max_output_tokens=3_000,
        ),
        minds,
    )
    raw = _decision(spoken.value, spoken.source, noted(spoken))
    if _says_exit(spoken) and holds(matter):
        raw = _exit(raw, noted(spoken, EXIT_TAKEN))
    elif raw.decision is Call.CANCEL_AND_CLOSE and _unusable(spoken.value, matter, meta, board):
        raw = _exit(raw, noted(spoken, WORDS_LOST))
    return Heard(validate_decision(raw, matter.menu, matter.terms, board), voice_of(ROLE, spoken))


def _says_exit(spoken: SourcedAnswer[JudgeOpinion]) -> bool:
    """Whether a model said so both times it was asked, and was not heard because of something else it said."""
    if spoken.source != "fallback" or len(spoken.attempts) < 2:
        return False
    return all(
        not attempt.cut and extract_field(attempt.raw, "decision") == Call.CANCEL_AND_CLOSE.value
        for attempt in spoken.attempts[-2:]
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


def _texts(said: JudgeOpinion) -> Iterator[tuple[str, int]]:
    for text in (*said.reasoning.model_dump().values(), said.ev_rationale):
        yield text, LONG_TEXT
    for text in said.key_factors:
        yield text, SHORT_TEXT


def _unusable(said: JudgeOpinion, matter: Matter, meta: Meta, board: Blackboard) -> list[str]:
    facts = FactSheet([*judge_facts(matter, meta, board).values(), *own_figures(said, matter)])
    return prompt_facts.text_faults(_texts(said), facts)


OWN_IDS: Final = tuple(
    f"decision.{name}"
    for name in (
        "allocation",
        "leverage",
        "win_probability",
        "entry_price",
        "stop_loss",
        "take_profit",
        "profit",
        "loss",
        "reward_over_risk",
        "share_by_distance",
        "edge",
        "stop_in_atr",
        "target_in_atr",
    )
)
"""What its answer's own fields say, once it is given."""


def own_figures(said: JudgeOpinion | Decision, matter: Matter) -> tuple[Figure, ...]:
    """What the answer's own fields say; a price only where it is one of the menu's."""
    figure = prompt_facts.figure_of
    found = [
        figure("decision.allocation", float(said.allocation_pct), Unit.PERCENT, 0),
        figure("decision.leverage", float(said.leverage), Unit.RATIO, 0),
        figure("decision.win_probability", float(said.win_probability_pct), Unit.PERCENT, 0),
    ]
    prices = [
        matter.menu.snap(value) if value else None for value in (said.entry_price, said.stop_loss, said.take_profit)
    ]
    for name, level in zip(("entry_price", "stop_loss", "take_profit"), prices, strict=True):
        if level is not None:
            found.append(figure(f"decision.{name}", level, Unit.PRICE))
    entry, stop, take = prices
    if entry and stop and take and entry not in (stop, take):
        plan = Plan(Side.LONG, entry, stop, take)
        found += [
            figure("decision.profit", 100 * plan.reward, Unit.PERCENT),
            figure("decision.loss", 100 * plan.risk, Unit.PERCENT),
            figure("decision.reward_over_risk", plan.reward / plan.risk, Unit.RATIO),
            figure("decision.share_by_distance", 100 * plan.fair, Unit.PERCENT, 0),
            figure("decision.edge", said.win_probability_pct - 100 * plan.fair, Unit.POINTS, 0),
        ]
        if not isinstance(matter.menu.atr, Missing):
            found.append(figure("decision.stop_in_atr", abs(entry - stop) / matter.menu.atr, Unit.NUMBER))
            found.append(figure("decision.target_in_atr", abs(take - entry) / matter.menu.atr, Unit.NUMBER))
    return tuple(found)


# -- what it is told beside what everybody knows


def position_of(matter: Matter) -> Position | None:
    account = matter.terms.account
    return None if isinstance(account, Missing) else position_in(account, matter.bundle.symbol)


def waiting(matter: Matter) -> tuple[RestingOrder, ...]:
    """Orders of this symbol that would open something."""
    account = matter.terms.account
    if isinstance(account, Missing):
        return ()
    return tuple(one for one in account.pending if one.symbol is matter.bundle.symbol and not one.reduce_only)


def holds(matter: Matter) -> bool:
    """Whether there is anything to close or to cancel."""
    return position_of(matter) is not None or bool(waiting(matter))


def held(matter: Matter) -> Section:
    """Its side, its entry and how it stands in per cent: a mind needs no dollars of the account."""
    account, standing = matter.terms.account, matter.standing
    if isinstance(account, Missing):
        return Section("position", 93, (prompt_facts.remark("account.unknown", account.reason, "unknown: "),))
    position = position_of(matter)
    lines = [Line("none is open in this symbol" if position is None else f"a {position.side} is open")]
    for place, one in enumerate(() if position is None else position.holdings, 1):
        if one.exchange.currency == "USD":
            lines.append(prompt_facts.fact(f"position.entry_{place}", one.entry, Unit.PRICE))
    if not isinstance(standing, Missing) and standing.gain_pct is not None:
        lines.append(
            prompt_facts.fact("position.gain", standing.gain_pct, Unit.PERCENT, signed=True, note="before leverage")
        )
    for place, order in enumerate(waiting(matter), 1):
        lines.append(Line(f"an order for a {order.side} waits for its price"))
        if order.exchange.currency == "USD":
            lines.append(prompt_facts.fact(f"position.order_{place}", order.price, Unit.PRICE))
    return Section("position", 93, tuple(lines))


def scored(matter: Matter, meta: Meta, board: Blackboard) -> Section:
    """The weighted score, and from which one against it a position is closed."""
    worth = score_board(board, matter.bundle.mode, meta.trust_directive.expert)
    return Section(
        "score",
        92,
        (
            prompt_facts.fact("score", worth, Unit.NUMBER, signed=True, note="weighted, of the blackboard"),
            prompt_facts.fact("exit_score", -EXIT, Unit.NUMBER, 1, note="against a position that closes it"),
        ),
    )


def previous_of(matter: Matter) -> Mapping[str, Any] | None:
    """What was decided last about this symbol, in this mode."""
    slot = next((slot for slot in matter.bundle.slots if slot.name == "previous_decision"), None)
    if slot is None or not isinstance(slot.content, Mapping):
        return None
    told: Mapping[str, Any] = slot.content
    return {**told, "as_of": slot.as_of} if told.get("mode") == matter.bundle.mode else None


def before(matter: Matter) -> Section:
    last = previous_of(matter)
    if last is None:
        return Section("previous decision", 80, (Line("none is on record for this symbol and mode"),))
    hours = (matter.bundle.as_of - int(last["as_of"])) / HOUR_MS
    said = f"since {last.get('decision')} in {last.get('regime')}"
    lines = [prompt_facts.fact("previous.age", hours, Unit.HOURS, 0, note=said)]
    for name in ("entry_price", "stop_loss", "take_profit"):
        if isinstance(value := last.get(name), int | float):
            lines.append(prompt_facts.fact(f"previous.{name}", float(value), Unit.PRICE))
    return Section("previous decision", 80, tuple(lines))


def judge_facts(matter: Matter, meta: Meta, board: Blackboard) -> FactSheet:
    """Everything the Judge may be told."""
    sections = (prompt_facts.regime(meta), scored(matter, meta, board), held(matter), before(matter))
    return prompt_facts.sheet(sections, prompt_facts.board_facts(matter, board).values())


# -- the same by rule


def twin(matter: Matter, meta: Meta, board: Blackboard) -> JudgeOpinion:
    worth = score_board(board, matter.bundle.mode, meta.trust_directive.expert)
    for side in sides(matter):
        if why := exit_reason(matter, meta, side, worth):
            return _still(matter, meta, board, Call.CANCEL_AND_CLOSE, why)
    for side in sides(matter):
        if signal_of_score(worth) is not Signal.NEUTRAL and _favour(side, worth) < 0:
            why = f"the score of {{score}} is against the {side} there is, but not by {{exit_score}}: it stays"
            return _still(matter, meta, board, Call.HOLD, why)
    leaning = signal_of_score(worth)
    if leaning is Signal.NEUTRAL:
        why = "the score of {score} is within the dead band: nobody pays for a coin toss"
        return _still(matter, meta, board, Call.HOLD, why)
    side = Side.LONG if leaning is Signal.BULLISH else Side.SHORT
    if why := _wavering(matter, side, worth) or _swimming(meta, side, worth):
        return _still(matter, meta, board, Call.HOLD, why)
    if not _seconds(board, side):
        why = f"the score of {{score}} looks {side}, but no expert that reads numbers is sure enough to second it"
        return _still(matter, meta, board, Call.HOLD, why)
    plan = planned(matter.menu, side)
    if plan is None:
        why = f"the score of {{score}} looks {side}, but the levels leave no trade in proportion"
        return _still(matter, meta, board, Call.HOLD, why)
    drawn = _opening(matter, meta, board, worth, plan)
    if find_objection(_decision(drawn, "deterministic", ""), matter.menu, matter.terms, board) is None:
        return drawn
    why = f"the score of {{score}} looks {side}, but the rules refuse the trade that the levels give"
    return _still(matter, meta, board, Call.HOLD, why)


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
        return f"the score of {{score}} is against the {side} there is by {{exit_score}} or more"
    panic = matter.terms.panic is True or meta.regime is Regime.VOLATILITY_PANIC
    day = matter.signs.day
    # Who does not know which way the panic runs goes by the score.
    runs = favour < 0 if isinstance(day, Missing) else _favour(side, day) < 0
    if panic and runs:
        moved = (
            "the score is against it" if isinstance(day, Missing) else "the price changed by {price_change_24h} in 24h"
        )
        return f"a panic runs against the {side} there is: {moved}"
    return ""


def _wavering(matter: Matter, side: Side, worth: float) -> str:
    """A side is not turned round soon after without a signal that is more than a leaning."""
    last = previous_of(matter)
    if last is None or matter.bundle.as_of - int(last["as_of"]) > SOON[matter.bundle.mode]:
        return ""
    other = Call.SHORT if side is Side.LONG else Call.LONG
    if last.get("decision") == other and abs(worth) < FLIP:
        return f"the last word was {other}, and a score of {{score}} is no reason to turn round so soon"
    return ""


def _swimming(meta: Meta, side: Side, worth: float) -> str:
    """Against the current only with all one's strength."""
    current = {Regime.BULL_MOMENTUM: Side.LONG, Regime.BEAR_MOMENTUM: Side.SHORT}.get(meta.regime, side)
    if current is side or abs(worth) >= AGAINST_TREND:
        return ""
    return f"a score of {{score}} is too little for a {side} against {meta.regime}"


def _seconds(board: Blackboard, side: Side) -> list[Expert]:
    stance = 1 if side is Side.LONG else -1
    return [
        expert
        for expert, entry in board_entries(board).items()
        if expert.numeric and entry.stance == stance and entry.confidence >= MIN_SUPPORT_CONFIDENCE
    ]


def planned(menu: PriceMenu, side: Side) -> Plan | None:
    """In at the market; out beyond structure; the target at a level that pays for the risk."""
    if isinstance(menu.now, Missing) or isinstance(menu.atr, Missing):
        return None
    entry = next((level.price for level in menu.levels if level.kind == MARK), None)
    if entry is None:
        return None
    sign = 1 if side is Side.LONG else -1
    stop = _stop(menu.levels, entry, sign, menu.atr)
    if stop is None:
        return None
    risk = abs(entry - stop)
    ahead = [(sign * (level.price - entry), level) for level in menu.levels]
    fitting = [(far, one) for far, one in ahead if REWARD[0] * risk <= far <= REWARD[1] * risk]
    measured = [(far, one) for far, one in fitting if one.kind in STRUCTURAL]
    if not (measured or fitting):
        return None
    # A measured level near what is liked is better than a distance.
    _, take = min(measured or fitting, key=lambda each: (abs(each[0] - LIKED * risk), each[1].id))
    return Plan(side, entry, stop, take.price)


def _stop(levels: tuple[MenuLevel, ...], entry: float, sign: int, atr: float) -> float | None:
    """The first level beyond the nearest structure that is far enough not to be noise; else the usual distance."""
    behind = sorted((sign * (entry - level.price) / atr, level.price, level.kind) for level in levels)
    shelter = next((far for far, _, kind in behind if kind in STRUCTURAL and NEAR_STOP <= far <= USUAL_STOP), None)
    if shelter is not None:
        beyond = [value for far, value, _ in behind if shelter + 0.1 <= far <= MAX_STOP_ATR]
        if beyond:
            return beyond[0]
    steps = [(far, value) for far, value, kind in behind if kind == RANGE and 0 < far <= MAX_STOP_ATR]
    return min(steps, key=lambda each: abs(each[0] - USUAL_STOP))[1] if steps else None


def conviction(worth: float) -> int:
    return next(level for least, level in CONVICTIONS if abs(worth) >= least)


def _opening(matter: Matter, meta: Meta, board: Blackboard, worth: float, plan: Plan) -> JudgeOpinion:
    mode, level = matter.bundle.mode, conviction(worth)
    win = round(100 * (plan.fair + min(EDGE * abs(worth), MOST_EDGE)))
    call = Call.LONG if plan.side is Side.LONG else Call.SHORT
    for_it = ", ".join(_seconds(board, plan.side))
    logic = (
        f"The score of {{score}} looks {plan.side}, seconded by {for_it}; in at {{decision.entry_price}}, wrong at "
        "{decision.stop_loss}, done at {decision.take_profit}."
    )
    return JudgeOpinion(
        decision=call,
        allocation_pct=ALLOCATIONS[level],
        leverage=_leverage(matter, plan.side, level),
        entry_price=plan.entry,
        stop_loss=plan.stop,
        take_profit=plan.take,
        hold_duration=PAYING_HOLD[mode] if _pays(matter, plan.side) else DEFAULT_HOLD[mode],
        reasoning=_reasoning(matter, meta, board, logic, counter(board, plan)),
        win_probability_pct=win,
        expected_profit_pct=round(100 * plan.reward, 4),
        expected_loss_pct=round(100 * plan.risk, 4),
        ev_rationale=(
            "By distance alone the target comes first in {decision.share_by_distance} of paths; "
            "the experts' score is worth {decision.edge} more."
        ),
        key_factors=_factors(matter, board),
    )


def _leverage(matter: Matter, side: Side, level: int) -> int:
    """By conviction alone, for what a mode may borrow is the risk officer's rule; whoever would pay funding for a long
    buys it with their own money instead."""
    return 1 if side is Side.LONG and _pays(matter, side) else level


def _pays(matter: Matter, side: Side) -> bool:
    """Whether holding that side costs funding, or nobody knows."""
    rate = matter.terms.funding_week
    return isinstance(rate, Missing) or (rate > 0) == (side is Side.LONG)


def _still(matter: Matter, meta: Meta, board: Blackboard, call: Call, why: str) -> JudgeOpinion:
    """A decision that opens nothing."""
    return JudgeOpinion(
        decision=call,
        allocation_pct=0,
        leverage=1,
        entry_price=None,
        stop_loss=None,
        take_profit=None,
        hold_duration=DEFAULT_HOLD[matter.bundle.mode],
        reasoning=_reasoning(matter, meta, board, f"{call}: {why}.", _other_side(board)),
        win_probability_pct=50,
        expected_profit_pct=0.0,
        expected_loss_pct=0.0,
        ev_rationale="Nothing is opened, so nothing is expected of it.",
        key_factors=_factors(matter, board),
    )


def _reasoning(matter: Matter, meta: Meta, board: Blackboard, logic: str, against: str) -> ReasoningOpinion:
    facts = judge_facts(matter, meta, board)
    return ReasoningOpinion(
        counter_scenario=cut(against, facts, LONG_TEXT),
        meta_agent_context=(
            f"{meta.regime} with a risk budget of {{risk_budget}}; {meta.trust_directive.expert} weighs more."
        ),
        technical=_of(board, Expert.GEOMETRY),
        derivatives=cut(_derivatives(matter), facts, LONG_TEXT),
        experts=cut(_lines(board, matter.bundle.mode), facts, LONG_TEXT),
        narrative="Rules read no news: what strangers write has no part in this.",
        final_logic=logic,
    )


def _of(board: Blackboard, expert: Expert) -> str:
    entry = board_entries(board).get(expert)
    return f"{expert} is absent." if entry is None else entry.rationale


def _derivatives(matter: Matter) -> str:
    rate = matter.terms.funding_next
    if isinstance(rate, Missing):
        return "Predicted funding is not known: {funding_next_8h.unknown}."
    payer = "longs pay" if rate > 0 else "shorts pay" if rate < 0 else "nobody pays"
    return f"Predicted funding is {{funding_next_8h}} as if for 8h: {payer}."


def _lines(board: Blackboard, mode: Mode) -> str:
    words = {1: "bullish", 0: "neutral", -1: "bearish"}
    there = board_entries(board)
    said = [
        f"{expert} {words[one.stance]} at {{{expert}.confidence}}" if (one := there.get(expert)) else f"{expert} absent"
        for expert in CONVICTION[mode]
    ]
    return f"{', '.join(said)}."


def counter(board: Blackboard, plan: Plan) -> str:
    """The strongest evidence on the other side, in words and figures."""
    stance = 1 if plan.side is Side.LONG else -1
    against = [
        (entry.confidence, expert, entry) for expert, entry in board_entries(board).items() if entry.stance == -stance
    ]
    if against:
        _, expert, entry = max(against, key=lambda each: (each[0], each[1]))
        return f"{expert} looks the other way with {{{expert}.confidence}}: {entry.rationale}"
    worse = "below" if plan.side is Side.LONG else "above"
    quiet = [expert for expert, entry in board_entries(board).items() if not entry.stance]
    unsaid = f"there is no confirmation by {', '.join(quiet)}" if quiet else "nobody objects, which is crowded"
    return f"{unsaid}; a close {worse} {{decision.stop_loss}} would show that the level did not hold."


def _other_side(board: Blackboard) -> str:
    """What would have been the trade, and who argues for it."""
    leaning = [(entry.confidence, expert, entry) for expert, entry in board_entries(board).items() if entry.stance]
    if not leaning:
        return "Nobody leans either way: a move would come without a sign that anybody saw."
    _, expert, entry = max(leaning, key=lambda each: (each[0], each[1]))
    word = "up" if entry.stance > 0 else "down"
    return f"{expert} looks {word} with {{{expert}.confidence}}: {entry.rationale}"


def _factors(matter: Matter, board: Blackboard) -> list[str]:
    found = sorted(board_entries(board).items(), key=lambda each: -each[1].confidence)
    facts = prompt_facts.board_facts(matter, board)
    reasons = [f"{expert}: {entry.rationale.partition(';')[0]}" for expert, entry in found if entry.stance]
    return [cut(reason, facts, SHORT_TEXT) for reason in reasons]

"""The Judge: weighs the blackboard, names the strongest argument against itself, and decides within the menu."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from zuno.llm.ask import ModelContext
from zuno.llm.question import SourcedAnswer
from zuno.llm.reply import extract_field
from zuno.provenance.facts import FactSheet, Figure, Unit
from zuno.provenance.slots import cut
from zuno.trading.agents import learned, prompt_facts
from zuno.trading.agents.ask import Keep, ask_agent, join_reasons, keep_fields, to_record, voice_of
from zuno.trading.agents.case import Case, cache_by_market
from zuno.trading.agents.geometry import STRUCTURAL
from zuno.trading.agents.known_data import weigh_board
from zuno.trading.agents.prompt_budget import Line
from zuno.trading.model.account import RestingOrder
from zuno.trading.model.cycle import (
    CONVICTION,
    DEFAULT_HOLD,
    LONG_TEXT,
    SHORT_TEXT,
    AgentAnswer,
    Blackboard,
    Call,
    Decision,
    Expert,
    JudgeOpinion,
    Meta,
    Reasoning,
    ReasoningOpinion,
    Regime,
)
from zuno.trading.model.known import Missing
from zuno.trading.model.market import HOUR_MS, Mode, Side
from zuno.trading.model.memory import MAX_EDGE
from zuno.trading.rules import validate_decision
from zuno.trading.rules.account import Position, position_in
from zuno.trading.rules.price_menu import RANGE, MenuLevel, PriceMenu, TradePrices
from zuno.trading.rules.score import Entry, board_entries

ROLE: Final = "judge"
EXIT_TAKEN: Final = "its exit is taken all the same, without its words"
NOTHING_EXPECTED: Final = "Nothing is opened, so nothing is expected of it."
_BY_DISTANCE: Final = "By distance alone the target comes first in {decision.share_by_distance} of paths"
EXIT_SCORE: Final = -0.4
"""The weighted score against a position at which it is closed."""
CONVICTIONS: Final = ((0.45, 3), (0.30, 2), (0.0, 1))
"""From which score on a trade is worth how much conviction."""
ALLOCATIONS: Final[Mapping[int, int]] = {1: 20, 2: 35, 3: 50}
HABITUAL_PCT: Final = (45, 55)
DOUBTED_POINTS: Final = 15
"""Who says about half, further than this from the fair rate, is asked what makes the difference."""
EDGE_PER_SCORE: Final = 0.45
"""How many points of probability a full score is worth beyond what the distances alone give."""
MOST_EDGE: Final = MAX_EDGE
NEAR_STOP: Final = 1.0
USUAL_STOP: Final = 1.5
"""In ATR: nearer than the first is noise; without structure the stop goes to the second."""
REWARD: Final = (1.3, 2.5)
"""What is to be gained for what is risked, at least and at most: further away is not reached in time."""
TARGET_REWARD_RISK: Final = 1.7
AGAINST_TREND: Final = 0.45
"""The score from which a trade against a regime of momentum is worth it."""
MIN_FLIP_SCORE: Final = 0.30
PAYING_HOLD: Final[Mapping[Mode, str]] = {Mode.SWING: "3d", Mode.POSITION: "4w"}
"""How long a trade may take that pays funding while it waits."""
MOST_FACTORS: Final = 8
FLIP_COOLDOWN_MS: Final[Mapping[Mode, int]] = {Mode.SWING: 12 * HOUR_MS, Mode.POSITION: 3 * 24 * HOUR_MS}


async def ask_judge(case: Case, meta: Meta, board: Blackboard, model_context: ModelContext) -> AgentAnswer[Decision]:
    spoken = await ask_agent(
        model_context,
        role=ROLE,
        sections=lambda: (
            prompt_facts.market_section(case),
            prompt_facts.anomalies_section(case),
            prompt_facts.regime_section(meta),
            prompt_facts.experts_section(case, board),
            prompt_facts.levels_section(case),
            fair_rate_section(case),
            prompt_facts.conflicts_section(case, board),
            score_section(case, meta, board),
            position_section(case),
            previous_section(case),
            *learned.core_sections(case.bundle),
            learned.memory_section(case.bundle),
            learned.feedback_section(case.bundle),
            prompt_facts.derivatives_section(case).at_weight(70),
            prompt_facts.flow_section(case).at_weight(60),
            prompt_facts.liquidation_section(case).at_weight(55),
            prompt_facts.options_section(case).at_weight(50),
            prompt_facts.structure_section(case).at_weight(45),
            prompt_facts.indicator_section(case).at_weight(40),
            prompt_facts.economy_section(case).at_weight(35),
            learned.words_section(case.bundle),
            prompt_facts.narrative_section(case),
            prompt_facts.news_section(case),
        ),
        others={"directive": prompt_facts.directive(meta)},
        output=JudgeOpinion,
        fallback=lambda: answer_by_rules(case, meta, board),
        prose=lambda opinion, keep: _keep_texts(opinion, case, meta, board, keep),
        own=lambda opinion: own_figures(opinion, case),
        own_ids=OWN_IDS,
        judge=lambda opinion: validate_decision.find_objection(opinion, case.menu, case.inputs, board),
        doubt=lambda opinion: ask_about_odds(opinion, case.menu),
        max_output_tokens=3_000,
    )
    raw = to_record(Decision, spoken)
    if _says_exit(spoken) and exposed_sides(case):
        # An exit is taken without reasons: those that could not be checked are dropped.
        bare = {"win_probability_pct": 50, "expected_profit_pct": 0.0, "expected_loss_pct": 0.0, "ev_rationale": ""}
        bare |= {"reasoning": Reasoning(**dict.fromkeys(Reasoning.model_fields, "")), "key_factors": []}
        bare |= {"why": join_reasons(spoken, EXIT_TAKEN), "decision": Call.CANCEL_AND_CLOSE}
        raw = raw.model_copy(update=bare)
    decision = validate_decision.validate_decision(raw, case.menu, case.inputs, board)
    return AgentAnswer(value=decision, voice=voice_of(ROLE, spoken))


def _says_exit(spoken: SourcedAnswer[JudgeOpinion]) -> bool:
    """Whether a model answered CANCEL_AND_CLOSE both times and was rejected for something else."""
    named = [not each.cut and extract_field(each.raw, "decision") == "CANCEL_AND_CLOSE" for each in spoken.attempts]
    return spoken.source == "fallback" and len(named) >= 2 and all(named[-2:])


def _keep_texts(opinion: JudgeOpinion, case: Case, meta: Meta, board: Blackboard, keep: Keep) -> JudgeOpinion:
    """Texts without any usable sentence are replaced by the rules' words about this decision."""
    side, prices = opinion.decision.side, (opinion.entry_price, opinion.stop_loss, opinion.take_profit)
    against, odds = _opposite_case(board), NOTHING_EXPECTED
    if side is not None and None not in prices:
        against, odds = strongest_counter(board, side), f"{_BY_DISTANCE}; what is claimed differs by {{decision.edge}}."
    logic = f"{opinion.decision} is the Judge's own decision; its words for it cannot be used."
    rules = _reasoning(case, meta, board, logic, against)
    reasoning = keep_fields(opinion.reasoning, rules, keep, **dict.fromkeys(ReasoningOpinion.model_fields, LONG_TEXT))
    factors = [*filter(None, (keep(text, SHORT_TEXT, "") for text in opinion.key_factors))]
    kept = {"reasoning": reasoning, "ev_rationale": keep(opinion.ev_rationale, LONG_TEXT, odds), "key_factors": factors}
    return opinion.model_copy(update=kept)


_PRICES: Final = ("entry_price", "stop_loss", "take_profit")
_OWN: Final = (
    "allocation", "leverage", "win_probability", *_PRICES, "profit", "loss", "reward_over_risk", "share_by_distance",
    "edge", "stop_in_atr", "target_in_atr",
)  # fmt: skip
OWN_IDS: Final = tuple(f"decision.{name}" for name in _OWN)
"""What its answer's own fields say, once it is given."""


def own_figures(opinion: JudgeOpinion, case: Case) -> tuple[Figure, ...]:
    """What the answer's own fields say; a price only where it is one of the menu's."""
    figure = prompt_facts.figure_of
    figures = [
        figure("decision.allocation", float(opinion.allocation_pct), Unit.PERCENT, 0),
        figure("decision.leverage", float(opinion.leverage), Unit.RATIO, 0),
        figure("decision.win_probability", float(opinion.win_probability_pct), Unit.PERCENT, 0),
    ]
    prices = _snap_prices(opinion, case.menu)
    for name, level in zip(_PRICES, prices, strict=True):
        if level is not None:
            figures.append(figure(f"decision.{name}", level, Unit.PRICE))
    if opinion.decision.side is not None and (less := learned.find_cut(case.bundle, opinion.decision.side)):
        figures.append(figure(learned.POINTS, float(less.points), Unit.POINTS, 0))
    entry, stop, take = prices
    if entry and stop and take and entry not in (stop, take):
        plan = TradePrices(Side.LONG, entry, stop, take)
        figures += [
            figure("decision.profit", 100 * plan.reward, Unit.PERCENT),
            figure("decision.loss", 100 * plan.risk, Unit.PERCENT),
            figure("decision.reward_over_risk", plan.reward / plan.risk, Unit.RATIO),
            figure("decision.share_by_distance", 100 * plan.fair_odds, Unit.PERCENT, 0),
            figure("decision.edge", opinion.win_probability_pct - 100 * plan.fair_odds, Unit.POINTS, 0),
        ]
        if not isinstance(case.menu.atr, Missing):
            figures.append(figure("decision.stop_in_atr", abs(entry - stop) / case.menu.atr, Unit.NUMBER))
            figures.append(figure("decision.target_in_atr", abs(take - entry) / case.menu.atr, Unit.NUMBER))
    return tuple(figures)


def _snap_prices(opinion: JudgeOpinion, menu: PriceMenu) -> list[float | None]:
    return [menu.snap(getattr(opinion, name)) for name in _PRICES]


# -- what it is told beside what everybody knows


def position_of(case: Case) -> Position | None:
    account = case.inputs.account
    return None if isinstance(account, Missing) else position_in(account, case.bundle.symbol)


def waiting_orders(case: Case) -> tuple[RestingOrder, ...]:
    account = case.inputs.account
    if isinstance(account, Missing):
        return ()
    return tuple(order for order in account.pending if order.symbol is case.bundle.symbol and not order.reduce_only)


@prompt_facts.section("position", 93)
def position_section(case: Case) -> Iterator[Line]:
    """Side, entry and gain in per cent; no dollars of the account."""
    account, standing = case.inputs.account, case.inputs.marked_account
    if isinstance(account, Missing):
        yield prompt_facts.remark("account.unknown", account.reason, "unknown: ")
        return
    position = position_of(case)
    yield Line("none is open in this symbol" if position is None else f"a {position.side} is open")
    for place, holding in enumerate(() if position is None else position.holdings, 1):
        if holding.exchange.currency == "USD":
            yield prompt_facts.fact(f"position.entry_{place}", holding.entry, Unit.PRICE)
    if not isinstance(standing, Missing) and standing.gain_pct is not None:
        note = "before leverage"
        yield prompt_facts.fact("position.gain", standing.gain_pct, Unit.PERCENT, signed=True, note=note)
    for place, order in enumerate(waiting_orders(case), 1):
        yield Line(f"an order for a {order.side} waits for its price")
        if order.exchange.currency == "USD":
            yield prompt_facts.fact(f"position.order_{place}", order.price, Unit.PRICE)


@cache_by_market
@prompt_facts.section("fair rates", 95)
def fair_rate_section(case: Case) -> Iterator[Line]:
    """How often the target comes first by the distances alone, for pairs of stop and target that the rules allow."""
    yield Line("of an entry at the market: how often the target comes first by the distances alone")
    for side in Side:
        for place, (stop, targets) in enumerate(_offered_pairs(case.menu, side), 1):
            rates = [
                (level, prompt_facts.figure_of(f"fair.{side}_{place}_{at}", 100 * fair, Unit.PERCENT, 0))
                for at, (level, fair) in enumerate(targets, 1)
            ]
            shown = ", ".join(f"{level:g} {{{figure.id}}} {figure.print()}" for level, figure in rates)
            yield Line(f"{side}, stop {stop:g}: target {shown}", tuple(figure for _, figure in rates))


def _offered_pairs(menu: PriceMenu, side: Side) -> Iterator[tuple[float, list[tuple[float, float]]]]:
    """Stops at the distances of the menu, each with its targets and their fair rates."""
    entry, sign = menu.mark, side.sign
    if entry is None or isinstance(menu.atr, Missing):
        return
    steps = sorted(
        ((sign * (level.price - entry), level.price) for level in menu.levels if level.kind == RANGE),
        key=lambda step: abs(step[0]),
    )
    for risk, stop in ((-away, price) for away, price in steps if away < 0):
        if not validate_decision.MIN_STOP_ATR * menu.atr <= risk <= validate_decision.MAX_STOP_ATR * menu.atr:
            continue
        targets = [
            (away, price)
            for away, price in steps
            if validate_decision.MIN_REWARD_RISK <= away / risk <= validate_decision.MAX_REWARD_RISK
        ]
        if targets:
            yield stop, [(price, TradePrices(side, entry, stop, price).fair_odds) for _, price in targets]


def ask_about_odds(opinion: JudgeOpinion, menu: PriceMenu) -> str | None:
    """The question for a Judge who says about half where the distances give another rate; None: no question."""
    side = opinion.decision.side
    entry, stop, take = _snap_prices(opinion, menu)
    if side is None or not entry or not stop or not take:
        return None
    plan = TradePrices(side, entry, stop, take)
    fair = round(100 * plan.fair_odds)
    habitual = HABITUAL_PCT[0] <= opinion.win_probability_pct <= HABITUAL_PCT[1]
    if not plan.is_ordered or not habitual or abs(100 * plan.fair_odds - opinion.win_probability_pct) <= DOUBTED_POINTS:
        return None
    return (
        f"You say {opinion.win_probability_pct} % where the distances alone give {fair} %: what makes the difference? "
        "Name it in ev_rationale, or correct win_probability_pct."
    )


@prompt_facts.section("score", 92)
def score_section(case: Case, meta: Meta, board: Blackboard) -> Iterator[Line]:
    """The weighted score, and from which one against it a position is closed."""
    worth = weigh_board(case, meta, board)
    known = "of experts who have data alone: the dominant signal"
    yield prompt_facts.fact("score", worth.all, Unit.NUMBER, signed=True, note="weighted, of the blackboard")
    yield prompt_facts.fact("heard_score", worth.heard, Unit.NUMBER, signed=True, note=known)
    yield prompt_facts.fact("exit_score", -EXIT_SCORE, Unit.NUMBER, 1, note="against a position that closes it")


def previous_of(case: Case) -> Mapping[str, Any] | None:
    slot = case.bundle.slot("previous_decision")
    if slot is None or not isinstance(slot.content, Mapping):
        return None
    decided: Mapping[str, Any] = slot.content
    return {**decided, "as_of": slot.as_of} if decided.get("mode") == case.bundle.mode else None


@prompt_facts.section("previous decision", 80)
def previous_section(case: Case) -> Iterator[Line]:
    last = previous_of(case)
    if last is None:
        yield Line("none is on record for this symbol and mode")
        return
    hours = (case.bundle.as_of - int(last["as_of"])) / HOUR_MS
    note = f"since {last.get('decision')} in {last.get('regime')}"
    yield prompt_facts.fact("previous.age", hours, Unit.HOURS, 0, note=note)
    for name in _PRICES:
        if isinstance(value := last.get(name), int | float):
            yield prompt_facts.fact(f"previous.{name}", float(value), Unit.PRICE)


def judge_facts(case: Case, meta: Meta, board: Blackboard) -> FactSheet:
    sections = (
        prompt_facts.regime_section(meta),
        fair_rate_section(case),
        score_section(case, meta, board),
        position_section(case),
        previous_section(case),
        *learned.core_sections(case.bundle),
        learned.memory_section(case.bundle),
        learned.feedback_section(case.bundle),
    )
    return prompt_facts.build_sheet(sections, prompt_facts.board_facts(case, board).values())


# -- the same by rule


def answer_by_rules(case: Case, meta: Meta, board: Blackboard) -> JudgeOpinion:
    score = weigh_board(case, meta, board)
    worth, leaning = score.all, score.signal
    hold = partial(_open_nothing, case, meta, board, Call.HOLD)
    for side in exposed_sides(case):
        if why := exit_reason(case, meta, side, worth):
            return _open_nothing(case, meta, board, Call.CANCEL_AND_CLOSE, why)
    for side in exposed_sides(case):
        if leaning != "NEUTRAL" and side.sign * worth < 0:
            return hold(f"the score of {{score}} is against the {side} there is, but not by {{exit_score}}: it stays")
    if leaning == "NEUTRAL":
        return hold("the score of {heard_score} is within the dead band: nobody pays for a coin toss")
    side = Side.LONG if leaning == "BULLISH" else Side.SHORT
    too_soon = _too_soon_after_shock(case, side) or _too_soon_to_flip(case, side, worth)
    if why := too_soon or _against_trend(meta, side, worth):
        return hold(why)
    looks = f"the score of {{score}} looks {side}, but"
    if not validate_decision.find_supporters(board, side):
        return hold(f"{looks} no expert that reads numbers is sure enough to second it")
    plan = plan_trade(case.menu, side)
    if plan is None:
        return hold(f"{looks} the levels leave no trade in proportion")
    drawn = _open_trade(case, meta, board, worth, plan)
    if validate_decision.find_objection(drawn, case.menu, case.inputs, board) is None:
        return drawn
    return hold(f"{looks} the rules refuse the trade that the levels give")


def exposed_sides(case: Case) -> tuple[Side, ...]:
    """That of the position, else of the orders that would open one."""
    if (position := position_of(case)) is not None:
        return (position.side,)
    return tuple(dict.fromkeys(order.side for order in waiting_orders(case)))


def exit_reason(case: Case, meta: Meta, side: Side, worth: float) -> str:
    """Why a position or waiting order of that side is closed; empty where it may stay."""
    favour = side.sign * worth
    if favour <= EXIT_SCORE:
        return f"the score of {{score}} is against the {side} there is by {{exit_score}} or more"
    shock = case.features.events.against(side)
    if shock is not None and not isinstance(shock, Missing):
        return f"{shock.name} ran against the {side} there is: {{{prompt_facts.event_id(case, shock)}}}"
    panic = case.inputs.panic is True or meta.regime is Regime.VOLATILITY_PANIC
    day = case.context.day
    # Who does not know which way the panic runs goes by the score.
    runs = favour < 0 if isinstance(day, Missing) else side.sign * day < 0
    if not panic or not runs:
        return ""
    moved = "the score is against it" if isinstance(day, Missing) else "the price changed by {price_change_24h} in 24h"
    return f"a panic runs against the {side} there is: {moved}"


def _too_soon_after_shock(case: Case, side: Side) -> str:
    shock = case.features.events.against(side)
    if shock is None or isinstance(shock, Missing):
        return ""
    return f"{shock.name} within the hour: no {side} against it ({{{prompt_facts.event_id(case, shock)}}})"


def _too_soon_to_flip(case: Case, side: Side, worth: float) -> str:
    last = previous_of(case)
    if last is None or case.bundle.as_of - int(last["as_of"]) > FLIP_COOLDOWN_MS[case.bundle.mode]:
        return ""
    other = Call.SHORT if side is Side.LONG else Call.LONG
    if last.get("decision") == other and abs(worth) < MIN_FLIP_SCORE:
        return f"the last word was {other}, and a score of {{score}} is no reason to turn round so soon"
    return ""


def _against_trend(meta: Meta, side: Side, worth: float) -> str:
    """A trade against the regime's trend needs the strongest score."""
    current = {Regime.BULL_MOMENTUM: Side.LONG, Regime.BEAR_MOMENTUM: Side.SHORT}.get(meta.regime, side)
    if current is side or abs(worth) >= AGAINST_TREND:
        return ""
    return f"a score of {{score}} is too little for a {side} against {meta.regime}"


def plan_trade(menu: PriceMenu, side: Side) -> TradePrices | None:
    """Enter at the market, stop beyond structure, target at a level that pays for the risk."""
    entry, sign = menu.mark, side.sign
    if entry is None or isinstance(menu.now, Missing) or isinstance(menu.atr, Missing):
        return None
    stop = _stop(menu.levels, entry, sign, menu.atr)
    if stop is None:
        return None
    risk = abs(entry - stop)
    ahead = [(sign * (level.price - entry), level) for level in menu.levels]
    fitting = [(far, level) for far, level in ahead if REWARD[0] * risk <= far <= REWARD[1] * risk]
    # A measured level near what is liked is better than a distance.
    choice = [(far, level) for far, level in fitting if level.kind in STRUCTURAL] or fitting
    if not choice:
        return None
    _, take = min(choice, key=lambda each: (abs(each[0] - TARGET_REWARD_RISK * risk), each[1].id))
    return TradePrices(side, entry, stop, take.price)


def _stop(levels: tuple[MenuLevel, ...], entry: float, sign: int, atr: float) -> float | None:
    """The first level beyond the nearest structure that is far enough not to be noise; else the usual distance."""
    behind = sorted((sign * (entry - level.price) / atr, level.price, level.kind) for level in levels)
    shelter = next((far for far, _, kind in behind if kind in STRUCTURAL and NEAR_STOP <= far <= USUAL_STOP), None)
    if shelter is not None:
        beyond = [value for far, value, _ in behind if shelter + 0.1 <= far <= validate_decision.MAX_STOP_ATR]
        if beyond:
            return beyond[0]
    steps = [(far, value) for far, value, kind in behind if kind == RANGE and 0 < far <= validate_decision.MAX_STOP_ATR]
    return min(steps, key=lambda each: abs(each[0] - USUAL_STOP))[1] if steps else None


def conviction(worth: float) -> int:
    return next(level for least, level in CONVICTIONS if abs(worth) >= least)


def _open_trade(case: Case, meta: Meta, board: Blackboard, worth: float, plan: TradePrices) -> JudgeOpinion:
    mode, level = case.bundle.mode, conviction(worth)
    win = round(100 * (plan.fair_odds + min(EDGE_PER_SCORE * abs(worth), MOST_EDGE)))
    less = learned.find_cut(case.bundle, plan.side)
    odds = f"{_BY_DISTANCE}; the experts' score is worth {{decision.edge}} more."
    if less is not None:
        odds = f"{_BY_DISTANCE}; what is claimed differs by {{decision.edge}}: {learned.describe_cut(less)}."
    for_it = ", ".join(validate_decision.find_supporters(board, plan.side))
    logic = (
        f"The score of {{score}} looks {plan.side}, seconded by {for_it}; in at {{decision.entry_price}}, wrong at "
        "{decision.stop_loss}, done at {decision.take_profit}."
    )
    return JudgeOpinion(
        decision=Call.LONG if plan.side is Side.LONG else Call.SHORT,
        allocation_pct=ALLOCATIONS[level],
        # What a mode may borrow is the risk officer's rule; a long that pays funding is bought with one's own money.
        leverage=1 if plan.side is Side.LONG and _pays_funding(case, plan.side) else level,
        entry_price=plan.entry,
        stop_loss=plan.stop,
        take_profit=plan.take,
        hold_duration=PAYING_HOLD[mode] if _pays_funding(case, plan.side) else DEFAULT_HOLD[mode],
        reasoning=_reasoning(case, meta, board, logic, strongest_counter(board, plan.side)),
        win_probability_pct=win if less is None else max(win - less.points, 0),
        expected_profit_pct=round(100 * plan.reward, 4),
        expected_loss_pct=round(100 * plan.risk, 4),
        ev_rationale=odds,
        key_factors=_key_factors(case, board),
    )


def _pays_funding(case: Case, side: Side) -> bool:
    """Whether holding that side costs funding, or nobody knows."""
    rate = case.inputs.funding_next
    return isinstance(rate, Missing) or case.inputs.funding_of(rate, side) > 0


def _open_nothing(case: Case, meta: Meta, board: Blackboard, call: Call, why: str) -> JudgeOpinion:
    return JudgeOpinion(
        decision=call,
        allocation_pct=0,
        leverage=1,
        entry_price=None,
        stop_loss=None,
        take_profit=None,
        hold_duration=DEFAULT_HOLD[case.bundle.mode],
        reasoning=_reasoning(case, meta, board, f"{call}: {why}.", _opposite_case(board)),
        win_probability_pct=50,
        expected_profit_pct=0.0,
        expected_loss_pct=0.0,
        ev_rationale=NOTHING_EXPECTED,
        key_factors=_key_factors(case, board),
    )


def _reasoning(case: Case, meta: Meta, board: Blackboard, logic: str, against: str) -> ReasoningOpinion:
    facts, shape, drawn = judge_facts(case, meta, board), board.vlm_geometry, "absent"
    if shape is not None:
        drawn = f"{prompt_facts.LEANINGS[shape.stance]}; anomaly {shape.anomaly}, pattern {shape.pattern}"
    trusted = meta.trust_directive.expert
    return ReasoningOpinion(
        counter_scenario=cut(against, facts, LONG_TEXT),
        meta_agent_context=f"{meta.regime} with a risk budget of {{risk_budget}}; {trusted} weighs more.",
        technical=f"{Expert.GEOMETRY} is {drawn}.",
        derivatives=cut(_derivatives(case), facts, LONG_TEXT),
        experts=cut(_experts_line(board, case.bundle.mode), facts, LONG_TEXT),
        narrative="Rules read no news: what strangers write has no part in this.",
        final_logic=logic,
    )


def _derivatives(case: Case) -> str:
    rate = case.inputs.funding_next
    if isinstance(rate, Missing):
        return "Predicted funding is not known: {funding_next_8h.unknown}."
    if case.inputs.funding_assumed:
        return "No funding was recorded: {funding_next_8h} for 8h is charged to either side."
    payer = "longs pay" if rate > 0 else "shorts pay" if rate < 0 else "nobody pays"
    return f"Predicted funding is {{funding_next_8h}} as if for 8h: {payer}."


def _experts_line(board: Blackboard, mode: Mode) -> str:
    there = board_entries(board)
    views = [
        f"{expert} {prompt_facts.LEANINGS[entry.stance]} at {{{expert}.confidence}}"
        if (entry := there.get(expert))
        else f"{expert} absent"
        for expert in CONVICTION[mode]
    ]
    return f"{', '.join(views)}."


def strongest_counter(board: Blackboard, side: Side) -> str:
    """The strongest evidence on the other side, in words and figures."""
    if surest := _find_surest(board, -side.sign):
        expert, entry = surest
        reason = entry.rationale.partition(";")[0].strip()
        return f"{expert} looks the other way with {{{expert}.confidence}}: {reason}"
    worse = "below" if side is Side.LONG else "above"
    quiet = [expert for expert, entry in board_entries(board).items() if not entry.stance]
    unsaid = f"there is no confirmation by {', '.join(quiet)}" if quiet else "nobody objects, which is crowded"
    return f"{unsaid}; a close {worse} {{decision.stop_loss}} would show that the level did not hold."


def _opposite_case(board: Blackboard) -> str:
    """What would have been the trade, and who argues for it."""
    surest = _find_surest(board, -1, 1)
    if surest is None:
        return "Nobody leans either way: a move would come without a sign that anybody saw."
    expert, entry = surest
    word = "up" if entry.stance > 0 else "down"
    return f"{expert} looks {word} with {{{expert}.confidence}}."


def _find_surest(board: Blackboard, *stances: int) -> tuple[Expert, Entry] | None:
    leaning = [each for each in board_entries(board).items() if each[1].stance in stances]
    return max(leaning, key=lambda each: (each[1].confidence, each[0]), default=None)


def _key_factors(case: Case, board: Blackboard) -> list[str]:
    entries = sorted(board_entries(board).items(), key=lambda each: -each[1].confidence)
    facts = prompt_facts.board_facts(case, board)
    reasons = [
        f"{event.name} in the last hour: {{{prompt_facts.event_id(case, event)}}}"
        for event in case.features.events.events
    ]
    reasons += [
        f"{expert} {prompt_facts.LEANINGS[entry.stance]}" + ("" if entry.anomaly == "none" else f": {entry.anomaly}")
        for expert, entry in entries
        if entry.stance
    ]
    return [cut(reason, facts, SHORT_TEXT) for reason in reasons][:MOST_FACTORS]

"""A finished debate as its plan: record and view, computed once when it ends.

Only replays, and records that have no stored view, compute them again.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from zuno.amm.model import PoolState
from zuno.journal.decision_view import Facts
from zuno.kernel.canonical import Digest
from zuno.kernel.errors import Refused
from zuno.kernel.numbers_text import decimal_text, money_text, short_text
from zuno.kernel.text import format_units
from zuno.kernel.wire import derive
from zuno.lp.agents.conclude import conclude, data_cautions
from zuno.lp.agents.critic import describe_pool
from zuno.lp.agents.pool_choice import to_wrap
from zuno.lp.agents.pool_inputs import build_own_moves, cover_of
from zuno.lp.agents.prompt_facts import cite_pool, facts_of, print_thought
from zuno.lp.model.ballot import Candidate, CandidateKind, Fault, Hedge, Judgment, PlanVerdict, StressPoint
from zuno.lp.model.chains import native_coin
from zuno.lp.model.debate import Context, PlanReady, Round
from zuno.lp.plan.inventory import leftover_of
from zuno.lp.rules.ballot import owner_decides
from zuno.lp.rules.own_range import place_in_pools
from zuno.lp.rules.stress import HORIZON_HOURS
from zuno.lp.rules.worth import best_rival, edge_over_hold, is_worth_moving, least_edge, worth_token1
from zuno.lp.service import plan_view as views
from zuno.lp.service.to_views import both_ways, key_view, leftover_view, tick_prices
from zuno.provenance.facts import FactSheet, Figure, Unit
from zuno.provenance.slots import cite_round, list_cited, render

HOURS_DIGITS = 6


def find_own(context: Context, ready: PlanReady, index: int | None) -> int:
    """The candidate that is the owner's own range, of which a veto is advice; `index` where it is in several pools."""
    placed = place_in_pools(context.own_range, [facts.pool for facts in context.scenes])
    last = ready.debate.rounds[-1].candidates
    own = [each.index for each in last if each.range is not None and placed.get(each.pool_index) == each.range]
    if index is None and len(own) == 1:
        return own[0]
    if index not in own:
        raise Refused(f"--anyway takes a range of your own, by --range or --ticks: candidates {own} (--candidate N).")
    return index


def chosen_by_owner(context: Context, ready: PlanReady, index: int, *, anyway: bool = False) -> PlanReady:
    """The same debate with the owner's own choice; a vetoed candidate is refused but where it is taken anyway."""
    last = ready.debate.rounds[-1]
    try:
        decision = owner_decides(index, last, context.profile, doubts=data_cautions(context), anyway=anyway)
    except Refused as error:
        raise Refused(render(str(error), facts_of(context, ready.debate.rounds), index)) from None
    return conclude(context, ready.debate, decision)


def with_doubts(ready: PlanReady, doubts: Sequence[str]) -> PlanReady:
    """The end as an owner with doubts takes it: never a plain approval."""
    if not doubts:
        return ready
    decision = ready.decision
    capped = max(decision.verdict, PlanVerdict.APPROVE_WITH_CAUTION, key=lambda verdict: verdict.severity)
    doubted = replace(decision, verdict=capped, cautions=(*decision.cautions, *doubts))
    return ready.model_copy(update={"decision": doubted})


def decided_hash(context: Context, ready: PlanReady) -> str:
    """What was decided and from what: no ids, no wall clock, no ages (so no confidence, which counts them), no cost.

    The context counts with all its figures; of its sources their names and whether they were stale, not their times.
    """
    return views.hash_decided(context.model_dump(by_alias=True), ready.model_dump(by_alias=True))


def record_of(
    plan: views.PlanView,
    owner_choice: int | None,
    message: Digest,
    doubts: Sequence[str] = (),
    *,
    anyway: bool = False,
) -> views.PlanRecord:
    same = plan.model_dump(include=set(views.PlanRecord.model_fields), by_alias=False)
    return views.PlanRecord(
        **same,
        choice=plan.recommended.kind,
        owner_choice=owner_choice,
        message=message,
        doubts=tuple(doubts),
        anyway=anyway,
    )


def build_plan(
    request_id: str, context: Context, ready: PlanReady, recorded_hash: str | None = None
) -> tuple[views.PlanView, Facts]:
    """The view of a plan, and every fact that its texts cite. `recorded_hash`: of a plan of an older edition, whose
    decided bytes are not made again."""
    debate, decision = ready.debate, ready.decision
    sheets = [facts_of(context, debate.rounds, number) for number in range(len(debate.rounds))]
    ballots = [candidate_views(context, *ballot) for ballot in zip(debate.rounds, sheets, strict=True)]
    last, facts = debate.rounds[-1], sheets[-1]
    chosen = last.candidates[decision.index]
    pool_facts = context.scenes[chosen.pool_index]
    digest = recorded_hash or decided_hash(context, ready)
    position = context.scenes[0].position
    thoughts = (
        print_thought(thought, sheets[min(thought.round, len(sheets) - 1)], decision.index)
        for thought in debate.transcript
    )
    view = views.PlanView(
        plan_id=views.plan_id_of(request_id, digest),
        request_id=request_id,
        kind=context.flow,
        chain=context.chain,
        position_id=None if position is None else str(position.id),
        profile=context.profile,
        verdict=decision.verdict,
        confidence=ready.confidence,
        over_runner_up=ready.over_runner_up,
        edge_over_hold=_edge_view(chosen, last.candidates[0], pool_facts.pool),
        because=_compare_with_hold(chosen, last, pool_facts.pool),
        decided_by=decision.decided_by,
        cautions=tuple(render(caution, facts, decision.index) for caution in decision.cautions),
        rounds=len(debate.rounds) - 1,
        regime=pool_facts.regime,
        recommended=recommended_view(ballots[-1][decision.index], chosen, pool_facts.pool, context),
        candidates=ballots[-1],
        earlier=tuple(
            _earlier_view(number, candidate)
            for number, ballot in enumerate(ballots[:-1])
            for candidate in ballot
            if CandidateKind(candidate.kind).move and not candidate.own
        ),
        transcript=tuple(map(views.ThoughtView.model_validate, thoughts)),
        voices=tuple(map(views.SpeakerView.model_validate, debate.spoke)),
        sources=tuple(map(views.SourceView.model_validate, context.sources)),
        block=context.block.number,
        timestamp=context.block.timestamp,
        hash=digest,
        fee_cover=tuple(_cover_view(context, index, facts) for index in range(len(context.scenes)))
        if any(pool_facts.cover for pool_facts in context.scenes)
        else (),
        regimes=tuple(
            views.PoolRegimeView(
                pool=key_view(pool_facts.pool.key, pool_facts.pool.token0, pool_facts.pool.token1).label,
                regime=pool_facts.regime,
                why=render(cite_pool(context, index, pool_facts.regime_why), facts),
            )
            for index, pool_facts in enumerate(context.scenes)
        ),
        own_range=_own_range_text(context),
    )
    return view, _list_cited(context, ready, facts)


def _cover_view(context: Context, index: int, facts: FactSheet) -> views.FeeCoverView:
    pool_facts = context.scenes[index]
    cover, basis = cover_of(pool_facts), pool_facts.cover
    apart = "" if basis is None or basis.minutes is None else f", returns of {basis.minutes} min"
    return views.FeeCoverView(
        pool=key_view(pool_facts.pool.key, pool_facts.pool.token0, pool_facts.pool.token1).label,
        fees_over_lvr=None if cover is None else round(cover.ratio, 4),
        ci80=None if cover is None else (round(cover.low, 4), round(cover.high, 4)),
        days=0 if cover is None else cover.days,
        measured_by="nothing" if basis is None else f"{basis.source}{apart}",
        pays=None if cover is None or cover.low <= 1 <= cover.high else cover.low > 1,
        said=render(describe_pool(context, index), facts),
    )


def _list_cited(context: Context, ready: PlanReady, facts: FactSheet) -> Facts:
    """By ids of the last round: `r0.c2.cost` is of candidate 2 of round 0."""
    debate, last = ready.debate, len(ready.debate.rounds) - 1
    texts = [(number, judgment.reason) for number, round_ in enumerate(debate.rounds) for judgment in round_.judgments]
    texts += [(thought.round, thought.text) for thought in debate.transcript]
    cited = [cite_round(text, number) if number < last else text for number, text in texts]
    cited += [cite_pool(context, index, pool.regime_why) for index, pool in enumerate(context.scenes)]
    return list_cited((*cited, *ready.decision.cautions), facts)


def _earlier_view(number: int, view: views.CandidateView) -> views.EarlierView:
    same = view.model_dump(include=set(views.EarlierView.model_fields) - {"pool"}, by_alias=False)
    return views.EarlierView(round=number, pool=view.pool.label, **same)


def _own_range_text(context: Context) -> str | None:
    """An edge rarely lies on the grid: where the spacing has put it."""
    if context.own_range is None:
        return None
    placed: dict[str, None] = {}
    for move in build_own_moves(context):
        pool = context.scenes[move.pool_index].pool
        low, high = tick_prices(pool, move.range.lower, move.range.upper)
        ticks = f"ticks {move.range.lower} to {move.range.upper}"
        beside = (
            ""
            if move.range.contains(pool.tick)
            else ", beside the price: like a limit order, it earns nothing until reached"
        )
        placed[f"{low} to {high} on the pool's grid of {pool.key.tick_spacing} ({ticks}){beside}"] = None
    return f"{context.own_range}: {'; '.join(placed)}"


def _edge_view(chosen: Candidate, hold: Candidate, pool: PoolState) -> views.EdgeView | None:
    if chosen.kind is CandidateKind.HOLD:
        return None
    return views.EdgeView(
        worth=_money(edge_over_hold(chosen, hold), pool),
        cost=_money(chosen.carry.cost.total_token1, pool),
        breakeven_hours=_hours(chosen.carry.breakeven_hours),
        token=pool.token1.symbol,
    )


def _compare_with_hold(chosen: Candidate, last: Round, pool: PoolState) -> str:
    hold, days = last.candidates[0], f"{HORIZON_HOURS // 24} days"
    opens = chosen.kind is CandidateKind.OPEN or hold.range is None

    def amount(value: Fraction) -> str:
        return Figure("edge", value / 10**pool.token1.decimals, Unit.AMOUNT, symbol=pool.token1.symbol).print()

    staying = "opening nothing" if opens else "holding"
    if chosen.kind is not CandidateKind.HOLD:
        edge, cost = edge_over_hold(chosen, hold), chosen.carry.cost.total_token1
        if edge is None or cost is None:
            return f"What {chosen.kind} earns is not known, so it is not known to beat {staying}."
        after = f"over {days}, after {amount(cost)} of cost"
        hours = chosen.carry.breakeven_hours
        back = f", earned back in {int(hours)} h" if hours is not None and cost else ""
        if edge >= 0:
            return f"{chosen.kind.capitalize()} is worth {amount(edge)} more than {staying} {after}{back}."
        return f"{chosen.kind.capitalize()} is worth {amount(-edge)} less than {staying} {after}."
    moves = [judged for candidate, judged in zip(last.candidates, last.judgments, strict=True) if candidate.kind.move]
    if moves and all(judged.fault is Fault.UNPAID for judged in moves):
        return f"In or out comes before how wide: no pool here is known to pay, so {staying} is what remains."
    if not moves:
        return f"No range was left that answers the critique: {staying} is what remains."
    rival = best_rival(last, chosen.index)
    if rival is None or (least := least_edge(rival)) is None or (edge := edge_over_hold(rival, hold)) is None:
        return "No other candidate is known to be worth more."
    name, not_worth = f"{rival.kind} ({rival.index})", "Not worth opening" if opens else "Not worth moving"
    if edge < least:
        more = f"gains {amount(edge)}" if edge > 0 else f"loses {amount(-edge)}"
        return f"{not_worth}: {name} {more} over {days} against {staying}, where {amount(least)} is the least."
    if not is_worth_moving(rival, hold):
        return f"{not_worth}: {name} takes too long to earn back what it costs, for as long as its range lasts."
    return f"By worth alone {name} would gain {amount(edge)} over {days} against {staying}."


def recommended_view(
    view: views.CandidateView, candidate: Candidate, pool: PoolState, context: Context
) -> views.RecommendedView:
    put_in = candidate.deposit
    left = leftover_view(leftover_of(put_in, pool.sqrt_price_x96), pool) if candidate.kind.move else None
    return views.RecommendedView(
        **dict(view),
        **both_ways("amount", put_in.amount0, put_in.amount1, pool.token0, pool.token1),
        leftover=left,
        prep_action=_prep_action(candidate, pool, context),
    )


def _prep_action(candidate: Candidate, pool: PoolState, context: Context) -> str | None:
    """What has to happen before the tokens can go in; None when nothing has."""
    steps, prep, request = [], candidate.deposit.prep, context.wish
    wrapped = None if request is None or candidate.range is None else to_wrap(request, pool, context.chain)
    if wrapped is not None:
        coin = native_coin(context.chain)
        steps.append(f"wrap {wrapped.amount:f} {coin.symbol} → {coin.wrapped}")
    if prep is not None:
        given, got = (pool.token0, pool.token1) if prep.zero_for_one else (pool.token1, pool.token0)
        amount = f"{short_text(format_units(prep.amount_in, given.decimals))} {given.symbol} → {got.symbol}"
        holds_price = request is not None and len(request.capital) > 1
        steps.append(f"swap {amount} and back (it holds the price)" if holds_price else f"swap {amount}")
    return ", then ".join(steps) + " first" if steps else None


def candidate_views(context: Context, round_: Round, facts: FactSheet) -> tuple[views.CandidateView, ...]:
    own = [(move.pool_index, move.range) for move in build_own_moves(context)]
    return tuple(
        _candidate_view(
            candidate,
            replace(judgment, reason=render(judgment.reason, facts, judgment.index)),
            context.scenes[candidate.pool_index].pool,
            own=(candidate.pool_index, candidate.range) in own,
        )
        for candidate, judgment in zip(round_.candidates, round_.judgments, strict=True)
    )


def _candidate_view(candidate: Candidate, judgment: Judgment, pool: PoolState, *, own: bool) -> views.CandidateView:
    span = candidate.range
    edges: Sequence[str | None] = (None, None)
    if span is not None:
        edges = tick_prices(pool, span.lower, span.upper)
    tested = candidate.stress
    return views.CandidateView(
        index=candidate.index,
        kind=candidate.kind,
        pool=key_view(pool.key, pool.token0, pool.token1),
        tick_lower=None if span is None else span.lower,
        tick_upper=None if span is None else span.upper,
        price_lower=edges[0],
        price_upper=edges[1],
        stress=None
        if tested is None
        else views.StressView(x1=_point(tested.x1), x2=_point(tested.x2), x3=_point(tested.x3)),
        carry=_carry_view(candidate, pool),
        verdict=judgment.verdict,
        reason=judgment.reason,
        own=own,
        hedge=None if candidate.hedge is None else _hedge_view(candidate.hedge, pool),
    )


def _hedge_view(hedge: Hedge, pool: PoolState) -> views.HedgeView:
    token = (pool.token0, pool.token1)[hedge.side]
    return views.HedgeView(
        market=hedge.market,
        amount=format_units(hedge.amount, token.decimals),
        most=format_units(hedge.most, token.decimals),
        token=token.symbol,
        begin_cost=money_text(hedge.begin_token1, pool.token1.decimals),
        reset_cost=money_text(hedge.resets_token1, pool.token1.decimals),
        funding=money_text(hedge.funding_token1, pool.token1.decimals),
    )


def _point(point: StressPoint) -> views.StressPointView:
    inside = round(float(point.in_range_share), 6)
    return derive(views.StressPointView, point, p_exit24h=float(point.p_exit_24h), in_range_share=inside)


def _carry_view(candidate: Candidate, pool: PoolState) -> views.CarryView:
    carry = candidate.carry
    return views.CarryView(
        fees24h=_money(carry.fees24h_token1, pool),
        lvr24h=_money(carry.lvr24h_token1, pool),
        net24h=_money(carry.net24h_token1, pool),
        cost=_money(carry.cost.total_token1, pool),
        worth=_money(worth_token1(candidate), pool),
        breakeven_hours=_hours(carry.breakeven_hours),
        token=pool.token1.symbol,
    )


def _money(value: Fraction | None, pool: PoolState) -> str | None:
    return None if value is None else money_text(value, pool.token1.decimals)


def _hours(value: Fraction | None) -> str | None:
    return None if value is None else decimal_text(value, HOURS_DIGITS)

"""The risk officer: reads a draft that the rules have cut already, and can only ask for less."""

from __future__ import annotations

from math import ceil, isfinite
from typing import Final

from zuno.agents.ask import Minds
from zuno.core.known import Missing
from zuno.core.provenance.figures import Figure, Unit
from zuno.core.routing import style_of
from zuno.core.ruling import Draft, Tightening
from zuno.desks.trading import knowledge
from zuno.desks.trading.briefing import Line, Section
from zuno.desks.trading.matter import Matter
from zuno.desks.trading.opinions import RiskOpinion
from zuno.desks.trading.speaking import Asking, Heard, hear, voice_of
from zuno.messages.cycle import Voice

ROLE: Final = "risk_manager"
PASSED: Final = "nothing new is risked: the risk officer concurs without being asked"


async def review(matter: Matter, draft: Draft, minds: Minds) -> Heard[Tightening]:
    if not draft.opens:
        voice = Voice(role=ROLE, source="deterministic", why=PASSED, model=None, tokens=0, usd=0.0)
        return Heard(Tightening(rationale=PASSED), voice)
    spoken = await hear(
        Asking(
            role=ROLE,
            sections=(
                knowledge.market(matter),
                knowledge.anomalies(matter),
                _draft(draft),
                _account(matter),
                knowledge.derivatives(matter),
                knowledge.forced(matter, 75),
                knowledge.options(matter, 70),
                knowledge.day(matter, 60),
                knowledge.economy(matter, 50),
            ),
            output=RiskOpinion,
            twin=lambda: twin(matter, draft),
            texts=lambda said: (said.rationale,),
            own=_own,
        ),
        minds,
    )
    said = spoken.value
    tightening = Tightening(
        allocation_pct=float(said.allocation_pct),
        leverage=float(said.leverage),
        veto=said.veto,
        style=said.execution_style,
        rationale=said.rationale,
    )
    return Heard(tightening, voice_of(ROLE, spoken))


def twin(matter: Matter, draft: Draft) -> RiskOpinion:
    """The rules have said what there is to say; a whole number that is no less than the draft's changes nothing."""
    return RiskOpinion(
        allocation_pct=min(100, ceil(draft.allocation_pct)),
        leverage=max(1, min(3, ceil(draft.leverage))),
        veto=False,
        execution_style=draft.style or style_of(matter.terms),
        rationale="The rules have been applied; nothing is added to them.",
    )


def _own(said: RiskOpinion) -> tuple[Figure, ...]:
    return (
        *knowledge.figures("allocation", float(said.allocation_pct), Unit.PERCENT),
        *knowledge.figures("leverage", float(said.leverage), Unit.RATIO),
    )


def _draft(draft: Draft) -> Section:
    """What would be done: sizes as percentages, prices, and the expectation; no dollars of the account."""
    decision = draft.decision
    lines = [
        Line(f"{draft.call}, held for {decision.hold_duration}", knowledge.figures_in(decision.hold_duration)),
        knowledge.fact("allocation", draft.allocation_pct, Unit.PERCENT),
        knowledge.fact("leverage", draft.leverage, Unit.RATIO, 1),
    ]
    for name in ("entry_price", "stop_loss", "take_profit"):
        if (value := getattr(decision, name)) is not None:
            lines.append(knowledge.fact(name.replace("_", " "), value, Unit.PRICE))
    if (worth := draft.expectation) is not None:
        lines.append(knowledge.fact("probability that the target comes first", 100 * worth.p, Unit.PERCENT, 1))
        lines.append(knowledge.fact("profit, net", worth.profit_pct, Unit.PERCENT))
        lines.append(knowledge.fact("loss, costs included", worth.loss_pct, Unit.PERCENT))
        lines.append(knowledge.fact("expected value", worth.ev_pct, Unit.PERCENT, 3, signed=True))
    lines.append(Line(f"execution style by rule: {draft.style or 'not chosen yet'}"))
    for change in draft.changes:
        lines.append(knowledge.remark(f"already changed, {change.by}: {change.field}: {_unpriced(change.why)}"))
    return Section("draft", 97, tuple(lines))


def _unpriced(why: str) -> str:
    """A reason without amounts of the account's money, which are written with their currency."""
    return "; ".join(part for part in why.split("; ") if " USD" not in part and " KRW" not in part) or "a cap"


def _account(matter: Matter) -> Section:
    standing = matter.standing
    if isinstance(standing, Missing):
        return Section("account", 80, (knowledge.remark(f"unknown ({standing.reason})"),))
    held = "none" if standing.position is None else f"a {standing.position.side}"
    whole = standing.leverage if isfinite(standing.leverage) else Missing("no equity carries what is open")
    return Section(
        "account",
        80,
        (
            knowledge.fact("leverage of the whole account before this trade", whole, Unit.RATIO),
            Line(f"open in this symbol: {held}"),
        ),
    )

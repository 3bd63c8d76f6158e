"""A plan's record in the journal, and its view: stored when the debate ends, read by every look."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field

from zuno.kernel.canonical import canonical
from zuno.kernel.numbers_text import short_text
from zuno.kernel.view import ForeignText, RecordedView, View
from zuno.kernel.wire import Hex64, Wire
from zuno.lp.model.chains import chain_label
from zuno.lp.service.views import LeftoverView, PoolKeyView, warn_unverified
from zuno.present.document import Act, Document, Mark, Section, Tone, Value, document, facts, lines, section, table
from zuno.present.values import amount, foreign, id_, number, quiet, share

REFUSED_KIND = "choice_refused"
_PICTURE_WIDTH: Final = 38
_NAME_WIDTH: Final = 9
"""Of a candidate beside the picture of its range."""
_TONES: Final = {"approve": Tone.GOOD, "reject": Tone.BAD, "accept": Tone.GOOD, "veto": Tone.BAD}
_COLUMNS: Final = ("range", "1×/2×/3× h", "fees", "LVR", "net", "cost", "worth", "even", "verdict")
_ACTS: Final = {"Why": "why", "Simulate": "plan simulate", "Approve…": "plan approve"}
_SPARE: Final = ("even", "cost", "fees", "LVR", "1×/2×/3× h", "range", "pool")


class PlanRecord(Wire):
    """What is remembered of a plan beside its debate: its name, the message it stands on, and the owner's own choice
    where there was one. A request has one."""

    plan_id: str
    hash: str
    kind: str
    chain: str
    position_id: str | None
    verdict: str
    choice: str
    decided_by: str
    owner_choice: int | None = None
    anyway: Annotated[bool, Field(exclude_if=lambda anyway: not anyway)] = False
    """The owner took a range that was vetoed."""
    message: Hex64 | None = None
    """The sha256 of the `plan_ready`, as it was signed, that was checked; an id alone could be given twice by whoever
    holds the key. None: written before this was recorded."""
    doubts: tuple[str, ...] = Field((), exclude_if=lambda doubts: not doubts)
    """What the owner's own sources do not bear out of a plan that peers elsewhere made."""


class ChoiceRefused(Wire):
    """The owner chose what cannot be chosen: there is no plan, and the debate stands as it was checked."""

    message: Hex64
    choice: int
    why: str


def hash_decided(context: Mapping[str, Any], ready: Mapping[str, Any]) -> str:
    """The same of a debate as it is on record, whatever this Zuno's own shapes are."""
    rounds, decision = ready["debate"]["rounds"], ready["decision"]
    sources = [{name: note[name] for name in ("feed", "source", "stale")} for note in context["sources"]]
    decided = {
        "context": {**context, "sources": sources},
        "rounds": rounds,
        "candidates": len(rounds[-1]["candidates"]),
        "decision": {name: decision[name] for name in ("index", "verdict", "decidedBy", "cautions")},
    }
    return hashlib.sha256(canonical(decided)).hexdigest()


def plan_id_of(request_id: str, digest: str) -> str:
    return "plan_" + hashlib.sha256(f"{request_id} {digest}".encode()).hexdigest()[:12]


class StressPointView(View):
    median_hours: int
    p10_hours: int
    p_exit24h: float = Field(alias="pExit24h")
    in_range_share: float
    censored: bool


class StressView(View):
    x1: StressPointView
    x2: StressPointView
    x3: StressPointView


class CarryView(View):
    """Whole token1 as decimal strings; null when unknown."""

    fees24h: str | None = Field(alias="fees24h")
    lvr24h: str | None = Field(alias="lvr24h")
    net24h: str | None = Field(alias="net24h")
    cost: str | None
    worth: str | None
    """Until the horizon, after the cost."""
    breakeven_hours: str | None
    token: str


class HedgeView(View):
    """The short perpetual beside a range; money in whole token1, means of the stress paths until the horizon."""

    market: str
    amount: str
    """Sold short to begin with, in whole coins."""
    most: str
    """What it is counted to reach: margin is set aside for this."""
    token: str
    begin_cost: str
    """In the candidate's cost."""
    reset_cost: str
    funding: str
    """Received; negative: paid."""

    def __str__(self) -> str:
        amount, most = short_text(self.amount), short_text(self.most)
        costs = f"begins at {short_text(self.begin_cost)}, re-sets {short_text(self.reset_cost)}"
        size = f"short {amount} {self.token} by {self.market}, at most {most}"
        return f"{size}; {costs}, funding {short_text(self.funding)}"


class EdgeView(View):
    """What the choice is worth more than holding until the horizon, after its cost, in whole token1."""

    worth: str | None
    cost: str | None
    breakeven_hours: str | None
    token: str


class CandidateView(View):
    index: int
    kind: str
    pool: PoolKeyView
    tick_lower: int | None
    tick_upper: int | None
    price_lower: str | None
    price_upper: str | None
    stress: StressView | None
    carry: CarryView
    verdict: str
    reason: ForeignText
    own: bool = False
    """The range the owner named."""
    hedge: Annotated[HedgeView | None, Field(exclude_if=lambda hedge: hedge is None)] = None

    def span(self, between: str = " – ") -> str:
        if self.price_lower is None or self.price_upper is None:
            return ""
        return f"{short_text(self.price_lower)}{between}{short_text(self.price_upper)}"

    @property
    def stress_hours(self) -> str:
        points = () if self.stress is None else (self.stress.x1, self.stress.x2, self.stress.x3)
        return "/".join(f"{'≥' if point.censored else ''}{point.median_hours}" for point in points)


class RecommendedView(CandidateView):
    amount0: str
    amount1: str
    amount0_human: str
    amount1_human: str
    leftover: LeftoverView | None
    """What stays in the wallet; None where nothing is put to work."""
    prep_action: str | None

    @property
    def cost_text(self) -> str:
        """The debate's cost in one line; the route, found when the transactions are built, makes the swap cheaper."""
        cost, worth = Decimal(self.carry.cost or 0), self._worth
        if not cost:
            return ""
        swaps = "swap " in (self.prep_action or "")
        hedge = "" if self.hedge is None else f", hedge {short_text(self.hedge.begin_cost)}"
        share = "" if worth is None else f" ({100 * float(cost) / worth:.3f} %)"
        what = "gas, swap fee and impact in its own pool" if swaps else "gas"
        left = "" if self.leftover is None else f"; stays home {100 * self.leftover.share:.2f} %"
        most = "at most " if swaps else ""
        return f"costs {most}{short_text(str(cost))} {self.carry.token}{share}: {what}{hedge}{left}"

    @property
    def _worth(self) -> float | None:
        """Of what is moved, in whole token1, at the price at which a range takes these amounts; None where one token
        alone goes in and says no price."""
        amount0, amount1 = float(self.amount0_human), float(self.amount1_human)
        moved = 1 - (0.0 if self.leftover is None else self.leftover.share)
        if not amount0 and amount1 and moved:
            return amount1 / moved
        if not amount0 or not amount1 or not moved or self.tick_lower is None or self.tick_upper is None:
            return None
        unit = 10.0 ** (self.pool.currency0.decimals - self.pool.currency1.decimals)
        lower, upper = (math.sqrt(1.0001**tick * unit) for tick in (self.tick_lower, self.tick_upper))
        half = (amount0 * lower - amount1 / upper) / 2
        root = (half + math.sqrt(half * half + amount0 * amount1)) / amount0
        return (amount0 * root * root + amount1) / moved


class RecordView(View):
    """Fields of a record under their own names, safe to print; `model_validate` reads them off it."""

    model_config = ConfigDict(defer_build=True, from_attributes=True, coerce_numbers_to_str=True)


class ThoughtView(RecordView):
    role: str
    round: int
    text: ForeignText
    speaker: str

    @property
    def line(self) -> Value:
        return foreign(f"{self.role}{f', round {self.round}' if self.round else ''}: {self.text}")


class SourceView(RecordView):
    feed: ForeignText
    source: ForeignText | None
    as_of: int | None
    age_seconds: int | None
    stale: bool | None
    notes: tuple[ForeignText, ...]

    def __str__(self) -> str:
        about = f"{self.source}{f', {self.age_seconds} s old' if self.age_seconds else ''}" if self.source else "none"
        return "; ".join((f"{self.feed}: {about}{' STALE' if self.stale else ''}", *self.notes))


def describe_sources(sources: Sequence[SourceView]) -> Section:
    text = " · ".join(map(str, sources))
    return section("", lines(foreign(f"sources: {text}", Tone.QUIET), mark=Mark.QUOTE) if text else None)


class SpeakerView(RecordView):
    role: str
    round: int
    speaker: str
    why: ForeignText
    model: ForeignText | None
    tokens: int
    usd: str | None


class EarlierView(View):
    """What an earlier round proposed, and why it did not do."""

    round: int
    index: int
    kind: str
    pool: str
    tick_lower: int
    tick_upper: int
    price_lower: str
    price_upper: str
    verdict: str
    reason: ForeignText


class FeeCoverView(View):
    """What a pool's fees paid of what arbitrage took; null where that is unknown."""

    pool: str
    fees_over_lvr: float | None
    ci80: tuple[float, float] | None
    days: int
    measured_by: ForeignText
    """Whose prices, and how far apart."""
    pays: bool | None
    """Null: its error leaves that open."""
    said: ForeignText


class PoolRegimeView(View):
    pool: str
    regime: str
    why: ForeignText


class PlanView(RecordedView):
    plan_id: str
    request_id: str
    kind: str
    chain: str
    position_id: str | None
    profile: str
    verdict: str
    confidence: float
    over_runner_up: float | None
    edge_over_hold: EdgeView | None
    """None where the choice is to hold."""
    because: ForeignText
    """Why this and not hold, or why not to move, in one sentence."""
    decided_by: str
    cautions: tuple[ForeignText, ...]
    rounds: int
    regime: str
    recommended: RecommendedView
    candidates: tuple[CandidateView, ...]
    earlier: tuple[EarlierView, ...]
    """The moves of the rounds before the last, which the candidates above do not hold."""
    transcript: tuple[ThoughtView, ...]
    voices: tuple[SpeakerView, ...]
    sources: tuple[SourceView, ...]
    block: int
    timestamp: int
    fee_cover: tuple[FeeCoverView, ...] = Field((), exclude_if=lambda covers: not covers)
    """Of every pool that was argued about; the first question, before how wide."""
    regimes: tuple[PoolRegimeView, ...] = ()
    """Of every pool that was argued about."""
    own_range: str | None = None
    """Where the range that the owner named lies on the pool's grid."""

    def to_document(self) -> Document:
        chosen = self.recommended
        opens_nothing = self._opens_nothing(chosen)
        verdict = self.verdict.replace("_", " ")
        moves = chosen.tick_lower is not None
        edge = self.edge_over_hold
        beaten = self.over_runner_up
        ahead = "" if beaten is None else f", ahead of the runner-up on {share(beaten).text} of paths"
        ahead = " that no move is worth its cost" if chosen.kind == "hold" else ahead
        words = Value if chosen.pool.verified else foreign
        unit = "" if edge is None or not chosen.pool.currency1.verified else edge.token
        capital = chosen.pool.pair(chosen.amount0_human, chosen.amount1_human)
        revisions = "1 revision" if self.rounds == 1 else f"{self.rounds} revisions"
        about = " ".join(filter(None, (self.kind, self.position_id)))
        several = len(self.fee_cover) > 1
        plan = facts(
            *(
                ("in or out", foreign(f"{cover.pool}: {cover.said}" if several else cover.said))
                for cover in self.fee_cover
            ),
            ("plan", id_(self.plan_id)),
            None if self.position_id is None else ("position", id_(self.position_id)),
            ("decided by", f"{self.decided_by} after {revisions}, profile {self.profile}, regime {self.regime}"),
            ("why", foreign(self.because)),
            ("confidence", replace(number(self.confidence), text=f"{self.confidence:.2f}{ahead}")),
            None if edge is None else ("over holding", amount(edge.worth, unit)),
            None if self.runner_up is None else ("runner-up", self.runner_up),
            ("regimes", foreign("; ".join(f"{line.pool} {line.regime}" for line in self.regimes)))
            if self.regimes[1:]
            else None,
            None if self.own_range is None else ("your range", self.own_range),
            None if opens_nothing else ("pool", chosen.pool.name),
            ("ticks", f"{chosen.tick_lower} to {chosen.tick_upper}") if moves else None,
            ("holds" if chosen.kind == "hold" else "puts in", capital) if moves else None,
            ("before", words(chosen.prep_action.removesuffix(" first"))) if chosen.prep_action else None,
            ("stays home", words(chosen.leftover.text)) if chosen.leftover else None,
            ("voices", foreign(self._voices)),
        )
        acts = [Act(label, f"{command} {self.plan_id}") for label, command in _ACTS.items()]
        return document(
            Value(f"{verdict}: {self._describe(chosen)} {chosen.span()}".rstrip(), _TONES.get(self.verdict, Tone.WARN)),
            plan,
            self._candidates,
            section("The debate", lines(*self._transcript, mark=Mark.QUOTE)),
            describe_sources(self.sources),
            lines(words(chosen.cost_text)) if chosen.cost_text else None,
            context=f"{chain_label(self.chain)} · {about} on {self.chain} at block {self.block}, {self.request_id}",
            urgent=map(foreign, self.cautions),
            notes=(
                *map(foreign, self.computed_notes),
                *warn_unverified(candidate.pool for candidate in self.candidates),
            ),
            acts=acts if chosen.kind != "hold" else acts[:1],
        )

    @property
    def runner_up(self) -> Value | None:
        """The best of the others, those that were accepted first, and why it was not chosen."""
        worth = {each.index: Decimal(each.carry.worth) for each in self.candidates if each.carry.worth is not None}
        others = [each for each in self.candidates if each.index in worth and each.index != self.recommended.index]
        if not others or self.recommended.index not in worth:
            return None
        best = max(others, key=lambda each: (each.verdict == "accept", worth[each.index]))
        behind = worth[self.recommended.index] - worth[best.index]
        unit = best.carry.token if best.pool.currency1.verified else ""
        money = f"{short_text(str(abs(behind)))} {unit}".rstrip()
        less = f"worth {money} {'less' if behind >= 0 else 'more'} over 14 days"
        why = less if best.verdict == "accept" else f"{less}, but {best.verdict}: {best.reason}"
        return foreign(f"{best.index} {self._describe(best)} {best.span()}".rstrip() + f", {why}")

    def _opens_nothing(self, candidate: CandidateView) -> bool:
        """What there is to hold in a create is nothing."""
        return self.kind == "create" and candidate.tick_lower is None

    def _describe(self, candidate: CandidateView) -> str:
        return "open nothing" if self._opens_nothing(candidate) else candidate.kind

    @property
    def _candidates(self) -> Section:
        """Their figures, and their ranges as a picture."""
        creates = self.kind == "create"
        rows = []
        for candidate in self.candidates:
            mark, carry = "→" if candidate.index == self.recommended.index else " ", candidate.carry
            own = f"{' (yours)' if candidate.own else ''}{' hedged' if candidate.hedge else ''}"
            amounts = (carry.fees24h, carry.lvr24h, carry.net24h, carry.cost, carry.worth)
            even = None if carry.breakeven_hours is None else Decimal(carry.breakeven_hours)
            pool = "" if self._opens_nothing(candidate) else candidate.pool.name
            rows.append(
                (
                    f"{mark} {candidate.index} {self._describe(candidate)}{own}",
                    *((pool,) if creates else ()),
                    candidate.span("\n"),
                    candidate.stress_hours,
                    *(_money(value, candidate) for value in amounts),
                    number(even, 0, unit="h"),
                    Value(candidate.verdict, _TONES.get(candidate.verdict, Tone.WARN)),
                )
            )
        units = {candidate.carry.token for candidate in self.candidates}
        unit = units.pop() if len(units) == 1 else "the second token of its pool"
        known = all(candidate.pool.verified for candidate in self.candidates)
        columns = ("", *(("pool",) if creates else ()), *_COLUMNS)
        spare = _SPARE if creates else _SPARE[:-1]
        return section(
            "Candidates",
            lines(*self._picture, mark=Mark.VERBATIM),
            table(columns, rows, spare=spare, joiners={"range": " – "}, whole=True) if rows else None,
            lines((quiet if known else foreign)(f"per 24 h, cost once, worth over 14 days after cost, in {unit}")),
            lines(*self._hedges),
            lines(*self._reasons, mark=Mark.QUOTE),
        )

    @property
    def _picture(self) -> Iterator[str]:
        """The ranges in the recommended pool, one under another by the logarithm of the price."""
        spans = []
        for candidate in self.candidates:
            low, high = float(candidate.price_lower or 0), float(candidate.price_upper or 0)
            if candidate.pool.id == self.recommended.pool.id and 0 < low < high < math.inf:
                spans.append((math.log(low), math.log(high), candidate))
        if not spans:
            return
        least, lowest = min((low, candidate.price_lower or "") for low, _, candidate in spans)
        most, highest = max((high, candidate.price_upper or "") for _, high, candidate in spans)
        room = _PICTURE_WIDTH - _NAME_WIDTH - 1
        for low, high, candidate in spans:
            start, end = (round((edge - least) / (most - least) * (room - 1)) for edge in (low, high))
            bar = "├" + "─" * (end - start - 1) + "┤" if end > start else "│"
            name = f"{candidate.index} {self._describe(candidate)}"[:_NAME_WIDTH]
            yield f"{name:<{_NAME_WIDTH}} {' ' * start}{bar}"
        left, right = short_text(lowest), short_text(highest)
        yield f"{'':<{_NAME_WIDTH}} {left}{right:>{room - len(left)}}"

    @property
    def _hedges(self) -> Iterator[Value]:
        for candidate in self.candidates:
            if candidate.hedge is not None:
                yield (Value if candidate.pool.verified else foreign)(f"{candidate.index}: {candidate.hedge}")

    @property
    def _reasons(self) -> Iterator[Value]:
        """What spoke against these and earlier candidates, where no transcript says so; it names no pools."""
        for candidate in self.candidates:
            if candidate.verdict != "accept" and not self.transcript:
                about = f"{candidate.index} {self._describe(candidate)}, {candidate.verdict}"
                yield foreign(f"{about}: {candidate.reason}")
        for earlier in () if self.transcript and self.kind == "rebalance" else self.earlier:
            span = f"{short_text(earlier.price_lower)} – {short_text(earlier.price_upper)}"
            where = f" in {earlier.pool}" if self.kind == "create" else ""
            about = f"round {earlier.round}: {earlier.kind} {span}{where}, {earlier.verdict}"
            yield foreign(f"{about}: {earlier.reason}")

    @property
    def _transcript(self) -> Iterable[Value]:
        """What an agent repeats in a later round is left out."""
        first: dict[tuple[str, str], Value] = {}
        for thought in self.transcript:
            first.setdefault((thought.role, thought.text), thought.line)
        return first.values()

    @property
    def _voices(self) -> str:
        """Who spoke: what ran as a fallback says so."""
        roles: dict[str, list[str]] = {}
        for voice in self.voices:
            speaker = f"{voice.speaker} {voice.model}" if voice.model else voice.speaker
            why = f" ({voice.why})" if voice.why else ""
            roles.setdefault(speaker + why, []).append(voice.role)
        tokens = sum(voice.tokens for voice in self.voices)
        spent = [None if voice.usd is None else Decimal(voice.usd) for voice in self.voices]
        known = sum(usd for usd in spent if usd is not None)
        price = f"at least ${known}, some unpriced" if None in spent else f"${known}"
        cost = f"; {tokens:,} tokens, {price}" if tokens else ""
        return "; ".join(f"{', '.join(dict.fromkeys(names))}: {speaker}" for speaker, names in roles.items()) + cost


def _money(value: str | None, candidate: CandidateView) -> Value:
    """An amount under a heading that names its unit."""
    if value is None:
        return Value("?")
    unit = candidate.carry.token if candidate.pool.currency1.verified else ""
    return Value(short_text(value), number=Decimal(value), unit=unit, digits=4)

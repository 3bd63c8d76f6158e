"""A run that has ended, in the names of the public JSON (camel case around the desk's own parts), and its documents.

Every text in it may be a model's: one printable line, bounded.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple

from pydantic import FieldSerializationInfo, field_serializer

from zuno.kernel.numbers_text import format_number, format_signed, format_span, quantity_text
from zuno.kernel.view import ForeignText, RecordedView, View
from zuno.markets.market import Symbol
from zuno.present.document import (
    Act,
    Block,
    Document,
    Facts,
    Lines,
    Mark,
    Picture,
    Section,
    Table,
    Tone,
    Value,
    document,
    facts,
    lines,
    section,
    table,
)
from zuno.present.values import (
    bad,
    count,
    foreign,
    hours,
    id_,
    money,
    name,
    number,
    percent,
    quiet,
    share,
    strong,
    warn,
)
from zuno.trading.model import cycle
from zuno.trading.model.known import pick
from zuno.trading.model.market import Mode
from zuno.trading.model.trade_events import account_mode
from zuno.trading.rules.score import Entry, board_entries
from zuno.trading.service.features_view import AnomalyView, SourceView, anomaly_fact, format_absent
from zuno.trading.service.memory_view import ReadMemoryView
from zuno.trading.service.origin_view import OriginView

ROLES: Final = {
    cycle.Expert.LIQUIDITY: "liquidity",
    cycle.Expert.MICROSTRUCTURE: "microstructure",
    cycle.Expert.MACRO: "macro",
    cycle.Expert.GEOMETRY: "vlm_geometric",
}
"""Whose voice an entry of the blackboard is."""
REVIEWER: Final = "risk_manager"
SPOKE: Final = {
    "model": "model",
    "repaired": "model, repaired",
    "fallback": "rules: the model failed",
    "deterministic": "rules",
}
ARROW: Final[Mapping[str, str]] = {
    cycle.Call.LONG: "▲",
    cycle.Call.SHORT: "▼",
    cycle.Call.HOLD: "■",
    cycle.Call.CANCEL_AND_CLOSE: "✕",
}
STANCE: Final = {1: "▲ up", 0: "● neither", -1: "▼ down"}


class RulingExecutionView(View):
    state: str
    """held, refused, working, open, closing, closed or ended."""
    reason: ForeignText
    intent: str | None
    account: str | None = None
    """Who acted, by its whole name."""


class RunView(OriginView, RecordedView):
    VERSION: ClassVar = 2
    """From 2 on with the gross of its expectancy and the policy."""
    run_id: str
    symbol: str
    mode: str
    as_of: str
    bundle_hash: str
    meta: cycle.Meta
    regime: str
    anomalies: tuple[AnomalyView, ...]
    blackboard: cycle.Blackboard
    decision: cycle.Decision
    """The Judge as validated: before expectancy, budget, CRO and guard."""
    ev: cycle.Expectation | cycle.FirstExpectation | None
    """None: nothing was to be opened. JSON then has nulls, beside what the models cost."""
    ruling: cycle.Ruling
    sources: tuple[SourceView, ...]
    absent: tuple[cycle.MissingInput, ...]
    degraded: tuple[cycle.MissingInput, ...]
    voices: tuple[cycle.AnswerSource, ...]
    chart: str | None
    """Where the picture was put; null where there is none."""
    trade_chart: str | None = None
    """Where the picture of the trade was put; null where nothing was to be opened."""
    report: str | None
    code: str
    notes: tuple[ForeignText, ...] = ()
    execution: RulingExecutionView | None = None
    """Null where nobody was to act on the ruling."""
    memory: ReadMemoryView | None = None
    """What the Judge read of closed trades; null where the desk was not asked."""

    @property
    def llm_cost_usd(self) -> float:
        """A voice whose price nobody knows adds nothing."""
        return self.ev.llm_cost_usd if self.ev else sum(voice.usd or 0.0 for voice in self.voices)

    @property
    def label(self) -> str:
        """Whose money the ruling is about. A ruling that nobody acts on moves none, whatever the prices are."""
        account = None if self.execution is None else self.execution.account
        return "SYNTHETIC" if self.synthetic else "PAPER" if account is None else account_mode(account).upper()

    @property
    def context(self) -> Value:
        return foreign(f"as of {self.as_of} · {self.market}")

    def to_document(self) -> Document:
        """Everything, from the ruling down to the age of the data it stands on."""
        names = (("page", self.report or "none"), ("outcome", self.hash), ("bundle", self.bundle_hash))
        record = facts(("run", id_(self.run_id)), *names, ("decided by", f"Zuno {self.code}"))
        data = section("Data", _age_table(self.sources))
        return self._write_document(*self.to_sections(self.ruling.changes), data, section("On record", record))

    def to_summary(self) -> Document:
        """The ruling with its trade card, short enough to stand under a picture."""
        return self._write_document(
            _ruling_facts(self),
            facts(
                ("regime", f"{self.regime} {speaker_text(self.meta.source)}"),
                *map(anomaly_fact, self.anomalies),
                ("models", model_cost(self.llm_cost_usd)),
                ("run", id_(self.run_id)),
            ),
        )

    def _write_document(self, *parts: Block | Section) -> Document:
        pictures = (("chart", self.chart), ("the trade", self.trade_chart))
        return document(
            f"{self.label} · {self.symbol} {self.mode}: {call_text(self.ruling.decision)}",
            *parts,
            context=self.context,
            urgent=[foreign(note, Tone.BAD) for note in headline_notes(self)],
            notes=self.ending_notes,
            acts=(Act("Why", f"trade why {self.run_id}"),),
            pictures=[Picture(file, caption) for caption, file in pictures if file is not None],
            as_of=self.as_of,
        )

    def to_experts_document(self) -> Document:
        headline = f"{self.label} · Experts on {self.symbol}"
        return document(headline, *_board_sections(self), context=self.context, as_of=self.as_of)

    def to_sections(self, rules: Sequence[cycle.RuleChange]) -> Iterator[Section]:
        """The ruling and the argument behind it, in the order it was had."""
        yield section("Ruling", _ruling_facts(self), _leg_table(self))
        yield section("Regime", _regime_facts(self))
        yield from _board_sections(self)
        yield section("The Judge", _judge_facts(self))
        if self.memory is not None:
            yield section("What it remembered", *self.memory.to_blocks())
        yield section("What it is worth", _worth_facts(self))
        yield section("Rules that fired", _rule_table(rules) if rules else lines("Nothing was changed."))
        missing = (foreign(f"{missing.what}: {missing.why}", Tone.BAD) for missing in self.degraded)
        absent = (foreign(line, Tone.QUIET) for line in format_absent(self.absent))
        yield section("Done without", lines(*missing), lines(*absent, mark=Mark.QUOTE))
        yield section("Who spoke", *_voice_blocks(self))

    @property
    def ending_notes(self) -> tuple[Value, ...]:
        unsent = () if self.execution is not None else (Value("nothing was sent: nobody was to act on it"),)
        return (*map(foreign, (*self.computed_notes, *self.notes)), *unsent)

    @field_serializer("ev")
    def _ev_fields(
        self, ev: cycle.Expectation | cycle.FirstExpectation | None, info: FieldSerializationInfo
    ) -> dict[str, Any] | None:
        if ev is not None or info.round_trip:
            usual = pick(ev, "gross_pct", "policy") if isinstance(ev, cycle.Expectation) else {}
            return None if ev is None else {**ev.model_dump(by_alias=True), **usual}
        names = [field.alias or name for name, field in cycle.Expectation.model_fields.items()]
        return {**dict.fromkeys(names), "llm_cost_usd": self.llm_cost_usd}


class FeedAges(NamedTuple):
    feed: str
    sources: str
    series: int
    newest: str
    oldest_seconds: int
    stale: int


def expert_entries(view: RunView) -> tuple[tuple[cycle.Expert, Entry | None, str | None], ...]:
    """What each expert wrote and the model that spoke for it, whose word weighs most first."""
    models, there = {voice.role: voice.model for voice in view.voices}, board_entries(view.blackboard)
    return tuple((expert, there.get(expert), models.get(ROLES[expert])) for expert in cycle.CONVICTION[Mode(view.mode)])


def bias_text(entry: Entry) -> str:
    """What it says itself; the liquidity expert names no direction."""
    match entry:
        case cycle.LiquidityEntry():
            return "" if entry.target_entry is None else f"entry {format_number(entry.target_entry)}"
        case cycle.MacroEntry():
            return entry.options_bias
        case _:
            return entry.directional_bias


def shared_reason(view: RunView) -> str:
    """Why no model spoke, where several roles give the same reason: it is told once."""
    reasons = Counter(voice.why for voice in view.voices if voice.source == "deterministic" and voice.why)
    reason, count = reasons.most_common(1)[0] if reasons else ("", 0)
    return reason if count > 1 else ""


def headline_notes(view: RunView) -> tuple[str, ...]:
    """What a reader must know beside the ruling: who of those that could have cut it did not speak."""
    failed = [voice for voice in view.voices if voice.role == REVIEWER and voice.source == "fallback"]
    return tuple(f"the risk officer's model failed, the rules alone reviewed it: {voice.why}" for voice in failed)


def judge_reasons(view: RunView) -> Iterator[tuple[str, str]]:
    """What the Judge gives as reasons, by subject; what an expert's rationale says already is not said again."""
    reasoning, rationales = view.decision.reasoning, _rationales(view)
    named = (
        ("regime", reasoning.meta_agent_context),
        ("technical", reasoning.technical),
        ("derivatives", reasoning.derivatives),
        ("experts", reasoning.experts),
        ("narrative", reasoning.narrative),
        ("expectancy", view.decision.ev_rationale),
    )
    yield from ((name, text) for name, text in named if text and not _repeats(text, rationales))


def key_factors(view: RunView) -> tuple[str, ...]:
    rationales = _rationales(view)
    return tuple(factor for factor in view.decision.key_factors if not _repeats(factor, rationales))


def _rationales(view: RunView) -> frozenset[str]:
    entries = (entry for _, entry, _ in expert_entries(view) if entry is not None)
    return frozenset(text.rstrip(". ") for text in (view.meta.rationale, *(entry.rationale for entry in entries)))


def _repeats(text: str, rationales: frozenset[str]) -> bool:
    """Whether it is a part of one of these, with or without the name of who said it."""
    plain = text.rstrip(". ")
    unnamed = plain.partition(": ")[2] or plain
    return any(plain in rationale or unnamed in rationale for rationale in rationales)


def price_distances(decision: cycle.Decision) -> tuple[float, float] | None:
    """From entry to stop and to target, in percent of the entry as they stand; None where nothing is to be opened."""
    entry, stop, take = decision.entry_price, decision.stop_loss, decision.take_profit
    if entry is None or stop is None or take is None:
        return None
    return 100 * (stop / entry - 1), 100 * (take / entry - 1)


def feed_ages(sources: Sequence[SourceView]) -> tuple[FeedAges, ...]:
    """Feed by feed, in the order they stand in: where many series are one line, the oldest speaks for them."""
    feeds: dict[str, list[SourceView]] = {}
    for source in sources:
        feeds.setdefault(source.feed, []).append(source)
    return tuple(
        FeedAges(
            feed,
            ", ".join(dict.fromkeys(source.source for source in series)),
            len(series),
            max(source.as_of for source in series),
            max(source.age_seconds for source in series),
            sum(source.stale for source in series),
        )
        for feed, series in feeds.items()
    )


# -- parts of a run's document


def call_text(call: str | None) -> str:
    if call is None:
        return "–"
    return f"{ARROW.get(call, '')} {'CLOSE' if call == cycle.Call.CANCEL_AND_CLOSE else call}".strip()


def speaker_text(source: str, model: str | None = None) -> str:
    """Who spoke, in brackets behind what was said."""
    named = f" {model}" if model and source in ("model", "repaired") else ""
    return f"[{SPOKE[source]}{named}]"


def model_cost(usd: float | None) -> Value:
    if usd is None:
        return quiet("not known")
    return replace(number(usd, 4, unit="USD"), text=f"${usd:.4f}" if usd else "$0")


def _ruling_facts(view: RunView) -> Facts:
    ruling, base = view.ruling, Symbol(view.symbol).base
    done, sized = view.execution, bool(ruling.allocation_pct)
    acts = {"position": "closes", "order": "cancels"}
    ends = [
        (acts[end.what], f"{end.venue} {end.what} {end.id}: {end.side} {quantity_text(end.quantity)} {base}")
        for end in ruling.closes
    ]
    return facts(
        ("ruling", strong(call_text(ruling.decision))),
        None if ruling.veto is None else ("Judge", call_text(view.decision.decision)),
        None if ruling.veto is None else ("held by", name(ruling.veto)),
        ("size", _aside(percent(ruling.allocation_pct), "of the equity as margin")) if sized else None,
        ("leverage", number(ruling.leverage, unit="×")) if sized else None,
        ("where", ruling.target_exchange) if ruling.target_exchange else None,
        ("how", ruling.execution_style) if ruling.execution_style else None,
        *(() if ruling.card is None else _card_facts(ruling.card, base)),
        *ends,
        ("good until", ruling.valid_until),
        None if done is None else ("orders", foreign(f"{done.state}: {done.reason}" if done.reason else done.state)),
        ("account", done.account) if done is not None and done.account is not None else None,
    )


def _card_facts(card: cycle.TradeCard, base: str) -> Iterator[tuple[str, str | Value] | None]:
    """What is opened, what it risks and what it is expected to bring."""
    yield ("exploration", warn("on paper, for the record: no edge is proven yet")) if card.exploration else None
    yield "entry", money(card.entry)
    yield "stop loss", _aside(money(card.stop), f"({format_signed(card.stop_pct)} %)")
    yield "take profit", _aside(money(card.target), f"({format_signed(card.target_pct)} %)")
    yield "quantity", f"{quantity_text(card.quantity, 8)} {base}"
    yield "notional", money(card.notional_usd)
    yield "margin", money(card.margin_usd)
    yield "loss at stop", _aside(money(card.loss_at_stop_usd), f"with costs, {card.loss_at_stop_pct:.2f} % of equity")
    yield "reward:risk", number(card.reward_risk)
    yield None if card.liquidation is None else ("liquidation", money(card.liquidation))
    yield "time", _aside(hours(card.duration_hours), f"expected, {card.hold} at most")
    yield "fair rate", share(card.fair)
    yield "edge", number(100 * card.edge, 1, unit="points", signed=True)
    yield "EV", _aside(percent(card.ev_pct, 3, signed=True), "of the notional")
    yield "policy", card.policy


def _leg_table(view: RunView) -> Table | None:
    base = Symbol(view.symbol).base
    rows = [
        (
            leg.venue,
            leg.side,
            "–" if leg.quantity is None else f"{quantity_text(leg.quantity, 8)} {base}",
            money(leg.margin, leg.currency),
            money(leg.notional, leg.currency),
            number(leg.leverage, unit="×"),
        )
        for leg in view.ruling.legs
    ]
    columns = ("leg", "side", "quantity", "margin", "notional", "leverage")
    return table(columns, rows, spare=("leverage", "margin", "quantity")) if rows else None


def _regime_facts(view: RunView) -> Facts:
    meta = view.meta
    return facts(
        ("regime", strong(f"{view.regime} {speaker_text(meta.source)}")),
        ("risk budget", percent(meta.risk_budget_pct, 0)),
        ("risk bias", meta.risk_bias),
        ("trust", foreign(f"{meta.trust_directive.expert}: {meta.trust_directive.note}")),
        ("because", foreign(meta.rationale)),
        ("note", foreign(meta.why)) if meta.why and meta.source != "deterministic" else None,
        *map(anomaly_fact, view.anomalies),
        None if view.anomalies else ("anomalies", "none"),
    )


def _board_sections(view: RunView) -> Iterator[Section]:
    blocks: list[Lines | None] = []
    for expert, entry, model in expert_entries(view):
        if entry is None:
            blocks.append(lines(quiet(f"{expert}: absent, and weighs nothing")))
            continue
        about = (STANCE[entry.stance], f"{entry.confidence:.2f}", entry.anomaly, bias_text(entry))
        head = f"{expert}: {', '.join(filter(None, about))} {speaker_text(entry.source, model)}"
        blocks += [lines(strong(head)), lines(*_entry_texts(entry), mark=Mark.QUOTE)]
    yield section("Blackboard", *blocks)
    if (synthesis := view.blackboard.synthesis) is not None:
        yield section("Agreement and conflict", facts(*_synthesis_facts(synthesis)))


def _entry_texts(entry: Entry) -> Iterator[Value]:
    yield foreign(entry.rationale)
    if isinstance(entry, cycle.GeometryEntry):
        levels = entry.key_levels
        support = f"support {format_number(levels.immediate_support)} / {format_number(levels.major_support)}"
        above = f"resistance {format_number(levels.immediate_resistance)} / {format_number(levels.major_resistance)}"
        yield quiet(f"pattern {entry.pattern}, {support}, {above}, POC {format_number(levels.volume_poc)}")
        yield foreign(entry.fibonacci_context, Tone.QUIET)
    if entry.source != "deterministic":  # that no model sits is told once, with the voices
        yield foreign(entry.why, Tone.QUIET)


def _synthesis_facts(synthesis: cycle.Synthesis) -> Iterator[tuple[str, str | Value]]:
    yield "signal", f"{synthesis.dominant_signal} {speaker_text(synthesis.source)}"
    yield "score", number(synthesis.score, 3, signed=True)
    if synthesis.heard_score is not None:
        yield "of experts with data", number(synthesis.heard_score, 3, signed=True)
    yield "surest", synthesis.highest_confidence_expert
    yield from (("agreed", foreign(signal)) for signal in synthesis.consensus_signals)
    for conflict in synthesis.conflicts:
        yield "conflict", strong(" ⇄ ".join(conflict.between))
        yield from zip(conflict.between, map(foreign, (conflict.expert_a_claim, conflict.expert_b_claim)), strict=False)
        yield "settled by", foreign(conflict.tiebreaker)
    if not synthesis.conflicts:
        yield "conflicts", "none"
    yield "open", foreign(synthesis.key_uncertainty)


def _judge_facts(view: RunView) -> Facts:
    decision, away = view.decision, price_distances(view.decision)
    reasons = (
        ("against it", decision.reasoning.counter_scenario),
        ("because", decision.reasoning.final_logic),
        *judge_reasons(view),
        ("factors", "; ".join(key_factors(view))),
        ("note", "" if decision.why == shared_reason(view) else decision.why),
    )
    prices: tuple[tuple[str, str | Value], ...] = ()
    if away is not None:
        prices = (
            ("entry", money(decision.entry_price)),
            ("stop loss", _aside(money(decision.stop_loss), f"({format_signed(away[0])} %)")),
            ("take profit", _aside(money(decision.take_profit), f"({format_signed(away[1])} %)")),
            ("asks for", f"{decision.allocation_pct} % at {decision.leverage}×, for {decision.hold_duration}"),
            ("win probability", percent(decision.win_probability_pct, 0)),
        )
    return facts(
        ("decision", strong(f"{call_text(decision.decision)} {speaker_text(decision.source)}")),
        *prices,
        *((label, foreign(text)) for label, text in reasons if text),
    )


def _worth_facts(view: RunView) -> Facts:
    ev, cost = view.ev, ("models", model_cost(view.llm_cost_usd))
    if ev is None:
        return facts(("EV", "nothing was to be opened"), cost)
    if isinstance(ev, cycle.FirstExpectation):
        sum_ = f"{ev.p:.3f} × {ev.profit_pct:.3f} % − {1 - ev.p:.3f} × {ev.loss_pct:.3f} %, less models"
        shrunk = f"{ev.p:.3f}: the Judge's {ev.p_judge:.3f} shrunk towards {ev.p0:.3f}, the rate without drift"
        parts: tuple[tuple[str, str | Value] | None, ...] = (("p", shrunk),)
    else:
        spread = f"({ev.profit_pct:.3f} + {ev.loss_pct:.3f}) %"
        filled = "" if ev.fill == 1 else f", × {ev.fill:.3f} that it is filled"
        if ev.policy == "seed":
            gross = f"{ev.p_judge:.3f} × {ev.profit_pct:.3f} % − {1 - ev.p_judge:.3f} × {ev.loss_pct:.3f} %"
        else:
            resolved = f" × {ev.resolved:.3f}" if ev.gross_pct is None else ""  # as older editions had it
            gross = f"{ev.lambda_:.3f} × {format_signed(ev.edge, 3)} × {spread}{resolved}"
        sum_ = f"{gross} − costs, less models{filled}"
        known = ev.beta is not None and ev.beta_se is not None
        slope = f"{format_signed(ev.beta)} ± {ev.beta_se:.2f} of what was claimed" if known else "none yet"
        parts = (
            ("policy", ev.policy),
            ("fair rate", _aside(share(ev.fair), f"by the distances alone; the Judge says {100 * ev.p_judge:.0f} %")),
            ("edge", _aside(number(100 * ev.edge, 1, unit="points", signed=True), "count at most")),
            ("record", f"{ev.n} closed trades, slope {slope}: lambda {ev.lambda_:.3f}"),
            ("lasts", _aside(hours(ev.duration_hours), "on average")),
            ("end by time", _aside(share(ev.timed_out), f"of paths (standard error {ev.standard_error:.4f})")),
            ("exploration", warn("on paper, for the record: no edge is proven yet")) if ev.exploration else None,
        )
    return facts(
        ("EV", _aside(percent(ev.ev_pct, 3, signed=True), f"of the notional = {sum_}")),
        *parts,
        ("fees", percent(ev.fees_pct, 3)),
        ("slippage", percent(ev.slippage_pct, 3)),
        ("funding", percent(ev.funding_pct, 3, signed=True)),
        cost,
    )


def _rule_table(rules: Sequence[cycle.RuleChange]) -> Table:
    changes = ((rule, f"{format_number(rule.from_)} → {format_number(rule.to)}") for rule in rules)
    rows = [(rule.by, rule.field, foreign(change), foreign(rule.why)) for rule, change in changes]
    return table(("by", "what", "from → to", "why"), rows)


def _age_table(sources: Sequence[SourceView]) -> Table:
    rows = [
        (
            age.feed,
            age.sources,
            count(age.series),
            age.newest,
            format_span(age.oldest_seconds),
            bad(f"{age.stale} of {age.series} STALE") if age.stale else "fresh",
        )
        for age in feed_ages(sources)
    ]
    return table(("feed", "from", "series", "newest", "oldest", "state"), rows, spare=("from", "series", "newest"))


def _voice_blocks(view: RunView) -> tuple[Table, Lines | None]:
    shared = shared_reason(view)
    rows = [
        (
            voice.role,
            Value(SPOKE[voice.source], Tone.BAD if voice.source == "fallback" else Tone.PLAIN),
            voice.model or "–",
            count(voice.tokens),
            model_cost(voice.usd),
        )
        for voice in view.voices
    ]
    columns = ("role", "spoke", "model", "tokens", "cost")
    told_once = f"rules spoke: {shared}" if shared else ""
    own = (f"{voice.role}: {voice.why}" for voice in view.voices if voice.why and voice.why != shared)
    reasons = (foreign(text, Tone.QUIET) for text in (told_once, *own))
    return table(columns, rows, spare=("tokens", "cost", "model")), lines(*reasons)


def _aside(value: Value, words: str) -> Value:
    return replace(value, text=f"{value.text} {words}")

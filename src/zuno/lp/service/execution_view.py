"""What a person is shown of a plan that is tried, approved or carried out: every call in words, every bound, every
number that will be signed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field

from zuno.kernel.numbers_text import short_text
from zuno.kernel.text import plain_text
from zuno.kernel.view import View
from zuno.lp.model.chains import chain_label
from zuno.lp.model.plan_events import ExitWorth, SafeBatch, UnsignedTransaction
from zuno.lp.service.act_cost import CostView
from zuno.lp.service.views import LeftoverView, PoolKeyView, warn_unverified
from zuno.present.document import Act, Block, Document, Mark, Part, Tone, Value, document, facts, lines, section, table
from zuno.present.values import amount, bad, count, foreign, good, id_, number, strong


class FlowView(View):
    """An amount of one currency, both ways of writing it."""

    currency: str
    symbol: str
    amount: str
    amount_human: str

    def __str__(self) -> str:
        return f"{short_text(self.amount_human)} {self.symbol}"

    @property
    def with_sign(self) -> str:
        return str(self) if self.amount.startswith("-") else f"+{self}"


class CapitalView(FlowView):
    """The most of one token that a plan may bring from the wallet."""

    named: bool
    """False: nobody named it; it is what goes with the other token."""

    def __str__(self) -> str:
        return FlowView.__str__(self) if self.named else f"{FlowView.__str__(self)} (what goes with it)"


class BoundsView(View):
    slippage_bps: int
    tick_drift: int
    tick_low: int
    tick_high: int
    price_low: str
    price_high: str
    expires: int
    expires_text: str
    permit2_seconds: int
    max_fee_gwei: str
    most_gas: str
    """The most that all steps together may cost in gas, in the chain's native coin."""
    most_out: tuple[FlowView, ...]
    """The most of each currency that leaves the wallet in any one step."""


class CallView(View):
    """One transaction before it is signed."""

    index: int
    kind: str
    later: bool
    """True: as it would be if nothing moved; it is built again from what the steps before it really paid."""
    to: str
    value: str
    data: str
    words: tuple[str, ...]
    most_out: tuple[FlowView, ...]
    least_in: tuple[FlowView, ...]
    gas_used: int | None
    error: str | None

    @property
    def blocks(self) -> tuple[Block | None, ...]:
        later = " (as it would be now; it is built again from what the first half pays)" if self.later else ""
        return (
            lines(strong(f"{self.index + 1}. {self.kind.replace('_', ' ')}{later}")),
            lines(foreign(f"would revert: {self.error}"), mark=Mark.WARNING) if self.error else None,
            lines(*(foreign(f"· {plain_text(line, 2_000)}") for line in self.words), mark=Mark.QUOTE),
        )


class SimulationView(View):
    """A plan on top of one block."""

    plan_id: str
    action: str
    chain: str
    play_money: bool
    """A simulated, local or test network."""
    wallet: str
    position_id: str | None
    other_position_ids: tuple[str, ...]
    pool: PoolKeyView
    block: int
    ok: bool
    error: str | None
    how: str
    """`simulated`: every step was run; `computed`: the first was tried, the changes are our own arithmetic."""
    changes: tuple[FlowView, ...]
    gas_used: int
    gas_cost: str
    gas_coin: str
    """The chain's native coin."""
    price_before: str
    price_after: str | None
    price_impact_bps: str | None
    price_unit: str
    range_low: str | None
    """The range that the calldata opens, in prices; None where it opens none."""
    range_high: str | None
    leftover: LeftoverView | None
    """What stays in the wallet; None where nothing is put to work."""
    steps: tuple[CallView, ...]
    bounds: BoundsView
    exits: tuple[ExitWorth, ...]
    """For each position, where the plan was made with `--anyway`."""
    notes: tuple[str, ...]
    hedge: Annotated[str | None, Field(exclude_if=lambda hedge: hedge is None)] = None
    """The second leg, in words: what is sold short once the first is done."""
    cost: CostView
    """What all of it costs, beside what it moves."""

    def to_document(self) -> Document:
        return self._write((Act("Approve…", f"plan approve {self.plan_id}"),) if self.ok else ())

    def _write(self, acts: Sequence[Act], *more: Part) -> Document:
        about = _name_positions(self, f" {_PREPOSITIONS.get(self.action, 'of')}")
        outcome = good("it goes through") if self.error is None else foreign(f"it would fail: {self.error}", Tone.BAD)
        words = Value if self.pool.verified else foreign
        before, after = short_text(self.price_before), short_text(self.price_after or "0")
        bounds = self.bounds
        most = ", ".join(f"at most {flow}" for flow in bounds.most_out) or "nothing"
        most_gas, unit = f"{short_text(bounds.most_gas)} {self.gas_coin}", short_text(bounds.max_fee_gwei)
        return document(
            f"{self.action.capitalize()}{about} on {self.chain}",
            facts(
                ("outcome", outcome if self.ok or self.error else bad("it would fail")),
                ("plan", id_(self.plan_id)),
                ("pool", self.pool.name),
                ("changes", words(", ".join(flow.with_sign for flow in self.changes) or "nothing")),
                ("found by", _METHODS.get(self.how, self.how)),
                ("gas", f"{self.gas_used:,} units, about {short_text(self.gas_cost)} {self.gas_coin}"),
                ("range", words(self._format_span(self.range_low, self.range_high))) if self.range_low else None,
                ("stays home", words(self.leftover.text)) if self.leftover else None,
                ("then hedges", words(self.hedge)) if self.hedge else None,
                ("price", f"{before} → {after} (moved {self.price_impact_bps} bps)") if self.price_after else None,
                ("wallet", id_(self.wallet)),
            ),
            section(
                "Bounds",
                facts(
                    ("price", words(self._format_span(bounds.price_low, bounds.price_high))),
                    ("tick", f"{bounds.tick_low} to {bounds.tick_high} (drift {bounds.tick_drift})"),
                    ("slippage", number(bounds.slippage_bps, 0, unit="bps")),
                    ("leaves the wallet", words(most)),
                    ("gas", f"at most {most_gas}, {unit} gwei a unit"),
                    ("until", bounds.expires_text),
                ),
            ),
            section("Steps", *(block for call in self.steps for block in call.blocks)),
            *more,
            lines(words(self.cost.text)),
            context=f"{chain_label(self.chain)} · at block {self.block}{', play money' if self.play_money else ''}",
            notes=(*map(foreign, self.notes), *warn_unverified([self.pool])),
            acts=acts,
        )

    def _format_span(self, low: str | None, high: str | None) -> str:
        return f"{short_text(low or '0')} – {short_text(high or '0')} {self.price_unit}"


class ApprovalView(SimulationView):
    """What is signed when the owner says yes."""

    plan_hash: str
    draft_hash: str
    approval_hash: str
    chain_id: int
    genesis: str
    who: str
    asks: tuple[str, ...]
    """The words that a terminal asks for, one after the other."""

    def to_document(self) -> Document:
        signed = facts(
            ("plan", id_(self.plan_hash)),
            ("what it does", id_(self.draft_hash)),
            ("signed hash", id_(self.approval_hash)),
            ("chain id", count(self.chain_id)),
            ("genesis", id_(self.genesis)),
            ("who", self.who),
        )
        return self._write((), section("What is signed", signed))

    def summarise(self) -> str:
        """What is about to happen in two lines: id, amounts, bounds."""
        moved = ", ".join(flow.with_sign for flow in self.changes) or "see the steps above"
        bounds = self.bounds
        out = ", ".join(map(str, bounds.most_out))
        leaves = f"at most {out} leave the wallet in a step" if out else "nothing leaves the wallet"
        then = "" if self.hedge is None else f"Then the hedge: {self.hedge}.\n"
        return (
            f"{self.plan_id}: {self.action}{_name_positions(self)} on {self.chain}; expected: {moved}; {leaves}, "
            f"gas at most {short_text(bounds.most_gas)} {self.gas_coin}.\n{then}"
            f"Bounds: ticks {bounds.tick_low} to {bounds.tick_high} "
            f"({self._format_span(bounds.price_low, bounds.price_high)}), slippage {bounds.slippage_bps} bps, "
            f"until {bounds.expires_text}. Hash {self.approval_hash}\n{self.cost.text}"
        )


class StepView(View):
    index: int
    kind: str
    part: str
    state: str
    tx_hash: str | None
    nonce: int | None
    block: int | None
    gas_used: int | None
    gas_cost: str | None
    attempts: int
    why: str
    words: tuple[str, ...]

    @property
    def cells(self) -> tuple[str | Value, ...]:
        gas = "" if self.gas_used is None else count(self.gas_used)
        block = "" if self.block is None else str(self.block)
        return str(self.index + 1), self.kind.replace("_", " "), Value(self.state, _judge_state(self.state)), block, gas

    @property
    def facts(self) -> Iterator[tuple[str, Value]]:
        if self.why or self.attempts > 1:
            attempts = f"{self.attempts} attempts" if self.attempts > 1 else ""
            yield f"step {self.index + 1}", foreign("; ".join(filter(None, (self.why, attempts))))
        if self.tx_hash:
            yield f"tx {self.index + 1}", id_(self.tx_hash)


class ExecutionView(View):
    """How far a plan has come."""

    plan_id: str
    state: str
    action: str
    chain: str
    wallet: str
    position_id: str | None
    other_position_ids: tuple[str, ...]
    """Further positions to which the same is done."""
    capital: tuple[CapitalView, ...]
    """Fixed when the plan was made: nothing of any other token, and no more of these, ever leaves the wallet by it."""
    new_position_id: str | None
    leftover: LeftoverView | None
    """What stayed in the wallet beside the new position: as approved, once it is done as the chain shows it."""
    in_wallet: tuple[FlowView, ...]
    """What the first half paid and is in the wallet now, where the second is not done."""
    why: str
    steps: tuple[StepView, ...]
    gas_cost: str
    gas_coin: str
    """The chain's native coin."""
    expires: int | None
    expires_text: str | None
    problems: tuple[str, ...]
    outcome: dict[str, Any] | None
    """The attribution of the position that was closed or touched, as `lp pnl --json` has it."""
    other_outcomes: tuple[dict[str, Any] | None, ...] = ()
    """The same of the plan's other positions, in the order of `other_position_ids`."""
    outcome_note: str
    next: str
    """What can be done now."""

    def to_document(self) -> Document:
        about = _name_positions(self, f" {_PREPOSITIONS.get(self.action, 'of')}")
        label = chain_label(self.chain)
        capital = sorted(self.capital, key=lambda brought: not brought.named)
        verbs = {"approved": "apply", "handed_out": "apply", "drafted": "simulate approve", "simulated": "approve"}
        acts = [Act(_LABELS[verb], f"plan {verb} {self.plan_id}") for verb in verbs.get(self.state, "").split()]
        outcomes = zip((self.position_id, *self.other_position_ids), (self.outcome, *self.other_outcomes), strict=False)
        results = [
            ("result so far", foreign(f"position {position}: {_describe_result(outcome)}"))
            for position, outcome in (outcomes if self.outcome is not None else ())
        ]
        return document(
            Value(f"{label} · {self.action}{about} on {self.chain}: {self.state}", _judge_state(self.state)),
            lines(foreign(self.why)),
            table(_STEP_COLUMNS, (step.cells for step in self.steps), spare=("gas used", "block"))
            if self.steps
            else None,
            facts(*(fact for step in self.steps for fact in step.facts)),
            facts(
                ("brings at most", foreign(" and ".join(map(str, capital)))) if capital else None,
                *self._more_facts(),
                None if self.new_position_id is None else ("new position", id_(self.new_position_id)),
                ("stays home", foreign(self.leftover.amounts)) if self.leftover else None,
                ("in the wallet now", foreign(" and ".join(map(str, self.in_wallet)))) if self.in_wallet else None,
                ("gas paid", amount(self.gas_cost, self.gas_coin)) if self.gas_cost != "0" else None,
                ("approved until", f"{self.expires_text} by the chain's clock")
                if self.expires_text and self.state not in _ENDED
                else None,
                *results,
                ("next", self.next) if self.next and not acts else None,
                ("plan", id_(self.plan_id)),
            ),
            urgent=(foreign(f"problem: {problem}", Tone.BAD) for problem in self.problems),
            notes=map(foreign, filter(None, [self.outcome_note])),
            acts=acts,
        )

    def _more_facts(self) -> Iterator[tuple[str, str | Value]]:
        yield from ()


class CompoundView(ExecutionView):
    """A plan that puts fees back into their position, with what speaks for it; dollars as decimal strings."""

    fees_usd: str
    goes_in_usd: str
    """Of the fees, what the range takes at this price."""
    gas_usd: str
    fees24h_usd: str = Field(alias="fees24hUsd")
    """What the position earns in a day."""
    net24h_usd: str = Field(alias="net24hUsd")
    """The same after LVR: what goes in is taken to earn at this rate."""
    break_even_hours: str | None
    """After which what goes in has earned the gas back, after LVR; null where it never does."""
    best_in_hours: str | None
    """From now, when it pays best: waiting longer would cost more than another transaction."""

    def _more_facts(self) -> Iterator[tuple[str, str | Value]]:
        yield "fees owed", f"${self.fees_usd}, of which ${self.goes_in_usd} go in; gas about ${self.gas_usd}"
        yield "earned back", "never" if self.break_even_hours is None else f"in {self.break_even_hours} h"
        if self.best_in_hours is not None:
            best = "now" if float(self.best_in_hours) == 0 else f"in {self.best_in_hours} h"
            yield "pays best", f"{best}, at ${self.fees24h_usd} of fees a day, ${self.net24h_usd} after LVR"


class UnsignedView(View):
    """For a wallet whose key is elsewhere: what was handed out to be signed there, one by one or as one batch."""

    plan_id: str
    plan_hash: str
    approval_hash: str
    """What its owner signed: `zuno plan check` holds the calls against it."""
    state: str
    chain: str
    wallet: str
    transactions: tuple[UnsignedTransaction, ...]
    """The step to send now; the next follows its receipt. Empty for a Safe."""
    safe: SafeBatch | None
    """All steps in one transaction; null for a plain wallet."""
    deadline: int
    """Unix time of the chain after which it is of no use any more."""
    notes: tuple[str, ...]

    def to_document(self) -> Document:
        """What is copied from it stands on one line: a break inside would spoil it."""
        sections: list[Part] = []
        for index, transaction in enumerate(self.transactions, 1):
            fields = transaction.model_dump(by_alias=True, exclude={"data", "serialized"})
            shown = facts(*((name, id_(str(value))) for name, value in fields.items()))
            sections.append(section(f"Transaction {index}", shown))
            sections.append(_copyable(f"Transaction {index} with its data, for another signer", transaction))
        if self.safe is not None:
            sections.append(_copyable("For a Safe: save as a file and load it in the Transaction Builder", self.safe))
        what = "a Safe's batch" if self.safe else f"{len(self.transactions)} of its transactions"
        return document(
            f"{what} of {self.plan_id} to sign elsewhere",
            facts(
                ("wallet", id_(self.wallet)),
                ("plan", id_(self.plan_id)),
                ("plan hash", id_(self.plan_hash)),
                ("signed hash", id_(self.approval_hash)),
            ),
            *sections,
            context=f"{chain_label(self.chain)} · on {self.chain}",
            notes=(*self.notes, f"`zuno plan apply {self.plan_id} --json` prints what another signer or a Safe takes"),
        )


_STEP_COLUMNS: Final = ("step", "does", "state", "block", "gas used")
_PREPOSITIONS: Final = {"add": "to", "remove": "from"}
_METHODS: Final = {
    "simulated": "running every step on the latest block",
    "computed": "our own arithmetic; the node can only try the first step",
}
_LABELS: Final = {"simulate": "Simulate", "approve": "Approve…", "apply": "Apply…"}
_GOOD: Final = frozenset({"confirmed", "approved", "final"})
_BAD: Final = frozenset({"failed", "rejected", "expired", "cancelled", "reverted", "partial", "superseded"})
_ENDED: Final = frozenset({"confirmed", "failed", "rejected", "cancelled"})


def _judge_state(state: str) -> Tone:
    return Tone.GOOD if state in _GOOD else Tone.BAD if state in _BAD else Tone.WARN


def _name_positions(view: SimulationView | ExecutionView, before: str = "") -> str:
    """The positions a plan is about, after a preposition of its own."""
    ids = [*filter(None, [view.position_id]), *view.other_position_ids]
    return f"{before} position{'s' if ids[1:] else ''} {', '.join(ids)}" if ids else ""


def _describe_result(outcome: Mapping[str, Any] | None) -> str:
    terms = None if outcome is None else outcome.get("inToken1")
    if not isinstance(terms, dict):
        return "not known"
    return f"{short_text(str(terms['result']))} {terms['token']} against its deposits (`zuno lp pnl`)"


def _copyable(title: str, content: BaseModel) -> Part:
    return section(title, lines(content.model_dump_json(by_alias=True), mark=Mark.VERBATIM))

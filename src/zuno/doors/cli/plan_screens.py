"""How a plan that is tried, approved or carried out is shown to people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, grid, heading, notes_block
from zuno.doors.plan_text import (
    amount_text,
    capital_text,
    leftover_text,
    positions_text,
    price_band,
    result_text,
    signed_amount,
)
from zuno.kernel.numbers_text import short_text, thousands_text
from zuno.kernel.text import plain_text
from zuno.lp.service.execution_view import (
    ApprovalView,
    CallView,
    CompoundView,
    ExecutionView,
    SimulationView,
    UnsignedView,
)

_GOOD_STATES = frozenset({"confirmed", "approved", "final"})
_TO = {"add": "to", "remove": "from"}
_BAD_STATES = frozenset({"failed", "rejected", "expired", "cancelled", "reverted", "partial", "superseded"})


def show_simulation(view: SimulationView) -> RenderableType:
    about = positions_text(view, f" {_TO.get(view.action, 'of')}")
    title = (
        f"{view.action.capitalize()}{about} on {view.chain}, {view.pool.label}: {view.plan_id} at block {view.block}"
    )
    parts: list[RenderableType] = [heading(title), *map(_call, view.steps)]
    facts = grid()
    if view.error is not None:
        facts.add_row("outcome", Text(f"it would fail: {view.error}", style=BAD))
    else:
        facts.add_row("outcome", Text("it goes through", style=GOOD))
    facts.add_row("changes", ", ".join(map(signed_amount, view.changes)) or "nothing")
    facts.add_row("found by", _FOUND[view.how])
    facts.add_row("gas", f"{thousands_text(str(view.gas_used))} units, about {short_text(view.gas_cost_eth)} ETH")
    if view.range_low is not None and view.range_high is not None:
        facts.add_row("range", f"{short_text(view.range_low)} – {short_text(view.range_high)} {view.price_unit}")
    if view.leftover is not None:
        facts.add_row("stays home", leftover_text(view.leftover))
    if view.price_after is not None:
        facts.add_row(
            "price",
            f"{short_text(view.price_before)} → {short_text(view.price_after)} (moved {view.price_impact_bps} bps)",
        )
    parts += [facts, *_bounds(view)]
    if isinstance(view, ApprovalView):
        signed = grid()
        signed.add_row("plan", view.plan_hash)
        signed.add_row("what it does", view.draft_hash)
        signed.add_row("chain id", str(view.chain_id))
        signed.add_row("genesis", view.genesis)
        signed.add_row("wallet", view.wallet)
        signed.add_row("who", view.who)
        parts += [heading("What is signed"), signed, Text("hash that is signed"), Text(f"  {view.approval_hash}")]
    return Group(*parts, *notes_block(view.notes))


_FOUND = {
    "simulated": "running every step on the latest block",
    "computed": "our own arithmetic; the node can only try the first step",
}


def show_execution(view: ExecutionView) -> RenderableType:
    about = positions_text(view, f" {_TO.get(view.action, 'of')}")
    title = Text.assemble(
        (f"{view.plan_id}: {view.action}{about} on {view.chain}: ", "bold"), (view.state, _style(view.state))
    )
    parts: list[RenderableType] = [title]
    if view.why:
        parts.append(Text(view.why))
    if view.steps:
        notes = [step.why or (f"{step.attempts} attempts" if step.attempts > 1 else "") for step in view.steps]
        columns = ("step", "does", "state", "block", "gas used", *(("note",) if any(notes) else ()))
        table = Rows(*columns, spare=("gas used", "block"))
        for step, note in zip(view.steps, notes, strict=True):
            table.add_row(
                str(step.index + 1),
                step.kind.replace("_", " ") + (f"\n{step.tx_hash}" if step.tx_hash else ""),
                Text(step.state, style=_style(step.state)),
                "" if step.block is None else str(step.block),
                "" if step.gas_used is None else thousands_text(str(step.gas_used)),
                *((note,) if any(notes) else ()),
            )
        parts.append(table)
    facts = grid()
    if view.capital:
        facts.add_row(
            "brings at most",
            " and ".join(map(capital_text, sorted(view.capital, key=lambda capital: not capital.named))),
        )
    if isinstance(view, CompoundView):
        facts.add_row("fees owed", f"${view.fees_usd}, of which ${view.goes_in_usd} go in; gas about ${view.gas_usd}")
        facts.add_row("earned back", "never" if view.break_even_hours is None else f"in {view.break_even_hours} h")
        if view.best_in_hours is not None:
            best = "now" if float(view.best_in_hours) == 0 else f"in {view.best_in_hours} h"
            facts.add_row("pays best", f"{best}, at ${view.fees24h_usd} of fees a day, ${view.net24h_usd} after LVR")
    if view.new_position_id is not None:
        facts.add_row("new position", view.new_position_id)
    if view.leftover is not None:
        facts.add_row("stays home", leftover_text(view.leftover))
    if view.in_wallet:
        facts.add_row("in the wallet now", " and ".join(map(amount_text, view.in_wallet)))
    if view.gas_cost_eth != "0":
        facts.add_row("gas paid", f"{short_text(view.gas_cost_eth)} ETH")
    if view.state == "approved" and view.expires_text is not None:
        facts.add_row("approved until", f"{view.expires_text} by the chain's clock")
    if view.outcome is not None:
        of = f"position {view.position_id}: " if view.other_outcomes else ""
        facts.add_row("result so far", of + result_text(view.outcome))
    for position_id, outcome in zip(view.other_position_ids, view.other_outcomes, strict=False):
        facts.add_row("", f"position {position_id}: {'not known' if outcome is None else result_text(outcome)}")
    if view.next:
        facts.add_row("next", view.next)
    parts.append(facts)
    parts += [Text(f"problem: {problem}", style=BAD) for problem in view.problems]
    return Group(*parts, *notes_block([view.outcome_note] if view.outcome_note else []))


def show_unsigned(view: UnsignedView) -> RenderableType:
    parts: list[RenderableType] = [heading(f"{view.plan_id} for {view.wallet}, whose key is elsewhere")]
    for index, transaction in enumerate(view.transactions):
        facts = grid()
        for name, value in transaction.model_dump(by_alias=True, exclude=_TOO_LONG).items():
            facts.add_row(name, str(value))
        parts += [Text(f"transaction {index + 1}", style="bold"), facts]
    return Group(*parts, *notes_block(view.notes))


_TOO_LONG = {"data", "serialized"}


def copyable_lines(view: UnsignedView) -> Iterator[tuple[str, str]]:
    """What is copied from the screen, under its heading: a line break inside would spoil it."""
    for index, transaction in enumerate(view.transactions):
        yield f"Transaction {index + 1} with its data, for another signer", transaction.model_dump_json(by_alias=True)
    if view.safe is not None:
        document = view.safe.model_dump_json(by_alias=True)
        yield "For a Safe: save as a file and load it in the Transaction Builder", document


def _call(call: CallView) -> RenderableType:
    later = " (as it would be now; it is built again from what the first half pays)" if call.later else ""
    error = f" would revert: {call.error}" if call.error else ""
    head = Text.assemble((f"{call.index + 1}. {call.kind.replace('_', ' ')}", "bold"), (later, QUIET), (error, BAD))
    lines = [Text(f"· {plain_text(line, 2_000)}") for line in call.words]
    return Group(head, Padding(Group(*lines), (0, 0, 0, 3)))


def _bounds(view: SimulationView) -> Iterable[RenderableType]:
    bounds, facts = view.bounds, grid()
    facts.add_row("tick", f"{bounds.tick_low} to {bounds.tick_high} (drift {bounds.tick_drift})")
    facts.add_row("price", price_band(view))
    facts.add_row("slippage", f"{bounds.slippage_bps} bps")
    most = ", ".join(f"at most {amount_text(flow)}" for flow in bounds.most_out)
    facts.add_row("leaves the wallet", most or "nothing")
    facts.add_row(
        "gas", f"at most {short_text(bounds.most_gas_eth)} ETH, {short_text(bounds.max_fee_gwei)} gwei a unit"
    )
    facts.add_row("until", bounds.expires_text)
    return heading("Bounds"), facts


def _style(state: str) -> str:
    return GOOD if state in _GOOD_STATES else BAD if state in _BAD_STATES else "yellow"

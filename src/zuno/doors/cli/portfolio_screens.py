"""How a position at another price and a whole portfolio are shown to people."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, grid, heading, notes_block
from zuno.kernel.numbers_text import short_text, time_text
from zuno.lp.service.portfolio import PortfolioPositionView, PortfolioView
from zuno.lp.service.views import ClosedPositionsView, PriceCaseView, WhatIfView


def show_whatif(view: WhatIfView) -> RenderableType:
    facts = grid()
    rows: list[tuple[str, RenderableType]] = [
        ("pool", view.pool.label),
        (
            "price",
            f"{short_text(view.price)} {view.price_unit}, "
            f"{_add_sign(view.percent)} % from {short_text(view.price_now)}",
        ),
        ("range", f"{short_text(view.price_lower)} – {short_text(view.price_upper)}"),
        ("state", _state(view)),
        ("holds", _holds(view, view)),
        (
            "worth",
            f"{short_text(view.worth)} {view.unit}, and uncollected fees of {short_text(view.fees_worth)} {view.unit}",
        ),
        ("loss", _loss("today's tokens held", view.hodl_worth, view.divergence_loss, view.unit)),
    ]
    if view.since_mint is not None:
        since = view.since_mint
        rows.append(("since mint", _loss("what was put in", since.hodl_worth, since.divergence_loss, view.unit)))
    for name, value in rows:
        facts.add_row(name, value)
    table = Rows("change", "price", "holds", "worth", "loss", "since mint", "range", spare=("price",))
    for case in view.table:
        table.add_row(
            f"{_add_sign(case.percent)} %",
            short_text(case.price),
            _holds(view, case),
            short_text(case.worth),
            short_text(case.divergence_loss),
            "?" if case.since_mint is None else short_text(case.since_mint.divergence_loss),
            Text("in", style=GOOD) if case.in_range else Text("out", style=BAD),
            style="bold" if Decimal(case.percent) == 0 else "",
        )
    return Group(
        heading(f"Position {view.id} on {view.chain} at another price (block {view.block})"),
        facts,
        Text(f"worth and loss against holding, in {view.unit}, without fees; a positive loss is a loss:", style=QUIET),
        table,
        *notes_block(view.notes),
    )


def _add_sign(percent: str) -> str:
    return percent if percent.startswith("-") or percent == "0" else f"+{percent}"


def _state(case: PriceCaseView) -> Text:
    return Text("in range", style=GOOD) if case.in_range else Text("out of range", style=BAD)


def _holds(view: WhatIfView, case: PriceCaseView) -> str:
    sides = ((case.amount0_human, view.pool.currency0), (case.amount1_human, view.pool.currency1))
    return ", ".join(f"{short_text(amount)} {token.display_name}" for amount, token in sides)


def _loss(than: str, held: str, loss: str, unit: str) -> str:
    share = f" ({Decimal(loss) / Decimal(held) * 100:.2f} %)" if Decimal(held) else ""
    return f"{short_text(loss)} {unit}{share} against {than}, worth {short_text(held)} {unit}"


def show_portfolio(view: PortfolioView) -> RenderableType:
    parts: list[RenderableType] = [heading("Portfolio in USD")]
    for wallet in view.wallets:
        name = f"{wallet.label} ({wallet.address})" if wallet.label else wallet.address or "no wallet"
        worth = "not read" if wallet.worth is None else f"{short_text(wallet.worth)} USD"
        parts.append(Text(f"{name} on {wallet.chain}: {worth}", style="" if wallet.complete else BAD))
        parts += notes_block([wallet.note] if wallet.note else [])
        mine = [line for line in view.positions if (line.wallet, line.chain) == (wallet.address, wallet.chain)]
        if mine:
            parts.append(_portfolio_rows(mine))
    totals = view.totals
    facts = grid()
    for label, value in (
        ("worth", f"{_usd(totals.worth)}, of it {_usd(totals.uncollected)} uncollected fees"),
        ("per day", f"{_usd(totals.fees24h)} fees, {_usd(totals.lvr24h)} LVR"),
        ("fee APR", _percent(totals.fee_apr)),
        ("net APR", f"{_percent(totals.net_apr)}, after LVR"),
    ):
        facts.add_row(label, value)
    unpriced = [f"not priced: position {line.id} on {line.chain} ({line.pool}): {line.why}" for line in totals.unpriced]
    unknown = [f"fees unknown: position {line.id} on {line.chain}: {line.how}" for line in _unknown(view)]
    parts += [heading(f"In all, over {totals.window_hours:g} h"), facts]
    return Group(*parts, *notes_block([*unpriced, *unknown, *view.notes]))


def _portfolio_rows(lines: Sequence[PortfolioPositionView]) -> Rows:
    table = Rows("id", "pool", "worth", "fees/day", "LVR/day", "fee APR", "net APR", "in range", spare=("fee APR",))
    for line in lines:
        inside = _percent(line.time_in_range)
        table.add_row(
            line.id,
            line.pool.label,
            _amount(line.worth),
            _amount(line.fees24h),
            _amount(line.lvr24h),
            _percent(line.fee_apr),
            _percent(line.net_apr),
            Text(inside, style=GOOD if line.in_range else BAD),
        )
    return table


def _unknown(view: PortfolioView) -> list[PortfolioPositionView]:
    named = set(view.totals.unknown)
    return [line for line in view.positions if f"{line.id} on {line.chain}" in named]


def _usd(value: str | None) -> str:
    return "unknown" if value is None else f"{short_text(value)} USD"


def _amount(value: str | None) -> str:
    return "?" if value is None else short_text(value)


def _percent(value: float | None) -> str:
    return "?" if value is None else f"{100 * value:.1f} %"


def show_closed(view: ClosedPositionsView) -> RenderableType:
    title = heading(f"Positions that are gone on {view.chain} at block {view.block}")
    if not view.positions:
        return Group(title, Text("None." if view.complete else "None found so far."), *_note(view.note))
    table = Rows("id", "pool", "became", "result", "fees", "LVR", "from", "to", spare=("from", "to"))
    for line in view.positions:
        new = "" if line.new_position_id is None else f" into {line.new_position_id}"
        table.add_row(
            line.id,
            "?" if line.pool is None else line.pool.label,
            f"{line.became}{new}",
            "?" if line.result is None else f"{short_text(line.result)} {line.unit}",
            _amount(line.fees),
            _amount(line.lvr),
            _day(line.opened_at),
            _day(line.closed_at),
        )
    lineages = [f"{line.id} with those it came from: {', '.join(line.position_ids)}" for line in view.positions]
    lineages = [text for text, line in zip(lineages, view.positions, strict=True) if len(line.position_ids) > 1]
    missing = [f"{line.id}: {line.why}" for line in view.positions if line.why]
    return Group(title, table, *notes_block([*lineages, *missing]), *_note(view.note))


def _note(text: str) -> list[Text]:
    return notes_block([text] if text else [])


def _day(timestamp: int | None) -> str:
    return "" if timestamp is None else time_text(timestamp).split(" ")[0]

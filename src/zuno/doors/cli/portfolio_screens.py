"""How a position at another price and a whole portfolio are shown to people."""

from __future__ import annotations

from decimal import Decimal

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, grid, heading, notes_block, short
from zuno.lp.service.views import PriceCaseView, WhatIfView


def shown_whatif(view: WhatIfView) -> RenderableType:
    facts = grid()
    rows: list[tuple[str, RenderableType]] = [
        ("pool", view.pool.label),
        ("price", f"{short(view.price)} {view.price_unit}, {_signed(view.percent)} % from {short(view.price_now)}"),
        ("range", f"{short(view.price_lower)} – {short(view.price_upper)}"),
        ("state", _state(view)),
        ("holds", _holds(view, view)),
        ("worth", f"{short(view.worth)} {view.unit}, and uncollected fees of {short(view.fees_worth)} {view.unit}"),
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
            f"{_signed(case.percent)} %",
            short(case.price),
            _holds(view, case),
            short(case.worth),
            short(case.divergence_loss),
            "?" if case.since_mint is None else short(case.since_mint.divergence_loss),
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


def _signed(percent: str) -> str:
    return percent if percent.startswith("-") or percent == "0" else f"+{percent}"


def _state(case: PriceCaseView) -> Text:
    return Text("in range", style=GOOD) if case.in_range else Text("out of range", style=BAD)


def _holds(view: WhatIfView, case: PriceCaseView) -> str:
    sides = ((case.amount0_human, view.pool.currency0), (case.amount1_human, view.pool.currency1))
    return ", ".join(f"{short(amount)} {token.shown_name}" for amount, token in sides)


def _loss(than: str, held: str, loss: str, unit: str) -> str:
    share = f" ({Decimal(loss) / Decimal(held) * 100:.2f} %)" if Decimal(held) else ""
    return f"{short(loss)} {unit}{share} against {than}, worth {short(held)} {unit}"

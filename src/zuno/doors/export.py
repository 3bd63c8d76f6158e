"""Records as tables for a spreadsheet: trades, ledger, liquidity positions."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from zuno.kernel.clock import iso
from zuno.kernel.errors import NotFound, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, View
from zuno.present.document import Document, Kind, Mark, Value, document, lines

if TYPE_CHECKING:
    from zuno.lp.service.positions import LpDesk
    from zuno.lp.service.result_views import PnlView
    from zuno.lp.service.views import PositionView
    from zuno.trading.service.account import AccountDesk

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


class ExportView(View):
    """A table. Numbers are plain decimal strings; what is not known is empty."""

    what: str
    file: str | None = None
    """Where the CSV was written; null where it was printed."""
    columns: tuple[str, ...]
    rows: tuple[tuple[ForeignText, ...], ...]
    notes: tuple[ForeignText, ...] = ()

    def to_document(self) -> Document:
        if self.file is not None:
            return document(f"{len(self.rows)} rows of {self.what} are in {self.file}")
        return document("", lines(Value(to_csv(self).rstrip("\n"), kind=Kind.FOREIGN), mark=Mark.VERBATIM))


def to_csv(view: ExportView) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(view.columns)
    writer.writerows([_safe(cell) for cell in row] for row in view.rows)
    return written.getvalue()


def _safe(cell: str) -> str:
    """A name that a stranger gave to a token is never a formula. A number stays one."""
    return f"'{cell}" if cell.startswith(_FORMULA) and not _is_number(cell) else cell


def _is_number(cell: str) -> bool:
    return cell.lstrip("+-").replace(".", "", 1).isdigit()


LP_COLUMNS: Final = (
    *("id", "chain", "pool", "owner", "state", "price", "price_lower", "price_upper", "price_unit"),
    *("amount0", "token0", "amount1", "token1", "uncollected0", "uncollected1", "worth", "quote"),
    *("since", "until", "result", "fees", "price_effect", "divergence_loss", "gas", "swap_cost", "lvr", "exact"),
)


async def export_positions(desk: LpDesk, wallet: str | None = None) -> ExportView:
    """Open liquidity positions with what they hold and where their money went since they were minted, in the quote
    token. Where the past cannot be read those cells are empty and a note says why."""
    held = await desk.positions((), wallet)
    notes = [held.note] if held.note else []
    notes += [f"position {missing.id}: {missing.reason}" for missing in held.missing]
    rows: list[tuple[str, ...]] = []
    for position in held.positions:
        pnl: PnlView | None = None
        try:
            pnl = await desk.pnl(position.id, None)
        except NotFound:
            raise
        except ZunoError as error:
            notes.append(f"position {position.id}: {plain_text(str(error), 300)}")
        rows.append((*_position_cells(position), *_pnl_cells(position, pnl)))
    return ExportView(what="lp", columns=LP_COLUMNS, rows=tuple(rows), notes=tuple(notes))


def _position_cells(position: PositionView) -> Sequence[str]:
    state = "empty" if position.liquidity == "0" else "in range" if position.in_range else "out of range"
    pool = position.pool
    return (
        *(position.id, position.chain, pool.label, position.owner, state),
        *(position.price, position.price_lower, position.price_upper, position.price_unit),
        *(position.amount0_human, pool.currency0.display_name, position.amount1_human, pool.currency1.display_name),
        *(position.fees0_human, position.fees1_human, position.value_human, position.value_unit),
    )


def _pnl_cells(position: PositionView, pnl: PnlView | None) -> Sequence[str]:
    if pnl is None:
        return ("",) * 10
    terms = pnl.in_token1 if pnl.in_token1.token == position.value_unit else pnl.in_token0
    return (
        *(iso(Millis(seconds * 1_000)) for seconds in (pnl.from_timestamp, pnl.to_timestamp)),
        *(terms.result, terms.fees, terms.price_effect, terms.divergence_loss),
        *(terms.gas, terms.swap_cost, terms.lvr, "yes" if pnl.exact else "no"),
    )


TRADE_COLUMNS: Final = (
    *("id", "symbol", "exchange", "side", "mode", "quantity", "entry", "exit", "currency", "gross_pnl", "fees"),
    *("funding", "net_pnl", "r", "exit_reason", "opened", "closed", "duration_hours", "exploration", "decision"),
)
_ALL: Final = 10_000


async def export_trades(account: AccountDesk) -> ExportView:
    """Closed trades, oldest first."""
    view = await account.trades(_ALL)
    rows = [tuple(_cell(getattr(trade, name)) for name in TRADE_COLUMNS) for trade in reversed(view.trades)]
    return ExportView(what="trades", columns=TRADE_COLUMNS, rows=tuple(rows), notes=_left_out(view.total))


LEDGER_COLUMNS: Final = ("number", "at", "exchange", "what", "account", "debit", "credit", "currency")


async def export_ledger(account: AccountDesk) -> ExportView:
    """Every line of every posting, oldest first."""
    view = await account.ledger(_ALL)
    rows = [
        (
            *(str(posting.number), posting.at, posting.exchange, posting.what, line.account),
            *(
                "" if line.amount.startswith("-") else line.amount,
                line.amount[1:] if line.amount.startswith("-") else "",
            ),
            posting.currency,
        )
        for posting in reversed(view.postings)
        for line in posting.lines
    ]
    return ExportView(what="ledger", columns=LEDGER_COLUMNS, rows=tuple(rows), notes=_left_out(view.total))


def _left_out(total: int) -> tuple[str, ...]:
    return (f"the newest {_ALL:,} of {total:,}",) if total > _ALL else ()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.12g}" if isinstance(value, float) else str(value)

"""Transfers between sleeves: cash changes its sleeve, and on paper the wallet too, for each venue has one of its own.

Both are written at once, before the wallets move; whoever looks first after a crash moves what is written.
"""

from collections.abc import Iterable
from decimal import ROUND_DOWN, Decimal
from typing import Final

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import Refused
from zuno.trading.execute.venue_context import AccountContext
from zuno.trading.model.orders import ZERO
from zuno.trading.model.trade_events import CashMoved, SleeveTransferred, TradeEvent

_CENT: Final = Decimal("0.01")


async def make_transfers(account: AccountContext, transfers: Iterable[SleeveTransferred]) -> tuple[str, ...]:
    """Those that were not made yet. `Refused` for more than a sleeve has free. What has to be moved by hand is said."""
    by_hand: list[str] = []
    for transfer in transfers:
        if transfer.key in account.book.keys:
            continue
        free = account.book.sleeve_free(transfer.source, transfer.currency)
        if transfer.amount > free:
            raise Refused(f"{transfer.source} has {free} {transfer.currency} free, not {transfer.amount}.")
        await finish_moves(account)
        moves, left = await _plan_moves(account, transfer)
        if account.gate.move_cash is None:
            by_hand += [f"move {move.amount} {transfer.currency} from {move.source} to {move.target}" for move in moves]
            moves = []
        elif left:
            by_hand.append(f"{left} {transfer.currency} are not free in the wallets of {transfer.source}")
        await account.write(list[TradeEvent]([transfer, *moves]))
        await finish_moves(account)
    return tuple(by_hand)


async def finish_moves(account: AccountContext) -> None:
    """Bring the wallets to what is written. `Unavailable` where nobody knows whether they are."""
    if account.gate.move_cash is not None:
        for move in account.book.moves:
            if move.key not in account.moved:
                await account.gate.move_cash(move.key, move.source, move.target, move.amount)
                account.moved.add(move.key)


async def _plan_moves(account: AccountContext, transfer: SleeveTransferred) -> tuple[list[CashMoved], Decimal]:
    """From the wallets of one sleeve to those of the other; and what lies in none of them."""
    book, moves, left = account.book, list[CashMoved](), ZERO
    sources = account.gate.sleeve_places(transfer.source)
    free = {venue: (await account.at(venue).port.balance()).available for venue in sources if venue in account.venues}
    for target, weight in account.gate.sleeve_places(transfer.target).items():
        amount = (transfer.amount * weight).quantize(_CENT, ROUND_DOWN)
        if target in free:  # it lies there already
            kept = min(amount, free[target])
            amount, free[target] = amount - kept, free[target] - kept
        for source in sorted(free, key=lambda venue: -free[venue]):
            moved = min(amount, free[source], max(ZERO, book.cash(source))).quantize(_CENT, ROUND_DOWN)
            if moved <= 0 or source.wallet == target.wallet or source.currency != target.currency:
                continue
            key = f"mov_{digest(canonical([transfer.key, source, target]))[:24]}"
            moves.append(CashMoved(at=transfer.at, key=key, source=source, target=target, amount=moved))
            amount, free[source] = amount - moved, free[source] - moved
        left += amount
    return moves, left

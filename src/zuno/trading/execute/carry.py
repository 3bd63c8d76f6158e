"""Positions of two legs at one exchange, spot bought and as much of a perpetual sold short: what brings them about."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from zuno.kernel.errors import NotFound, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Kind, Venue, venue_of
from zuno.trading.execute.entries import EntryRefused, RiskChecker
from zuno.trading.execute.intents import LEGS_SETTLE_MS, build_cut_intent, find_size_refusal
from zuno.trading.execute.venue_context import AccountContext, ExchangeState
from zuno.trading.model.cycle import Style
from zuno.trading.model.market import Mode, Side
from zuno.trading.model.orders import ZERO
from zuno.trading.model.sleeves import CASH_CARRY
from zuno.trading.model.trade_events import ExitReason, IntentKind, IntentLeg, TradeIntent
from zuno.trading.rules.execution_styles import SLIPPAGE_CAP, meets_minimum, round_to_step

LEAST_CHANGE: Final = Decimal("0.02")
"""Of a leg: less is not traded, for it would cost more than it mends."""
CARRY_LEVERAGE: Final = 3
"""Of the short: a leg of three quarters of the capital leaves a quarter for its margin."""


class NothingToChange(Exception):
    """Why what is held stays as it is."""


@dataclass(frozen=True, slots=True)
class HedgeTarget:
    symbol: Symbol
    bought: Venue
    sold: Venue
    quantity: Decimal
    """Of each leg; 0: neither is held."""
    request: str
    """Names the change: it is made once."""
    leverage: int = 1
    """Of a short that is opened."""
    cash: Decimal | None = None
    """All that may be spent on more; None: what the wallets have."""


async def find_carry_target(
    risk: RiskChecker, symbol: Symbol, sold: Venue, weight: Decimal, request: str
) -> HedgeTarget:
    """The quantity that a share of the sleeve's equity is at the mark. Of a market that ends nothing is kept."""
    account, book, bought = risk.account, risk.account.book, venue_of(sold.house, Kind.SPOT) or sold
    held, quantity = book.position(sold, symbol, CASH_CARRY) is not None, ZERO
    if weight > 0 and (not held or await _is_traded(account, symbol, bought, sold)):
        mark = (await account.at(sold, CASH_CARRY).port.quote(symbol)).mark
        quantity = max(ZERO, weight * await risk.require_sleeve_equity(CASH_CARRY, sold.currency) / mark)
    cash = book.sleeve_free(CASH_CARRY, sold.currency)
    return HedgeTarget(symbol, bought, sold, quantity, request, leverage=CARRY_LEVERAGE, cash=cash)


async def _is_traded(account: AccountContext, symbol: Symbol, *pair: Venue) -> bool:
    try:
        return all([(await account.at(exchange).read_filters(symbol, anew=True)).trading for exchange in pair])
    except NotFound:
        return False


async def prepare_hedge(risk: RiskChecker, target: HedgeTarget, id: str) -> TradeIntent | None:
    """The next intent toward a target; None: both legs are to be closed. Raises `NothingToChange`, `EntryRefused`,
    `NotFound`, or `Unavailable` where it has to be asked for again."""
    account, symbol, sleeve, pair = risk.account, target.symbol, CASH_CARRY, (target.bought, target.sold)
    book = account.book
    if book.is_worked(symbol, sleeve) or book.list_ordered(sleeve, symbol):
        raise Unavailable(f"{symbol} is being opened, cut or closed; the next change waits for it")
    trades = book.list_held(sleeve, symbol)
    if any(trade.exchange not in pair or book.find_hedge(trade) is None for trade in trades):
        raise EntryRefused(f"{sleeve} holds {symbol} already, and not as the legs of {' and '.join(pair)}")
    if not target.quantity:
        if not trades:
            raise NothingToChange(f"{sleeve} holds nothing of {symbol}")
        return None
    if any(exchange not in account.venues for exchange in pair):
        raise EntryRefused(f"no orders can be placed at {' and '.join(pair)} here")
    bought, sold = [await account.at(exchange, sleeve).read_state(symbol) for exchange in pair]
    short = book.position(target.sold, symbol, sleeve)
    held = ZERO if short is None else short.quantity
    leverage = book.find_leverage(target.sold, symbol) or target.leverage
    lot = max(bought.filters.lot, sold.filters.lot)
    quantity = round_to_step(target.quantity, lot)
    change = quantity - held
    if held and abs(change) <= LEAST_CHANGE * max(quantity, held):
        raise NothingToChange(f"{held} is within {100 * LEAST_CHANGE:.0f} % of the {quantity} that is wanted")

    def is_taken(size: Decimal) -> bool:
        return all(meets_minimum(size, state.quote.mark, state.filters) for state in (bought, sold))

    if held and not is_taken(quantity):
        return None  # what would be left could never be sold
    if held and not is_taken(abs(change)):
        raise NothingToChange(f"a change of {change} is less than {' or '.join(pair)} takes")
    if change < 0:
        hedge = next(hedge for hedge in book.list_hedges() if (hedge.symbol, hedge.sleeve) == (symbol, sleeve))
        return build_cut_intent(hedge, id, -change, sold.quote.mark, ExitReason.DECISION)
    if target.bought.house != target.sold.house or not (target.bought.spot and target.sold.shorts):
        raise EntryRefused(f"{target.bought} and {target.sold} are not the spot and the perpetuals of one exchange")
    if (why := await risk.why_no_risk(symbol, pair, sleeve)) is not None:
        raise EntryRefused(why)
    most = round_to_step(await _find_affordable(account, target, leverage, (bought, sold)), lot)
    if most < change and not is_taken(most):
        raise EntryRefused(f"{sleeve} has money for {most} more of {symbol}, less than {' or '.join(pair)} takes")
    change = min(change, most)
    intent = _build_intent(account, target, id, round_to_step(change, lot), leverage, (bought, sold))
    places = dict(zip(pair, (bought, sold), strict=True))
    if account.gate.live and (why := await risk.why_no_mandate(intent, places)) is not None:
        raise EntryRefused(why)
    return intent


def _build_intent(
    account: AccountContext,
    target: HedgeTarget,
    id: str,
    quantity: Decimal,
    leverage: int,
    pair: Sequence[ExchangeState],
) -> TradeIntent:
    """To buy at one venue and to sell as much short at another. It is as good at any price: the mark may go where it
    will while the legs are filled. `leverage`: of the short."""
    (bought, sold), legs = pair, list[IntentLeg]()
    for state, side, times in ((bought, None, 1), (sold, Side.SHORT, leverage)):
        place, mark = state.quote.exchange, state.quote.mark
        if (refusal := find_size_refusal(quantity, mark, state.filters)) is not None:
            raise EntryRefused(f"{place}: {refusal}")
        legs.append(IntentLeg(exchange=place, quantity=quantity, entry=mark, leverage=times, side=side))
    return TradeIntent(
        symbol=target.symbol,
        sleeve=CASH_CARRY,
        id=id,
        decision=target.request,
        kind=IntentKind.OPEN,
        mode=Mode.POSITION,
        side=Side.LONG,
        style=Style.MOMENTUM_SNIPER,
        legs=tuple(legs),
        valid_until=Millis(account.now() + LEGS_SETTLE_MS),
        mark=sold.quote.mark,
        atr=sold.quote.mark,
        mandate=account.mandate_hash() if account.gate.live else None,
        hedge_lot=max(bought.filters.lot, sold.filters.lot),
    )


async def _find_affordable(
    account: AccountContext, target: HedgeTarget, leverage: int, states: Sequence[ExchangeState]
) -> Decimal:
    """How much can be added to both legs with margin and fees: a leg refused for want of money undoes the other."""
    costs: dict[str, Decimal] = {}
    free: dict[str, Decimal] = {}
    for state, times in zip(states, (1, leverage), strict=True):
        venue = state.quote.exchange
        port = account.venues[venue]
        wallet = venue if port.simulated else venue.wallet
        share = 1 / Decimal(times) + Decimal(str(venue.taker)) / 100
        costs[wallet] = costs.get(wallet, ZERO) + state.quote.ask * (1 + SLIPPAGE_CAP) * share
        there = (await port.balance()).available  # the venue may have netted what sleeves hold, the book has not
        free[wallet] = min(there, account.free_cash(venue)) if venue in account.book.ledger.balances else there
    if target.cash is not None:
        costs[CASH_CARRY], free[CASH_CARRY] = sum(costs.values(), ZERO), target.cash
    return max(ZERO, min(free[place] / cost for place, cost in costs.items()))

"""Exchanges that take orders: which have keys, how they are opened, and their checks for `zuno doctor`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from zuno.adapters.http import is_loopback
from zuno.adapters.venues.exchange import ApiKeys
from zuno.doors.doctor import Check, CheckView, State
from zuno.kernel.errors import Refused, UsageError, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.settings import Settings
from zuno.trading.execute.reconcile import ask_exchange
from zuno.trading.model.orders import AccountRights, ExchangeAnswer, Filters
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.trading_book import TradingBook

R = TypeVar("R")

KEY_VARIABLES: Final = {
    Venue("BINANCE"): ("ZUNO_BINANCE_API_KEY", "ZUNO_BINANCE_API_SECRET"),
    Venue("UPBIT"): ("ZUNO_UPBIT_ACCESS_KEY", "ZUNO_UPBIT_SECRET_KEY"),
}
MOST_SKEW_MS: Final = 2_000
"""Some venues give the time in whole seconds."""
WRONG_CLOCK_MS: Final = 60_000
"""Beyond this, dates of mandates, daily losses and holds are wrong."""


def build_venue(settings: Settings, exchange: Venue) -> OrderVenue:
    """The exchange's account. `Refused` without keys."""
    keys = _read_keys(settings, exchange)
    if keys is None:
        raise Refused(f"There are no keys for {exchange}: set {' and '.join(KEY_VARIABLES[exchange])}.")

    from zuno.adapters.venues.orders.wires import build_account

    binance = exchange is Venue("BINANCE")
    url = settings.binance_order_url if binance else settings.upbit_order_url
    # A stand-in on this machine has no pace; whatever else is asked is asked at the exchange's own.
    demo = binance and settings.binance_demo
    return build_account(exchange, keys, DEFAULT_SYMBOLS, url, demo=demo, throttled=not is_loopback(url))


def exchanges_with_keys(settings: Settings) -> tuple[Venue, ...]:
    return tuple(exchange for exchange in DEFAULT_VENUES if _read_keys(settings, exchange) is not None)


def build_venue_check(
    settings: Settings, now: Callable[[], Millis], read_book: Callable[[], Awaitable[TradingBook]]
) -> Check:
    """Checks every exchange that has keys: permissions, account settings, clock, filters, balance, and differences to
    the account's log."""

    async def look() -> Sequence[CheckView]:
        keyed = exchanges_with_keys(settings)
        if not keyed:
            names = " and ".join(KEY_VARIABLES[Venue("BINANCE")])
            return [_line("off", "no keys: orders are placed on paper", f"set {names} to trade with money")]
        lines: list[CheckView] = []
        for exchange in keyed:
            venue = build_venue(settings, exchange)
            try:
                lines += await examine_venue(venue, now, await read_book())
            finally:
                await venue.close()
        return lines

    return Check("venue", look, "`docs/guides/going-live.md` says how keys are made", needed_live=True)


async def examine_venue(venue: OrderVenue, now: Callable[[], Millis], book: TradingBook) -> list[CheckView]:
    """Reads only. What cannot be read becomes a line of its own."""
    lines = await _look(venue, venue.rights, _describe_rights)
    lines += await _look(venue, venue.now, lambda at: [_describe_clock(at - now())])
    for symbol in DEFAULT_SYMBOLS:
        lines += await _look(venue, lambda symbol=symbol: venue.filters(symbol), _describe_filters)  # type: ignore[misc]
    lines += _describe_answer(await ask_exchange(venue, book, now))
    name = f"{venue.exchange} (demo)" if venue.paper else venue.exchange.value
    return [line.model_copy(update={"text": f"{name}: {line.text}"}) for line in lines]


async def _look(
    venue: OrderVenue, read: Callable[[], Awaitable[R]], describe: Callable[[R], list[CheckView]]
) -> list[CheckView]:
    try:
        return describe(await read())
    except ZunoError as error:
        return [_line("fail", str(error), f"check the keys, the network and {venue.exchange}'s status")]


def _describe_rights(rights: AccountRights) -> list[CheckView]:
    lines = []
    if rights.can_withdraw:
        lines.append(_line("fail", "the keys may withdraw", "make keys that may not; these are refused"))
    elif not rights.can_trade:
        lines.append(_line("fail", "the keys may not trade", "allow futures trading, and orders, for the keys"))
    else:
        lines.append(_line("ok", "the keys may trade and not withdraw"))
    if not rights.one_way:
        lines.append(_line("fail", "the account is in hedge mode", "switch it to one-way mode"))
    elif not rights.isolated:
        lines.append(_line("warn", "margin is cross", "the first order of a symbol sets it to isolated"))
    else:
        lines.append(_line("ok", "one position per symbol, isolated margin"))
    return lines


def _describe_clock(skew: int) -> CheckView:
    text = f"clock {skew / 1_000:+.1f} s from this machine's"
    if abs(skew) > MOST_SKEW_MS:
        state: State = "fail" if abs(skew) > WRONG_CLOCK_MS else "warn"
        return _line(state, text, "set this machine's clock (NTP); requests are dated by the exchange's")
    return _line("ok", text)


def _describe_filters(filters: Filters) -> list[CheckView]:
    currency = filters.exchange.currency
    text = (
        f"{filters.symbol} lot {filters.lot:f}, tick {filters.tick:f}, least order {filters.min_notional:f} {currency}"
    )
    if not filters.trading:
        return [_line("fail", f"{filters.symbol} is not trading", "trade another symbol")]
    return [_line("ok", text if filters.holds_stops else f"{text}; no stop orders: the desk watches them")]


def _describe_answer(answer: ExchangeAnswer) -> list[CheckView]:
    if answer.total is None or answer.free is None:
        return [_line("fail", answer.unknown or "", f"check the keys, the network and {answer.exchange}'s status")]
    advice = "the desk trades no such symbol until that is settled at the exchange"
    unbooked = [_line("warn", text.removeprefix(f"{answer.exchange} "), advice) for text in answer.describe()]
    text = f"{answer.total:,.2f} {answer.exchange.currency}, {answer.free:,.2f} free"
    if answer.total < 0:
        balance = _line("fail", text, "the account owes money; pay it in")
    else:
        balance = _line("warn", text, "pay money in") if answer.free <= 0 else _line("ok", text)
    return [balance, *(unbooked or [_line("ok", "positions and open orders as in the log")])]


def _read_keys(settings: Settings, exchange: Venue) -> ApiKeys | None:
    binance = settings.binance_api_key, settings.binance_api_secret
    upbit = settings.upbit_access_key, settings.upbit_secret_key
    key, secret = binance if exchange is Venue("BINANCE") else upbit
    if key is None and secret is None:
        return None
    if key is None or secret is None:
        raise UsageError(f"{exchange} needs both of {' and '.join(KEY_VARIABLES[exchange])}.")
    return ApiKeys(key.get_secret_value(), secret.get_secret_value())


def _line(state: State, text: str, advice: str = "") -> CheckView:
    return CheckView(topic="venue", state=state, text=text, advice=advice)

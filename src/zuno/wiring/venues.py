"""Exchanges that take orders: which have keys, how they are opened, and their checks for `zuno doctor`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from zuno.adapters.http import is_loopback
from zuno.adapters.venues.exchange import ApiKeys
from zuno.doors.doctor import Check, CheckView, State
from zuno.kernel.accounts import DEMO_ACCOUNT, LIVE_ACCOUNT, short_name
from zuno.kernel.errors import Refused, UsageError, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import Market, Symbol, describe_limits
from zuno.markets.venues import DEFAULT_VENUE, DEFAULT_VENUES, VENUES, Venue
from zuno.settings import KEY_SETTINGS, Settings
from zuno.settings_file import AccountSettings
from zuno.trading.execute.reconcile import ask_exchange
from zuno.trading.execute.venue_context import OVERLAP_MS
from zuno.trading.model.orders import AccountRights, ExchangeAnswer, Filters
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.trading_book import TradingBook

if TYPE_CHECKING:
    from zuno.adapters.venues.orders.core import VenueAccount

R = TypeVar("R")

KEY_VARIABLES: Final = {venue: tuple(f"ZUNO_{name.upper()}" for name in KEY_SETTINGS[venue.house]) for venue in VENUES}
MOST_SKEW_MS: Final = 2_000
"""Some venues give the time in whole seconds."""


def environment_account(settings: Settings) -> str:
    """The account that is meant by the keys of the environment: with money, if any of them is."""
    keyed = [house for house, names in KEY_SETTINGS.items() if any(getattr(settings, name) for name in names)]
    trials = [bool(getattr(settings, f"{house}_demo", False)) for house in keyed or KEY_SETTINGS]
    return DEMO_ACCOUNT if (all(trials) if keyed else any(trials)) else LIVE_ACCOUNT


def name_keys(settings: Settings, account: str) -> dict[Venue, str]:
    """The settings that hold the keys of an account's venues."""
    own = _find_named(settings, account)
    if own is not None:
        return dict.fromkeys(own.venues, f"[accounts.{short_name(account)}] key and secret")
    return {venue: " and ".join(names) for venue, names in KEY_VARIABLES.items()}


def list_venues(settings: Settings, account: str) -> tuple[Venue, ...]:
    """Of an account at exchanges, where nothing else says which are meant."""
    own = _find_named(settings, account)
    return (DEFAULT_VENUE,) if own is None else own.venues


def build_venue(
    settings: Settings, exchange: Venue, account: str | None = None, symbols: Sequence[Symbol] | None = None
) -> OrderVenue:
    """`account` None: by the keys of the environment. `symbols` None: the desk's markets. `Refused` without keys."""
    own = _find_named(settings, account) if account else None
    if own is None and account not in (None, LIVE_ACCOUNT, DEMO_ACCOUNT):
        raise Refused(f"The account {account} is not in the settings any more: [accounts.{short_name(account)}].")
    own = own or _read_keys(settings, exchange)
    if exchange not in own.venues or not own.secrets():
        where = name_keys(settings, account or LIVE_ACCOUNT).get(exchange, f"[accounts.NAME] with {exchange.lower()}")
        raise Refused(f"There are no keys for {exchange}: set {where}.")
    if not own.key or not own.secret:
        raise UsageError(f"{exchange} needs all of its key and its secret.")
    return _open_account(settings, exchange, own, symbols)


async def list_markets(settings: Settings, exchange: Venue) -> Sequence[Market]:
    """What a venue lists, from itself. Lists are public: any key of the venue's, or none, will do."""
    urls = (own.url for own in settings.accounts.values() if exchange in own.venues)
    url = next(filter(None, urls), getattr(settings, f"{exchange.house}_order_url"))
    venue = _open_account(settings, exchange, AccountSettings((exchange,), "none", "none", url=url))
    try:
        return await venue.list_markets()
    finally:
        await venue.close()


def _open_account(
    settings: Settings, exchange: Venue, own: AccountSettings, symbols: Sequence[Symbol] | None = None
) -> VenueAccount:
    from zuno.adapters.venues.orders.wires import build_account

    keys, throttled = ApiKeys(own.key, own.secret, own.passphrase), not is_loopback(own.url)
    # A stand-in on this machine has no pace; whatever else is asked is asked at the exchange's own.
    traded = tuple(symbols or settings.markets)
    return build_account(exchange, keys, traded, own.url, demo=own.demo, throttled=throttled)


def exchanges_with_keys(settings: Settings, account: str | None = None) -> tuple[Venue, ...]:
    """Venues of an account that have keys; None: any of the environment."""
    if account is not None and (own := _find_named(settings, account)) is not None:
        return own.venues if own.key and own.secret else ()
    return tuple(
        venue
        for venue in (dict.fromkeys((*DEFAULT_VENUES, *settings.routes().venues)) if account is None else VENUES)
        if account in (None, DEMO_ACCOUNT if settings.is_demo(venue) else LIVE_ACCOUNT)
        and (venue.sandbox or not getattr(settings, f"{venue.house}_demo", False))
        and all(getattr(settings, name) for name in KEY_SETTINGS[venue.house])
    )


def _find_named(settings: Settings, account: str) -> AccountSettings | None:
    own = settings.accounts.get(short_name(account))
    return own if own is not None and account == settings.find_account(short_name(account)) else None


async def find_transfer_gap(settings: Settings, account: str, spot: Venue, perpetual: Venue) -> str | None:
    """Why a carry's margin could not be topped up from its spot wallet, if so."""
    from zuno.adapters.venues.orders.wires import build_funds

    venues = {venue: build_venue(settings, venue, account) for venue in (spot, perpetual)}
    try:
        if build_funds(venues) is None:
            return f"an exchange at which margin can be moved: that of {perpetual} cannot be yet"
        right = (await venues[spot].rights()).can_transfer
    except ZunoError as error:
        return f"an answer of {spot} to whether the key may transfer: {error}"
    finally:
        for venue in venues.values():
            await venue.close()
    where = f"between the wallets of {spot.label} and {perpetual.label}"
    if right is None:
        return f"a key that may transfer {where}; whether it may, {spot} does not say"
    return None if right else f"a key that may transfer {where} (universal transfer)"


def build_venue_check(
    settings: Settings, now: Callable[[], Millis], read_book: Callable[[str], Awaitable[TradingBook]]
) -> Check:
    """Checks every exchange that has keys: permissions, settings, clock, filters, balance, differences to its log."""

    async def look() -> Sequence[CheckView]:
        for listed in VENUES:
            _read_keys(settings, listed)  # half of a house's keys is a mistake, and says so
        own = [settings.find_account(name) or "" for name in settings.accounts]
        keyed = [
            (venue, DEMO_ACCOUNT if settings.is_demo(venue) else LIVE_ACCOUNT)
            for venue in exchanges_with_keys(settings)
        ]
        keyed += [(venue, account) for account in own for venue in exchanges_with_keys(settings, account)]
        used = {venue.house for venue in (*DEFAULT_VENUES, *settings.routes().venues)}
        held = (venue.house for name in (LIVE_ACCOUNT, DEMO_ACCOUNT) for venue in exchanges_with_keys(settings, name))
        lines = [
            _line("warn", f"keys of {house} are set, and no route goes there", f"name {house} in [routes] of zuno.toml")
            for house in dict.fromkeys(held)
            if house not in used
        ]
        if not keyed:
            names = " and ".join(KEY_VARIABLES[Venue("BINANCE")])
            return [*lines, _line("off", "no keys: orders are placed on paper", f"set {names} to trade with money")]
        for exchange, account in keyed:
            venue = build_venue(settings, exchange, account)
            try:
                lines += await examine_venue(venue, settings.markets, now, await read_book(account))
            finally:
                await venue.close()
        return lines

    return Check("venue", look, "`docs/guides/going-live.md` says how keys are made", needed_live=True)


async def examine_venue(
    venue: OrderVenue, symbols: Sequence[Symbol], now: Callable[[], Millis], book: TradingBook
) -> list[CheckView]:
    """Reads only. What cannot be read becomes a line of its own."""
    lines = await _look(venue, venue.rights, _describe_rights)
    lines += await _look(venue, venue.now, lambda at: [_describe_clock(at - now())])
    for symbol in symbols:
        lines += await _look(venue, lambda symbol=symbol: venue.filters(symbol), _describe_filters)  # type: ignore[misc]
    lines += _describe_answer(await ask_exchange(venue, book, now))
    lines += [_line("ok", limit) for limit in describe_limits(venue.exchange)]
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
        advice = "set this machine's clock (NTP); the account is dated by the exchange's"
        if abs(skew) > OVERLAP_MS:
            return _line("fail", text, f"{advice}, and opens nothing new")
        return _line("warn", text, advice)
    return _line("ok", text)


def _describe_filters(filters: Filters) -> list[CheckView]:
    currency = filters.exchange.currency
    text = (
        f"{filters.symbol} lot {filters.lot:f}, tick {filters.tick:f}, least order {filters.min_notional:f} {currency}"
    )
    if not filters.trading:
        return [_line("fail", f"{filters.symbol} is not trading", "trade another symbol")]
    return [_line("ok", text)]


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


def _read_keys(settings: Settings, venue: Venue) -> AccountSettings:
    """The account of a venue's own settings; without keys where there are none."""
    held = [getattr(settings, name) for name in KEY_SETTINGS[venue.house]]
    values = ["" if value is None else value.get_secret_value() for value in held]
    if any(values) and not all(values):
        raise UsageError(f"{venue} needs all of {' and '.join(KEY_VARIABLES[venue])}.")
    key, secret, passphrase = (*values, "")[:3]
    url = getattr(settings, f"{venue.house}_order_url")
    return AccountSettings((venue,), key, secret, passphrase, demo=settings.is_demo(venue), url=url)


def _line(state: State, text: str, advice: str = "") -> CheckView:
    return CheckView(topic="venue", state=state, text=text, advice=advice)

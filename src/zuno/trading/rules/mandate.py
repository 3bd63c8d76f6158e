"""What a mandate lets the desk do with money. Whatever it does not say is not allowed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from zuno.kernel.canonical import Digest, canonical, digest, to_json
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.market import DAY_MS, Symbol
from zuno.trading.model.trade_events import Mandate

LONGEST_MANDATE: Final = 30 * DAY_MS


@dataclass(frozen=True, slots=True)
class LiveEntry:
    """New risk that somebody wants to take with money."""

    symbol: Symbol
    exchanges: tuple[Exchange, ...]
    margin_usd: Decimal
    margin_today_usd: Decimal
    """Margin of the entries since midnight UTC, without this one, and what is unfilled of earlier ones."""
    lost_today_usd: Decimal
    """Net loss since midnight UTC, and what open positions have lost; below zero is a gain."""
    margin_held_usd: Decimal = Decimal(0)
    """Of the trade that this entry adds to, and of entries in that symbol that wait to be ordered or filled."""
    without_stops: tuple[Exchange, ...] = ()
    """Exchanges among them that hold no stop orders."""
    judge_failed: bool = False
    """Rules decided because the Judge's model failed."""


def hash_mandate(mandate: Mandate) -> Digest:
    return digest(canonical(to_json(mandate)))


def check_grant(mandate: Mandate, now: Millis) -> None:
    """`Refused` for a mandate that nobody may grant."""
    if not mandate.symbols or not mandate.venues:
        raise Refused("A mandate names at least one symbol and one exchange.")
    if mandate.expires <= max(now, mandate.granted):
        raise Refused(f"A mandate that ended at {iso(mandate.expires)} allows nothing.")
    if mandate.expires - mandate.granted > LONGEST_MANDATE:
        raise Refused("A mandate lasts 30 days at most; grant it for less, and again when it ends.")
    if mandate.max_margin_per_day_usd < mandate.max_margin_per_trade_usd:
        raise Refused("A day's margin is less than that of one trade; raise the one or lower the other.")


def find_mandate_refusal(mandate: Mandate | None, entry: LiveEntry, now: Millis) -> str | None:
    """Why a mandate does not cover an entry; None where it does."""
    if mandate is None:
        return "no mandate is granted: the desk trades on paper (`zuno trade mandate grant`)"
    if now < mandate.granted or now >= mandate.expires:
        return f"the mandate is good from {iso(mandate.granted)} to {iso(mandate.expires)}"
    if entry.symbol not in mandate.symbols:
        return f"the mandate is for {', '.join(mandate.symbols)}, not for {entry.symbol}"
    for exchange in entry.exchanges:
        if exchange not in mandate.venues:
            return f"the mandate is for {', '.join(mandate.venues)}, not for {exchange}"
    if entry.without_stops and mandate.stops != "watched":
        named = ", ".join(entry.without_stops)
        return f"{named} holds no stop orders, and the mandate wants stops at the exchange (`--stops watched`)"
    if entry.judge_failed and not mandate.judge_fallback:
        return "the Judge's model failed, and the mandate does not let rules decide"
    trade = entry.margin_held_usd + entry.margin_usd
    if trade > mandate.max_margin_per_trade_usd:
        return f"a margin of ${trade:,.2f} is more than ${mandate.max_margin_per_trade_usd:,.2f} per trade"
    day = entry.margin_today_usd + entry.margin_usd
    if day > mandate.max_margin_per_day_usd:
        return f"a margin of ${day:,.2f} today would be more than ${mandate.max_margin_per_day_usd:,.2f} per day"
    if entry.lost_today_usd >= mandate.max_daily_loss_usd:
        return f"${entry.lost_today_usd:,.2f} are lost today; at most ${mandate.max_daily_loss_usd:,.2f}"
    return None

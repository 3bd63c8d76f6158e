"""Words a person typed, read into values or refused with a sentence that says what would be right."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from zuno.domain.errors import Usage
from zuno.domain.units import Address, HexId, Seconds

_ID = re.compile(r"[0-9]{1,78}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_POOL_ID = re.compile(r"0x[0-9a-fA-F]{64}")
_SPAN = re.compile(r"(\d{1,6})\s*(m|h|d|w)")
_SPAN_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MAX_ID = (1 << 256) - 1


def position_id(text: str) -> int:
    """A position id as PositionManager numbers them."""
    if not _ID.fullmatch(text) or not 0 < int(text) <= MAX_ID:
        raise Usage(f"{text[:80]!r} is not a position id; ids are whole numbers such as 1.")
    return int(text)


def pool_id(text: str) -> HexId:
    if not _POOL_ID.fullmatch(text):
        raise Usage(f"{text[:80]!r} is not a pool id; a pool id is 0x and 64 hex digits.")
    return HexId(text.lower())


def wallet_address(text: str) -> Address:
    if not _ADDRESS.fullmatch(text):
        raise Usage(f"{text[:80]!r} is not an address; an address is 0x and 40 hex digits.")
    return Address(text.lower())


def moment(text: str, now: Seconds) -> Seconds:
    """A point in time: `7d`, `36h`, a date, an ISO time (UTC unless it says otherwise) or unix seconds."""
    span = _SPAN.fullmatch(text.strip().lower())
    if span:
        return Seconds(now - int(span[1]) * _SPAN_SECONDS[span[2]])
    if re.fullmatch(r"\d{9,11}", text.strip()):
        return Seconds(int(text))
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Usage(f"{text[:80]!r} is not a time; write 7d, 36h, 2026-01-25 or 2026-01-25T12:00.") from None
    return Seconds(int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()))


def percent(text: str) -> Decimal:
    """A price move in percent."""
    try:
        value = Decimal(text.strip().removesuffix("%"))
    except InvalidOperation:
        raise Usage(f"{text[:80]!r} is not a percentage; write -6 or 2.5.") from None
    if not value.is_finite() or not -100 < value <= 1000:
        raise Usage("A move lies above -100 % and at most at 1000 %.")
    if value != round(value, 6):
        raise Usage("A move has at most six decimals.")
    return value

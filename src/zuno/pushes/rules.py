"""Which pushes are sent, and which of them without a sound: by kind, and in quiet hours."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from zuno.kernel.errors import UsageError
from zuno.kernel.notify import Notice, NoticeKind, Severity
from zuno.kernel.text import plain_text
from zuno.kernel.units import Seconds


class PushMode(StrEnum):
    ON = "on"
    SILENT = "silent"
    """Sent without a sound."""
    OFF = "off"


DEFAULT_MODES: Final[Mapping[NoticeKind, PushMode]] = MappingProxyType(
    dict.fromkeys(NoticeKind, PushMode.ON)
    | dict.fromkeys((NoticeKind.FILL, NoticeKind.RULING, NoticeKind.UNLOCK, NoticeKind.SUMMARY), PushMode.SILENT)
)
_SPAN: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)(?:\s+(\S{1,64}))?")
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}")


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` up to `end`, in minutes of the day at `zone`; over midnight if the end comes first."""

    start: int
    end: int
    zone: tzinfo = UTC

    def include(self, at: Seconds) -> bool:
        moment = datetime.fromtimestamp(at, UTC).astimezone(self.zone)
        minute = moment.hour * 60 + moment.minute
        if self.start <= self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


@dataclass(frozen=True, slots=True)
class PushRules:
    """Which kinds are on, silent or off. Quiet hours silence everything that is not critical, and delay nothing."""

    modes: Mapping[NoticeKind, PushMode] = field(default_factory=lambda: DEFAULT_MODES)
    quiet: QuietHours | None = None

    def choose_mode(self, notice: Notice, now: Seconds) -> PushMode:
        mode = self.modes.get(notice.kind, PushMode.ON)
        if mode is not PushMode.ON or notice.severity is Severity.CRITICAL or self.quiet is None:
            return mode
        return PushMode.SILENT if self.quiet.include(now) else PushMode.ON


def parse_push_modes(text: str) -> Mapping[NoticeKind, PushMode]:
    """`fill=off,summary=on`, or `all=off,stop=on`; what is not named keeps its default. `UsageError` otherwise."""
    modes = dict(DEFAULT_MODES)
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, word = (side.strip().lower() for side in part.partition("="))
        try:
            mode = PushMode(word)
            modes |= dict.fromkeys(NoticeKind, mode) if name == "all" else {NoticeKind(name): mode}
        except ValueError as error:
            kinds = ", ".join(NoticeKind)
            raise UsageError(
                f"{plain_text(part, 40)!r} is no kind of push and its mode: "
                f"kind=on, =silent or =off, where kind is all or one of {kinds}."
            ) from error
    return MappingProxyType(modes)


def parse_quiet_hours(text: str, zone: str = "UTC") -> QuietHours | None:
    """`22:00-07:00`, at `zone`, or `22:00-07:00 Europe/Zurich`; empty: none. `UsageError` otherwise."""
    if not text.strip():
        return None
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{plain_text(text, 40)!r} are no quiet hours; write 22:00-07:00, or 22:00-07:00 Europe/Zurich."
        )
    start, end = (int(match[place]) * 60 + int(match[place + 1]) for place in (1, 3))
    return QuietHours(start, end, parse_zone(match[5] or zone))


def parse_zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        if not _ZONE.fullmatch(name):
            raise ValueError(name)
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"{plain_text(name, 40)!r} is no time zone this machine knows; UTC or a name like Asia/Seoul."
        ) from error

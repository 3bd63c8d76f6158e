"""What a batch does to the stored rows: the same rules for every store."""

import math
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.trading.measure.data_quality import EARLIEST, LATEST, complete_at, find_row_fault, is_valid_candle, row_id
from zuno.trading.model.market import Candle, Series, timeframe_of
from zuno.trading.ports.series import PUBLIC_HISTORY, Batch, Origin, Source, WriteCounts

Key: TypeAlias = tuple[Millis, str]
StoredRow: TypeAlias = tuple[Millis, Any]
"""Since when a row is known, and the row."""
RowPut: TypeAlias = tuple[Millis, str, Millis, Any]
"""A key and its new row. Flat, because there are hundreds of thousands of them."""
PastRow: TypeAlias = tuple[Millis, str, Millis, Millis, Any]
"""A key and its earlier row: known from when, and until when."""
GOOD_ENOUGH = "kept once"
BAD = "bad"
"""The kind of a note about an impossible row."""


@dataclass(frozen=True, slots=True)
class RowNote:
    kind: str
    at: Millis
    id: str
    known: Millis
    detail: str
    replaced: Any = None
    mended: str | None = None


@dataclass(slots=True)
class MergeResult:
    puts: Sequence[RowPut] = ()
    pasts: list[PastRow] = field(default_factory=list)
    notes: list[RowNote] = field(default_factory=list)
    new: int = 0
    same: int = 0
    changed: int = 0
    bad: int = 0

    @property
    def counts(self) -> WriteCounts:
        return WriteCounts(self.new, self.same, self.changed, self.bad)


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """A batch without its impossible rows, in the order it came."""

    batch: Batch[Any]
    rows: Sequence[RowPut]
    bad: Sequence[RowNote]

    def span(self) -> tuple[Millis, Millis]:
        times = [at for at, _, _, _ in self.rows]
        return min(times), max(times)


def check_batches(batches: Sequence[Batch[Any]]) -> list[CheckedBatch]:
    """Check all batches before the store is changed, so that a bad one leaves it as it is."""
    offered = []
    for batch in filter(lambda batch: batch.rows, batches):
        bad: list[RowNote] = []
        rows = _candles(batch, bad) if batch.series.row is Candle else _others(batch, bad)
        offered.append(CheckedBatch(batch, list(rows), bad))
    return offered


def sources_of(offered: Sequence[CheckedBatch]) -> set[Source]:
    return {sound.batch.source for sound in offered if sound.rows}


def merge_batch(sound: CheckedBatch, standing: Mapping[Key, StoredRow], changed: Container[Key]) -> MergeResult:
    """`standing`: at least the stored rows of the batch's keys; `changed`: those that replaced others."""
    result = MergeResult(bad=len(sound.bad), notes=list(sound.bad))
    if not standing and all(before[:2] < after[:2] for before, after in pairwise(sound.rows)):
        result.puts, result.new = sound.rows, len(sound.rows)  # as a past is first written: nothing to compare
        return result
    puts: dict[Key, StoredRow] = {}
    replaced: set[Key] = set()
    for at, name, known, row in sound.rows:
        key = (at, name)
        offered = key in puts
        before = puts[key] if offered else standing.get(key)
        if before is None:
            result.new += 1
        elif before[1] == row:
            result.same += 1
            if offered:
                detail = "the same row twice in one answer"
                result.notes.append(RowNote("duplicate", *key, known, detail, mended=GOOD_ENOUGH))
            # What took another's place was not known while that one was, whatever is said of it later.
            if before[0] <= known or key in changed or key in replaced:
                continue
        else:
            result.changed += 1
            known = max(known, before[0])
            result.notes.append(RowNote("conflict", *key, known, difference(before[1], row), before[1]))
            if before[0] < known:
                result.pasts.append((*key, before[0], known, before[1]))
                replaced.add(key)
        puts[key] = (known, row)
    result.puts = [(*key, *held) for key, held in puts.items()]
    return result


def add_counts(left: WriteCounts, right: WriteCounts) -> WriteCounts:
    return WriteCounts(left.new + right.new, left.same + right.same, left.changed + right.changed, left.bad + right.bad)


def newest_prints(rows: Iterable[Any]) -> list[Any]:
    """The last released of several releases of one day."""
    days: MutableMapping[Millis, Any] = {}
    for row in rows:
        held = days.get(row.at)
        if held is None or row.released >= held.released:
            days[row.at] = row
    return [days[at] for at in sorted(days)]


def check_origin(kept: Origin, wanted: Origin) -> None:
    if kept.synthetic != wanted.synthetic:
        raise Refused(f"What is kept here is {kept.label}; {wanted.label} rows belong into a store of their own.")


def declare_origin(kept: Origin, recorded: Origin, sources: Collection[Source], *, empty: bool) -> Origin:
    """The origin of a store once it has rows of these sources; `recorded`: the origin of collected rows."""
    if kept.synthetic or not sources:
        return kept
    if Source.COLLECTED in sources:
        return recorded if kept.candles_only else kept
    return PUBLIC_HISTORY if empty else kept


def difference(before: Any, after: Any) -> str:
    if not isinstance(after, tuple):
        return "another document"
    names = type(after)._fields  # type: ignore[attr-defined]
    changed = zip(names, before, after, strict=True)
    return ", ".join(f"{name} {old!r} → {new!r}" for name, old, new in changed if old != new)


def _candles(batch: Batch[Any], bad: list[RowNote]) -> Iterator[RowPut]:
    timeframe = timeframe_of(batch.series)
    span, shift = timeframe.millis, timeframe.floor(0)
    known = math.inf if batch.known is None else batch.known
    for bar in batch.rows:
        try:
            sound = type(bar) is Candle and is_valid_candle(span, shift, bar, known)
        except TypeError:
            sound = False
        fault = None if sound else find_row_fault(batch.series, bar, batch.known)
        if fault is None:
            yield bar.at, "", bar.at + span if batch.known is None else batch.known, bar
        else:
            bad.append(_bad_note(batch, bar, fault))


def _others(batch: Batch[Any], bad: list[RowNote]) -> Iterator[RowPut]:
    series, floor = batch.series, batch.known
    for row in batch.rows:
        fault = find_row_fault(series, row, floor)
        if fault is None:
            complete = complete_at(series, row)
            yield row.at, row_id(row), complete if floor is None else max(floor, complete), row
        else:
            bad.append(_bad_note(batch, row, fault))


def _bad_note(batch: Batch[Any], row: Any, fault: str) -> RowNote:
    moment = getattr(row, "at", None)
    at = Millis(moment) if type(moment) is int and -(2**63) <= moment < 2**63 else Millis(0)
    known = _complete_time(batch.series, row, at) if batch.known is None else batch.known
    text = repr(row)[:300].encode("utf-8", "backslashreplace").decode()
    return RowNote(BAD, at, "", known, f"{fault}: {text}")


def _complete_time(series: Series[Any], row: Any, at: Millis) -> Millis:
    """When an impossible row would have been complete; its own time where nothing in it says so."""
    try:
        complete = complete_at(series, row)
    except (TypeError, AttributeError):
        return at
    return complete if type(complete) is int and EARLIEST <= complete < LATEST else at

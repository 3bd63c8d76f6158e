"""The indicators once more, in plain loops written from their definitions: what the fast ones are held against.

No numpy and no ta-lib here. A value is None where its definition does not give one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Column: TypeAlias = list[float | None]
Prices: TypeAlias = Sequence[float]


def sma(values: Prices, span: int) -> Column:
    return [None if i < span - 1 else sum(values[i - span + 1 : i + 1]) / span for i in range(len(values))]


def ema(values: Prices, span: int) -> Column:
    """Begun at the mean of the first `span` values."""
    out: Column = []
    last = 0.0
    for i, value in enumerate(values):
        if i < span - 1:
            out.append(None)
            continue
        last = sum(values[:span]) / span if i == span - 1 else last + (value - last) * 2 / (span + 1)
        out.append(last)
    return out


def wilder(values: Prices, span: int) -> list[float]:
    """Wilder's average, begun at the mean of the first `span`; one value for each from there on."""
    if len(values) < span:
        return []
    out = [sum(values[:span]) / span]
    for value in values[span:]:
        out.append((out[-1] * (span - 1) + value) / span)
    return out


def rsi(close: Prices, span: int = 14) -> Column:
    steps = [close[i] - close[i - 1] for i in range(1, len(close))]
    gains = wilder([max(step, 0.0) for step in steps], span)
    losses = wilder([max(-step, 0.0) for step in steps], span)
    found: Column = [
        50.0 if gain == loss == 0 else 100 * gain / (gain + loss) for gain, loss in zip(gains, losses, strict=True)
    ]
    return _late(found, len(close))


def stoch_rsi(strength: Column) -> tuple[Column, Column]:
    """Of an RSI; a range of mere rounding is none."""
    raw: Column = []
    for i, now in enumerate(strength):
        window = [value for value in strength[max(0, i - 13) : i + 1] if value is not None]
        if now is None or len(window) < 14 or max(window) - min(window) <= 1e-9:
            raw.append(None)
        else:
            raw.append(100 * (now - min(window)) / (max(window) - min(window)))
    k = _mean3(raw)
    return k, _mean3(k)


def macd(close: Prices) -> tuple[Column, Column, Column]:
    """The fast average is begun at the closes 15 to 26, so that both begin on one bar."""
    slow, fast = ema(close, 26), [None] * 14 + ema(close[14:], 12)
    line = [None if a is None or b is None else a - b for a, b in zip(fast, slow, strict=False)]
    found = [value for value in line if value is not None]
    signal = _late(ema(found, 9), len(close))
    shown = [a if b is not None else None for a, b in zip(line, signal, strict=True)]
    rest = [None if a is None or b is None else a - b for a, b in zip(shown, signal, strict=True)]
    return shown, signal, rest


def true_ranges(high: Prices, low: Prices, close: Prices) -> list[float]:
    """From the second bar on."""
    return [
        max(high[i] - low[i], abs(high[i] - close[i - 1]), abs(low[i] - close[i - 1])) for i in range(1, len(close))
    ]


def atr(high: Prices, low: Prices, close: Prices, span: int = 14) -> Column:
    return _late(list(wilder(true_ranges(high, low, close), span)), len(close))


def adx(high: Prices, low: Prices, close: Prices, first: int = 13, span: int = 14) -> Column:
    """`first`: of how many bars the first sums are made; Wilder took 14, ta-lib takes 13 and then smooths."""
    plus, minus = [], []
    for i in range(1, len(close)):
        up, down = high[i] - high[i - 1], low[i - 1] - low[i]
        plus.append(up if up > down and up > 0 else 0.0)
        minus.append(down if down > up and down > 0 else 0.0)
    sums = [sum(each[:first]) for each in (plus, minus, true_ranges(high, low, close))]
    out: Column = [None] * len(close)
    seen: list[float] = []
    last = 0.0
    rows = list(zip(plus, minus, true_ranges(high, low, close), strict=True))
    for i, row in enumerate(rows):
        if i >= first:
            sums = [total - total / span + value for total, value in zip(sums, row, strict=True)]
        if i < span - 1:
            continue
        directed = sums[0] + sums[1]
        seen.append(100 * abs(sums[0] - sums[1]) / directed if directed > 0 and sums[2] > 0 else -1.0)
        if len(seen) == span:
            last = sum(max(0.0, value) for value in seen) / span
        elif len(seen) > span and seen[-1] >= 0:
            last = (last * (span - 1) + seen[-1]) / span
        if len(seen) >= span:
            out[i + 1] = last
    return out


def bollinger(close: Prices, span: int = 20, width: float = 2.0) -> tuple[Column, Column, Column]:
    upper: Column = []
    lower: Column = []
    middle = sma(close, span)
    for i, mean in enumerate(middle):
        if mean is None:
            upper.append(None)
            lower.append(None)
            continue
        deviation = (sum((close[j] - mean) ** 2 for j in range(i - span + 1, i + 1)) / span) ** 0.5
        upper.append(mean + width * deviation)
        lower.append(mean - width * deviation)
    return upper, middle, lower


def keltner(high: Prices, low: Prices, close: Prices) -> tuple[Column, Column, Column]:
    middle, reach = ema(close, 20), atr(high, low, close, 20)

    def drawn(times: float) -> Column:
        return [None if m is None or r is None else m + times * r for m, r in zip(middle, reach, strict=True)]

    return drawn(1.5), middle, drawn(-1.5)


def supertrend(high: Prices, low: Prices, close: Prices) -> tuple[Column, Column]:
    line: Column = []
    sides: Column = []
    upper = lower = 0.0
    side = 0
    for i, reach in enumerate(atr(high, low, close, 10)):
        if reach is None:
            line.append(None)
            sides.append(None)
            continue
        middle = (high[i] + low[i]) / 2
        new_upper, new_lower = middle + 3 * reach, middle - 3 * reach
        if side == 0:
            upper, lower, side = new_upper, new_lower, 1 if close[i] >= middle else -1
        else:
            upper = new_upper if new_upper < upper or close[i - 1] > upper else upper
            lower = new_lower if new_lower > lower or close[i - 1] < lower else lower
        if side == 1 and close[i] < lower:
            side = -1
        elif side == -1 and close[i] > upper:
            side = 1
        line.append(lower if side == 1 else upper)
        sides.append(float(side))
    return line, sides


def middle_of(high: Prices, low: Prices, span: int) -> Column:
    return [
        None if i < span - 1 else (max(high[i - span + 1 : i + 1]) + min(low[i - span + 1 : i + 1])) / 2
        for i in range(len(high))
    ]


def mfi(high: Prices, low: Prices, close: Prices, volume: Prices, span: int = 14) -> Column:
    price = [(high[i] + low[i] + close[i]) / 3 for i in range(len(close))]
    out: Column = []
    for i in range(len(close)):
        steps = range(i - span + 1, i + 1)
        up = sum(price[j] * volume[j] for j in steps if i >= span and price[j] > price[j - 1])
        down = sum(price[j] * volume[j] for j in steps if i >= span and price[j] < price[j - 1])
        out.append(None if up + down == 0 else 100 * up / (up + down))
    return out


def cmf(high: Prices, low: Prices, close: Prices, volume: Prices, span: int = 20) -> Column:
    out: Column = []
    for i in range(len(close)):
        window = range(i - span + 1, i + 1)
        total = sum(volume[j] for j in window) if i >= span - 1 else 0.0
        flow = sum(
            ((close[j] - low[j]) - (high[j] - close[j])) / (high[j] - low[j]) * volume[j]
            for j in window
            if i >= span - 1 and high[j] > low[j]
        )
        out.append(None if total == 0 else flow / total)
    return out


def obv(close: Prices, volume: Prices) -> Column:
    out: Column = []
    total = 0.0
    for i in range(len(close)):
        step = 1 if i == 0 else (close[i] > close[i - 1]) - (close[i] < close[i - 1])
        total += step * volume[i]
        out.append(total)
    return out


def vwap(at: Sequence[int], high: Prices, low: Prices, close: Prices, volume: Prices) -> Column:
    """Of each UTC day from its midnight bar on."""
    day = 86_400_000
    out: Column = []
    money = shares = 0.0
    whole = False
    for i in range(len(at)):
        if i == 0 or at[i] // day != at[i - 1] // day:
            money = shares = 0.0
            whole = at[i] % day == 0
        money += (high[i] + low[i] + close[i]) / 3 * volume[i]
        shares += volume[i]
        out.append(money / shares if whole and shares > 0 else None)
    return out


def _mean3(values: Column) -> Column:
    out: Column = []
    for i in range(len(values)):
        three = [value for value in values[max(0, i - 2) : i + 1] if value is not None]
        out.append(sum(three) / 3 if len(three) == 3 else None)
    return out


def _late(found: Column, count: int) -> Column:
    """The found values at the end of a column of that many."""
    early: Column = [None] * (count - len(found))
    return early + found

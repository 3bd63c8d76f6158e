"""What the columns of a file are: by their names, by Binance's own order, and by what the file is called.

Column orders: https://github.com/binance/binance-public-data (klines, futures funding rates and metrics); freqtrade's
files: https://www.freqtrade.io/en/stable/data-download/; CryptoDataDownload's: https://www.cryptodatadownload.com/data/.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.text import plain_text
from zuno.markets.feeds import ALTERNATIVE, BINANCE, FIGURES
from zuno.markets.market import Catalogue, Symbol, spell_symbol
from zuno.markets.venues import DEFAULT_VENUE
from zuno.trading.model import market
from zuno.trading.ports.imports import NotNeeded

KLINES: Final = (
    "open_time", "open", "high", "low", "close", "volume", "close_time", "quote_volume", "count",
    "taker_buy_volume", "taker_buy_quote_volume", "ignore",
)  # fmt: skip
FUNDING_RATES: Final = ("calc_time", "funding_interval_hours", "last_funding_rate")
METRICS: Final = (
    "create_time", "symbol", "sum_open_interest", "sum_open_interest_value", "count_toptrader_long_short_ratio",
    "sum_toptrader_long_short_ratio", "count_long_short_ratio", "sum_taker_long_short_vol_ratio",
)  # fmt: skip
PLAIN: Final = ("date", "open", "high", "low", "close", "volume")

_TIME: Final = (
    "open_time", "opentime", "candle_date_time_utc", "unix", "unix_timestamp", "date", "datetime", "timestamp", "time",
    "ts", "day", "calc_time", "create_time", "funding_time", "fundingtime", "index_level_0", "",
)  # fmt: skip
_SYMBOL: Final = ("symbol", "pair", "ticker", "tic")
_VOLUME: Final = ("volume", "vol", "base_volume", "volume_base")
_COIN_VOLUME: Final = re.compile(r"volume_(?!usd|quote)[a-z0-9]{2,16}")
_TAKER: Final = (
    "taker_buy_volume", "taker_buy_base_asset_volume", "taker_buy_base_volume", "taker_buy_base", "taker_base_vol",
)  # fmt: skip
_RATE: Final = ("last_funding_rate", "funding_rate", "fundingrate")
_HOURS: Final = ("funding_interval_hours", "interval_hours")
_INTEREST: Final = ("sum_open_interest", "open_interest", "openinterest")
_RATIO: Final = ("count_long_short_ratio", "long_short_ratio", "longshortratio")
_MOOD: Final = ("fng", "fear_greed", "fear_and_greed", "fear_greed_index")
_DAILY_MEAN: Final = "funding_mean"
_COINS: Final = frozenset(market.base for market in Catalogue().list_at(DEFAULT_VENUE))
"""Those that are known by their names alone; any other is named with its quote."""
_NAMED_PAIR: Final = re.compile(r"(?<![a-z0-9])(?=\d*[a-z])([a-z0-9]{2,16}?)[-_/]?usdt?(?![a-z])", re.IGNORECASE)
_NAMED_COIN: Final = re.compile(rf"(?<![a-z])({'|'.join(sorted(_COINS))})(?![a-z])", re.IGNORECASE)
_NAMED_TIME: Final = re.compile(r"(?<![0-9a-z])(\d{1,2})(s|m|h|d|w|mo)(?![0-9a-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SeriesColumns:
    """One series of a file, and which columns its numbers are in."""

    series: market.Series[Any]
    places: tuple[int | None, ...]
    """The column of each number of a row; None where the file has none."""
    constants: tuple[float | None, ...] = ()
    """The number itself where no column has it."""
    factor: float = 1.0
    """By what the first number is multiplied."""
    later: int = 0
    """Milliseconds after the time that is written at which a row is placed."""
    parts: int = 1
    """How many rows make one bar of the series; where several do a block holds the whole file."""


@dataclass(frozen=True, slots=True)
class Layout:
    name: str
    time: int
    targets: tuple[SeriesColumns, ...]
    symbol: int | None = None
    """The column that says whose each row is."""
    notes: tuple[str, ...] = ()

    @property
    def places(self) -> list[int]:
        return sorted({place for target in self.targets for place in target.places if place is not None})


class RecognisedFile:
    _layout: Layout

    @property
    def layout(self) -> str:
        return self._layout.name

    @property
    def notes(self) -> tuple[str, ...]:
        return self._layout.notes


@dataclass(frozen=True, slots=True)
class FileHead:
    name: str
    names: tuple[str, ...] | None
    """Of its columns; None where it has no header."""
    width: int
    symbol: str | None
    """The symbol in its first row."""
    step: int | None
    """Milliseconds from most rows to the next, of the first ones."""


def clean_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def symbol_column(names: Sequence[str] | None) -> int | None:
    return None if names is None else _place(names, _SYMBOL)


def time_column(names: Sequence[str] | None) -> int:
    """Without a header the first."""
    if names is None:
        return 0
    place = _place(names, _TIME)
    if place is None:
        raise Refused(f"No column of it is a time: {_listed(names)}; name one of them date, time or timestamp.")
    return place


def find_layout(head: FileHead, wanted: market.Series[Any] | None, asked: str) -> Layout:
    """How a file is read, or `Refused` with what is missing."""
    names, how = _column_names(head, asked)
    for build in (_metrics, _funding_rates, _daily_funding, _candles, _mood, _figures, _levels):
        series = build(head, names, wanted)
        if series is not None:
            targets, notes = series
            if wanted is not None:
                targets = tuple(target for target in targets if target.series == wanted)
                if not targets:
                    continue
            symbol = symbol_column(names)
            return Layout(
                how or build.__name__.strip("_").replace("_", " "), time_column(names), targets, symbol, notes
            )
    what = f"a {wanted.feed} series" if wanted is not None else "candles, funding, open interest or a known figure"
    raise Refused(f"Its columns are not those of {what}: {_listed(names)}.")


def _column_names(head: FileHead, asked: str) -> tuple[tuple[str, ...], str]:
    """The names of its columns, and what it was recognised as where that is somebody's own form."""
    if head.names is not None:
        names = head.names
        known = {KLINES[:9]: "Binance klines", FUNDING_RATES: "Binance funding rates", METRICS: "Binance metrics"}
        dump = next((form for start, form in known.items() if names[: len(start)] == start), "")
        if asked == "binance" and not dump:
            raise Refused(f"It is no dump of Binance's klines, funding rates or metrics: {_listed(names)}.")
        if asked == "freqtrade" and not set(PLAIN) <= set(names):
            raise Refused(f"It is no file of freqtrade's: {_listed(names)}.")
        return names, dump or ("freqtrade" if asked == "freqtrade" else "")
    if asked in ("auto", "binance"):
        for order, form in ((KLINES, "Binance klines"), (METRICS, "Binance metrics")):
            if head.width == len(order):
                return order, form
        if head.width == len(FUNDING_RATES) and "funding" in head.name.lower():
            return FUNDING_RATES, "Binance funding rates"
    if asked != "binance" and head.width == len(PLAIN):
        freqtrade = asked == "freqtrade" or head.name.endswith(".json")
        return PLAIN, "freqtrade" if freqtrade else "columns in the order time, open, high, low, close, volume"
    raise Refused(
        f"It has {head.width} columns and no header, and this is no order of Binance's: write the names of its columns "
        "into the first line."
    )


# -- what a file may hold: its targets and notes, or None where its columns are others


_Found = tuple[tuple[SeriesColumns, ...], tuple[str, ...]]


def _candles(head: FileHead, names: Sequence[str], wanted: market.Series[Any] | None) -> _Found | None:
    prices = [_place(names, (name,)) for name in ("open", "high", "low", "close")]
    if None in prices or (wanted is not None and wanted.row is not market.Candle and wanted.row is not market.Funding):
        return None
    # What kind of candles freqtrade's name says, where they are no trades.
    kind = next((kind for kind in ("funding_rate", "mark", "index") if re.search(rf"-{kind}\.", head.name)), "")
    if kind == "funding_rate":
        hours = max(1.0, (head.step or 8 * market.HOUR_MS) / market.HOUR_MS)
        series = wanted or market.funding(BINANCE, _symbol(head))
        return (SeriesColumns(series, (prices[0], None), (None, hours)),), ()
    if kind:
        raise NotNeeded(f"It holds candles of the {kind} price, and what is kept here are candles of trades.")
    volume = _place(names, _VOLUME)
    if volume is None:
        volume = next((place for place, name in enumerate(names) if _COIN_VOLUME.fullmatch(name)), None)
    if volume is None:
        raise Refused(f"It has prices and no volume: {_listed(names)}.")
    series = wanted or market.candles(BINANCE, _symbol(head), _timeframe(head))
    timeframe = market.Timeframe(series.name.rpartition("/")[2])
    parts = 1
    if head.step is not None and head.step != timeframe.millis:
        if timeframe is not market.Timeframe.H1 or not _make_hours(head):
            raise Refused(f"Its rows are {_format_step(head.step)} apart, and {series} has a bar every {timeframe}.")
        parts = market.HOUR_MS // head.step
    taker = _place(names, _TAKER)
    notes = [] if taker is not None else ["it does not say what buyers took: CVD is missing, not zero"]
    notes += [] if parts == 1 else [f"each hour is made of {parts} bars, and only where all of them are there"]
    return (SeriesColumns(series, (*prices, volume, taker), parts=parts),), tuple(notes)


def _funding_rates(head: FileHead, names: Sequence[str], wanted: market.Series[Any] | None) -> _Found | None:
    rate = _place(names, _RATE)
    if rate is None or (wanted is not None and wanted.row is not market.Funding):
        return None
    hours = _place(names, _HOURS)
    series = wanted or market.funding(BINANCE, _symbol(head))
    if hours is not None:
        return (SeriesColumns(series, (rate, hours)),), ()
    every = (head.step or 8 * market.HOUR_MS) / market.HOUR_MS
    return (SeriesColumns(series, (rate, None), (None, every)),), (
        f"one rate every {every:g} h, as its rows are apart",
    )


def _daily_funding(head: FileHead, names: Sequence[str], wanted: market.Series[Any] | None) -> _Found | None:
    """The mean of a day's three rates is one payment of a day, three times as large, known when the day is over."""
    mean = _place(names, (_DAILY_MEAN,))
    if mean is None or (wanted is not None and wanted.row is not market.Funding):
        return None
    if wanted is None:
        raise Refused(
            "It has means of a day's funding, not the rates that were paid, and does not say whose: "
            "`--series funding/binance/BTCUSDT` imports each as one rate of 24 hours."
        )
    note = "means of a day, not the rates that were paid: each stands as one rate of 24 h, three times as large"
    return (SeriesColumns(wanted, (mean, None), (None, 24.0), factor=3.0, later=market.DAY_MS),), (note,)


def _metrics(head: FileHead, names: Sequence[str], wanted: market.Series[Any] | None) -> _Found | None:
    interest, ratio = _place(names, _INTEREST), _place(names, _RATIO)
    if interest is None or _place(names, ("open",)) is not None:
        return None
    if wanted is not None:
        chosen = {market.Feed.OPEN_INTEREST: interest, market.Feed.LONG_SHORT: ratio}.get(wanted.feed)
        return None if chosen is None else ((SeriesColumns(wanted, (chosen,)),), ())
    symbol = _symbol(head)
    both = [SeriesColumns(market.open_interest(BINANCE, symbol), (interest,))]
    both += [] if ratio is None else [SeriesColumns(market.long_short(BINANCE, symbol), (ratio,))]
    return tuple(both), ()


def _mood(head: FileHead, names: Sequence[str], wanted: market.Series[Any] | None) -> _Found | None:
    place = _place(names, _MOOD)
    if place is None or (wanted is not None and wanted.feed is not market.Feed.FEAR_GREED):
        return None
    return (SeriesColumns(wanted or market.fear_greed(ALTERNATIVE), (place,)),), ()


def _figures(head: FileHead, names: Sequence[str], wanted: market.Series[Any] | None) -> _Found | None:
    """A day's close is known when the day is over, by UTC: later than it was, never sooner."""
    if wanted is not None and wanted.row is not market.MacroRelease:
        return None
    by_name = {figure.lower(): market.macro(venue, figure) for venue, figures in FIGURES.items() for figure in figures}
    columns = [(place, by_name[name]) for place, name in enumerate(names) if name in by_name]
    if wanted is not None and not columns:
        return _only_number(names, wanted)
    note = "each value is taken to be known when its day is over, UTC"
    return (tuple(SeriesColumns(series, (place,)) for place, series in columns), (note,)) if columns else None


def _levels(head: FileHead, names: Sequence[str], wanted: market.Series[Any] | None) -> _Found | None:
    return _only_number(names, wanted) if wanted is not None and wanted.row is market.Level else None


def _only_number(names: Sequence[str], series: market.Series[Any]) -> _Found | None:
    rest = [place for place, name in enumerate(names) if place != time_column(names) and name not in _SYMBOL]
    return ((SeriesColumns(series, (rest[0],)),), ()) if len(rest) == 1 else None


# -- what a file is called


def _symbol(head: FileHead) -> Symbol:
    if head.symbol is not None:
        return name_symbol(head.symbol)
    coins = {coin.upper() for coin in _NAMED_PAIR.findall(head.name) or _NAMED_COIN.findall(head.name)}
    if len(coins) != 1:
        raise Refused(
            "Neither its columns nor its name say whose it is: call it SOLUSDT-1h or so, or name it by `--series`."
        )
    return name_symbol(f"{coins.pop()}{DEFAULT_VENUE.quote}")


def name_symbol(text: str) -> Symbol:
    """The symbol somebody else writes so. `Refused` for what is no coin against the dollar."""
    letters = re.sub(r"[^A-Z0-9]", "", text.upper())
    base = re.sub(r"USDT?(USDT)?$", "", letters)
    try:
        if base != letters or spell_symbol(base).base in _COINS:
            return spell_symbol(base)
    except UsageError:
        pass
    raise NotNeeded(f"It is about {plain_text(text, 40)!r}, which is no coin that is known; write it with its quote.")


def is_about(text: str, series: market.Series[Any]) -> bool:
    """Whether somebody else's symbol is that of a series."""
    try:
        return name_symbol(text).value == series.name.partition("/")[0]
    except Refused:
        return False


def _named_lengths(head: FileHead) -> set[str]:
    return {f"{count}{unit.lower()}" for count, unit in _NAMED_TIME.findall(head.name)}


def _make_hours(head: FileHead) -> bool:
    """Whether its rows are bars of minutes that make whole hours, and its name says nothing else."""
    step = head.step or 0
    divides = market.MINUTE_MS <= step < market.HOUR_MS and step % market.MINUTE_MS == 0 and market.HOUR_MS % step == 0
    return divides and _named_lengths(head) <= {f"{step // market.MINUTE_MS}m"}


def _timeframe(head: FileHead) -> market.Timeframe:
    named = _named_lengths(head)
    known = [timeframe for timeframe in market.Timeframe if timeframe in named]
    if len(known) == 1:
        return known[0]
    by_step = [timeframe for timeframe in market.Timeframe if timeframe.millis == head.step]
    if by_step and not named:
        return by_step[0]
    if _make_hours(head):
        return market.Timeframe.H1
    kept = ", ".join(market.Timeframe)
    if named:
        raise Refused(f"It is about {', '.join(sorted(named))} bars; here bars of {kept} are kept.")
    apart = "" if head.step is None else f" Its rows are {_format_step(head.step)} apart."
    raise Refused(f"Nothing says how long its bars are.{apart} Here bars of {kept} are kept: name one by `--series`.")


def _format_step(step: int) -> str:
    return f"{step / market.HOUR_MS:g} h" if step >= market.HOUR_MS else f"{step / 60_000:g} min"


def _place(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    return next((names.index(name) for name in wanted if name in names), None)


def _listed(names: Sequence[str]) -> str:
    return plain_text(", ".join(names), 200)

"""The vocabulary of the desk's prose: which words make a number a unit, a parameter, a span of time or a count."""

from __future__ import annotations

from fractions import Fraction

from zuno.core.provenance.figures import Unit

_MINUTE = Fraction(1, 60)
_DAY = Fraction(24)

SCALES = {"k": 10**3, "K": 10**3, "M": 10**6, "mn": 10**6, "B": 10**9, "bn": 10**9}
SCALE_WORDS = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, **SCALES}

HOURS_IN = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Fraction(1, 3600)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), _MINUTE),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Fraction(1)),
    **dict.fromkeys(("d", "day", "days"), _DAY),
    **dict.fromkeys(("w", "week", "weeks"), 7 * _DAY),
}
SHARES = {
    **dict.fromkeys(("percent", "pct", "pp", "ppt", "point", "points"), Unit.PERCENT),
    **dict.fromkeys(("bps", "bp"), Unit.BPS),
    **dict.fromkeys(("pip", "pips"), Unit.PIPS),
    **dict.fromkeys(("x", "times", "fold"), Unit.RATIO),
}
OTHERS = {"tick": Unit.TICK, "ticks": Unit.TICK, "gwei": Unit.GWEI, "block": Unit.BLOCK, "blocks": Unit.BLOCK}

DOLLARS = frozenset({"USD", "USDC", "USDT", "DAI"})
SYMBOLS = frozenset({"ETH", "WETH", "BTC", "WBTC", *DOLLARS})
ACRONYMS = frozenset(
    "LVR LP LPS NAV TVL APR APY UTC GMT RSI EMA SMA WMA MA ATR ADX MACD CCI MFI ROC VWAP OI ETF EV PNL DAO NFT IL AMM "
    "CRO OK AND OR NOT TO OF IN AT ON IS A THE FOR BY VS NO".split()
)
"""Capitals that are no token."""
WRAPPED = {"WETH": "ETH", "WBTC": "BTC", "DOLLARS": "USD", "DOLLAR": "USD"}
CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP"}

AVERAGES = frozenset("ema sma wma hma dema ma vwma".split())
OSCILLATORS = frozenset("rsi atr adx cci mfi roc stoch stochrsi macd bb bollinger keltner donchian supertrend".split())
INDICATORS = AVERAGES | OSCILLATORS
PERIODS = frozenset({2, 3, 5, 6, 7, 8, 9, 10, 12, 13, 14, 20, 21, 25, 26, 28, 34, 50, 55, 89, 100, 144, 150, 200, 250})
OSCILLATOR_PERIODS = frozenset({7, 9, 14, 21})
PERCENTILES = frozenset({1, 5, 10, 20, 25, 50, 75, 80, 90, 95, 99})
STANDARDS = frozenset({"erc", "eip"})
LABELS = frozenset("v l q c r h s round candidate option pool position plan step phase tier move no".split())

MOST_COUNTED = 10
"""Counts up to here claim nothing."""
MOST_ORDINAL = 100

FRAMES: dict[Fraction, frozenset[int]] = {
    _MINUTE: frozenset({1, 3, 5, 15, 30, 45}),
    Fraction(1): frozenset({1, 2, 4, 6, 8, 12, 24, 48, 72}),
    _DAY: frozenset({1, 7, 14, 30, 60, 90, 180, 365}),
    7 * _DAY: frozenset({1, 2, 4, 52}),
}
"""The spans people chart and count by; a 43 h window is no timeframe."""

FRAMED = frozenset(
    "chart charts candle candles close closes bar bars window timeframe frame frames horizon fee fees lvr return "
    "returns vol volatility high low average mean change move moves trend volume yield net carry momentum structure "
    "series history sample lookback period rsi ema sma macd atr ma moving income realised realized gross pnl swing "
    "drift sum total basis loss".split()
)
"""What a timeframe stands before: "24h fees", "the 4h chart"."""
FRAME_NAMES = FRAMED | {"exit", "p", "pexit"}
FRAMING = frozenset("last past next trailing previous prior per every each".split())
"""What a timeframe stands after, whatever else is said: "the last 7 days"."""
FRAMING_TOO = frozenset("over within in".split())
"""And these, unless something is measured: "over 24 h", but not "it breaks even within 24 h"."""
VALUED = frozenset(
    "buffer buffers floor floors cushion survive survives survived survival lasts lasting breakeven break breaks "
    "even old age ago stale median above below short longer under than margin headroom clear clears need needs only "
    "runway outlive outlives hold holds stay stays for until takes take cost costs repay repays repaid back "
    "after".split()
)
"""Beside these a span of time is a measurement, not a timeframe."""

STRESSED = frozenset(
    "buffer buffers stress stressed vol volatility floor floors median exit case scenario shock survival cushion "
    "margin one path paths p q in sigma run level world leaves keeps".split()
)
"""What a stress multiple stands before: "the 2× buffer"."""
STRESSING = frozenset("at under stress stressed fails clears passes".split())
"""What it stands after, whatever follows: "at 2× the median is 4 h"."""
STRESSING_TOO = frozenset("the and or to from".split())
"""After these only when nothing is compared: "the 2× one", not "to 2× the floor"."""
COMPARING = frozenset("the its their that this as of hold more larger longer higher wider what".split())
"""After these, "2×" compares: it is a claim."""

MEASURED = frozenset(
    "price spot tick ticks buffer fee fees lvr cost costs carry net vol volatility gas rsi adx worth value yield floor "
    "edge amount amounts apr apy spacing".split()
)
"""Straight after these a small bare integer is a value, not a count."""
LINKING = frozenset("at of is to was near reads".split())

HEDGES = frozenset("about around roughly approximately approx nearly almost near some circa ca".split())
FALLING = frozenset(
    "fell fall falls falling drop drops dropped down lose loses losing lost loss losses below under negative decline "
    "declined declines slid slide slides slipped short less lower bleed bleeds bleeding drag shed sheds sank behind "
    "downward off cut minus worse costs".split()
)
"""Near these a figure without a sign may stand for a negative fact: "fell 6 %"."""
RISING = frozenset(
    "rose rise rises rising up gain gains gained climbed climbs earns added adds higher positive".split()
)
COMPARED = frozenset(
    "above below over under more less fewer than short shorter longer higher lower wider narrower tighter better worse "
    "extra apart away gap margin margins by room headroom wide width span spans exceed exceeds beat beats between "
    "differ differs difference improvement improves reduction cut increase jump jumps up down left leave leaves "
    "further from off beyond upside downside upper top bottom edge edges band relative shortfall surplus costs saves "
    "minus spare distance side additional rise rises fall falls drop drops".split()
)
"""Beside one of these a figure may be what two facts make: "3 h above the floor". A figure merely stated is a fact."""
EQUATING = frozenset("is are or about roughly nearly only just some".split())
"""Before these, a share of two printed figures: "17 on 250k is 0.7 bps"."""
STATING = frozenset("to at above below over under than against vs versus".split())
"""Straight after these a figure is stated: "falls to 20 %", "below 2.4"."""
STATED = frozenset("floor floors buffer buffers ceiling median threshold".split())
"""And straight before these: "the 24 h floor"."""
MULTIPLIED = COMPARING | frozenset("candidate lvr fees net carry cost current our normal".split())
"""What a multiple that compares stands before: "1.6× LVR", but "1.4× gives"."""
REPAYING = frozenset("in within after".split())
"""Before these, the days in which a printed amount earns back another."""
BESIDE = frozenset("above below over under away from".split())
"""What a printed price is said to be from the price that goes without saying."""
ANNUAL = frozenset("year yearly annual annualised annualized annualises annualizes annually apr apy annum".split())
AGAINST = frozenset("against versus vs compared relative than over from above below under".split())

FURTHER = frozenset("more extra additional further fewer full".split())
"""May stand between a number and its unit: "13 more hours"."""
MEASURES = frozenset({*HOURS_IN, *SHARES, *OTHERS})
STRESS_WORDS = {"double": 2, "doubled": 2, "doubles": 2, "doubling": 2, "triple": 3, "tripled": 3, "triples": 3}
SPANNING = frozenset("range band wide width span spans spanning edges tick ticks".split())
"""Words that speak of a range's two ends at once, and of nothing else's."""

# ── what a figure is said of: a name in prose, and the words of which a fact's name must have one

_FEES = frozenset("fees fee uncollected".split())
_STAYING = frozenset("buffer median p10 tenth".split())
SPECIAL: dict[str, frozenset[str]] = {
    **dict.fromkeys(("p10", "tenth"), frozenset("p10 tenth th ten percentile bad".split())),
    "percentile": frozenset({"percentile", "th"}),
    "reference": frozenset({"reference", "oracle", "feed"}),
}
"""A fact with such a word in its name is meant by the name's other words only where a sentence says it."""
_LEAVING = frozenset("exit buffer median p10 tenth".split())
NAMED: dict[str, frozenset[str]] = {
    **dict.fromkeys(("floor", "floors"), frozenset({"floor"})),
    **dict.fromkeys(("buffer", "buffers", "survival", "cushion"), _STAYING),
    **dict.fromkeys(("exit", "odds", "chance", "probability"), _LEAVING),
    "p10": frozenset({"p10", "tenth"}),
    "lvr": frozenset({"lvr"}),
    **dict.fromkeys(("fees", "fee"), _FEES),
    **dict.fromkeys(("net", "nets", "carry"), frozenset({"net"})),
    **dict.fromkeys(("cost", "costs", "costing"), frozenset({"cost", "gas"})),
    **dict.fromkeys(("breakeven", "even"), frozenset({"even", "breakeven"})),
    **dict.fromkeys(("volatility", "vol"), frozenset({"volatility", "vol"})),
    **dict.fromkeys(("price", "spot"), frozenset({"price", "reference"})),
    "ceiling": frozenset({"ceiling"}),
    "width": frozenset({"width", "lower", "upper"}),
    "spacing": frozenset({"spacing"}),
}
PRICES = frozenset({"price", "spot"})
PRICE_OF_WHAT = frozenset("lower upper bottom top floor edge native gas low high".split())
OTHER_PRICES = frozenset("lower upper native gas".split())
"""What "price" may mean when a word before it says which."""
EARNED = _FEES | {"net", "yield"}
LOST = frozenset({"net", "lvr"})
EARNING = frozenset("earn earns earned earning collect collects collected makes yields".split())
LOSING = frozenset("lose loses losing lost bleed bleeds bleeding loss".split())
BARELY = frozenset("of a an the only just about roughly nearly some around approximately almost".split())
NAMING_LINKS = frozenset(
    "of is are was were at to be would will stand stands stay stays remain remains reads reach reaches equals "
    "come comes run runs fall falls drop drops grow grows rise rises climb climbs shrink shrinks go goes turn turns "
    "only just still now".split()
) | (HEDGES - {"near"})
"""May stand between a name and its figure."""
NAMING_BEHIND = frozenset("of in a per day daily gross expected median more".split())
"""May stand between a figure and its name."""
NEVER_AT = frozenset({"floor", "floors", "ceiling"})
""" "Below the floor at 12 h" is 12 h of something else."""
NEVER_BEHIND = frozenset("price spot costs nets even".split())
STRESSED_AT = frozenset({"at", "under"})
MULTIPLES = frozenset({"1", "2", "3"})
NUMBERED = frozenset("candidate candidates option options".split())
COMPARED_WITH = frozenset(
    "than over against versus vs beats beat beating with to unlike of for from by like exceeds trails dominates".split()
)
"""Before a candidate these make it what the sentence's own is held against."""
SUBJECT_OF = frozenset("is are was has had would gets keeps earns nets loses costs needs lasts collects".split())
"""Behind a candidate these make it the one that is spoken of, whatever stands before it."""
TURNING = frozenset("but while whereas where yet so though although and hold holding we i".split())
"""Behind a candidate these may lead away from it."""
HOLDING = frozenset(
    "hold holding staying stay present current currently today now unchanged instead from than doubling doubles versus "
    "into relative".split()
)
"""A sentence with one of these may speak of doing nothing beside the candidate it is about."""
EVERYBODY = frozenset("every others moves ballot three best worst widest narrowest suggest prefer try".split())
"""A sentence with one of these weighs the whole ballot, or points to another of it."""
SHIFTED = frozenset({"offset"})
"""Facts that are a way and not a place: their size may stand without a sign."""
NOT_NAMING = frozenset(
    "double doubled normal usual triple tripled twice stressed same identical unchanged base".split()
)
"""Before a name these make it a circumstance of the figure: "4 h at double volatility", "the same width 150 ticks
lower"."""

NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
} | {word: 10 * tens for tens, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
MULTIPLIERS = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}

MONTHS = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?"
)

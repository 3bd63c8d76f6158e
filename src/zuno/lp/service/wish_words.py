"""The words a wish may be said in, and the ones that are asked back rather than passed over."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.chains import CHAINS

RISK: Final[Mapping[str, RiskProfile]] = MappingProxyType(
    {
        **dict.fromkeys(
            "passive passively safe safely safer safest cautious cautiously careful carefully conservative "
            "conservatively low-risk lower-risk risk-averse risk-off".split(),
            RiskProfile.CONSERVATIVE,
        ),
        **dict.fromkeys("moderate moderately medium balanced medium-risk mid-risk".split(), RiskProfile.BALANCED),
        **dict.fromkeys(
            "active actively yolo degen aggressive aggressively risky high-risk higher-risk risk-on risk-tolerant "
            "risk-seeking".split(),
            RiskProfile.AGGRESSIVE,
        ),
    }
)
RISK_BEFORE: Final[Mapping[str, RiskProfile]] = MappingProxyType(
    {
        **dict.fromkeys("low lower lowest little minimal".split(), RiskProfile.CONSERVATIVE),
        **dict.fromkeys("high higher highest".split(), RiskProfile.AGGRESSIVE),
    }
)
"""What these make of "risk" behind them."""
RISK_BEHIND: Final[Mapping[str, RiskProfile]] = MappingProxyType(
    {
        **dict.fromkeys("averse off".split(), RiskProfile.CONSERVATIVE),
        **dict.fromkeys("tolerant seeking loving on".split(), RiskProfile.AGGRESSIVE),
    }
)
"""And these of "risk" before them."""
LONG: Final = frozenset({"long", "long-token"})
NEUTRAL: Final = frozenset({"neutral", "neutrally"})
HORIZON: Final = frozenset("term time run haul while period".split())
"""After "long" these speak of time, not of a token."""

_SYMBOLS: Final = frozenset(token.symbol for chain in CHAINS for token in chain.tokens)
_ALIASES: Final = {"ether": "ETH", "ethers": "ETH", "ethereum": "ETH"}
TOKENS: Final = frozenset(
    [
        *(symbol.lower() for symbol in _SYMBOLS),
        *_ALIASES,
        *"wbtc cbbtc wsteth cbeth usde usds eurc arb uni link".split(),
    ]
)
"""Names that mean a token wherever they stand; any other word means one only behind a number or in a pair."""

CHAIN_WORDS: Final = frozenset([*(chain.name for chain in CHAINS), "sim", "devnet"])
ONLY_AFTER_ON: Final = frozenset({"ethereum", "eth", "op", "arb"})
"""Chains that share their name with a token: chains only where "on" says so."""
AFTER_ON: Final = frozenset("the a my this that it uniswap v4 chain both zuno top".split())

TARGETS: Final = frozenset("into against with vs versus for to and plus in".split())
"""What follows these matters: an unknown word there may be a token nobody priced."""

FILLERS: Final = frozenset(
    """a about account add all-in allocate am amount an any approximately around as asset assets at be best bit bring
    buy by can capital capital's chain could create crypto currently deploy dear deposit desk dex do earn earning extra
    fairly fee fees fine from funds gas get give go good got great have help hello hey hi i i'd i'll i'm i've idle
    income invest investing investment is it just keep kind let like liquidity lp make making manner market me mint
    money my need network new nice now of off ok okay open opening our out pair place placed please pool pools position
    positions preferably pretty provide providing put quick quickly quite range rather really relatively roughly set
    should side sir sitting so some somewhat spare stance start stay staying strategy style super supply tank thank
    thanks that the them then there this tier today token tokens trade trades trading two uniswap up us use using v4
    very wallet wanna want wanted way we while will wish with work worth would yes yield you your zuno basis point
    points profile exposure mode mostly""".split()
)
"""Words that change nothing wherever they stand, but see `NOT_BEFORE_AMOUNT`. A word listed nowhere is asked back."""

NOT_BEFORE_AMOUNT: Final = frozenset(
    "keep stay staying from by up off out at to for in into on against vs versus gas spare fee fees yield trade trades "
    "earn earning income get buy".split()
)
"""Before an amount these may make it something other than capital: a price, a reserve, a goal."""

_HALF: Final = "say the amount in digits, such as 0.05 ETH, or give --amount."
_PLAIN: Final = "say what you want, not what you do not want; --profile, --pair and --exposure name it."
_BOLD: Final = "say how boldly with --profile conservative, balanced or aggressive."
_WIDTH: Final = "the desk argues about how wide a range is; say how boldly with --profile."
_TERM: Final = "a position has no term and no timetable; leave the time out."
_ASIDE: Final = "name only what you bring; --token, --amount and --with say it alone."
_LIMIT: Final = "a wish sets no limits; --fee names a fee, --profile how boldly."
MISREAD: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys("all half quarter double twice max maximum everything rest most third".split(), _HALF),
        **dict.fromkeys("k thousand million billion dozen hundred one three four five ten".split(), _HALF),
        **dict.fromkeys(
            "not no never don't dont without except unless nor neither isn't ain't less minus but hardly barely "
            "scarcely rarely far anything nothing non anti instead avoid avoiding unlike opposite than too won't "
            "can't".split(),
            _PLAIN,
        ),
        **dict.fromkeys(
            "unsafe riskless risk-free safety danger dangerous reckless wild crazy bold boldly".split(), _BOLD
        ),
        **dict.fromkeys("risk risks low lower lowest little minimal high higher highest averse".split(), _BOLD),
        **dict.fromkeys(
            "tight tightly tighter narrow narrowly narrower wide widely wider broad full full-range concentrated "
            "concentrate symmetric centered centred".split(),
            _WIDTH,
        ),
        **dict.fromkeys(
            "day days daily hour hours hourly week weeks weekly month months monthly year years yearly minute minutes "
            "until till tomorrow tonight later when whenever after before".split(),
            _TERM,
        ),
        **dict.fromkeys(
            "leave leaving leaves left keeping reserve reserving save saving besides beyond aside apart each apiece "
            "per both".split(),
            _ASIDE,
        ),
        **dict.fromkeys(
            "within under over above below between least more if only limit stop target slippage".split(), _LIMIT
        ),
        "or": "say one wish at a time.",
        **dict.fromkeys(
            "short shorting".split(), "a liquidity position cannot be short; choose --exposure long-token or neutral."
        ),
        **dict.fromkeys(
            "leverage leveraged borrow borrowed margin hedge hedged delta-neutral".split(),
            "this desk opens plain liquidity positions only.",
        ),
        **dict.fromkeys(
            "withdraw remove close burn sell sold swap collect send transfer approve apply sign execute".split(),
            "`recommend create` only argues about opening a position.",
        ),
        **dict.fromkeys(
            "testnet l2 rollup polygon solana bnb bsc avalanche zksync".split(),
            "name a chain Zuno knows, with on or --chain.",
        ),
    }
)
MOST_BARE_FEE: Final = 10_000
"""Pips. A larger percentage is a fee only where the sentence says so."""
SAYS_FEE: Final = frozenset("fee fees tier pool".split())
PERCENT_OF: Final = frozenset("of width wide range slippage apr apy yield each down up".split())
FOREIGN_MONEY: Final = frozenset(
    "usd dollar dollars buck bucks eur euro euros gbp chf yen cents wei gwei sats satoshi".split()
)


def token_named(text: str) -> str:
    """A token's name as the rest of Zuno writes it: symbols in capitals, addresses in lower case."""
    if len(text) == 42 and text[:2].lower() == "0x":
        return text.lower()
    return _ALIASES.get(text.lower(), text.upper())

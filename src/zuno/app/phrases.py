"""The words a wish may be said in, and the ones that are asked back rather than passed over."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from zuno.domain.chains import CHAINS
from zuno.domain.debate import RiskProfile

RISK: Final[Mapping[str, RiskProfile]] = MappingProxyType(
    {
        **dict.fromkeys(
            "passive passively safe safely safer safest cautious cautiously careful carefully conservative "
            "conservatively".split(),
            RiskProfile.CONSERVATIVE,
        ),
        **dict.fromkeys("moderate moderately medium balanced".split(), RiskProfile.BALANCED),
        **dict.fromkeys("active actively yolo degen aggressive aggressively risky".split(), RiskProfile.AGGRESSIVE),
    }
)
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
    """a about add all-in allocate an approximately around as at be bit bring buy by can capital capital's chain create
    deploy dear deposit do earn earning fee fees from funds get give go help hello hey hi i i'd i'll i'm is it just keep
    kind let liquidity little lp make making manner market me mint money my network new nice now of off open our out
    pair please pool pools position positions provide providing put range risk roughly set side so some stance start
    stay staying strategy style supply tank thank thanks that the them then there this tier token tokens two uniswap up
    us use using v4 want wanted way we while work worth would yield you your zuno basis point points profile exposure
    mode very mostly rather quite really today tonight tomorrow""".split()
)

_HALF: Final = "say the amount in digits, such as 0.05 ETH."
_PLAIN: Final = "say what you want, not what you do not want."
MISREAD: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys("all half quarter double twice max maximum everything rest most third".split(), _HALF),
        **dict.fromkeys("k thousand million billion dozen hundred".split(), _HALF),
        **dict.fromkeys(
            "not no never don't dont without except unless nor neither isn't ain't less minus".split(), _PLAIN
        ),
        "or": "say one wish at a time.",
        **dict.fromkeys(
            "short shorting".split(), "a liquidity position cannot be short; choose long-token or neutral exposure."
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
            "testnet l2 rollup polygon solana bnb bsc avalanche zksync".split(), "name a chain Zuno knows."
        ),
    }
)
PERCENT_OF: Final = frozenset("of width wide range slippage apr apy yield each down up".split())
FOREIGN_MONEY: Final = frozenset(
    "usd dollar dollars buck bucks eur euro euros gbp chf yen cents wei gwei sats satoshi".split()
)


def token_named(text: str) -> str:
    """A token's name as the rest of Zuno writes it: symbols in capitals, addresses in lower case."""
    if len(text) == 42 and text[:2].lower() == "0x":
        return text.lower()
    return _ALIASES.get(text.lower(), text.upper())

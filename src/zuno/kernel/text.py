"""Tokens, token amounts, and sanitising of untrusted text."""

from dataclasses import dataclass
from decimal import Context, Decimal
from unicodedata import category

from zuno.kernel.numbers_text import plain_digits
from zuno.kernel.units import Address

NATIVE: Address = Address("0x" + "00" * 20)
"""Uniswap v4 calls the chain's own currency by the zero address."""

MAX_SYMBOL = 16
MAX_DECIMALS = 255  # uint8 on chain

_EXACT = Context(prec=200)


@dataclass(frozen=True, slots=True)
class Token:
    """A currency of a pool. `symbol` is safe to print; `verified` says that we, not the contract, named it."""

    address: Address
    symbol: str
    decimals: int
    verified: bool = False

    @property
    def display_name(self) -> str:
        """The symbol, with a question mark where only the token's own contract vouches for it."""
        return self.symbol if self.verified else f"{self.symbol}?"

    @property
    def native(self) -> bool:
        return self.address == NATIVE


def plain_text(raw: str, limit: int) -> str:
    """Untrusted text sanitised: one line, printable, at most `limit` characters, never empty.

    Control, format (bidi overrides, zero width), private-use and unassigned characters are dropped;
    runs of white space become one space.
    """
    text = raw[: limit * 64]  # 10 kB of junk costs no more than what we could ever show
    if not text.isprintable():
        shown = (" " if char.isspace() else char for char in text if char.isspace() or category(char)[0] != "C")
        text = "".join(shown)
    text = " ".join(text.split())
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return text or "?"


def to_clause(error: Exception) -> str:
    """An error inside a sentence; part of it may be a node's own words."""
    return plain_text(str(error), 300).rstrip(".")


def format_units(amount: int, decimals: int) -> str:
    """Base units as an exact decimal string without trailing zeros: human(1500000, 6) == "1.5"."""
    return plain_digits(_EXACT.scaleb(Decimal(amount), -decimals))


def parse_units(text: str, decimals: int) -> int:
    """The inverse of `human`; raises ValueError on anything that is not an exact amount of base units."""
    try:
        if not text.isascii() or "_" in text:  # Decimal reads every script's digits
            raise ValueError("plain digits only")
        scaled = _EXACT.scaleb(Decimal(text), decimals)
        whole = int(scaled)
    except (ArithmeticError, ValueError) as error:
        raise ValueError(f"{text!r} is not an amount") from error
    if scaled != whole:
        raise ValueError(f"{text!r} has more than {decimals} decimals")
    return whole


STABLES = frozenset({"USDC", "USDT", "DAI"})


def is_stable(token: Token) -> bool:
    """Only verified tokens count: anyone can deploy something called USDC."""
    return token.verified and token.symbol in STABLES


def base_and_quote(token0: Token, token1: Token) -> tuple[Token, Token]:
    """(base, quote): a stablecoin is the quote; otherwise token1 is."""
    if is_stable(token0) and not is_stable(token1):
        return token1, token0
    return token0, token1

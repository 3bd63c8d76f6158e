"""Which pools a new position is debated in: the deepest few that trade the deposited tokens, or why there is none."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import compress
from typing import Final

from zuno.amm.integers import Q96
from zuno.amm.model import PoolState
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.text import Token, parse_units, plain_text
from zuno.lp.model.chains import ChainInfo, native_coin, unwrap_symbol
from zuno.lp.model.debate import Capital, PositionRequest

MOST_POOLS: Final = 5
MOST_UNITS: Final = (1 << 128) - 1
"""The most a pool can hold of a token."""


@dataclass(frozen=True, slots=True)
class PoolOption:
    """A pool with the owner's capital in its own base units."""

    pool: PoolState
    capital0: int
    capital1: int
    wraps: bool
    depth: Fraction
    """Whole tokens of the first capital line that the liquidity at the price stands for."""


def choose_pools(
    request: PositionRequest, pools: Sequence[PoolState], info: ChainInfo, hooks: Collection[str] = ()
) -> tuple[PoolOption, ...]:
    """Pools to argue about: native first, then the deepest; hooks only if trusted. `Refused` lists the rest."""
    for name in (*(line.token for line in request.capital), *(request.pair or ())):
        _check_token(name, pools, info)
    options = [option for pool in pools if _is_open(pool, hooks) for option in _options(request, pool, info.name)]
    if request.fee is not None:
        fees = sorted({option.pool.lp_fee for option in options})
        options = [option for option in options if option.pool.lp_fee == request.fee]
        if fees and not options:
            there_is = ", ".join(map(_fee, fees))
            raise Refused(
                f"No {_wanted_pair(request)} pool on {info.name} charges {_fee(request.fee)}; there is {there_is}."
            )
    # A coin is also its wrapper, but a pair that is written with ETH names the native pools where there are any.
    pair = {name.upper() for name in request.pair or ()}
    exact = [pair == {token.symbol.upper() for token in (option.pool.token0, option.pool.token1)} for option in options]
    options = list(compress(options, exact)) or options
    if not options:
        raise Refused(f"No pool on {info.name} fits {_wanted_pair(request)}: {_what_exists(pools, hooks)}.")
    ordered = sorted(options, key=lambda option: (option.wraps, -option.depth, option.pool.id))
    return tuple(ordered[:MOST_POOLS])


def select_pools(names: Sequence[str], pools: Sequence[PoolState], info: ChainInfo) -> tuple[PoolState, ...]:
    """The pools that trade this token or these two; all where none is named. `Refused` where there is none."""
    for name in names:
        _check_token(name, pools, info)
    both = [((pool.token0, pool.token1), pool) for pool in pools]
    # In an order of its tokens each name is one of them; the rest of the tokens may be any.
    chosen = tuple(pool for tokens, pool in both if _sides(names, tokens) is not None)
    if names and not chosen:
        raise Refused(f"No pool on {info.name} trades {'/'.join(names)}: {_what_exists(pools, ())}.")
    return chosen


def split_capital(
    request: PositionRequest, pool: PoolState, chain: str, hooks: Collection[str] = ()
) -> tuple[tuple[int, int], ...]:
    """What the wish brings to a pool in its base units; nothing where it is no pool for it."""
    if not _is_open(pool, hooks) or request.fee not in (None, pool.lp_fee):
        return ()
    return tuple((option.capital0, option.capital1) for option in _options(request, pool, chain))


def matches_token(name: str, token: Token) -> bool:
    """Whether a name the owner typed is this token; by symbol only for tokens we named, because anyone can deploy a
    "USDC". ETH also means WETH, and POL means WPOL; never the other way round."""
    if name.startswith("0x"):
        return name.lower() == token.address
    return token.verified and name.upper() in (token.symbol.upper(), unwrap_symbol(token.symbol))


def pool_label(pool: PoolState) -> str:
    """Pair and fee, by which the pools of a survey differ."""
    hooked = " hooked" if pool.key.has_hooks else ""
    return f"{pool.token0.symbol}/{pool.token1.symbol} {pool.lp_fee / 10_000:.2f} %{hooked}"


def kept_side(request: PositionRequest, pool: PoolState) -> int | None:
    """Which of the pool's tokens the owner named first: the one that `long-token` keeps."""
    sides = _sides([line.token for line in request.capital], (pool.token0, pool.token1))
    return None if sides is None else sides[0]


def to_wrap(request: PositionRequest, pool: PoolState, chain: str) -> Capital | None:
    """What of the chain's native coin has to become its wrapper before this pool can take it."""
    tokens, coin = (pool.token0, pool.token1), native_coin(chain)
    sides = _sides([line.token for line in request.capital], tokens) or ()
    lines = ((line, tokens[side].symbol) for line, side in zip(request.capital, sides, strict=False))
    return next((line for line, into in lines if (line.token.upper(), into) == (coin.symbol, coin.wrapped)), None)


def _is_open(pool: PoolState, hooks: Collection[str]) -> bool:
    """Whether a pool can be used: its hooks are trusted, or it has none and a static fee; and it has liquidity."""
    trusted = pool.key.hooks in hooks if pool.key.has_hooks else not pool.key.dynamic_fee
    return trusted and pool.liquidity > 0


def _options(request: PositionRequest, pool: PoolState, chain: str) -> Iterable[PoolOption]:
    tokens = (pool.token0, pool.token1)
    # A token nobody vouches for is argued about only when the owner named it.
    named = [*(line.token for line in request.capital), *(request.pair or ())]
    if not all(token.verified or any(matches_token(name, token) for name in named) for token in tokens):
        return
    if request.pair is not None and not any(_matches(names, tokens) for names in (request.pair, request.pair[::-1])):
        return
    sides = _sides([line.token for line in request.capital], tokens)
    if sides is None:
        return
    have = [0, 0]
    for line, side in zip(request.capital, sides, strict=True):
        have[side] = _units(line, tokens[side])
    yield PoolOption(pool, have[0], have[1], to_wrap(request, pool, chain) is not None, depth_in(pool, sides[0]))


def _matches(names: tuple[str, str], tokens: tuple[Token, Token]) -> bool:
    return all(matches_token(name, token) for name, token in zip(names, tokens, strict=True))


def _sides(names: Sequence[str], tokens: tuple[Token, Token]) -> tuple[int, ...] | None:
    """Which of the pool's tokens each capital line is; in an ETH/WETH pool the exact name decides."""
    for order in ((0, 1), (1, 0)):
        if all(matches_token(name, tokens[side]) for name, side in zip(names, order, strict=False)):
            return order[: len(names)]
    return None


def _units(line: Capital, token: Token) -> int:
    text = f"{line.amount:f}"
    try:
        units = parse_units(text, token.decimals)
    except ValueError:
        raise UsageError(f"{token.symbol} has {token.decimals} decimals; {text} has more.") from None
    if units > MOST_UNITS:
        raise UsageError(f"{text} {token.symbol} is more than any pool can hold; check the amount.")
    return units


def depth_in(pool: PoolState, side: int) -> Fraction:
    """What the liquidity at the price stands for in one token: comparable between pools that share that token."""
    root = Fraction(pool.sqrt_price_x96, Q96)
    units = pool.liquidity * root if side else pool.liquidity / root
    return units / Fraction(10 ** (pool.token1 if side else pool.token0).decimals)


def _check_token(name: str, pools: Sequence[PoolState], info: ChainInfo) -> None:
    traded = {token.address: token for pool in pools for token in (pool.token0, pool.token1)}
    every = [*traded.values(), *info.tokens]
    if any(matches_token(name, token) for token in every):
        return
    if any(not token.verified and token.symbol.upper() == name.upper() for token in every):
        raise Refused(f"Nobody vouches for what calls itself {plain_text(name, 42)}; give the token's address.")
    known = sorted({token.symbol for token in every if token.verified})
    raise Refused(f"No token on {info.name} is called {plain_text(name, 42)}; Zuno knows {', '.join(known)} there.")


def _wanted_pair(request: PositionRequest) -> str:
    if request.pair is not None:
        return "/".join(request.pair)
    return " and ".join(line.token for line in request.capital)


def _what_exists(pools: Sequence[PoolState], hooks: Collection[str]) -> str:
    ours = [pool for pool in pools if _is_open(pool, hooks) and pool.token0.verified and pool.token1.verified]
    names = list(dict.fromkeys(f"{pool.token0.symbol}/{pool.token1.symbol} at {_fee(pool.lp_fee)}" for pool in ours))
    if not names:
        return "it has no pool without hooks that holds liquidity"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"there is {', '.join(names[:8])}{more}"


def _fee(pips: int) -> str:
    return f"{(Decimal(pips) / 10_000).normalize():f} %"

"""What a screen or a script is shown: closed read models in the names and types of the public JSON.

Amounts, liquidity and ids are strings because JSON numbers lose digits; each amount has a human twin beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from zuno.kernel.numbers_text import short_text
from zuno.kernel.text import Token
from zuno.kernel.view import View
from zuno.present.document import Tone, Value
from zuno.present.values import foreign, name


class ChainView(View):
    """What was read of one chain at one block."""

    chain: str
    block: int
    timestamp: int


class PoolKeyView(View):
    """A pool's identity."""

    id: str
    currency0: Token
    currency1: Token
    fee: int
    tick_spacing: int
    hooks: str
    dynamic_fee: bool
    label: str

    @property
    def verified(self) -> bool:
        """Whether its tokens are known by more than their own contracts' word."""
        return self.currency0.verified and self.currency1.verified

    @property
    def name(self) -> Value:
        return name(self.label) if self.verified else foreign(self.label)

    def pair(self, amount0: str, amount1: str) -> Value:
        """Amounts of its two tokens."""
        sides = ((amount0, self.currency0), (amount1, self.currency1))
        text = ", ".join(f"{short_text(amount)} {token.display_name}" for amount, token in sides)
        return Value(text) if self.verified else foreign(text)


POOL_DETAILS = frozenset(f"PoolKeyView.{field}" for field in PoolKeyView.model_fields if field != "label")
"""Fields of a pool that its name stands for."""


def warn_unverified(pools: Iterable[PoolKeyView]) -> Iterator[Value]:
    """A warning for each token that only its own contract vouches for."""
    for token in {token.address: token for pool in pools for token in (pool.currency0, pool.currency1)}.values():
        if not token.verified:
            about = "its contract alone gives it this name, so no price is looked up"
            yield foreign(f"{token.display_name} is {token.address}: {about}", Tone.BAD)


class LeftoverView(View):
    """What a plan leaves in the wallet of the tokens it was to put to work, in whole tokens."""

    token0: str
    token1: str
    symbol0: str
    symbol1: str
    share: float
    """Of what burn and swap paid, or of what was brought, by worth."""
    why: str

    @property
    def text(self) -> str:
        tokens = ((self.token0, self.symbol0), (self.token1, self.symbol1))
        amounts = " and ".join(f"{short_text(f'{Decimal(amount):.9f}')} {symbol}" for amount, symbol in tokens)
        return f"{amounts}, {100 * self.share:.2f} %: {self.why}"


class PoolView(PoolKeyView):
    """A pool at a block."""

    chain: str
    sqrt_price_x96: str
    tick: int
    lp_fee: int
    protocol_fee: int
    liquidity: str
    price: str
    price_unit: str
    block: int
    timestamp: int


class PoolsView(ChainView):
    pools: tuple[PoolView, ...]
    notes: tuple[str, ...]


class PositionView(View):
    """A position at a block, worth what a full burn would pay."""

    id: str
    chain: str
    owner: str
    pool: PoolKeyView
    tick_lower: int
    tick_upper: int
    tick: int
    liquidity: str
    amount0: str
    amount1: str
    fees0: str
    fees1: str
    amount0_human: str
    amount1_human: str
    fees0_human: str
    fees1_human: str
    value_human: str
    """Principal and fees together in the quote token."""
    value_unit: str
    price: str
    price_lower: str
    price_upper: str
    price_unit: str
    in_range: bool
    edge_distance_percent: str
    """Ticks to the nearer edge as a share of the width; negative outside the range."""
    subscribed: bool
    block: int
    timestamp: int


class MissingView(View):
    id: str
    reason: str


class PositionsView(ChainView):
    wallet: str | None
    complete: bool
    note: str
    positions: tuple[PositionView, ...]
    missing: tuple[MissingView, ...]


class ClosedPositionView(View):
    """A position that is gone; money in whole tokens of `unit`, null where its past could not be read."""

    id: str
    became: str
    """`rebalanced`, `closed` or `transferred`; `gone` where neither chain nor journal tells."""
    new_position_id: str | None
    plan_id: str | None
    """The plan of this home that did it."""
    pool: PoolKeyView | None
    position_ids: tuple[str, ...]
    """It and those it was rebalanced from, oldest first: the figures are of all of them."""
    opened_at: int | None
    closed_at: int | None
    unit: str | None
    result: str | None
    fees: str | None
    divergence_loss: str | None
    gas: str | None
    swap_cost: str | None
    lvr: str | None
    why: str
    """Why figures are missing."""


class ClosedPositionsView(ChainView):
    wallet: str
    complete: bool
    note: str
    positions: tuple[ClosedPositionView, ...]
    """The newest first."""


class FactView(View):
    """A market fact, or the reason why there is none."""

    value: str | None
    unit: str
    source: str | None
    as_of: int | None
    age_seconds: int | None
    stale: bool | None
    notes: tuple[str, ...] = ()


class MarketView(View):
    reference_price: FactView
    realized_vol: FactView
    gas_price: FactView
    l1_data_fee: FactView
    native_price: FactView


class InspectView(PositionView):
    """A position with its pool's state and the market around it."""

    pool_state: PoolView
    market: MarketView


class ExactTermsView(View):
    """The identity's terms in base units, unrounded: whole numbers or fractions ("7/3") that anyone can add."""

    nav_start: str
    nav_end: str
    flows: str
    external: str
    fees: str
    price_effect: str
    divergence_loss: str
    gas: str
    swap_cost: str
    residual: str


class TermsView(View):
    """The identity in one numeraire, as decimal strings of whole tokens, rounded to be read; `exact` is not."""

    token: str
    nav_start: str
    nav_end: str
    flows: str
    external: str
    """The part of the flows that others paid in, or (negative) took."""
    result: str
    fees: str
    price_effect: str
    divergence_loss: str
    gas: str
    swap_cost: str
    residual: str
    lvr: str
    exact: ExactTermsView


class PnlView(View):
    id: str
    chain: str
    pool: PoolKeyView
    position_ids: tuple[str, ...]
    """This position and those it was rebalanced from, oldest first."""
    from_block: int
    from_timestamp: int
    to_block: int
    to_timestamp: int
    open: bool
    fees0: str
    fees1: str
    fees0_human: str
    fees1_human: str
    gas_wei: str
    gas_valued: bool
    in_token0: TermsView
    in_token1: TermsView
    lineage: str | None
    """Who says which positions belong to it: `journal`, or `chain guess` for those of other homes; null where it is
    alone and no plan of this home minted it."""
    exact: bool
    """True when the residual is zero in both numeraires and nothing in it was merely computed or guessed."""
    computed: tuple[str, ...]
    """What could not be measured: a residual of zero proves nothing about these."""
    notes: tuple[str, ...]


class HodlView(View):
    """A position against tokens that were held instead; positive is a loss. In whole quote tokens."""

    hodl_worth: str
    divergence_loss: str


class PriceCaseView(HodlView):
    """A position at one price; `worth` is without uncollected fees."""

    percent: str
    """The change from today's price."""
    price: str
    amount0: str
    amount1: str
    amount0_human: str
    amount1_human: str
    worth: str
    fees_worth: str
    """Today's uncollected fees at that price."""
    in_range: bool
    since_mint: HodlView | None
    """Against the tokens put in at the mint; None where the mint is not on record."""


class WhatIfView(PriceCaseView, ChainView):
    """A position at a price that is not today's."""

    id: str
    pool: PoolKeyView
    price_now: str
    price_lower: str
    price_upper: str
    price_unit: str
    unit: str
    """The quote token that everything is valued in."""
    deposited0_human: str | None
    deposited1_human: str | None
    table: tuple[PriceCaseView, ...]
    """The same from -50 % to +50 %."""
    notes: tuple[str, ...]


class PricePointView(View):
    at: int
    price: str


class FeePeriodView(View):
    """Fees a position earned between two moments."""

    from_timestamp: int
    to_timestamp: int
    fees0_human: str
    fees1_human: str
    worth: str
    """Both in the quote token at today's price."""


class PositionHistoryView(ChainView):
    """The price of the last days with the position's range, and what it earned day by day."""

    id: str
    pool: PoolKeyView
    price_now: str
    price_lower: str
    price_upper: str
    price_unit: str
    unit: str
    prices: tuple[PricePointView, ...]
    prices_source: str | None
    fees: tuple[FeePeriodView, ...]
    """By day, the oldest first, with what the positions earned that it was rebalanced from; days before the first mint
    are left out."""
    notes: tuple[str, ...]


class LiquidityBandView(View):
    tick_lower: int
    tick_upper: int
    price_lower: str
    price_upper: str
    liquidity: str


class LiquidityView(ChainView):
    """A pool's liquidity from half its price to twice, between initialised ticks."""

    pool: PoolKeyView
    price: str
    price_unit: str
    tick: int
    bands: tuple[LiquidityBandView, ...]
    """By tick, the lowest first."""


class PoolMoveView(View):
    id: str
    label: str
    before: str
    after: str


class MoveView(ChainView):
    percent: str
    reference_before: str
    reference_after: str
    price_unit: str
    pools: tuple[PoolMoveView, ...]


class ResetView(View):
    chain: str
    seed: int
    block: int
    timestamp: int


class NodeView(View):
    running: bool
    url: str | None
    pid: int | None
    block: int | None
    timestamp: int | None
    file: str
    note: str

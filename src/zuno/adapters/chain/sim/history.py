"""A position's history on the simulated chain by the rules of `adapters.chain.rpc` (decision 8). Nobody else acts here,
so nothing is inferred from what happened shortly before."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from zuno.adapters.chain.sim.engine import SimWorld
from zuno.adapters.chain.sim.ledger import VAULT
from zuno.adapters.chain.sim.state import Nft, PositionChange, Trade, TransactionEffects
from zuno.adapters.chain.world import SIM
from zuno.amm.model import Block
from zuno.kernel.errors import NotFound, UsageError
from zuno.kernel.units import Seconds, SqrtPriceX96, Wei
from zuno.lp.model.history import (
    NO_PLANS,
    ExternalFlow,
    JournaledPlans,
    PositionEvent,
    PositionHistory,
    PricedBlock,
    WalletSwap,
)

_STARTS = "its record starts there"
Two = tuple[int, int]


def position_history(
    world: SimWorld, position_id: int, since: Seconds | None, plans: JournaledPlans = NO_PLANS
) -> PositionHistory:
    """What happened to a position and to those it was rebalanced from, from `since` (None: the first mint) to now."""
    if since is not None and since > world.head.timestamp:
        raise UsageError(f"The window would open at {since}, after the chain's own time {world.head.timestamp}.")
    if position_id not in world.all_nfts:
        raise NotFound(f"No position {position_id} on sim; `zuno lp positions --chain sim` lists them.")
    return _HistoryBuilder(world, position_id, since, plans).build()


@dataclass(frozen=True, slots=True)
class _Life:
    nft: Nft
    until: int


@dataclass(slots=True)
class _Entries:
    events: list[PositionEvent | WalletSwap] = field(default_factory=list)
    externals: list[ExternalFlow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _HistoryBuilder:
    def __init__(self, world: SimWorld, position_id: int, since: Seconds | None, plans: JournaledPlans) -> None:
        self._world, self._since, self._plans = world, since, plans
        self._nft = world.all_nfts[position_id]
        key = world.specs[self._nft.pool].key
        self._pair = (key.currency0, key.currency1)
        self._notes = [plans.note] if plans.note else []

    def build(self) -> PositionHistory:
        world, nft = self._world, self._nft
        burn = next((effects for _, effects in self._window() if nft.id in effects.burnt), None)
        if burn is None and nft.id not in world.nfts:
            raise NotFound(f"position {nft.id} on sim was burnt before the window opens")
        lives = self._lives()
        start = None
        if self._since is not None and self._mint(lives[-1].nft) is None:
            start = world.past(self._since).snapshot_position(lives[-1].nft)
        mints = [self._mint(life.nft) for life in lives]
        entries = self._build_entries({life.nft.id: life for life in lives})
        opened = entries.events[0].block if start is None else start.block
        closed = world.head if burn is None else burn.block
        spec = world.specs[nft.pool]
        return PositionHistory(
            key=spec.key,
            token0=spec.token0,
            token1=spec.token1,
            opened=opened,
            closed=closed,
            start=start,
            end=world.snapshot_position(nft) if burn is None else None,
            events=tuple(entries.events),
            path=list_prices(world.prices[nft.pool], opened, closed),
            native_side=SIM.native_side(spec.key),
            externals=tuple(entries.externals),
            lineage=self._plans.name_lineage([None if mint is None else mint[1].tx for mint in mints]),
            notes=(*self._notes, *entries.notes),
        )

    def _window(self) -> Iterator[tuple[int, TransactionEffects]]:
        """The transactions after `since`, with their indexes."""
        for place, effects in enumerate(self._world.effects):
            if self._since is None or effects.block.timestamp > self._since:
                yield place, effects

    def _mint(self, nft: Nft) -> tuple[int, TransactionEffects] | None:
        return next(((place, effects) for place, effects in self._window() if nft.id in effects.minted), None)

    # -- which positions it came from

    def _lives(self) -> list[_Life]:
        """The position and those it was rebalanced from in the window, newest first."""
        lives = [_Life(self._nft, len(self._world.effects))]
        while (mint := self._mint(lives[-1].nft)) is not None:
            closing = self._find_closing(lives[-1].nft, *mint)
            if closing is None:
                break
            lives.append(closing)
        return lives

    def _find_closing(self, nft: Nft, place: int, mint: TransactionEffects) -> _Life | None:
        """What a plan closed for this mint, or else what the owner closed in the mint's own transaction."""
        if mint.tx in self._plans.mints:
            old, closing = self._plans.mints[mint.tx] or (0, None)
            places = (at for at, effects in self._window() if effects.tx == closing)
            return next((_Life(self._world.all_nfts[old], at) for at in places), None)
        emptied = [_Life(old, place) for old in _find_emptied(mint, nft)]
        minted = [self._world.all_nfts[token] for token in mint.minted]
        siblings = [other for other in minted if (other.pool, other.owner) == (nft.pool, nft.owner)]
        if len(emptied) > 1:
            self._notes.append(f"{len(emptied)} positions were closed when {nft.id} was minted: {_STARTS}")
        elif emptied and len(siblings) > 1:
            self._notes.append(
                f"position {emptied[0].nft.id} was closed for {len(siblings)} new ones, {nft.id} among them: {_STARTS}"
            )
        return emptied[0] if len(emptied) == len(siblings) == 1 else None

    # -- what happened to them

    def _build_entries(self, lives: dict[int, _Life]) -> _Entries:
        entries = _Entries()
        sent = {tx for token in lives for tx in self._plans.sent.get(token, ())}
        prices = {price.block.number: price.sqrt_price_x96 for price in self._world.prices[self._nft.pool]}
        for place, effects in self._window():
            ours = [
                change for change in effects.changes if change.nft.id in lives and place <= lives[change.nft.id].until
            ]
            if ours:
                self._add_transaction(effects, ours, entries)
            elif effects.tx in sent and not effects.changes:
                price, paid = prices[effects.block.number], (effects.gas, effects.gas_paid)
                entries.events.append(WalletSwap(effects.block, effects.tx, price, 0, 0, 0, 0, *paid))
        return entries

    def _add_transaction(self, effects: TransactionEffects, ours: Sequence[PositionChange], entries: _Entries) -> None:
        """One transaction: its touches, the swap made for them, gas once, and money of others."""
        owner = ours[0].nft.owner
        mine = {change.nft.id for change in ours}
        everyone = {change.nft.id for change in effects.changes if change.nft.owner == owner}
        left = self._pool_surplus(effects)
        own = self._sum(change for change in effects.changes if change.nft.id in everyone)
        gave = tuple(-effects.moved.get((owner, currency), 0) for currency in self._pair)
        trades = self._trades(effects)
        swapped = self._sum(trades)
        swap_is_ours = effects.sender == owner and any(swapped) and gave != own
        events = list[PositionEvent | WalletSwap]()
        for event in effects.pool_events:
            if isinstance(event, PositionChange) and event in ours:
                touch = effects.touch(event)
                extra = left if event is ours[-1] else (0, 0)
                events.append(replace(touch, paid0=touch.paid0 + extra[0], paid1=touch.paid1 + extra[1]))
            elif trades and event is trades[0] and swap_is_ours:
                part = (_share(swapped[0], mine, everyone), _share(swapped[1], mine, everyone))
                price = SqrtPriceX96(trades[0].prices_before_x96[self._nft.pool])
                events.append(WalletSwap(effects.block, effects.tx, price, *part, *part))
        if effects.sender == owner:
            events[0] = replace(
                events[0],
                gas=Wei(_share(effects.gas, mine, everyone)),
                gas_paid=Wei(_share(effects.gas_paid, mine, everyone)),
            )
        expected = (own[0] + swapped[0], own[1] + swapped[1]) if swap_is_ours else own
        others = tuple(
            _share(due + beyond - given, mine, everyone)
            for due, beyond, given in zip(expected, left, gave, strict=True)
        )
        entries.events += events
        if any(others):
            price = SqrtPriceX96(ours[-1].sqrt_price_x96)
            entries.externals.append(ExternalFlow(effects.block, effects.tx, price, others[0], others[1]))
            entries.notes.append(
                f"{effects.tx}: {others[0]} and {others[1]} base units of what moved were not the wallet's"
                " (another payer or recipient); they count as flows of others"
            )
        if everyone - mine and effects.sender == owner:
            entries.notes.append(
                f"{effects.tx} also touched the wallet's positions {sorted(everyone - mine)}:"
                " gas and any swap in it are shared equally"
            )

    def _pool_surplus(self, effects: TransactionEffects) -> Two:
        """What the pools were measured to receive beyond their own arithmetic: what a residual would be made of."""
        whole = self._sum(effects.pool_events)
        received = [effects.moved.get((VAULT, currency), 0) for currency in self._pair]
        return received[0] - whole[0], received[1] - whole[1]

    def _trades(self, effects: TransactionEffects) -> list[Trade]:
        keys = [spec.key for spec in self._world.specs]
        return [
            event
            for event in effects.pool_events
            if isinstance(event, Trade) and (keys[event.pool].currency0, keys[event.pool].currency1) == self._pair
        ]

    def _sum(self, pool_events: Collection[PositionChange | Trade] | Iterator[PositionChange]) -> Two:
        """What the pools are owed for these, in the pair's currencies, whichever pools they are."""
        total = dict.fromkeys(self._pair, 0)
        for event in pool_events:
            key = self._world.specs[event.nft.pool if isinstance(event, PositionChange) else event.pool].key
            for currency, owed in ((key.currency0, event.owed0), (key.currency1, event.owed1)):
                if currency in total:
                    total[currency] += owed
        return total[self._pair[0]], total[self._pair[1]]


def _find_emptied(effects: TransactionEffects, nft: Nft) -> list[Nft]:
    """Positions of the same pool and owner that a transaction burnt or emptied."""
    last = {change.nft.id: change for change in effects.changes}
    return [
        change.nft
        for change in last.values()
        if (change.nft.pool, change.nft.owner) == (nft.pool, nft.owner)
        and change.nft.id != nft.id
        and change.delta < 0
        and change.after.liquidity == 0
    ]


def _share(amount: int, mine: Collection[int], everyone: Collection[int]) -> int:
    """Equal parts that add up to the whole, whichever record asks."""
    order = sorted(everyone)
    parts = [amount * (at + 1) // len(order) - amount * at // len(order) for at in range(len(order))]
    return sum(part for token, part in zip(order, parts, strict=True) if token in mine)


def list_prices(prices: Sequence[PricedBlock], opened: Block, closed: Block) -> tuple[PricedBlock, ...]:
    """The price at the opening, then after every block: however short a move was, LVR knows it."""
    return tuple(price for price in prices if opened.number <= price.block.number <= closed.number)

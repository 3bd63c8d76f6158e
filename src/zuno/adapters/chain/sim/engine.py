"""The simulated chain's state: pools, balances, NFTs and every change, rebuilt by replaying the same events."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from zuno.adapters.chain.sim.ledger import Ledger, Permissions
from zuno.adapters.chain.sim.state import Nft, PoolEvent, PositionChange, SimState, Trade, TransactionEffects
from zuno.adapters.chain.states import build_pool_state, build_position, build_snapshot
from zuno.adapters.chain.world import (
    DEPLOYMENT,
    GENESIS_TIME,
    LIQUIDITY_ROUTER,
    OTHERS,
    SETUP_BLOCKS,
    SIM,
    START_PRICE,
    WALLET,
    Hour,
    MintStep,
    PoolSpec,
    SwapStep,
    furthest_price,
    write_script,
)
from zuno.amm.fees import protocol_fee_of_direction, swap_fee
from zuno.amm.model import Block, LpPosition, PoolState, Range
from zuno.amm.pool import LiquidityChange, Pool, PositionInfo, Slot0
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Seconds, SqrtPriceX96, Tick, Wei
from zuno.lp.model.history import PositionSnapshot, PricedBlock, SwapEvent
from zuno.lp.model.plan import MEASURED_GAS, StepKind

if TYPE_CHECKING:
    from zuno.adapters.chain.sim.contracts import CallOutcome
    from zuno.adapters.chain.sim.transactions import SimTransaction
    from zuno.lp.ports.spending import Call, Mined, SendResult

BASE_FEE: Wei = Wei(10**9)
PRIORITY_FEE: Wei = Wei(10**9)
"""What the devnet settles at: the floor of its base fee, and one gwei on top."""
MINT_GAS = MEASURED_GAS[StepKind.MINT]
BLOCK_SECONDS = 12
_HOURS_A_DAY = 24
_LEAST_TIP = 1
_SENT_BEFORE = {WALLET: 6, OTHERS: 12}
"""Transactions in which the devnet's script funds both accounts and sets allowances, before it begins."""


@dataclass(frozen=True, slots=True)
class PriceShift:
    """A push of the ETH price to a reference (micro-USDC)."""

    reference: int
    timestamp: Seconds


@dataclass(frozen=True, slots=True)
class SentTransaction:
    """A transaction that was accepted, as bytes that can be replayed."""

    raw: bytes
    sender: Address
    timestamp: Seconds
    gas_table: int = 0
    """Which of `gas.TABLES` it paid by."""


NEWEST_TABLE = 1
WorldEvent = PriceShift | SentTransaction


class SimWorld:
    """The world of a seed after some events. Replaying the same events gives the same bytes."""

    def __init__(self, seed: int) -> None:
        script = write_script(seed)
        self.seed = seed
        self.events: list[WorldEvent] = []
        """What happened since the script's end: with the seed, all it takes to rebuild this world."""
        self.specs: tuple[PoolSpec, ...] = script.pools
        pools = [
            Pool.initialize(spec.key.fee, spec.key.tick_spacing, spec.sqrt_price(START_PRICE)) for spec in self.specs
        ]
        self.books = SimState(pools, Ledger(), Permissions(), {})
        self.all_nfts: dict[int, Nft] = {}
        """Every position ever minted, burnt ones too."""
        self.effects: list[TransactionEffects] = []
        """Transactions that came in, and those of the script that touched positions."""
        self.mined: dict[HexId, tuple[SimTransaction, Mined]] = {}
        """Transactions that came in, by hash, oldest first."""
        self.nonces: Counter[Address] = Counter(_SENT_BEFORE)
        self.prices: list[list[PricedBlock]] = [[] for _ in self.pools]
        self._sealed: list[list[tuple[Slot0, int, tuple[int, int], Block]]] = [[] for _ in self.pools]
        """Price, liquidity and fee growth of every pool after every block."""
        self.traded: list[set[int]] = [set() for _ in self.pools]
        """Numbers of the blocks in which somebody swapped, by pool."""
        self.swaps: list[list[tuple[Block, SwapEvent]]] = [[] for _ in self.pools]
        """Every swap, by pool; its block is known by number and time, not yet by hash."""
        self.closes: list[tuple[Seconds, int]] = [(GENESIS_TIME, START_PRICE)]
        """Reference prices in micro-USDC, one for every block that had one."""
        self.genesis = HexId("0x" + sha256(f"zuno sim {seed}".encode()).hexdigest())
        self.head = Block(SETUP_BLOCKS - 1, self.genesis, GENESIS_TIME)
        for salt, mint in enumerate(script.opening):
            change = self.pools[mint.pool].modify_liquidity(
                LIQUIDITY_ROUTER, mint.lower, mint.upper, mint.liquidity, salt
            )
            self.ledger.settle(OTHERS, self.specs[mint.pool].key, change.amount0, change.amount1)
        self.nonces[OTHERS] += len(script.opening)
        self._seal(Seconds(GENESIS_TIME + SETUP_BLOCKS))
        self._days = [(self.head, self.books.copy())]
        """The script's world as each of its days began."""
        self._pasts: dict[int, SimWorld] = {}
        """By hours played; a debate asks for the same moment of every pool."""

    @classmethod
    def play(cls, seed: int, events: Iterable[WorldEvent] = (), until: Seconds | None = None) -> SimWorld:
        """The world as it stood after the last block not later than `until` (None: now)."""
        world, hours = cls(seed), write_script(seed).hours
        played = len(hours) if until is None else bisect_right(hours, until, key=lambda hour: hour.timestamp)
        world._play_hours(hours[:played])
        for event in events if played == len(hours) else ():
            if until is not None and event.timestamp > until:
                break
            world.replay(event)
        return world

    def past(self, moment: Seconds) -> SimWorld:
        """This world at an earlier moment, read-only. A moment of the script is played from the day it lies in, with
        nothing on record from before."""
        hours = write_script(self.seed).hours
        played = bisect_right(hours, moment, key=lambda hour: hour.timestamp)
        if played == len(hours):
            return SimWorld.play(self.seed, self.events, until=moment)
        if played in self._pasts:
            return self._pasts[played]
        day = played // _HOURS_A_DAY
        world, (world.head, books) = SimWorld(self.seed), self._days[day]
        world.books, world._days = books.copy(), self._days[: day + 1]
        world.all_nfts = dict(world.nfts)
        world._play_hours(hours[day * _HOURS_A_DAY : played])
        self._pasts[played] = world
        return world

    @property
    def pools(self) -> list[Pool]:
        return self.books.pools

    @property
    def ledger(self) -> Ledger:
        return self.books.ledger

    @property
    def nfts(self) -> dict[int, Nft]:
        return self.books.nfts

    @property
    def reference(self) -> int:
        return self.closes[-1][1]

    @property
    def next_time(self) -> Seconds:
        return Seconds(self.head.timestamp + BLOCK_SECONDS)

    def next_move(self, reference: int) -> PriceShift:
        return PriceShift(reference, self.next_time)

    def replay(self, event: WorldEvent) -> None:
        """Replay events; the caller checks that they end on the same hash."""
        if isinstance(event, PriceShift):
            self.apply(event)
        else:
            from zuno.adapters.chain.sim.transactions import parse_transaction

            self.transact(parse_transaction(event.raw, SIM.id, event.sender), event.timestamp, event.gas_table)

    def apply(self, move: PriceShift) -> None:
        """Swap every pool to the new reference, in one block."""
        self.events.append(move)
        self._begin(move.timestamp)
        for index, (spec, pool) in enumerate(zip(self.specs, self.pools, strict=True)):
            target = spec.sqrt_price(move.reference)
            if target != pool.slot0.sqrt_price_x96:
                self._swap(index, target < pool.slot0.sqrt_price_x96, 1 << 120, target)
                self.nonces[OTHERS] += 1
        self.closes.append((move.timestamp, move.reference))
        self._seal(move.timestamp)

    # -- transactions

    def admit(self, tx: SimTransaction) -> SendResult:
        """Check signed bytes before anything is done with them; `Refused` in a node's own words."""
        from zuno.adapters.chain.sim.gas import BLOCK_GAS, data_floor
        from zuno.lp.ports.spending import SendResult

        if tx.hash in self.mined:
            return SendResult.KNOWN
        if tx.gas > BLOCK_GAS:
            raise Refused(f"exceeds block gas limit: gas {tx.gas}, limit {BLOCK_GAS}")
        if tx.gas < data_floor(tx.call.data):
            raise Refused(f"intrinsic gas too low: gas {tx.gas}, minimum needed {data_floor(tx.call.data)}")
        if tx.tip > tx.max_fee:
            raise Refused(f"max priority fee per gas higher than max fee per gas: tip {tx.tip}, max fee {tx.max_fee}")
        if tx.max_fee < BASE_FEE or tx.tip < _LEAST_TIP:
            return SendResult.UNDERPRICED
        awaited = self.nonces[tx.sender]
        if tx.nonce < awaited:
            return SendResult.NONCE_SPENT
        if tx.nonce > awaited:
            raise Refused(f"nonce too high: next nonce {awaited}, tx nonce {tx.nonce}; on sim nothing waits")
        have = self.ledger.of(tx.sender, NATIVE)
        if have < tx.cost:
            raise Refused(f"insufficient funds for gas * price + value: have {have} want {tx.cost}")
        return SendResult.ACCEPTED

    def attempt(self, sender: Address, calls: Sequence[Call], gas: int | None = None) -> list[CallOutcome]:
        """How these calls would go in the next block, each on top of the one before, up to the first that reverts."""
        from zuno.adapters.chain.sim.contracts import attempt

        tried: list[CallOutcome] = []
        books = self.books
        for call in calls:
            tried.append(attempt(books, self.specs, sender, call, self.next_time, gas))
            books = tried[-1].books
            if tried[-1].error is not None:
                break
        return tried

    def transact(self, tx: SimTransaction, timestamp: Seconds, gas_table: int = NEWEST_TABLE) -> None:
        """Mine an admitted transaction, in a block of its own."""
        from zuno.adapters.chain.sim.contracts import attempt
        from zuno.adapters.chain.sim.gas import TABLES
        from zuno.lp.ports.spending import Mined

        self.events.append(SentTransaction(tx.raw, tx.sender, timestamp, gas_table))
        self._begin(timestamp)
        done = attempt(self.books, self.specs, tx.sender, tx.call, timestamp, tx.gas, TABLES[gas_table])
        before, self.books = self.ledger, done.books
        moved = self.ledger.changes_since(before)
        tip = Wei(min(tx.tip, tx.max_fee - BASE_FEE))
        gas_paid = self._pay_gas(tx.sender, done.gas_used, tip)
        self.nonces[tx.sender] += 1
        self.all_nfts |= {token_id: self._minted_nft(done, token_id) for token_id, _ in done.minted}
        for event in done.pool_events:
            if isinstance(event, Trade):
                self._note_swap(event.pool, event.zero_for_one, event.owed0, event.owed1, event.liquidity_after)
        self.closes.append((timestamp, self.reference))
        self._seal(timestamp, transacted=True)
        cost = Wei(done.gas_used * (BASE_FEE + tip))
        theirs = tuple(token_id for token_id, owner in done.minted if owner == tx.sender)
        self.mined[tx.hash] = tx, Mined(tx.hash, self.head, done.error is None, done.gas_used, cost, theirs)
        minted = tuple(token_id for token_id, _ in done.minted)
        self.effects.append(
            TransactionEffects(
                self.head, tx.hash, tx.sender, cost, gas_paid, done.pool_events, moved, minted, done.burnt
            )
        )

    def _minted_nft(self, done: CallOutcome, token_id: int) -> Nft:
        """Of a position that may have been burnt in the transaction that minted it."""
        kept = done.books.nfts.get(token_id)
        return kept or next(
            event.nft for event in done.pool_events if isinstance(event, PositionChange) and event.nft.id == token_id
        )

    def _pay_gas(self, sender: Address, units: int, tip: Wei) -> Wei:
        """Take the gas; what the sender's coin was seen to fall by."""
        before = self.ledger.of(sender, NATIVE)
        self.ledger.pay_gas(sender, units, BASE_FEE, tip)
        return Wei(before - self.ledger.of(sender, NATIVE))

    # -- reading

    def state(self, index: int) -> PoolState:
        spec, pool = self.specs[index], self.pools[index]
        tokens, growth = (spec.token0, spec.token1), (pool.fee_growth_global0_x128, pool.fee_growth_global1_x128)
        return build_pool_state(spec.id, spec.key, tokens, pool.slot0, pool.liquidity, growth, self.head)

    def state_at(self, index: int, moment: Seconds) -> PoolState:
        """After the last block not later than `moment`, which must not be before the first."""
        spec, sealed = self.specs[index], self._sealed[index]
        slot0, liquidity, growth, block = sealed[bisect_right(sealed, moment, key=lambda kept: kept[3].timestamp) - 1]
        return build_pool_state(spec.id, spec.key, (spec.token0, spec.token1), slot0, liquidity, growth, block)

    def position(self, nft: Nft) -> LpPosition:
        burn, info = self._full_burn(nft), self._info(nft)
        fees, principal = (burn.fees0, burn.fees1), (burn.amount0 - burn.fees0, burn.amount1 - burn.fees1)
        pool, held = self.state(nft.pool), info.liquidity
        return build_position(nft.id, "sim", nft.owner, pool, nft.range, held, principal, fees)

    def snapshot_position(self, nft: Nft) -> PositionSnapshot:
        info, pool = self._info(nft), self.pools[nft.pool]
        inside = pool.fee_growth_inside(nft.range.lower, nft.range.upper)
        price = pool.slot0.sqrt_price_x96
        return build_snapshot(nft.id, nft.range, self.head, price, info, self._proceeds(nft), inside)

    def _info(self, nft: Nft) -> PositionInfo:
        return self.pools[nft.pool].position(DEPLOYMENT.position_manager, nft.range.lower, nft.range.upper, nft.id)

    def _full_burn(self, nft: Nft) -> LiquidityChange:
        """What burning would pay, computed by burning on a copy."""
        held = self._info(nft).liquidity
        if not held:
            return LiquidityChange(0, 0, 0, 0)
        pool = self.pools[nft.pool].copy()
        return pool.modify_liquidity(DEPLOYMENT.position_manager, nft.range.lower, nft.range.upper, -held, nft.id)

    def _proceeds(self, nft: Nft) -> tuple[int, int]:
        """What the owner's balances would gain by burning, and the vault's lose: both are copies here."""
        key, burn, ledger_copy = self.specs[nft.pool].key, self._full_burn(nft), self.ledger.copy()
        before = ledger_copy.of_pair(nft.owner, key)
        ledger_copy.settle(nft.owner, key, burn.amount0, burn.amount1)
        after = ledger_copy.of_pair(nft.owner, key)
        return after[0] - before[0], after[1] - before[1]

    def _play_hours(self, hours: Sequence[Hour]) -> None:
        for played, hour in enumerate(hours, 1):
            self._begin(hour.timestamp)
            for step in hour.steps:
                self._play_step(step)
            # The story's devnet makes one transaction of an hour's swaps.
            self.nonces[OTHERS] += any(isinstance(step, SwapStep) for step in hour.steps)
            self.closes.append((hour.timestamp, hour.reference))
            self._seal(hour.timestamp)
            if played % _HOURS_A_DAY == 0:
                self._days.append((self.head, self.books.copy()))

    def _begin(self, timestamp: Seconds) -> None:
        """Open the next block, so that touches inside it know their number; its hash is known when it is sealed."""
        self.head = Block(self.head.number + 1, self.head.hash, timestamp)

    def _play_step(self, step: SwapStep | MintStep) -> None:
        if isinstance(step, SwapStep):
            self._swap(step.pool, step.zero_for_one, step.amount_in, furthest_price(step.zero_for_one))
        else:
            self._mint(step)

    def _swap(self, index: int, zero_for_one: bool, amount_in: int, limit: int) -> None:
        pool = self.pools[index]
        result = pool.swap(zero_for_one, -amount_in, limit)
        self.ledger.settle(OTHERS, self.specs[index].key, result.amount0, result.amount1)
        self._note_swap(index, zero_for_one, -result.amount0, -result.amount1, pool.liquidity)

    def _note_swap(self, index: int, zero_for_one: bool, paid0: int, paid1: int, liquidity: int) -> None:
        slot0 = self.pools[index].slot0
        fee = swap_fee(protocol_fee_of_direction(slot0.protocol_fee, zero_for_one), slot0.lp_fee)
        self.traded[index].add(self.head.number)
        self.swaps[index].append((self.head, SwapEvent(paid0, paid1, liquidity, fee)))

    def _mint(self, step: MintStep) -> None:
        pool, key = self.pools[step.pool], self.specs[step.pool].key
        nft = Nft(self.books.next_id, step.owner, step.pool, Range(Tick(step.lower), Tick(step.upper)))
        change = pool.modify_liquidity(DEPLOYMENT.position_manager, step.lower, step.upper, step.liquidity, nft.id)
        self.books.next_id += 1
        self.nfts[nft.id] = self.all_nfts[nft.id] = nft
        before = self.ledger.copy()
        self.ledger.settle(step.owner, key, change.amount0, change.amount1)
        moved = self.ledger.changes_since(before)
        gas_paid = self._pay_gas(step.owner, MINT_GAS, PRIORITY_FEE)
        self.nonces[step.owner] += 1
        event: PoolEvent = PositionChange(
            nft, step.liquidity, self._info(nft), pool.slot0.sqrt_price_x96, -change.amount0, -change.amount1
        )
        tx = HexId("0x" + sha256(f"{self.head.hash} {nft.id}".encode()).hexdigest())
        cost = Wei(MINT_GAS * (BASE_FEE + PRIORITY_FEE))
        self.effects.append(
            TransactionEffects(self.head, tx, step.owner, cost, gas_paid, (event,), moved, (nft.id,), ())
        )

    def _seal(self, timestamp: Seconds, *, transacted: bool = False) -> None:
        """Close the block: its hash binds the parent, every pool's state and what transactions can change."""
        number = max(self.head.number, SETUP_BLOCKS)
        digest = sha256(self.head.hash.encode())
        for pool in self.pools:
            slot0 = pool.slot0
            growth = (pool.fee_growth_global0_x128, pool.fee_growth_global1_x128)
            digest.update(repr((number, timestamp, tuple(slot0), pool.liquidity, growth)).encode())
        if transacted or self.mined:
            # Until somebody transacts, seed and moves decide everything that is not a pool.
            digest.update((self.books.canonical_text() + repr(sorted(self.nonces.items()))).encode())
        self.head = Block(number, HexId("0x" + digest.hexdigest()), timestamp)
        for pool, prices, sealed in zip(self.pools, self.prices, self._sealed, strict=True):
            prices.append(PricedBlock(self.head, SqrtPriceX96(pool.slot0.sqrt_price_x96)))
            growth = (pool.fee_growth_global0_x128, pool.fee_growth_global1_x128)
            sealed.append((pool.slot0, pool.liquidity, growth, self.head))

"""The v4 contracts, Permit2 and two tokens, executed on our own state by the contracts' rules, checks and errors. A
test plays the same calldata on both."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from zuno.adapters.chain.sim.gas import MEASURED, GasTable, data_floor, gas_needed
from zuno.adapters.chain.sim.ledger import MAX_UINT160, VAULT
from zuno.adapters.chain.sim.state import Nft, PoolEvent, PositionChange, SimState, Trade
from zuno.adapters.chain.world import DEPLOYMENT, LIQUIDITY_ROUTER, SWAP_ROUTER, USDC, WETH, PoolSpec, furthest_price
from zuno.amm.liquidity import liquidity_for_amounts
from zuno.amm.model import PoolKey, Range
from zuno.amm.pool import LiquidityChange
from zuno.amm.ticks import cached_sqrt_price_at_tick
from zuno.kernel.errors import Panic, PoolRefusal, Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, Seconds
from zuno.lp.model.plan import Grant
from zuno.lp.plan import calls
from zuno.lp.plan.decoding import decode
from zuno.lp.ports.spending import Call

MANAGER: Final = DEPLOYMENT.position_manager
ROUTER: Final = DEPLOYMENT.universal_router
PERMIT2: Final = DEPLOYMENT.permit2
TOKENS: Final = (WETH.address, USDC.address)
CONTRACTS: Final = frozenset(
    (VAULT, MANAGER, ROUTER, PERMIT2, DEPLOYMENT.quoter, DEPLOYMENT.state_view, SWAP_ROUTER, LIQUIDITY_ROUTER, *TOKENS)
)
NO_REASON: Final = "reverted without a reason"
OUT_OF_GAS: Final = "out of gas"

_CALLER: Final = Address(f"0x{1:040x}")
_CONTRACT: Final = Address(f"0x{2:040x}")
_ALL_IT_HAS: Final = 1 << 255
"""As an amount to settle: the contract's whole balance."""
_MAX_INT128: Final = (1 << 127) - 1
_ACTION_IDS: Final[dict[type[calls.Action], int]] = {
    calls.Increase: 0x00, calls.Decrease: 0x01, calls.Mint: 0x02, calls.Burn: 0x03, calls.IncreaseFromDeltas: 0x04,
    calls.MintFromDeltas: 0x05, calls.SwapIn: 0x06, calls.SettlePair: 0x0D, calls.TakePair: 0x11,
    calls.CloseCurrency: 0x12, calls.Sweep: 0x14,
}  # fmt: skip
"""Of those that one of the two contracts does not know."""


class ContractRevert(Refused):
    """A contract reverted; the message is its own error, with its numbers."""

    def __init__(self, word: str, *values: object) -> None:
        super().__init__(f"{word}({', '.join(map(str, values))})" if values else word)


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call went: the state after it, unchanged where it reverted."""

    books: SimState
    gas_used: int
    gas_needed: int
    error: str | None = None
    pool_events: tuple[PoolEvent, ...] = ()
    minted: tuple[tuple[int, Address], ...] = ()
    burnt: tuple[int, ...] = ()


def attempt(
    books: SimState,
    specs: Sequence[PoolSpec],
    sender: Address,
    call: Call,
    now: Seconds,
    gas: int | None = None,
    table: GasTable = MEASURED,
) -> CallOutcome:
    """Run a call in a block of that time, with so much gas (None: as much as it takes)."""
    floor, decoded = data_floor(call.data), None
    need = floor
    try:
        if call.to in CONTRACTS:
            decoded = _decode_call(call)
            need = max(floor, gas_needed(decoded.call, table))
        run = _Run(books.copy(), specs, now)
        run.call(sender, call, decoded)
        if decoded is not None:
            need = max(floor, _gas_of(run, books, sender, decoded.call, table))
    except (ContractRevert, PoolRefusal) as refusal:
        spent = floor + (need - floor) // 2  # half, because where in the call it reverts is not followed
        return CallOutcome(books, spent if gas is None else min(spent, gas), need, _refusal_text(refusal))
    if gas is not None and gas < need:
        return CallOutcome(books, gas, need, OUT_OF_GAS)
    return CallOutcome(run.books, need, need, None, tuple(run.pool_events), tuple(run.minted), tuple(run.burnt))


def _gas_of(run: "_Run", books: SimState, sender: Address, call: calls.Call, table: GasTable) -> int:
    known = isinstance(call, calls.Permit) and (sender, call.token, call.spender) in books.permissions.granted
    changes = [event for event in run.pool_events if isinstance(event, PositionChange)]
    pays_one = bool(changes) and all(0 in (change.owed0, change.owed1) for change in changes)
    return gas_needed(call, table, permitted_before=known, pays_one=pays_one)


def _refusal_text(refusal: ContractRevert | PoolRefusal) -> str:
    if isinstance(refusal, ContractRevert):
        return str(refusal)
    return "panic 0x11 (arithmetic overflow)" if isinstance(refusal, Panic) else type(refusal).__name__


def _decode_call(call: Call) -> calls.DecodedCall:
    try:
        return decode(call.to, call.value, call.data, DEPLOYMENT.swap_struct)
    except Refused as unread:
        raise ContractRevert(f"{NO_REASON}: sim cannot read it ({unread})") from unread


class _Run:
    def __init__(self, books: SimState, specs: Sequence[PoolSpec], now: Seconds) -> None:
        self.books, self._now = books, now
        self._ledger, self._permissions = books.ledger, books.permissions
        self.keys = [spec.key for spec in specs]
        self.pool_events: list[PoolEvent] = []
        self.minted: list[tuple[int, Address]] = []
        self.burnt: list[int] = []

    def call(self, sender: Address, call: Call, decoded: calls.DecodedCall | None) -> None:
        if self._ledger.of(sender, NATIVE) < call.value:
            raise ContractRevert("insufficient funds for transfer")
        if decoded is None:
            self._ledger.pay(sender, call.to, NATIVE, call.value)
            return
        match decoded.call:
            case calls.Wrap() if call.to == WETH.address:
                self._ledger.wrap(sender, call.value)
            case calls.Approve(spender, amount) if call.to in TOKENS and not call.value:
                self._permissions.approve(sender, call.to, spender, amount)
            case calls.Permit(token, spender, amount, expiration) if call.to == PERMIT2 and not call.value:
                # Without an end a permit is good for this block alone.
                self._permissions.permit(sender, token, spender, Grant(amount, expiration or self._now))
            case calls.ModifyLiquidities() as modify if call.to == MANAGER:
                self._ledger.pay(sender, MANAGER, NATIVE, call.value)
                self._modify(sender, modify)
            case calls.Execute() as execute if call.to == ROUTER:
                self._ledger.pay(sender, ROUTER, NATIVE, call.value)
                self._execute(sender, execute)
            case _:
                raise ContractRevert(NO_REASON)  # the contract has no such function, or takes no ether with it

    # -- UniversalRouter

    def _execute(self, sender: Address, execute: calls.Execute) -> None:
        if self._now > execute.deadline:
            raise ContractRevert("TransactionDeadlinePassed")
        for command in execute.commands:
            match command:
                case calls.RouterSwap(actions):
                    _RouterLock(self, ROUTER, sender).execute(actions)
                case calls.TransferFrom(token, recipient, amount):
                    to = {_CALLER: sender, _CONTRACT: ROUTER}.get(recipient, recipient)
                    self.move_permitted(sender, ROUTER, to, token, amount)
                case calls.WrapEther(recipient, amount):
                    have = self._ledger.of(ROUTER, NATIVE)
                    if (wrapped := have if amount == _ALL_IT_HAS else amount) > have:
                        raise ContractRevert("InsufficientETH")
                    self._ledger.wrap(ROUTER, wrapped)
                    to = {_CALLER: sender, _CONTRACT: ROUTER}.get(recipient, recipient)
                    self._ledger.pay(ROUTER, to, WETH.address, wrapped)
                case calls.UnwrapEther(recipient, least):
                    if (have := self._ledger.of(ROUTER, WETH.address)) < least:
                        raise ContractRevert("InsufficientETH")
                    self._ledger.unwrap(ROUTER, have)
                    to = {_CALLER: sender, _CONTRACT: ROUTER}.get(recipient, recipient)
                    if to != ROUTER:
                        self.move(ROUTER, to, NATIVE, have)
                case calls.ModifyLiquidities(actions) as modify:
                    if any(isinstance(act, calls.Increase | calls.Decrease | calls.Burn) for act in actions):
                        raise ContractRevert("OnlyMintAllowed")
                    self._ledger.pay(ROUTER, MANAGER, NATIVE, self._ledger.of(ROUTER, NATIVE))
                    self._modify(ROUTER, modify)

    # -- PositionManager

    def _modify(self, caller: Address, modify: calls.ModifyLiquidities) -> None:
        if self._now > modify.deadline:
            raise ContractRevert("DeadlinePassed", modify.deadline)
        _ManagerLock(self, MANAGER, caller).execute(modify.actions)

    # -- what both do

    def pool(self, key: PoolKey) -> int:
        if key not in self.keys:
            raise ContractRevert("PoolNotInitialized")
        return self.keys.index(key)

    def require_owner(self, caller: Address, token_id: int) -> Nft:
        nft = self.books.nfts.get(token_id)
        if nft is None:
            raise ContractRevert("NOT_MINTED")
        if nft.owner != caller:
            raise ContractRevert("NotApproved", caller)
        return nft

    def modify_liquidity(self, nft: Nft, delta: int) -> LiquidityChange:
        pool, place = self.books.pools[nft.pool], (MANAGER, nft.range.lower, nft.range.upper)
        change = pool.modify_liquidity(*place, delta, nft.id)
        after = pool.position(*place, nft.id)
        price = pool.slot0.sqrt_price_x96
        self.pool_events.append(PositionChange(nft, delta, after, price, -change.amount0, -change.amount1))
        return change

    def swap(self, index: int, zero_for_one: bool, amount_in: int) -> tuple[int, int]:
        prices = tuple(pool.slot0.sqrt_price_x96 for pool in self.books.pools)
        pool = self.books.pools[index]
        result = pool.swap(zero_for_one, -amount_in, furthest_price(zero_for_one))
        self.pool_events.append(Trade(index, zero_for_one, prices, -result.amount0, -result.amount1, pool.liquidity))
        return result.amount0, result.amount1

    def balance(self, holder: Address, currency: Address) -> int:
        if currency != NATIVE and currency not in TOKENS:
            raise ContractRevert(NO_REASON)  # there is no contract to ask
        return self._ledger.of(holder, currency)

    def move(self, payer: Address, payee: Address, currency: Address, amount: int) -> None:
        if currency == NATIVE:
            if self.balance(payer, NATIVE) < amount or not _takes_ether(payee, payer):
                raise ContractRevert("NativeTransferFailed")
        elif self.balance(payer, currency) < amount:
            raise ContractRevert("TRANSFER_FAILED" if payer == ROUTER else "ERC20TransferFailed")
        self._ledger.pay(payer, payee, currency, amount)

    def pay_ether(self, payer: Address, amount: int) -> None:
        """Ether that a contract sends along with its settlement."""
        if self.balance(payer, NATIVE) < amount:
            raise ContractRevert(NO_REASON)
        self._ledger.pay(payer, VAULT, NATIVE, amount)

    def move_permitted(self, owner: Address, spender: Address, payee: Address, token: Address, amount: int) -> None:
        """Permit2's transferFrom."""
        grant = self._permissions.grant(owner, token, spender)
        if self._now > grant.until:
            raise ContractRevert("AllowanceExpired", grant.until)
        if amount > grant.amount:  # no amount is above the one that means everything
            raise ContractRevert("InsufficientAllowance", grant.amount)
        allowed = self._permissions.allowance(owner, token, PERMIT2)
        if token not in TOKENS or min(allowed, self._ledger.of(owner, token)) < amount:
            raise ContractRevert("TRANSFER_FROM_FAILED")
        self._permissions.use_grant(owner, token, spender, amount)
        self._permissions.use_allowance(owner, token, PERMIT2, amount)
        self._ledger.pay(owner, payee, token, amount)


class _Lock:
    """The pools unlocked for one contract: what it owes and is owed must come to nothing in the end."""

    def __init__(self, run: _Run, contract: Address, caller: Address) -> None:
        self._run, self._contract, self._caller = run, contract, caller
        self._deltas: defaultdict[Address, int] = defaultdict(int)

    def execute(self, actions: Sequence[calls.Action]) -> None:
        for action in actions:
            self._act(action)
        if any(self._deltas.values()):
            raise ContractRevert("CurrencyNotSettled")

    def _act(self, action: calls.Action) -> None:
        match action:
            case calls.Settle(currency, amount, payer_is_user):
                payer = self._caller if payer_is_user else self._contract
                if amount == _ALL_IT_HAS:
                    amount = self._run.balance(self._contract, currency)
                self._settle(currency, payer, amount or self._debt(currency))
            case calls.Take(currency, recipient, amount):
                self._take(currency, recipient, amount or self._credit(currency))
            case _:
                raise ContractRevert("UnsupportedAction", _ACTION_IDS[type(action)])

    def _account(self, key: PoolKey, amount0: int, amount1: int) -> None:
        self._deltas[key.currency0] += amount0
        self._deltas[key.currency1] += amount1

    def _debt(self, currency: Address) -> int:
        if self._deltas[currency] > 0:
            raise ContractRevert("DeltaNotNegative", currency)
        return -self._deltas[currency]

    def _credit(self, currency: Address) -> int:
        if self._deltas[currency] < 0:
            raise ContractRevert("DeltaNotPositive", currency)
        return self._deltas[currency]

    def _settle(self, currency: Address, payer: Address, amount: int) -> None:
        if not amount:
            return
        if currency == NATIVE:
            self._run.pay_ether(self._contract, amount)
        elif payer == self._contract:
            self._run.move(payer, VAULT, currency, amount)
        else:
            amount = self._as_uint160(amount)
            self._run.move_permitted(payer, self._contract, VAULT, currency, amount)
        self._deltas[currency] += amount

    def _as_uint160(self, amount: int) -> int:
        if amount > MAX_UINT160:
            raise ContractRevert("UnsafeCast")
        return amount

    def _take(self, currency: Address, recipient: Address, amount: int) -> None:
        if not amount:
            return
        if amount > _MAX_INT128:
            raise ContractRevert("SafeCastOverflow")
        self._deltas[currency] -= amount
        self._run.move(VAULT, self._resolve(recipient), currency, amount)

    def _resolve(self, recipient: Address) -> Address:
        return {_CALLER: self._caller, _CONTRACT: self._contract}.get(recipient, recipient)


class _RouterLock(_Lock):
    def _act(self, action: calls.Action) -> None:
        if not isinstance(action, calls.SwapIn):
            super()._act(action)
            return
        key, index = action.key, self._run.pool(action.key)
        amount_in = action.amount_in or self._credit(key.currency0 if action.zero_for_one else key.currency1)
        amounts = self._run.swap(index, action.zero_for_one, amount_in)
        self._account(key, *amounts)
        if (got := amounts[action.zero_for_one]) < action.amount_out_min:
            raise ContractRevert("V4TooLittleReceived", action.amount_out_min, got)


class _ManagerLock(_Lock):
    def _act(self, action: calls.Action) -> None:
        match action:
            case calls.Mint(_, _, liquidity, max0, max1, owner):
                nft = self._new(action, self._resolve(owner))
                self._check_maximum(self._change(nft, liquidity), max0, max1)
            case calls.MintFromDeltas(key, band, max0, max1, owner):
                liquidity = self._from_credit(key, band)
                nft = self._new(action, self._resolve(owner))
                self._check_maximum(self._change(nft, liquidity), max0, max1)
            case calls.IncreaseFromDeltas(token_id, max0, max1):
                nft = self._run.require_owner(self._caller, token_id)
                liquidity = self._from_credit(self._run.keys[nft.pool], nft.range)
                self._check_maximum(self._change(nft, liquidity), max0, max1)
            case calls.Increase(token_id, liquidity, max0, max1):
                nft = self._run.require_owner(self._caller, token_id)
                self._check_maximum(self._change(nft, liquidity), max0, max1)
            case calls.Decrease(token_id, liquidity, min0, min1):
                nft = self._run.require_owner(self._caller, token_id)
                self._check_minimum(self._change(nft, -liquidity), min0, min1)
            case calls.Burn(token_id, min0, min1):
                self._burn(self._run.require_owner(self._caller, token_id), min0, min1)
            case calls.SettlePair(currency0, currency1):
                for currency in (currency0, currency1):
                    self._settle(currency, self._caller, self._debt(currency))
            case calls.TakePair(currency0, currency1, recipient):
                for currency in (currency0, currency1):
                    self._take(currency, recipient, self._credit(currency))
            case calls.CloseCurrency(currency):
                delta = self._deltas[currency]
                if delta < 0:
                    self._settle(currency, self._caller, -delta)
                else:
                    self._take(currency, _CALLER, delta)
            case calls.Sweep(currency, recipient):
                left = self._run.balance(self._contract, currency)
                if left:
                    self._run.move(self._contract, self._resolve(recipient), currency, left)
            case _:
                super()._act(action)

    def _from_credit(self, key: PoolKey, band: Range) -> int:
        """The liquidity that all open credit pays for at the pool's price."""
        price = self._run.books.pools[self._run.pool(key)].slot0.sqrt_price_x96
        edges = cached_sqrt_price_at_tick(band.lower), cached_sqrt_price_at_tick(band.upper)
        return liquidity_for_amounts(price, *edges, self._credit(key.currency0), self._credit(key.currency1))

    def _new(self, mint: calls.Mint | calls.MintFromDeltas, owner: Address) -> Nft:
        books = self._run.books
        if owner == NATIVE:
            raise ContractRevert("INVALID_RECIPIENT")
        nft = Nft(books.next_id, owner, self._run.pool(mint.key), mint.range)
        books.nfts[nft.id] = nft
        books.next_id += 1
        self._run.minted.append((nft.id, owner))
        return nft

    def _change(self, nft: Nft, delta: int) -> LiquidityChange:
        change = self._run.modify_liquidity(nft, delta)
        self._account(self._run.keys[nft.pool], change.amount0, change.amount1)
        return change

    def _burn(self, nft: Nft, min0: int, min1: int) -> None:
        books = self._run.books
        held = books.pools[nft.pool].position(MANAGER, nft.range.lower, nft.range.upper, nft.id).liquidity
        del books.nfts[nft.id]
        self._run.burnt.append(nft.id)
        if held:  # the minima of an empty position are not looked at
            self._check_minimum(self._change(nft, -held), min0, min1)

    def _as_uint160(self, amount: int) -> int:
        return amount & MAX_UINT160  # cut off, not checked: what is cut is missing when the pools are locked again

    @staticmethod
    def _check_maximum(change: LiquidityChange, max0: int, max1: int) -> None:
        """Of the principal alone: fees that pay for part of it do not widen the bound."""
        for most, asked in ((max0, change.fees0 - change.amount0), (max1, change.fees1 - change.amount1)):
            if asked > most:
                raise ContractRevert("MaximumAmountExceeded", most, asked)

    @staticmethod
    def _check_minimum(change: LiquidityChange, min0: int, min1: int) -> None:
        for least, got in ((min0, change.amount0 - change.fees0), (min1, change.amount1 - change.fees1)):
            if got < least:
                raise ContractRevert("MinimumAmountInsufficient", least, got)


def _takes_ether(payee: Address, payer: Address) -> bool:
    """People take it from anyone, the two periphery contracts from the pools alone, and no other contract at all."""
    return payee not in CONTRACTS or (payee in (MANAGER, ROUTER) and payer == VAULT)

"""The ports that can lose money: held by execution, by the chains and keys behind them, and by wiring alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from zuno.amm.model import Block, Depth, Range
from zuno.kernel.units import Address, HexId, Wei
from zuno.lp.model.chains import ChainInfo
from zuno.lp.model.gas import FeeBound
from zuno.lp.model.market import GasQuote
from zuno.lp.model.plan import WalletState


@dataclass(frozen=True, slots=True)
class Call:
    """What an account asks of a contract."""

    to: Address
    value: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Fees:
    """What a unit of gas may cost at most, and how much of that is the proposer's (EIP-1559)."""

    max_fee: Wei
    tip: Wei


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A transaction that lacks its signature alone."""

    chain_id: int
    nonce: int
    call: Call
    gas: int
    fees: Fees
    bound: FeeBound | None = None
    """What it may bid and cost at most. Without one it is never signed."""


@dataclass(frozen=True, slots=True)
class Signed:
    """The bytes that spend, and the hash a chain will know them by."""

    hash: HexId
    raw: bytes


class Signer(Protocol):
    """Promises that the same transaction signed twice gives the same bytes, and that the key never crosses this port.
    `Refused` where there is no key to sign with (a watched wallet) or it was not unlocked, and for a transaction that
    has no bound or is beyond it, whoever asks."""

    @property
    def address(self) -> Address: ...

    @property
    def watch_only(self) -> bool:
        """True: nothing here can sign; the key is held elsewhere."""

    def ready(self) -> None:
        """Unlock what has to be unlocked, which may take a person's time; after it, signing takes none."""

    def sign(self, tx: Unsigned) -> Signed: ...


@dataclass(frozen=True, slots=True)
class SimulatedCall:
    """How one call went; after the first that reverts nothing more is tried."""

    gas_used: int
    error: str | None = None
    """Why it reverted, in a word or two of the contract's own where it has one."""


class SimulationMethod(StrEnum):
    """How much a simulation is worth."""

    SIMULATED = "simulated"
    """Every call was run, one on top of the other."""
    FIRST_CALL = "first_call"
    """The node can only try one call: the first was, and what would change is not known from it."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """What calls would do on top of a block, without doing it. Gas is counted and costs nothing here."""

    block: Block
    how: SimulationMethod
    calls: tuple[SimulatedCall, ...]
    changes: Mapping[Address, int]
    """By currency asked for, what the wallet would have more or less; empty where `how` does not tell."""
    sqrt_price_after_x96: int | None
    """Of the pool asked for; None where `how` does not tell."""


class SendResult(StrEnum):
    """What a node said to bytes it was given."""

    ACCEPTED = "accepted"
    KNOWN = "known"
    """It has them already, waiting or mined."""
    NONCE_SPENT = "nonce_spent"
    """Another transaction with this number is mined; whether it is one of ours is for `trace` to say."""
    UNDERPRICED = "underpriced"
    """Another one with this number waits there and pays as much, or the fee is below what the node takes."""


@dataclass(frozen=True, slots=True)
class Mined:
    """A transaction of ours in a block."""

    tx: HexId
    block: Block
    success: bool
    gas_used: int
    cost: Wei
    """Gas at its price and whatever a rollup adds."""
    minted: tuple[int, ...] = ()
    """Positions that were given to the wallet by it."""


@dataclass(frozen=True, slots=True)
class NonceStatus:
    """What became of a wallet's number, seen at one head."""

    head: Block
    mined: Mined | None
    """Whichever of the transactions asked about is in the chain."""
    waiting: tuple[HexId, ...]
    """Those the node still has in its pool."""
    nonce: int
    """Transactions of the wallet mined by the head: above the number asked about, and nothing of ours mined, a foreign
    transaction took it."""
    settled_nonce: int
    """The same at the youngest block that counts as final."""

    @property
    def depth(self) -> int:
        """Blocks from the one it was mined in to the head, both counted."""
        return 0 if self.mined is None else self.head.number - self.mined.block.number + 1


@dataclass(frozen=True, slots=True)
class LiquidityTouch:
    """What a transaction did to a position's liquidity."""

    position_id: int
    range: Range
    change: int


@dataclass(frozen=True, slots=True)
class SentTransaction:
    """A mined transaction, whoever signed it."""

    sender: Address
    call: Call
    mined: Mined
    """Its cost is the sender's; the positions are those given to the wallet asked about."""
    touches: tuple[LiquidityTouch, ...] = ()
    """Empty where the sender is the wallet itself and is known by its calldata."""


@dataclass(frozen=True, slots=True)
class SentTransactions:
    """Mined transactions, seen at one head."""

    head: Block
    settled: Block
    """The youngest block that counts as final."""
    transactions: tuple[SentTransaction, ...]
    """Oldest first."""


class Writer(Protocol):
    """Promises, for every chain that can be written to:

    - Nothing here decides or signs; `send` alone changes anything, and only by bytes that are signed already.
    - Answers are of one block. `Unavailable` when the world did not answer, `Malformed` when it answered nonsense.
    - After `Unavailable` from `send` the bytes may or may not have been taken: the same bytes may be sent again.
    - `Refused`, with the chain's own words, for bytes it will not take as they are (no funds, too little gas).
    """

    @property
    def info(self) -> ChainInfo: ...

    async def genesis(self) -> HexId:
        """The hash of the first block: two chains may share an id and not this."""

    async def wallet_state(
        self, wallet: Address, currencies: Sequence[Address], spenders: Sequence[Address]
    ) -> WalletState:
        """Holdings of these currencies, and what of each token Permit2 and, through it, each spender may take."""

    async def simulate(
        self, wallet: Address, calls: Sequence[Call], currencies: Sequence[Address], pool_id: HexId
    ) -> Simulation:
        """Run these calls, each on top of the one before, on top of the head, as if they were the wallet's."""

    async def estimate(self, wallet: Address, call: Call) -> int:
        """A gas limit that suffices at the head; `Refused` with the reason where the call would revert."""

    async def list_gas(self) -> Sequence[GasQuote]:
        """What gas costs at the head by every node that answers, each on its own; nothing where one node is all there
        is: what it says twice is no second opinion."""

    async def depth(self, pool_id: HexId) -> Depth:
        """The pool at the head with its initialised ticks around the price: what a swap is quoted on."""

    async def send(self, raw: bytes) -> SendResult: ...

    async def trace(self, wallet: Address, nonce: int, hashes: Sequence[HexId]) -> NonceStatus:
        """Look for these transactions of the wallet, all of this number."""

    async def find_sent(self, wallet: Address, after: int) -> SentTransactions:
        """What the wallet sent after this block. `Unavailable` where the node keeps no counts that far back."""

    async def find_touching(self, wallet: Address, after: int, pool_id: HexId, band: Range) -> SentTransactions:
        """What changed positions of this range of the pool in the blocks after this number, whoever sent it."""

    async def find_transaction(self, wallet: Address, tx: HexId) -> SentTransactions:
        """This transaction, whoever sent it; none where no block has it."""

    async def is_contract(self, wallet: Address) -> bool:
        """Whether code signs for the wallet, as a Safe's does. A key that only delegates to code (EIP-7702) is none."""

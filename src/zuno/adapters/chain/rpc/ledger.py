"""What one transaction moved, measured at the wallet and at PoolManager: from events, native coin from balances. A
difference between the two is another party's money and not an error."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.node import Log, Receipt, RpcNode
from zuno.adapters.chain.rpc.prices import BlockTimes
from zuno.adapters.chain.rpc.scan import Query, Scanner
from zuno.adapters.chain.rpc.transport import Callee
from zuno.amm.model import Block
from zuno.kernel.errors import Malformed
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address

ETHER: Final = Address("0x" + "ee" * 20)
"""Under whose address a simulation reports moves of native coin."""
_CLAIM: Final = abi.topic("Transfer(address,address,address,uint256,uint256)")
"""ERC-6909: PoolManager's own receipts for tokens left with it."""
_WRAPS: Final = (abi.topic("Deposit(address,uint256)"), abi.topic("Withdrawal(address,uint256)"))


@dataclass(frozen=True, slots=True)
class CoinChange:
    """What a wallet's native balance fell by over a block, and what gas explains of it."""

    fell: int
    """Without the gas of the wallet's other transactions in that block."""
    gas: int
    """What the receipt says this transaction cost the wallet."""
    beside: tuple[Receipt, ...] = ()
    """Other transactions of the block that name the wallet: no balance can tell them apart."""

    @property
    def payment(self) -> int:
        return self.fell - self.gas


def amount_given(logs: Iterable[Log], currency: Address, party: Address) -> int:
    """What a party gave up of one token (negative: received), by Transfer events."""
    total = 0
    for log in logs:
        # An ERC-721 Transfer has a fourth topic and no amount.
        if log.address == currency and log.topics[:1] == (abi.TRANSFER,) and len(log.topics) == 3:
            amount = abi.decode_uint(log.data, "a Transfer event")
            total += amount * (abi.topic_address(log.topics[1]) == party)
            total -= amount * (abi.topic_address(log.topics[2]) == party)
    return total


def received_by_pools(logs: Iterable[Log], currency: Address, pool_manager: Address) -> int:
    """What the pools together received of one token: PoolManager's transfers, less what it owes as claims."""
    seen = tuple(logs)
    claims = 0
    for log in seen:
        if log.address == pool_manager and log.topics[:1] == (_CLAIM,) and len(log.topics) == 4:
            _, amount = abi.decode_abi(["address", "uint256"], log.data, "a claim's Transfer event")
            if int(log.topics[3], 16) == int(currency, 16):
                claims += int(amount) * (abi.topic_address(log.topics[1]) == NATIVE)
                claims -= int(amount) * (abi.topic_address(log.topics[2]) == NATIVE)
    return -amount_given(seen, ETHER if currency == NATIVE else currency, pool_manager) - claims


def wraps(receipt: Receipt, wrapper: Address | None) -> bool:
    """Whether a transaction turned native coin into its wrapper or back: they are one asset then."""
    return wrapper is not None and any(
        log.address == wrapper and log.topics and log.topics[0] in _WRAPS for log in receipt.logs
    )


async def read_coin_change(
    node: RpcNode, times: BlockTimes, receipt: Receipt, wallet: Address, head: Block
) -> CoinChange:
    """The wallet's native balance before and after the transaction's block."""
    blocks = await times.blocks([receipt.block_number - 1, receipt.block_number], head)
    before, after = blocks[receipt.block_number - 1], blocks[receipt.block_number]
    fell = await node.balance(wallet, before) - await node.balance(wallet, after)
    beside = [
        await node.receipt(tx)
        for tx, sender, receiver in await node.senders_and_receivers(after)
        if tx != receipt.tx and wallet in (sender, receiver)
    ]
    fell -= sum(other.cost for other in beside if other.sender == wallet)
    return CoinChange(fell, receipt.cost if receipt.sender == wallet else 0, tuple(beside))


async def read_transfers(scanner: Scanner, currency: Address, party: Address, first: int, last: int) -> list[Log]:
    """A token's transfers from and to a party: any exchange moves it."""
    word = abi.address_word(party)
    logs = [
        *await scanner.all(Query(currency, (abi.TRANSFER, word)), first, last),
        *await scanner.all(Query(currency, (abi.TRANSFER, None, word)), first, last),
    ]
    return sorted(logs, key=lambda log: log.position)


async def unlogged_gain(
    node: RpcNode,
    times: BlockTimes,
    span: tuple[int, int],
    logs: Iterable[Log],
    currency: Address,
    party: Address,
    head: Block,
) -> int | None:
    """What a party's balance of a token gained over a span of blocks beyond what the token's events there tell (less:
    negative); None where the token does not report balances."""
    first, last = max(0, span[0] - 1), span[1]
    blocks = await times.blocks([first, last], head)
    question = abi.balance_of(party)
    try:
        before, after = [
            await node.call(currency, question, blocks[at], _balance, callee=Callee.UNTRUSTED) for at in (first, last)
        ]
    except Malformed:
        return None
    return after - before + amount_given(logs, currency, party)


def _balance(data: bytes) -> int:
    """A token that did not exist yet answers with nothing."""
    return abi.decode_uint(data, "balanceOf") if data else 0


async def read_pools_coin(
    node: RpcNode, times: BlockTimes, receipt: Receipt, pool_manager: Address, head: Block
) -> int | None:
    """What the pools received of native coin, where no other transaction of the block used PoolManager."""
    number = receipt.block_number
    if any(log.tx != receipt.tx for log in await node.logs(pool_manager, (), number, number)):
        return None
    blocks = await times.blocks([number - 1, number], head)
    gained = await node.balance(pool_manager, blocks[number]) - await node.balance(pool_manager, blocks[number - 1])
    return gained + received_by_pools(
        [log for log in receipt.logs if log.topics[:1] == (_CLAIM,)], NATIVE, pool_manager
    )

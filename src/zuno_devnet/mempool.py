"""The transactions that wait, in nonce order for each sender, admitted by geth's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from .rpc_errors import server_error
from .transactions import LocalTransaction, floor_gas

_MAX_INIT_CODE: Final = 49_152
_LEAST_TIP: Final = 1
_BUMP_PERCENT: Final = 10

NonceOf = Callable[[bytes], int]


@dataclass(frozen=True, slots=True)
class SenderState:
    """Nonce and balance of a sender at the head."""

    nonce: int
    balance: int


def check_without_state(tx: LocalTransaction, gas_limit: int) -> None:
    """The rules a transaction must meet whatever the state is."""
    if tx.to is None and len(tx.data) > _MAX_INIT_CODE:
        raise server_error(f"max initcode size exceeded: code size {len(tx.data)}, limit {_MAX_INIT_CODE}")
    if tx.gas > gas_limit:
        raise server_error("exceeds block gas limit")
    if tx.tip > tx.max_fee:
        raise server_error("max priority fee per gas higher than max fee per gas")
    if tx.gas < tx.inner.intrinsic_gas:
        raise server_error(f"intrinsic gas too low: gas {tx.gas}, minimum needed {tx.inner.intrinsic_gas}")
    if tx.gas < floor_gas(tx.data):
        raise server_error(
            f"insufficient gas for floor data gas cost: gas {tx.gas}, minimum needed {floor_gas(tx.data)}"
        )
    if tx.tip < _LEAST_TIP:
        raise server_error(f"transaction gas price below minimum: gas tip cap {tx.tip}, minimum needed {_LEAST_TIP}")


def outbids(new: LocalTransaction, old: LocalTransaction) -> bool:
    """A replacement must pay a tenth more, and at least one wei, on both counts."""

    def enough(bid: int, held: int) -> bool:
        return bid > held and bid >= held * (100 + _BUMP_PERCENT) // 100

    return enough(new.max_fee, old.max_fee) and enough(new.tip, old.tip)


class Mempool:
    def __init__(self) -> None:
        self._lanes: dict[bytes, dict[int, LocalTransaction]] = {}
        # Insertion order is arrival order: between equal tips the earlier one goes first.
        self._by_hash: dict[bytes, LocalTransaction] = {}

    def __len__(self) -> int:
        return len(self._by_hash)

    def __iter__(self) -> Iterator[LocalTransaction]:
        return iter(self._by_hash.values())

    def get(self, tx_hash: bytes) -> LocalTransaction | None:
        return self._by_hash.get(tx_hash)

    def admit(self, tx: LocalTransaction, account: SenderState, gas_limit: int) -> None:
        """Add a transaction, perhaps in place of another, or raise geth's refusal. Nonces may have gaps."""
        if tx.hash in self._by_hash:
            raise server_error("already known")
        check_without_state(tx, gas_limit)
        if tx.nonce < account.nonce:
            raise server_error(f"nonce too low: next nonce {account.nonce}, tx nonce {tx.nonce}")
        lane = self._lanes.get(tx.sender, {})
        rival = lane.get(tx.nonce)
        self._check_funds(tx, account, queued=sum(other.cost for other in lane.values()), rival=rival)
        if rival is not None:
            if not outbids(tx, rival):
                raise server_error("replacement transaction underpriced")
            self.drop(rival.hash)
        self.insert(tx)

    def insert(self, tx: LocalTransaction) -> None:
        """Add a transaction that was checked when it first arrived."""
        self._lanes.setdefault(tx.sender, {})[tx.nonce] = tx
        self._by_hash[tx.hash] = tx

    def drop(self, tx_hash: bytes) -> bool:
        tx = self._by_hash.pop(tx_hash, None)
        if tx is None:
            return False
        lane = self._lanes[tx.sender]
        del lane[tx.nonce]
        if not lane:
            del self._lanes[tx.sender]
        return True

    def drop_spent(self, nonce_of: NonceOf) -> None:
        """Remove transactions whose nonce is used."""
        for sender in tuple(self._lanes):
            next_nonce = nonce_of(sender)
            for tx in tuple(self._lanes[sender].values()):
                if tx.nonce < next_nonce:
                    self.drop(tx.hash)

    def pending_nonce(self, sender: bytes, account_nonce: int) -> int:
        """The next nonce of a sender; transactions behind a gap do not count."""
        lane = self._lanes.get(sender, {})
        while account_nonce in lane:
            account_nonce += 1
        return account_nonce

    def lanes(self, nonce_of: NonceOf) -> list[list[LocalTransaction]]:
        """For each sender the transactions that could be mined now, by nonce."""
        runs = []
        for sender, lane in self._lanes.items():
            first = nonce_of(sender)
            runs.append([lane[nonce] for nonce in range(first, self.pending_nonce(sender, first))])
        return [run for run in runs if run]

    def arrival(self) -> dict[bytes, int]:
        return {tx_hash: order for order, tx_hash in enumerate(self._by_hash)}

    def copy(self) -> Mempool:
        copied = Mempool()
        for tx in self:
            copied.insert(tx)
        return copied

    @staticmethod
    def _check_funds(
        tx: LocalTransaction, account: SenderState, *, queued: int, rival: LocalTransaction | None
    ) -> None:
        words = f"insufficient funds for gas * price + value: balance {account.balance}"
        if account.balance < tx.cost:
            raise server_error(f"{words}, tx cost {tx.cost}, overshot {tx.cost - account.balance}")
        bump = tx.cost - (rival.cost if rival else 0)
        if account.balance < queued + bump:
            kind = "bumped" if rival else "cost"
            overshot = queued + bump - account.balance
            raise server_error(f"{words}, queued cost {queued}, tx {kind} {bump}, overshot {overshot}")

"""Calls tried on top of a block without being sent: balances before and after, read inside the same simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from zuno.adapters.chain.rpc import abi, requests, reverts
from zuno.adapters.chain.rpc.errors import BadRequest, CallReverted, NoSuchMethod, Unfunded, fault_of
from zuno.adapters.chain.rpc.node import Node
from zuno.adapters.chain.rpc.transport import Callee, Question
from zuno.amm.identity import pool_slots, unpack_slot0
from zuno.amm.model import Block
from zuno.kernel.errors import Malformed
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId
from zuno.lp.ports.spending import Call, SimulatedCall, Simulation, SimulationMethod

_SCALE: Final = Address("0x" + "7a756e6f" * 5)
_WEIGHING: Final = "0x5f35315f5260205ff3"
"""Lent to that address for the time of a simulation: it answers an account's balance of the chain's own coin, which no
contract tells. Transfer events would not do for tokens that charge for a transfer, nor where a node reports none."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """How each call went, and what was read before the first and after the last of them."""

    calls: tuple[SimulatedCall, ...]
    changes: dict[Address, int]
    sqrt_price_x96: int

    @property
    def failed(self) -> int | None:
        return next((at for at, call in enumerate(self.calls) if call.error is not None), None)


class Rehearsals:
    """Pretended transactions of one wallet."""

    def __init__(self, node: Node, pool_manager: Address) -> None:
        self._node = node
        self._pool_manager = pool_manager

    async def on(
        self, head: Block, wallet: Address, calls: Sequence[Call], currencies: Sequence[Address], pool_id: HexId
    ) -> Simulation:
        try:
            seen = await self._until_it_fails(head, wallet, calls, currencies, pool_id)
        except (NoSuchMethod, BadRequest):
            return Simulation(head, SimulationMethod.FIRST_CALL, await self._first(head, wallet, calls), {}, None)
        return Simulation(head, SimulationMethod.SIMULATED, seen.calls, seen.changes, seen.sqrt_price_x96)

    async def _until_it_fails(
        self, head: Block, wallet: Address, calls: Sequence[Call], currencies: Sequence[Address], pool_id: HexId
    ) -> _Seen:
        """A simulation goes on after a revert, and refuses as a whole what one call cannot pay for: what came before is
        then looked at by itself."""
        try:
            seen = await self._simulated(head, wallet, calls, currencies, pool_id)
        except Unfunded as fault:
            if not calls:
                raise  # nothing was to be paid for
            seen = await self._until_it_fails(head, wallet, calls[:-1], currencies, pool_id)
            if seen.failed is not None:
                return seen
            return _Seen((*seen.calls, SimulatedCall(0, reverts.why(fault))), seen.changes, seen.sqrt_price_x96)
        if seen.failed is None or seen.failed == len(calls) - 1:
            return seen
        return await self._simulated(head, wallet, calls[: seen.failed + 1], currencies, pool_id)

    async def _simulated(
        self, head: Block, wallet: Address, calls: Sequence[Call], currencies: Sequence[Address], pool_id: HexId
    ) -> _Seen:
        wanted = list(dict.fromkeys(currencies))
        purses = [_weighing(currency, wallet) for currency in wanted]
        price = _reading(self._pool_manager, abi.extsload([pool_slots(pool_id).slot0]))
        steps = [*purses, *(requests.sent_by(wallet, call) for call in calls), *purses, price]
        wish = {
            "blockStateCalls": [{"stateOverrides": {_SCALE: {"code": _WEIGHING}}, "calls": steps}],
            "validation": False,
        }

        def read(result: Any) -> _Seen:
            (block,) = result
            before, tried, after, (slot0,) = _parted(block["calls"], len(wanted), len(calls), len(wanted), 1)
            held = [(_word(one), _word(other)) for one, other in zip(before, after, strict=True)]
            changes = {currency: now - then for currency, (then, now) in zip(wanted, held, strict=True)}
            (packed,) = abi.extsload_results(_returned(slot0), 1)
            return _Seen(tuple(map(_rehearsed, tried)), changes, unpack_slot0(packed).sqrt_price_x96)

        question = Question("eth_simulateV1", [wish], _careful(read), head, Callee.MAY_REVERT)
        seen: _Seen = await self._node.ask(question)
        return seen

    async def _first(self, head: Block, wallet: Address, calls: Sequence[Call]) -> tuple[SimulatedCall, ...]:
        """What a node without simulations can say: whether the first call goes through, and its gas."""
        try:
            for call in calls[:1]:
                await self._node.ask(requests.spending("eth_call", wallet, call, head, lambda result: result))
                asked = requests.spending("eth_estimateGas", wallet, call, head, requests.whole)
                return (SimulatedCall(await self._node.ask(asked)),)
        except CallReverted as fault:
            return (SimulatedCall(0, reverts.why(fault)),)
        return ()


def _weighing(currency: Address, wallet: Address) -> dict[str, Any]:
    if currency == NATIVE:
        return _reading(_SCALE, bytes.fromhex(abi.address_word(wallet)[2:]))
    return _reading(currency, abi.balance_of(wallet))


def _reading(to: Address, data: bytes) -> dict[str, Any]:
    return {"to": to, "data": "0x" + data.hex()}


def _careful(read: Any) -> Any:
    def reading(result: Any) -> Any:
        try:
            return read(result)
        except (ValueError, KeyError, TypeError) as error:
            raise Malformed("a simulation of something else") from error

    return reading


def _parted(calls: Sequence[Any], *sizes: int) -> list[Sequence[Any]]:
    if len(calls) != sum(sizes):
        raise Malformed(f"{len(calls)} results for {sum(sizes)} calls")
    parts, start = list[Sequence[Any]](), 0
    for size in sizes:
        parts.append(calls[start : start + size])
        start += size
    return parts


def _returned(call: Any) -> bytes:
    if requests.whole(call["status"]) != 1:
        raise Malformed("a reading that cannot fail did")
    return bytes.fromhex(call["returnData"][2:])


def _word(call: Any) -> int:
    return abi.number(_returned(call), "a balance")


def _rehearsed(call: Any) -> SimulatedCall:
    gas = requests.whole(call["gasUsed"])
    if requests.whole(call["status"]) == 1:
        return SimulatedCall(gas)
    output = bytes.fromhex(call.get("returnData", "0x")[2:])
    fault = fault_of("eth_simulateV1", call.get("error") or {"code": 3, "message": "execution reverted"})
    if output or not isinstance(fault, CallReverted):
        fault = CallReverted(str(fault), output)
    return SimulatedCall(gas, reverts.why(fault))

"""Simulates calls on top of a block; balances before and after are read inside the same simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from zuno.adapters.chain.rpc import abi, requests, reverts
from zuno.adapters.chain.rpc.errors import BadRequest, CallReverted, InsufficientFunds, NoSuchMethod, parse_error
from zuno.adapters.chain.rpc.node import RpcNode
from zuno.adapters.chain.rpc.transport import Callee, RpcRequest
from zuno.amm.identity import pool_slots, unpack_slot0
from zuno.amm.model import Block
from zuno.kernel.errors import Malformed
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId
from zuno.lp.ports.spending import Call, SimulatedCall, Simulation, SimulationMethod

_BALANCE_PROBE: Final = Address("0x" + "7a756e6f" * 5)
_BALANCE_CODE: Final = "0x5f35315f5260205ff3"
"""Code that a simulation puts at `_BALANCE_PROBE`: it returns an account's balance of the chain's own coin, which no
contract can be asked for. Transfer events are not used: some tokens charge for a transfer, some nodes report none."""


class Simulator:
    def __init__(self, node: RpcNode, pool_manager: Address) -> None:
        self._node = node
        self._pool_manager = pool_manager

    async def simulate(
        self, head: Block, wallet: Address, calls: Sequence[Call], currencies: Sequence[Address], pool_id: HexId
    ) -> Simulation:
        try:
            return await self._until_it_fails(head, wallet, calls, currencies, pool_id)
        except (NoSuchMethod, BadRequest):
            tried = await self._try_first_call(head, wallet, calls)
            return Simulation(head, SimulationMethod.FIRST_CALL, tried, {}, None)

    async def _until_it_fails(
        self, head: Block, wallet: Address, calls: Sequence[Call], currencies: Sequence[Address], pool_id: HexId
    ) -> Simulation:
        """Simulate up to the first call that fails, so that changes and price are those at that point. If a call lacks
        funds, a node rejects the whole simulation: calls are then dropped from the end until the rest goes through."""
        try:
            simulated = await self._simulate_once(head, wallet, calls, currencies, pool_id)
        except InsufficientFunds as fault:
            if not calls:
                raise  # there is no call left to drop
            simulated = await self._until_it_fails(head, wallet, calls[:-1], currencies, pool_id)
            if any(call.error is not None for call in simulated.calls):
                return simulated
            return replace(simulated, calls=(*simulated.calls, SimulatedCall(0, reverts.revert_reason(fault))))
        failed_at = next((at for at, call in enumerate(simulated.calls) if call.error is not None), len(calls))
        if failed_at >= len(calls) - 1:
            return simulated
        return await self._simulate_once(head, wallet, calls[: failed_at + 1], currencies, pool_id)

    async def _simulate_once(
        self, head: Block, wallet: Address, calls: Sequence[Call], currencies: Sequence[Address], pool_id: HexId
    ) -> Simulation:
        wanted = list(dict.fromkeys(currencies))
        balances = [_balance_call(currency, wallet) for currency in wanted]
        price = _view_call(self._pool_manager, abi.extsload([pool_slots(pool_id).slot0]))
        steps = [*balances, *(requests.call_fields(wallet, call) for call in calls), *balances, price]
        payload = {
            "blockStateCalls": [{"stateOverrides": {_BALANCE_PROBE: {"code": _BALANCE_CODE}}, "calls": steps}],
            "validation": False,
        }

        def read(raw: Any) -> Simulation:
            (block,) = raw
            before, tried, after, (slot0,) = _split_results(block["calls"], len(wanted), len(calls), len(wanted), 1)
            held = [
                (_read_balance(earlier), _read_balance(later)) for earlier, later in zip(before, after, strict=True)
            ]
            changes = {currency: now - then for currency, (then, now) in zip(wanted, held, strict=True)}
            (packed,) = abi.extsload_results(_return_data(slot0), 1)
            parsed, price_after = tuple(map(_parse_call, tried)), unpack_slot0(packed).sqrt_price_x96
            return Simulation(head, SimulationMethod.SIMULATED, parsed, changes, price_after)

        question = RpcRequest("eth_simulateV1", [payload], read, head, Callee.MAY_REVERT)
        simulated: Simulation = await self._node.ask_reading(question)
        return simulated

    async def _try_first_call(self, head: Block, wallet: Address, calls: Sequence[Call]) -> tuple[SimulatedCall, ...]:
        """For a node without `eth_simulateV1`: only whether the first call goes through, and its gas."""
        try:
            for call in calls[:1]:
                await self._node.ask(requests.spending("eth_call", wallet, call, head, lambda raw: raw))
                asked = requests.spending("eth_estimateGas", wallet, call, head, requests.parse_int)
                return (SimulatedCall(await self._node.ask(asked)),)
        except CallReverted as fault:
            return (SimulatedCall(0, reverts.revert_reason(fault)),)
        return ()


def _balance_call(currency: Address, wallet: Address) -> dict[str, Any]:
    if currency == NATIVE:
        return _view_call(_BALANCE_PROBE, bytes.fromhex(abi.address_word(wallet)[2:]))
    return _view_call(currency, abi.balance_of(wallet))


def _view_call(to: Address, data: bytes) -> dict[str, Any]:
    return {"to": to, "data": "0x" + data.hex()}


def _split_results(calls: Sequence[Any], *sizes: int) -> list[Sequence[Any]]:
    if len(calls) != sum(sizes):
        raise Malformed(f"{len(calls)} results for {sum(sizes)} calls")
    parts, start = list[Sequence[Any]](), 0
    for size in sizes:
        parts.append(calls[start : start + size])
        start += size
    return parts


def _return_data(call: Any) -> bytes:
    if requests.parse_int(call["status"]) != 1:
        raise Malformed("a balance or price call failed")
    return bytes.fromhex(call["returnData"][2:])


def _read_balance(call: Any) -> int:
    return abi.decode_uint(_return_data(call), "a balance")


def _parse_call(call: Any) -> SimulatedCall:
    gas = requests.parse_int(call["gasUsed"])
    if requests.parse_int(call["status"]) == 1:
        return SimulatedCall(gas)
    output = bytes.fromhex(call.get("returnData", "0x")[2:])
    fault = parse_error("eth_simulateV1", call.get("error") or {"code": 3, "message": "execution reverted"})
    if output or not isinstance(fault, CallReverted):
        fault = CallReverted(str(fault), output)
    return SimulatedCall(gas, reverts.revert_reason(fault))

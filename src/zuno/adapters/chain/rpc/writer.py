"""The Writer port over JSON-RPC: wallet state, simulation, gas estimates, sending and tracing transactions."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from eth_hash.auto import keccak

from zuno.adapters.chain.rpc import abi, requests, reverts
from zuno.adapters.chain.rpc.errors import BadRequest, CallReverted, InsufficientFunds, NoSuchMethod, parse_error
from zuno.adapters.chain.rpc.node import RpcNode, send_to_nodes
from zuno.adapters.chain.rpc.readers import PinnedRead, Readers
from zuno.adapters.chain.rpc.receipts import NonceTracker
from zuno.adapters.chain.rpc.tokens import CALL_GAS
from zuno.adapters.chain.rpc.transport import Callee, RpcRequest
from zuno.amm.identity import pool_slots, unpack_slot0
from zuno.amm.model import Block, Depth, Range
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Seconds
from zuno.lp.model.market import GasQuote
from zuno.lp.model.plan import Allowances, Grant, WalletState
from zuno.lp.ports.spending import (
    Call,
    NonceStatus,
    SendResult,
    SentTransactions,
    SimulatedCall,
    Simulation,
    SimulationMethod,
)

DepthAt = Callable[[HexId, Block], Awaitable[Depth]]

MARGIN: Final = (5, 4)
"""Gas limit over estimate. An estimate is a limit the call did succeed under, so what refunds give back later and what
each frame keeps back (a 64th) is in it. The quarter is for what moves before the call is mined: some initialised ticks
more to cross, about 25,000 gas each, or a slot that has become cold. Gas that is not used is not paid for."""

_ALLOWANCE: Final = abi.selector("allowance(address,address)")
_GRANT: Final = abi.selector("allowance(address,address,address)")
_DELEGATED: Final = bytes.fromhex("ef0100")
"""How the code of an account begins whose key still signs (EIP-7702)."""
_GRANT_WORDS: Final = ["uint160", "uint48", "uint48"]


class RpcWriter:
    """Writer over JSON-RPC, on the connection of the chain's reader."""

    def __init__(
        self, readers: Readers, at_head: PinnedRead, depth_at: DepthAt, gas: Callable[[], Awaitable[GasQuote]]
    ) -> None:
        self.info = readers.info
        self._node = readers.node
        self._at_head = at_head
        self._depth_at = depth_at
        self._gas = gas
        self._simulator = Simulator(readers.node, readers.info.deployment.pool_manager)
        self._nonces = NonceTracker(readers)
        self._genesis: HexId | None = None

    async def genesis(self) -> HexId:
        if self._genesis is None:
            self._genesis = (await self._node.block(0)).hash
        return self._genesis

    async def wallet_state(
        self, wallet: Address, currencies: Sequence[Address], spenders: Sequence[Address]
    ) -> WalletState:
        return await self._at_head(lambda head: self._wallet_state_at(head, wallet, currencies, spenders))

    async def simulate(
        self, wallet: Address, calls: Sequence[Call], currencies: Sequence[Address], pool_id: HexId
    ) -> Simulation:
        return await self._at_head(lambda head: self._simulator.simulate(head, wallet, calls, currencies, pool_id))

    async def estimate(self, wallet: Address, call: Call) -> int:
        return await self._at_head(lambda head: self._estimate_at(head, wallet, call))

    async def list_gas(self) -> tuple[GasQuote, ...]:
        provider, quotes = self._node.provider, list[GasQuote]()
        try:
            for node in provider.endpoints if len(provider.endpoints) > 1 else ():
                provider.only.set(node)
                with suppress(Unavailable, Malformed):
                    quotes.append(await self._gas())
        finally:
            provider.only.set(None)
        return tuple(quotes)

    async def depth(self, pool_id: HexId) -> Depth:
        return await self._at_head(lambda head: self._depth_at(pool_id, head))

    async def send(self, raw: bytes) -> SendResult:
        result = await send_to_nodes(self._node.provider, raw)
        if result is SendResult.NONCE_SPENT and await self._is_mined(HexId("0x" + keccak(raw).hex())):
            return SendResult.KNOWN  # most nodes say only that the number is spent, by whichever transaction
        return result

    async def trace(self, wallet: Address, nonce: int, hashes: Sequence[HexId]) -> NonceStatus:
        return await self._at_head(lambda head: self._nonces.status_at(head, wallet, nonce, hashes), by_events=True)

    async def find_sent(self, wallet: Address, after: int) -> SentTransactions:
        return await self._at_head(lambda head: self._nonces.sent_at(head, wallet, after), by_events=True)

    async def find_touching(self, wallet: Address, after: int, pool_id: HexId, band: Range) -> SentTransactions:
        return await self._at_head(
            lambda head: self._nonces.touching_at(head, wallet, after, pool_id, band), by_events=True
        )

    async def find_transaction(self, wallet: Address, tx: HexId) -> SentTransactions:
        return await self._at_head(lambda head: self._nonces.read_sent(head, wallet, [tx]), by_events=True)

    async def is_contract(self, wallet: Address) -> bool:
        code: bytes = await self._node.ask(requests.code(wallet))
        return bool(code) and not code.startswith(_DELEGATED)

    async def _is_mined(self, tx: HexId) -> bool:
        try:
            return await self._node.ask(requests.receipt(tx)) is not None
        except (Unavailable, Malformed):
            return False  # not known: `trace` will tell

    # -- at one block

    async def _wallet_state_at(
        self, head: Block, wallet: Address, currencies: Sequence[Address], spenders: Sequence[Address]
    ) -> WalletState:
        held = list(dict.fromkeys(currencies))
        tokens = [currency for currency in held if currency != NATIVE]
        grants = [(token, spender) for token in tokens for spender in dict.fromkeys(spenders)]
        asked = [
            requests.transaction_count(wallet, head),
            requests.transaction_count(wallet, None),
            *(_balance_request(currency, wallet, head) for currency in held),
            *(_allowance_request(token, wallet, self.info.deployment.permit2, head) for token in tokens),
            *(
                _permit2_request(token, wallet, spender, self.info.deployment.permit2, head)
                for token, spender in grants
            ),
        ]
        nonce, waiting, *rest = await self._node.ask_together(asked, Callee.UNTRUSTED)
        return WalletState(
            block=head,
            holdings=dict(zip(held, rest[: len(held)], strict=True)),
            allowances=Allowances(
                dict(zip(tokens, rest[len(held) : len(held) + len(tokens)], strict=True)),
                dict(zip(grants, rest[len(held) + len(tokens) :], strict=True)),
            ),
            nonce=nonce,
            next_nonce=max(nonce, waiting),
        )

    async def _estimate_at(self, head: Block, wallet: Address, call: Call) -> int:
        held = await self._node.balance(wallet, head)
        if held < call.value:
            raise Refused(
                f"The wallet has {held} wei and the call sends {call.value} wei: {call.value - held} are missing."
            )
        try:
            needed: int = await self._node.ask(
                requests.spending("eth_estimateGas", wallet, call, head, requests.parse_int)
            )
        except InsufficientFunds as fault:
            raise Refused(
                f"The wallet has {held} wei, which does not pay for the call: {reverts.revert_reason(fault)}."
            ) from fault
        except CallReverted as fault:
            raise Refused(f"The call would revert: {reverts.revert_reason(fault)}.") from fault
        return needed * MARGIN[0] // MARGIN[1]


def _balance_request(currency: Address, wallet: Address, at: Block) -> RpcRequest:
    if currency == NATIVE:
        return requests.balance(wallet, at)
    return requests.view(currency, abi.balance_of(wallet), at, _uint_of(currency, "balanceOf"), CALL_GAS)


def _allowance_request(token: Address, wallet: Address, permit2: Address, at: Block) -> RpcRequest:
    data = _ALLOWANCE + _words(wallet, permit2)
    return requests.view(token, data, at, _uint_of(token, "allowance"), CALL_GAS)


def _permit2_request(token: Address, wallet: Address, spender: Address, permit2: Address, at: Block) -> RpcRequest:
    def parse_grant(data: bytes) -> Grant:
        amount, until, _ = abi.decode_abi(_GRANT_WORDS, data, "Permit2's allowance")
        return Grant(amount, Seconds(until))

    return requests.view(permit2, _GRANT + _words(wallet, token, spender), at, parse_grant)


def _uint_of(token: Address, what: str) -> Any:
    return abi.uint_reader(f"{what} of {token}")


def _words(*addresses: Address) -> bytes:
    return b"".join(bytes.fromhex(abi.address_word(address)[2:]) for address in addresses)


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

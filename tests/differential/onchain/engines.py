"""Two EVMs behind one small socket: revm where it has a wheel, py-evm everywhere else."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from typing import Protocol

from eth_typing import Address

# Contracts made by this account's first transaction live at an address whose 14 low bits are zero. v4 reads
# those bits as hook permissions, so the relay below can be the (silent) hook of a dynamic-fee pool.
DEPLOYER = "0x000000000000000000000000000000000000171a"

_STOP_AT = 10**9  # gas; far above what the longest swap needs


@dataclass(frozen=True, slots=True)
class Reply:
    """What a contract answered: return data, or revert data when it refused."""

    accepted: bool
    data: bytes


class Engine(Protocol):
    """An EVM with one sender, whose calls all go through a relay that reports reverts instead of reverting."""

    relay: str

    def deploy(self, creation_code: bytes) -> str:
        """Create a contract and return its address."""

    def send(self, to: str, payload: bytes, value: int = 0) -> Reply:
        """Call and keep the effects."""

    def peek(self, to: str, payload: bytes) -> Reply:
        """Call and forget the effects."""


def _relay_code() -> bytes:
    """Creation code of `relay(address to, bytes payload) -> bytes`, by hand: one word `accepted`, then the answer.

    revm's Python binding drops revert data, and the names of errors are in it.
    """
    payload_length = bytes.fromhex("604435")
    runtime = b"".join(
        (
            payload_length,
            bytes.fromhex("6064600037"),  # memory[0:] = payload
            bytes.fromhex("60006000"),  # no room for the answer yet
            payload_length,
            bytes.fromhex("600034600435"),  # from memory 0, the value we were sent, to `to`
            bytes.fromhex("5af1"),  # all gas, call
            bytes.fromhex("604052"),  # memory[0x40] = accepted
            bytes.fromhex("6020600052"),  # memory[0] = offset of the bytes
            bytes.fromhex("3d602001602052"),  # memory[0x20] = their length: that word and the answer
            bytes.fromhex("3d600060603e"),  # memory[0x60:] = the answer
            bytes.fromhex("3d601f01601f1916606001"),  # whole words, plus the head
            bytes.fromhex("6000f3"),
        )
    )
    return bytes([0x60, len(runtime)]) + bytes.fromhex("80600b6000396000f3") + runtime


def _reply(relayed: bytes) -> Reply:
    return Reply(accepted=relayed[31] == 1, data=relayed[32:])


class Revm:
    """revm in process."""

    def __init__(self) -> None:
        from simular import PyAbi, PyEvm

        self._abi_of = PyAbi.from_abi_bytecode
        self._relay_abi = PyAbi.from_human_readable(["function relay(address,bytes) payable returns (bytes)"])
        self._evm = PyEvm()
        self._evm.create_account(DEPLOYER, 10**30)
        self.relay = self.deploy(_relay_code())

    def deploy(self, creation_code: bytes) -> str:
        return str(self._evm.deploy("()", DEPLOYER, 0, self._abi_of("[]", creation_code))).lower()

    def send(self, to: str, payload: bytes, value: int = 0) -> Reply:
        arguments = f"({to},0x{payload.hex()})"
        result = self._evm.transact("relay", arguments, DEPLOYER, self.relay, value, self._relay_abi)
        return _reply(bytes(result.output))

    def peek(self, to: str, payload: bytes) -> Reply:
        return _reply(bytes(self._evm.call("relay", f"({to},0x{payload.hex()})", self.relay, self._relay_abi)))


class PyEvm:
    """py-evm, on its state alone: no blocks, no signatures."""

    def __init__(self) -> None:
        from eth.chains.base import MiningChain
        from eth.db.atomic import AtomicDB
        from eth.vm.forks.prague import PragueVM

        chain_class = MiningChain.configure("DifferentialChain", vm_configuration=((0, PragueVM),), chain_id=1)
        genesis = {"difficulty": 0, "gas_limit": 60_000_000, "timestamp": 1}
        self._state = chain_class.from_genesis(AtomicDB(), genesis).get_vm().state  # type: ignore[arg-type]
        self._sender = Address(bytes.fromhex(DEPLOYER[2:]))
        self._state.set_balance(self._sender, 10**30)
        self.relay = self.deploy(_relay_code())

    def deploy(self, creation_code: bytes) -> str:
        from eth._utils.address import generate_contract_address
        from eth.constants import CREATE_CONTRACT_ADDRESS

        address = generate_contract_address(self._sender, self._state.get_nonce(self._sender))
        self._state.increment_nonce(self._sender)
        self._run(CREATE_CONTRACT_ADDRESS, b"", creation_code, 0, create_address=address)
        self._end_transaction()
        return "0x" + address.hex()

    def send(self, to: str, payload: bytes, value: int = 0) -> Reply:
        reply = self._call(to, payload, value)
        self._end_transaction()
        return reply

    def peek(self, to: str, payload: bytes) -> Reply:
        before = self._state.snapshot()
        reply = self._call(to, payload, 0)
        self._state.revert(before)
        self._state.clear_transient_storage()
        return reply

    def _call(self, to: str, payload: bytes, value: int) -> Reply:
        from eth_abi.abi import encode

        relay = Address(bytes.fromhex(self.relay[2:]))
        data = b"\0\0\0\0" + encode(["address", "bytes"], [to, payload])
        answer = self._run(relay, data, self._state.get_code(relay), value)
        return _reply(answer[64 : 64 + int.from_bytes(answer[32:64], "big")])

    def _run(self, to: Address, data: bytes, code: bytes, value: int, create_address: Address | None = None) -> bytes:
        from eth.vm.message import Message

        state = self._state
        message = Message(_STOP_AT, to, self._sender, value, data, code, create_address=create_address)  # type: ignore[arg-type]
        context = state.get_transaction_context_class()(gas_price=0, origin=self._sender)
        computation = state.computation_class
        apply = computation.apply_create_message if create_address else computation.apply_message
        done = apply(state, message, context)
        done.raise_if_error()
        return bytes(done.output)

    def _end_transaction(self) -> None:
        self._state.lock_changes()
        self._state.clear_transient_storage()


def start_engine() -> Engine:
    """The engine named by ZUNO_TEST_EVM (`revm` or `pyevm`), else the quicker one that is installed."""
    wanted = os.environ.get("ZUNO_TEST_EVM", "")
    if wanted not in ("", "revm", "pyevm"):
        raise ValueError(f"ZUNO_TEST_EVM is {wanted!r}; it may be revm or pyevm")
    if wanted == "pyevm" or (not wanted and importlib.util.find_spec("simular") is None):
        return PyEvm()
    return Revm()

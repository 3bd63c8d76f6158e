"""Calldata read back from its bytes, by rules of its own: nothing here knows how the builders wrote it.

Only the one canonical encoding is read. Every byte is either part of a value or has to be what it must be, so two
different byte strings never say the same, and what the contracts might read in another way is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from eth_hash.auto import keccak

from zuno.amm.model import PoolKey, Range
from zuno.kernel.errors import Refused
from zuno.kernel.units import Address, Pips, Seconds, Tick
from zuno.lp.model.chains import SwapStruct
from zuno.lp.plan import calls

_WORD: Final = 32
_KEY: Final = ("address", "address", "uint24", "int24", "address")
_CHANGE: Final = ("uint256", "uint256", "uint128", "uint128", "bytes")
_ACTIONS: Final[Mapping[int, tuple[type[calls.Action], tuple[str, ...]]]] = {
    0x00: (calls.Increase, _CHANGE),
    0x01: (calls.Decrease, _CHANGE),
    0x02: (calls.Mint, (*_KEY, "int24", "int24", "uint256", "uint128", "uint128", "address", "bytes")),
    0x03: (calls.Burn, ("uint256", "uint128", "uint128", "bytes")),
    0x04: (calls.IncreaseFromDeltas, ("uint256", "uint128", "uint128", "bytes")),
    0x05: (calls.MintFromDeltas, (*_KEY, "int24", "int24", "uint128", "uint128", "address", "bytes")),
    0x0B: (calls.Settle, ("address", "uint256", "bool")),
    0x0D: (calls.SettlePair, ("address", "address")),
    0x0E: (calls.Take, ("address", "address", "uint256")),
    0x11: (calls.TakePair, ("address", "address", "address")),
    0x12: (calls.CloseCurrency, ("address",)),
    0x14: (calls.Sweep, ("address", "address")),
}
"""By an action's number what it is, and the types of its parameters."""
_SWAPS: Final = {
    SwapStruct.FIVE_FIELDS: (*_KEY, "bool", "uint128", "uint128", "bytes"),
    SwapStruct.MIN_HOP_PRICE: (*_KEY, "bool", "uint128", "uint128", "uint256", "bytes"),
}


def decode(to: Address, value: int, data: bytes, struct: SwapStruct) -> calls.DecodedCall:
    """What a transaction would do; `Refused` if its bytes cannot be read whole."""
    return calls.DecodedCall(to, value, _call(data, struct))


def _call(data: bytes, struct: SwapStruct) -> calls.Call:
    signature = _SIGNATURES.get(data[:4])
    arguments = data[4:]
    match signature:
        case "deposit()":
            read_abi((), arguments)
            return calls.Wrap()
        case "approve(address,uint256)":
            return calls.Approve(*read_abi(("address", "uint256"), arguments))
        case "approve(address,address,uint160,uint48)":
            return calls.Permit(*read_abi(("address", "address", "uint160", "uint48"), arguments))
        case "modifyLiquidities(bytes,uint256)":
            return _modify(data, struct)
        case "execute(bytes,bytes[],uint256)":
            commands, inputs, deadline = read_abi(("bytes", "bytes[]", "uint256"), arguments)
            if len(commands) != len(inputs):
                raise Refused(f"{len(commands)} commands have {len(inputs)} inputs")
            read = (_command(each, given, struct) for each, given in zip(commands, inputs, strict=True))
            return calls.Execute(tuple(read), Seconds(deadline))
    raise Refused(f"calldata begins with 0x{data[:4].hex()}, which no plan of ours calls")


def _modify(data: bytes, struct: SwapStruct) -> calls.ModifyLiquidities:
    if _SIGNATURES.get(data[:4]) != "modifyLiquidities(bytes,uint256)":
        raise Refused(f"PositionManager is called by 0x{data[:4].hex()}, not by modifyLiquidities")
    unlock, deadline = read_abi(("bytes", "uint256"), data[4:])
    return calls.ModifyLiquidities(_actions(unlock, struct), Seconds(deadline))


def _command(command: int, given: bytes, struct: SwapStruct) -> calls.Command:
    match command:
        case 0x10:
            return calls.RouterSwap(_actions(given, struct))
        case 0x02:
            return calls.TransferFrom(*read_abi(("address", "address", "uint160"), given))
        case 0x0B:
            return calls.WrapEther(*read_abi(("address", "uint256"), given))
        case 0x0C:
            return calls.UnwrapEther(*read_abi(("address", "uint256"), given))
        case 0x14:
            return _modify(given, struct)
    # The flag that lets a command fail quietly is the top bit of this byte, and makes it unknown as well.
    raise Refused(f"command 0x{command:02x} of the router is in no plan of ours")


def _actions(data: bytes, struct: SwapStruct) -> tuple[calls.Action, ...]:
    actions, params = read_abi(("bytes", "bytes[]"), data)
    if len(actions) != len(params):
        raise Refused(f"{len(actions)} actions have {len(params)} parameters")
    return tuple(_action(action, given, struct) for action, given in zip(actions, params, strict=True))


def _action(action: int, data: bytes, struct: SwapStruct) -> calls.Action:
    if action == 0x06:
        return _swap(data, struct)
    if action not in _ACTIONS:
        raise Refused(f"action 0x{action:02x} is in no plan of ours")
    kind, types = _ACTIONS[action]
    fields = read_abi(types, data)
    if types[-1] == "bytes":
        fields = _require_empty_hook_data(fields)
    if kind in (calls.Mint, calls.MintFromDeltas):
        lower, upper, *rest = fields[5:]
        fields = (_key(fields), Range(Tick(lower), Tick(upper)), *rest)
    return kind(*fields)


def _swap(data: bytes, struct: SwapStruct) -> calls.SwapIn:
    """A struct with bytes in it is itself behind an offset."""
    if len(data) < _WORD or int.from_bytes(data[:_WORD], "big") != _WORD:
        raise Refused("a swap does not begin where it says")
    fields = _require_empty_hook_data(read_abi(_SWAPS[struct], data[_WORD:]))
    zero_for_one, amount_in, amount_out_min, *hop = fields[5:]
    if any(hop):
        raise Refused(f"a swap names a least price of {hop[0]} for its hop, which no plan of ours does")
    return calls.SwapIn(_key(fields), zero_for_one, amount_in, amount_out_min)


def _key(fields: Sequence[Any]) -> PoolKey:
    currency0, currency1, fee, spacing, hooks = fields[:5]
    return PoolKey(currency0, currency1, Pips(fee), spacing, hooks)


def _require_empty_hook_data(fields: tuple[Any, ...]) -> tuple[Any, ...]:
    """The fields without their last, the data for a hook, which must be empty."""
    if fields[-1]:
        raise Refused(f"{len(fields[-1])} bytes are meant for a hook; no plan of ours talks to one")
    return fields[:-1]


def read_abi(types: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """The values of a canonical encoding: heads, then tails in their order, without a gap and to the last byte."""
    end = _WORD * len(types)
    values: list[Any] = []
    for index, kind in enumerate(types):
        word = _word(data, index * _WORD)
        if kind in _TAILS:
            if word != end:
                raise Refused(f"a part of the calldata lies at {word}, not at {end} where it belongs")
            value, end = _TAILS[kind](data, end)
        else:
            value = _static(kind, word)
        values.append(value)
    if end != len(data):
        raise Refused(f"{len(data)} bytes of calldata where {end} say everything")
    return tuple(values)


def _static(kind: str, word: int) -> Any:
    if kind == "address":
        return Address(f"0x{_fitting(kind, word, 160):040x}")
    if kind == "bool":
        return bool(_fitting(kind, word, 1))
    if kind == "int24":
        signed = word - (1 << 256) if word >> 255 else word
        if not -(1 << 23) <= signed < 1 << 23:
            raise Refused(f"{signed} is no int24")
        return signed
    return _fitting(kind, word, int(kind.removeprefix("uint")))


def _fitting(kind: str, word: int, bits: int) -> int:
    if word >> bits:
        raise Refused(f"{word} is no {kind}")
    return word


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """A length, the bytes, and zeros up to the next word; where it ends."""
    length, start = _word(data, at), at + _WORD
    end = start + -(-length // _WORD) * _WORD
    if end > len(data):
        raise Refused(f"{length} bytes are promised where {max(0, len(data) - start)} are left")
    if any(data[start + length : end]):
        raise Refused("there is something between the bytes and the next word")
    return data[start : start + length], end


def _bytes_list(data: bytes, at: int) -> tuple[tuple[bytes, ...], int]:
    count, start = _word(data, at), at + _WORD
    end = start + _WORD * count
    if end > len(data):
        raise Refused(f"{count} parts are promised where {max(0, len(data) - start)} bytes are left")
    parts: list[bytes] = []
    for index in range(count):
        place = start + _word(data, start + index * _WORD)
        if place != end:
            raise Refused(f"a part of the calldata lies at {place}, not at {end} where it belongs")
        part, end = _bytes(data, end)
        parts.append(part)
    return tuple(parts), end


def _word(data: bytes, at: int) -> int:
    if at + _WORD > len(data):
        raise Refused(f"the calldata ends at byte {len(data)}, in the middle of what it says")
    return int.from_bytes(data[at : at + _WORD], "big")


_TAILS: Final[dict[str, Callable[[bytes, int], tuple[Any, int]]]] = {"bytes": _bytes, "bytes[]": _bytes_list}

_SIGNATURES: Final = {
    keccak(signature.encode())[:4]: signature
    for signature in (
        "deposit()",
        "approve(address,uint256)",
        "approve(address,address,uint160,uint48)",
        "modifyLiquidities(bytes,uint256)",
        "execute(bytes,bytes[],uint256)",
    )
}

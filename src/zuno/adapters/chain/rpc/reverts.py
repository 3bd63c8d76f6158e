"""Why a call reverted: custom errors by name, strings and panics as they are."""

from typing import Final

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.errors import CallReverted
from zuno.kernel.errors import Malformed
from zuno.kernel.text import plain_text

_MAX_SAID: Final = 200
_DEEPEST: Final = 4
_SELECTOR: Final = 4
_NO_REASON: Final = "reverted without a reason"

_STRING: Final = abi.selector("Error(string)")
_PANIC: Final = abi.selector("Panic(uint256)")
_PANICS: Final = {
    0x01: "assertion failed",
    0x11: "arithmetic overflow",
    0x12: "division by zero",
    0x32: "index out of bounds",
}

_ERRORS: Final = (
    # PoolManager
    "AlreadyUnlocked() CannotUpdateEmptyPosition() CurrenciesOutOfOrderOrEqual(address,address) "
    "CurrencyNotSettled() HookAddressNotValid(address) HookCallFailed() HookDeltaExceedsSwapAmount() "
    "InvalidFeeForExactOut() InvalidHookResponse() InvalidPrice() InvalidPriceOrLiquidity() "
    "InvalidSqrtPrice(uint160) InvalidTick(int24) LPFeeTooLarge(uint24) ManagerLocked() "
    "MustClearExactPositiveDelta() NonzeroNativeValue() NotEnoughLiquidity() PoolNotInitialized() "
    "PriceLimitAlreadyExceeded(uint160,uint160) PriceLimitOutOfBounds(uint160) PriceOverflow() "
    "ProtocolFeeCurrencySynced() SafeCastOverflow() SwapAmountCannotBeZero() TickLiquidityOverflow(int24) "
    "TickLowerOutOfBounds(int24) TickMisaligned(int24,int24) TickUpperOutOfBounds(int24) "
    "TicksMisordered(int24,int24) ERC20TransferFailed() NativeTransferFailed() "
    # PositionManager
    "BurnNotificationReverted(address,bytes) ContractLocked() DeadlinePassed(uint256) DeltaNotNegative(address) "
    "DeltaNotPositive(address) InputLengthMismatch() InsufficientBalance() InvalidEthSender() "
    "MaximumAmountExceeded(uint128,uint128) MinimumAmountInsufficient(uint128,uint128) "
    "ModifyLiquidityNotificationReverted(address,bytes) NotApproved(address) NotPoolManager() "
    "PoolManagerMustBeLocked() SliceOutOfBounds() UnsupportedAction(uint256) "
    # Permit2
    "AllowanceExpired(uint256) ExcessiveInvalidation() InsufficientAllowance(uint256) UnsafeCast() "
    # UniversalRouter
    "BalanceTooLow() ETHNotAccepted() InsufficientETH() InsufficientToken() InvalidAction(bytes4) InvalidBips() "
    "InvalidCommandType(uint256) LengthMismatch() NotAuthorizedForToken(uint256) OnlyMintAllowed() "
    "TransactionDeadlinePassed() V4TooLittleReceived(uint256,uint256) "
    "V4TooLittleReceivedPerHop(uint256,uint256,uint256) V4TooMuchRequested(uint256,uint256) "
    # Tokens
    "ERC20InsufficientAllowance(address,uint256,uint256) ERC20InsufficientBalance(address,uint256,uint256) "
    "SafeERC20FailedOperation(address) "
).split()
_WRAPPERS: Final = {"ExecutionFailed(uint256,bytes)": 1, "WrappedError(address,bytes4,bytes,bytes)": 2}
"""Errors that carry another one: the router's, and v4's around a hook, a subscriber or a token; which argument."""


_BY_SELECTOR: Final = {abi.selector(signature): signature for signature in (*_ERRORS, *_WRAPPERS)}


def revert_reason(fault: CallReverted) -> str:
    """The reason of a revert: from the contract's data, else in the node's own words."""
    if fault.output:
        return decode_reason(fault.output)
    reason = (str(fault).partition(": ")[2] or str(fault)).removeprefix("execution reverted").removeprefix(": ")
    return plain_text(reason, _MAX_SAID) if reason else _NO_REASON


def decode_reason(output: bytes, depth: int = _DEEPEST) -> str:
    """The innermost error with a known name, with its numbers; an unknown one by its four bytes."""
    selector, body = output[:_SELECTOR], output[_SELECTOR:]
    if len(selector) < _SELECTOR:
        return _NO_REASON
    signature = _BY_SELECTOR.get(selector)
    try:
        if selector == _STRING:
            return plain_text(
                bytes(abi.decode_abi(["bytes"], body, "a reason")[0]).decode("utf-8", "replace"), _MAX_SAID
            )
        if selector == _PANIC:
            code = abi.decode_uint(body, "a panic")
            return f"panic {code:#04x} ({_PANICS.get(code, 'the contract failed')})"
        if signature is None:
            return "0x" + selector.hex()
        inside = signature[signature.index("(") + 1 : -1]
        values = abi.decode_abi(inside.split(",") if inside else [], body, "an error")
    except Malformed:
        return "0x" + selector.hex() if signature is None else signature.partition("(")[0]
    inner = bytes(values[_WRAPPERS[signature]]) if signature in _WRAPPERS else b""
    if inner and depth:
        return decode_reason(inner, depth - 1)
    name = signature.partition("(")[0]
    shown = ", ".join("0x" + value.hex() if isinstance(value, bytes) else str(value) for value in values)
    return plain_text(f"{name}({shown})" if values else name, _MAX_SAID)

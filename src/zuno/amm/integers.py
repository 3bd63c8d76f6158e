"""The contracts' integer types, so that a number that cannot exist on chain is refused here too."""

from zuno.kernel.errors import SafeCastOverflow

Q96 = 1 << 96
Q128 = 1 << 128

MAX_UINT128 = (1 << 128) - 1
MAX_UINT160 = (1 << 160) - 1
MAX_UINT256 = (1 << 256) - 1
MIN_INT128 = -(1 << 127)
MAX_INT128 = (1 << 127) - 1
MIN_INT256 = -(1 << 255)
MAX_INT256 = (1 << 255) - 1


def to_int128(value: int) -> int:
    """The value itself, or SafeCastOverflow."""
    if MIN_INT128 <= value <= MAX_INT128:
        return value
    raise SafeCastOverflow(f"{value} does not fit int128")


def to_int256(value: int) -> int:
    """The value itself, or SafeCastOverflow."""
    if MIN_INT256 <= value <= MAX_INT256:
        return value
    raise SafeCastOverflow(f"{value} does not fit int256")


def to_uint128(value: int) -> int:
    """The value itself, or SafeCastOverflow."""
    if 0 <= value <= MAX_UINT128:
        return value
    raise SafeCastOverflow(f"{value} does not fit uint128")


def to_uint256(value: int) -> int:
    """The value itself, or SafeCastOverflow."""
    if 0 <= value <= MAX_UINT256:
        return value
    raise SafeCastOverflow(f"{value} does not fit uint256")


def ceil_div(numerator: int, denominator: int) -> int:
    """Quotient rounded up; the denominator is positive."""
    return -(-numerator // denominator)

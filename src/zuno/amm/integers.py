"""The contracts' integer types, so that a number that cannot exist on chain is refused here too."""

from collections.abc import Callable

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


def _safe_cast(kind: str, least: int, most: int) -> Callable[[int], int]:

    def cast(value: int) -> int:
        if least <= value <= most:
            return value
        raise SafeCastOverflow(f"{value} does not fit {kind}")

    return cast


to_int128 = _safe_cast("int128", MIN_INT128, MAX_INT128)
to_int256 = _safe_cast("int256", MIN_INT256, MAX_INT256)
to_uint128 = _safe_cast("uint128", 0, MAX_UINT128)
to_uint256 = _safe_cast("uint256", 0, MAX_UINT256)


def ceil_div(numerator: int, denominator: int) -> int:
    """Quotient rounded up; the denominator is positive."""
    return -(-numerator // denominator)

"""Units as types: what an integer counts is part of its name."""

from typing import NewType

Tick = NewType("Tick", int)
"""log base 1.0001 of the price token1/token0, in base units."""

SqrtPriceX96 = NewType("SqrtPriceX96", int)
"""Square root of the price token1/token0 in base units, Q64.96."""

Liquidity = NewType("Liquidity", int)
"""The pool's L."""

Amount = NewType("Amount", int)
"""A token amount in base units (wei for ETH)."""

Pips = NewType("Pips", int)
"""Hundredths of a basis point: 500 is 0.05 %."""

Wei = NewType("Wei", int)
"""Native currency in base units."""

Seconds = NewType("Seconds", int)
"""Unix time, or a span of it, in whole seconds."""

Millis = NewType("Millis", int)
"""Unix time in whole milliseconds."""

Address = NewType("Address", str)
"""0x-prefixed, 40 hex digits, lower case inside Zuno; checksummed only where a person reads it."""

HexId = NewType("HexId", str)
"""0x-prefixed, 64 hex digits, lower case: pool ids, hashes."""

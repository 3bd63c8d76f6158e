"""The integer-exact Uniswap v4 pool."""

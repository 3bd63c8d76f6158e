"""A local chain that behaves like a geth node, carrying the real Uniswap v4 contracts."""

"""A local Ethereum chain in Python with the official Uniswap v4 contracts; `python -m zuno_devnet up` serves one."""

"""The embedded chain: the script of `world` played on our own pools, with a virtual clock and no EVM."""

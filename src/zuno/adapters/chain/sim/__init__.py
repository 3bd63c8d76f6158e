"""The embedded chain: the story of `world` on our own pools, with a virtual clock and no EVM."""

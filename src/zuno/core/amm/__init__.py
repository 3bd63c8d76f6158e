"""An integer-exact Uniswap v4 pool, so that a plan can be rehearsed to the last wei before it is signed."""

"""Core strategies: what a sleeve holds when nobody argues."""

"""Zuno: a desk of arguing agents for crypto capital."""

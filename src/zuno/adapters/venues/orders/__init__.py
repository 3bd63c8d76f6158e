"""Exchanges that take orders: what can lose money."""

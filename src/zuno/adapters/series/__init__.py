"""Stores of market data."""

"""Backtests of the LP desk on recorded pool minutes."""

"""Backtests of the trading desk over recorded markets."""

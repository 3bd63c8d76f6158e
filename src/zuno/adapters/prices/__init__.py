"""Prices, gas and reference prices for the LP desk."""

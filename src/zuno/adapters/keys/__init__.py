"""Signing keys and wallets."""

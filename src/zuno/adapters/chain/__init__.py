"""Chains: live by RPC, embedded simulation, local devnet."""

"""Peers on a transport: envelopes, delivery, replay protection, rate limits."""

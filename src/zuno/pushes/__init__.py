"""Notices from the outbox to the owner: which, when, in order and once."""

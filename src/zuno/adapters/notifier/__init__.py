"""Notifiers of the owner."""

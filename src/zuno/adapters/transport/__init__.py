"""Transports of the mesh."""

"""Indexes of memories, and embedders."""

"""Pivots, swings, levels, lines, gaps and patterns."""

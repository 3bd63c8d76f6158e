"""Figures in prose by slots: texts cite facts by id, and code prints the numbers."""

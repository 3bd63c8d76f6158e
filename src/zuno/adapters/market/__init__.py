"""Market feeds."""

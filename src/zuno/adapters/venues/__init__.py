"""Market data by venue."""

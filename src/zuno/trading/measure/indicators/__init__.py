"""Technical indicators as columns."""

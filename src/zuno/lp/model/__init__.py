"""The LP desk's values and messages."""

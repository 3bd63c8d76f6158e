"""The trading desk's values and messages."""

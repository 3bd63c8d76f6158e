"""The trading desk's ports."""

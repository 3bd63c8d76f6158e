"""The LP desk's ports."""

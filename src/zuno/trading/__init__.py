"""The trading desk."""

"""The LP desk's rules: pure functions of their arguments."""

"""Rules: pure functions of their arguments, so that every answer can be computed again."""

"""PAST: what was said and done, kept so that nobody can change it unnoticed."""

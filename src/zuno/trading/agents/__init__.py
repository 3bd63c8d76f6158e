"""Experts, Judge and risk officer: what each is told, and its rule-based fallback."""

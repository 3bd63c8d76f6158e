"""Every test, and what they share: `tests.paths` (where things lie) and `tests.wire` (worlds, servers and scripts)."""

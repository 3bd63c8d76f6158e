"""Everything measured of a bundle: pure functions."""

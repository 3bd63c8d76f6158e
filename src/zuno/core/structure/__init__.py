"""What shape prices have taken: turns, the breaks of them, gaps, lines and levels, each from when it was known."""

"""From a range to exact transactions, and back from their bytes to words."""

"""What bars say by the textbook: gauges of momentum, range and flow, each value from its own past alone."""

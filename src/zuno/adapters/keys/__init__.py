"""Keys that speak for this node."""

"""The runtime every agent shares: it asks, checks, repairs once, and otherwise lets the rules speak."""

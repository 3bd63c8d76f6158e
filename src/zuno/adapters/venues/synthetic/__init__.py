"""A synthetic market without an edge."""

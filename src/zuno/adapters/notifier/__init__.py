"""Where the owner is told."""

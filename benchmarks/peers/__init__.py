"""Scripts of peers that need an environment of their own."""

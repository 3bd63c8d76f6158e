"""A typed line, read as a command."""

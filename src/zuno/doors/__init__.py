"""The ways in: command line, shell."""

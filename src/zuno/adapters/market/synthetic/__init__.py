"""A market that never was, complete and with its dirt: for the desk to be run, shown and tested without a network."""

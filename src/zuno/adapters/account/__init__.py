"""Where the desk's account is read from."""

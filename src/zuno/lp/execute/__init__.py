"""The only room of the LP desk that moves money."""

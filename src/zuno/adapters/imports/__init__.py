"""Files of market history from elsewhere."""

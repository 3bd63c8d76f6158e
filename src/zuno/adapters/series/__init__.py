"""Where the market's past is kept."""

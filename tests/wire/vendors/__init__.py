"""Local servers that answer as the trading desk's vendors do, in their own bytes."""

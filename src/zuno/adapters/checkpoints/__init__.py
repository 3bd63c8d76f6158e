"""How far each run of the trading desk has come: in a file of the home, or on a server."""

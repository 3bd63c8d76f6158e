"""The only room of the trading desk that moves money: intents, orders, protective orders, reconciliation."""

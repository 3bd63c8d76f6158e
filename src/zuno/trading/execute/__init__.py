"""The only room of the trading desk that moves money, in the order an order lives: `intents`, `entries`, `protection`,
`fills`, `closes`, `reconcile`; toward a target `targets` and `carry`, between sleeves `transfers`. `order_gate` is what
people and the desk call; `venue_context` is what each step is handed; `account_writer` is the one way into the log."""

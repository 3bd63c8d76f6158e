"""From a decision to a ruling: score, expectancy, risk rules, routing, leverage guard."""

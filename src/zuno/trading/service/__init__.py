"""One method per thing a person can ask of the trading desk, and its view."""

"""One method per thing a person can ask of the LP desk, and its view."""

"""Scout, Strategist, Risk-Critic and Arbiter: what each is told, and its rule-based fallback."""

"""Ask a model once and check the answer: port, prompts, budget, breaker, reply, fallback."""

"""Model adapters: vendors and recorded replies."""

"""Where memories are kept for recall, and what makes vectors of texts."""

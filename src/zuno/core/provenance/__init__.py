"""Where a number in prose comes from: every figure an agent writes is traced to a fact it was given, or named."""

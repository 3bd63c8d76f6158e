"""The page on this machine, and the JSON interface behind it."""

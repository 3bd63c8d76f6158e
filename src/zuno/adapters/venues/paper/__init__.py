"""A venue on paper: orders are matched against the market as it was recorded, or is."""

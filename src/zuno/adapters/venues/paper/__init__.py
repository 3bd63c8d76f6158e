"""A venue on paper: orders are matched against recorded or live market data."""

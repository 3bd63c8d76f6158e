"""Studies of the desks on synthetic and recorded markets. It uses both desks; no desk knows it."""

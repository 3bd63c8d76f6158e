"""What the desks do over many runs, counted: `make study`."""

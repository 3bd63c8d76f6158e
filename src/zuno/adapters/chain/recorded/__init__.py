"""A pool's recorded minutes, played on our own pool."""

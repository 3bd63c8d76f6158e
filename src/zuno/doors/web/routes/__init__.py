"""The interface under /api/v1, by desk."""

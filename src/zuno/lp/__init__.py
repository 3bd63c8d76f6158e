"""The LP desk."""

"""How a chart's description becomes an image."""

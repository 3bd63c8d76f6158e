"""What a chart shows."""

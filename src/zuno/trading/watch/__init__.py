"""The desk as it runs by itself: its schedule and the protective watch."""

"""The monitor and its alerts."""

"""The trading desk: what it may know, and what it makes of it."""

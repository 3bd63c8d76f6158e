"""The Model Context Protocol server: both desks for one's own assistant, to look at and to ask, never to spend."""

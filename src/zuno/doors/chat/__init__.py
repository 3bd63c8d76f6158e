"""Free text: a chat that reads and proposes, and never acts."""

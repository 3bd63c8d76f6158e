"""What a person types to the shell, read by rules: which intent, with which slots, how surely and why."""

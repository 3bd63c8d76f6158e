"""The shell: a person types, the command line's own words are run."""

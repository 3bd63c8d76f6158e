"""Where the journal's rows are kept."""

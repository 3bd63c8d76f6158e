"""The owner's own strategies: a Python file in a confined process, a CSV file, and a webhook."""

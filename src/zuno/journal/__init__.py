"""The append-only, hash-chained, signed record: entries, verification, audit and its port."""

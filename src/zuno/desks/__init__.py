"""TABLES: who sits, what they may know, what they say."""

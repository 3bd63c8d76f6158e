"""Exchanges on loopback that take orders, in their own wire formats, with faults on request."""

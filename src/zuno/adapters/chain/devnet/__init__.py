"""The local chain of a home: `zuno_devnet` with the world of a seed, as a process of its own."""

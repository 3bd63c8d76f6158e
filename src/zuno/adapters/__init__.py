"""Adapters: a folder per port, a file per vendor; fakes that only tests use are beside the tests."""

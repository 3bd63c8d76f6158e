"""The real v4 contracts in a local EVM, for tests that compare our arithmetic with theirs."""

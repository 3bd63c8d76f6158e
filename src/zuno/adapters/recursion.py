"""Undoes what two libraries do to the interpreter: a recursion limit so high that the C stack ends first.

py_ecc raises it to 100,000 on import. Beyond some 50,000 levels, JSON that nests without end then kills the process
instead of raising `RecursionError`. py-evm needs room for 1,024 nested calls, which LIMIT leaves.
"""

from __future__ import annotations

import sys

LIMIT = 20_000


def limit_recursion() -> None:
    """Call after importing web3 or py-evm."""
    sys.setrecursionlimit(min(sys.getrecursionlimit(), LIMIT))

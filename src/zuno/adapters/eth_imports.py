"""Undo what chain libraries do when they are imported.

py_ecc raises the recursion limit to 100,000; beyond some 50,000 levels, deeply nested JSON kills the process instead of
raising `RecursionError`. py-evm needs room for 1,024 nested calls, which LIMIT leaves.

eth_keyfile, which eth_account and web3 need, loads BLS12-381 for version 4 keystores, and py_ecc then computes pairing
tables for most of a second. Zuno reads version 3 alone.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eth_account import Account

LIMIT = 20_000
_BLS_ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
_PAIRINGS: Mapping[str, Mapping[str, object]] = {
    "py_ecc.bls": {"G2ProofOfPossession": None},
    "py_ecc.bls12_381": {"curve_order": _BLS_ORDER},
}


def limit_recursion() -> None:
    """Call after importing web3 or py-evm."""
    sys.setrecursionlimit(min(sys.getrecursionlimit(), LIMIT))


def import_eth_account() -> type[Account]:
    """Call before importing web3. A later import of py_ecc gets the whole library."""
    if "eth_keyfile" not in sys.modules:
        absent = {name: ModuleType(name) for name in _PAIRINGS if name not in sys.modules}
        for name, module in absent.items():
            vars(module).update(_PAIRINGS[name])
        sys.modules.update(absent)
        try:
            with suppress(Exception):  # it asks for more: then it gets all
                import_module("eth_keyfile")
        finally:
            for name in absent:
                sys.modules.pop(name, None)
    from eth_account import Account

    limit_recursion()
    return Account

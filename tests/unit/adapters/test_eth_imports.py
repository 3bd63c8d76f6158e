"""What libraries of the chain do on import, in an interpreter that has imported none of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

ACCOUNT = "from zuno.adapters.eth_imports import LIMIT, import_eth_account\nAccount = import_eth_account()\n"
WEB3 = "import zuno.adapters.chain.rpc\nfrom zuno.adapters.eth_imports import LIMIT\n"
CHECKS = """
import sys
assert not [name for name in sys.modules if name.startswith("py_ecc") and "bls" in name]
assert sys.getrecursionlimit() <= LIMIT
"""
KEYSTORE = """
sealed = Account.encrypt(b"\\1" * 32, "a", kdf="pbkdf2", iterations=2)
assert Account.decrypt(sealed, "a") == b"\\1" * 32
from py_ecc.bls import G2ProofOfPossession
from py_ecc.bls12_381 import curve_order
from eth_keyfile.keyfile import MAX_V4_PRIVATE_KEY
assert MAX_V4_PRIVATE_KEY == curve_order - 1
assert G2ProofOfPossession.SkToPk(1)
"""


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("script", [ACCOUNT + CHECKS + KEYSTORE, WEB3 + CHECKS])
def test_keys_are_used_without_pairings_which_are_there_for_whoever_wants_them(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

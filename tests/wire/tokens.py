"""Tokens assembled by hand: like USDT, or as a token should not be."""

from __future__ import annotations

from eth_hash.auto import keccak

OPCODES = {
    word: int(code, 16)
    for code, word in (
        pair.split(":")
        for pair in (
            "00:STOP 01:ADD 03:SUB 10:LT 14:EQ 15:ISZERO 16:AND 1c:SHR 20:SHA3 33:CALLER 35:CALLDATALOAD "
            "36:CALLDATASIZE 37:CALLDATACOPY 39:CODECOPY "
            "52:MSTORE 54:SLOAD 55:SSTORE 56:JUMP 57:JUMPI 5a:GAS 80:DUP1 81:DUP2 82:DUP3 83:DUP4 "
            "85:DUP6 86:DUP7 90:SWAP1 f1:CALL f3:RETURN fd:REVERT"
        ).split()
    )
}


def assemble(source: str) -> bytes:
    """Words are opcodes, numbers are pushed, `@name` pushes a place and `name:` is one."""
    words, places, code = source.split(), dict[str, int](), b""
    for _ in range(2):
        code = b""
        for word in words:
            if word.endswith(":"):
                places[word[:-1]] = len(code)
                code += b"\x5b"
            elif word.startswith("@"):
                code += b"\x61" + places.get(word[1:], 0).to_bytes(2, "big")
            elif word in OPCODES:
                code += bytes([OPCODES[word]])
            else:
                number = int(word, 0)
                size = max(1, (number.bit_length() + 7) // 8)
                code += bytes([0x5F + size]) + number.to_bytes(size, "big")
    return code


def entry(signature: str, place: str) -> str:
    return f"DUP1 0x{keccak(signature.encode())[:4].hex()} EQ @{place} JUMPI"


ANSWER = "0 MSTORE 32 0 RETURN"
OF_TWO = "64 0 SHA3"
TETHER_LIKE = assemble(
    f"""
    0 CALLDATALOAD 224 SHR
    {entry("balanceOf(address)", "balance")}
    {entry("allowance(address,address)", "allowance")}
    {entry("approve(address,uint256)", "approve")}
    {entry("transfer(address,uint256)", "transfer")}
    {entry("transferFrom(address,address,uint256)", "from")}
    {entry("mint(address,uint256)", "mint")}
    fail: 0 0 REVERT
    balance: 4 CALLDATALOAD SLOAD {ANSWER}
    allowance: 4 CALLDATALOAD 0 MSTORE 36 CALLDATALOAD 32 MSTORE {OF_TWO} SLOAD {ANSWER}
    approve: CALLER 0 MSTORE 4 CALLDATALOAD 32 MSTORE {OF_TWO}
        DUP1 SLOAD ISZERO ISZERO 36 CALLDATALOAD ISZERO ISZERO AND @fail JUMPI
        36 CALLDATALOAD SWAP1 SSTORE STOP
    mint: 4 CALLDATALOAD SLOAD 36 CALLDATALOAD ADD 4 CALLDATALOAD SSTORE STOP
    transfer: CALLER 4 CALLDATALOAD 36 CALLDATALOAD @move JUMP
    from: 4 CALLDATALOAD 0 MSTORE CALLER 32 MSTORE {OF_TWO}
        DUP1 SLOAD 68 CALLDATALOAD DUP1 DUP3 LT @fail JUMPI SWAP1 SUB SWAP1 SSTORE
        4 CALLDATALOAD 36 CALLDATALOAD 68 CALLDATALOAD @move JUMP
    move: DUP3 SLOAD DUP2 DUP2 LT @fail JUMPI DUP2 SWAP1 SUB DUP4 SSTORE
        DUP2 SLOAD ADD SWAP1 SSTORE STOP
    """
)
"""Returns nothing from transfers and approvals, and refuses to change one allowance into another."""

BATCHING_WALLET = assemble(
    """
    0
    next: DUP1 CALLDATASIZE EQ @done JUMPI
        DUP1 52 ADD CALLDATALOAD DUP1 DUP3 84 ADD 0 CALLDATACOPY
        0 0 DUP3 0 DUP6 20 ADD CALLDATALOAD DUP7 CALLDATALOAD 96 SHR GAS CALL
        ISZERO @fail JUMPI ADD 84 ADD @next JUMP
    done: STOP
    fail: 0 0 REVERT
    """
)
"""A wallet that is a contract, as a Safe is: runs calls packed as MultiSend packs them (target, value, length, data),
all of them or none, for whoever asks."""

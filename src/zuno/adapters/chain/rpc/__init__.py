"""The live chain: the Chain port over JSON-RPC, reads only."""

from zuno.adapters.chain.rpc.chain import RpcChain
from zuno.adapters.chain.rpc.transport import Policy
from zuno.adapters.recursion import tame

__all__ = ["Policy", "RpcChain"]

tame()

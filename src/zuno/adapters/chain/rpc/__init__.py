"""The live chain: the Chain and Writer ports over JSON-RPC."""

from zuno.adapters.chain.rpc.chain import RpcChain
from zuno.adapters.chain.rpc.transport import RpcPolicy
from zuno.adapters.chain.rpc.writer import RpcWriter

__all__ = ["RpcChain", "RpcPolicy", "RpcWriter"]

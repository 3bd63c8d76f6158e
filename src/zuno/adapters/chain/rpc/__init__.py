"""The live chain: the Chain and Writer ports over JSON-RPC."""

from zuno.adapters.eth_imports import import_eth_account, limit_recursion

import_eth_account()  # before web3, which the others import

from zuno.adapters.chain.rpc.chain import RpcChain  # noqa: E402
from zuno.adapters.chain.rpc.transport import RpcPolicy  # noqa: E402
from zuno.adapters.chain.rpc.writer import RpcWriter  # noqa: E402

__all__ = ["RpcChain", "RpcPolicy", "RpcWriter"]

limit_recursion()

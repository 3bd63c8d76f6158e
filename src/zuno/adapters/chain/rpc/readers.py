"""The readers of one chain, made once and handed round together."""

from __future__ import annotations

from dataclasses import dataclass

from zuno.adapters.chain.rpc.cache import Shelf
from zuno.adapters.chain.rpc.discovery import Birthday, Keys, Wallets
from zuno.adapters.chain.rpc.node import Node
from zuno.adapters.chain.rpc.positions import Deeds
from zuno.adapters.chain.rpc.prices import Prices, Times
from zuno.adapters.chain.rpc.scan import Scanner
from zuno.adapters.chain.rpc.storage import Storage
from zuno.adapters.chain.rpc.tokens import Tokens
from zuno.lp.model.chains import ChainInfo


@dataclass(frozen=True, slots=True)
class Readers:
    """Each knows one kind of fact; all share a node, and what it was learned to bear."""

    info: ChainInfo
    node: Node
    scanner: Scanner
    birthday: Birthday
    storage: Storage
    deeds: Deeds
    keys: Keys
    tokens: Tokens
    wallets: Wallets
    times: Times
    prices: Prices

    @classmethod
    def over(cls, node: Node, info: ChainInfo, shelf: Shelf) -> Readers:
        deployment, scanner, times = info.deployment, Scanner(node), Times(node)
        birthday = Birthday(node, deployment.pool_manager, shelf)
        deeds = Deeds(node, deployment.position_manager, shelf)
        return cls(
            info=info,
            node=node,
            scanner=scanner,
            birthday=birthday,
            storage=Storage(node, deployment.pool_manager),
            deeds=deeds,
            keys=Keys(node, scanner, birthday, info, shelf),
            tokens=Tokens(node, info, shelf),
            wallets=Wallets(node, scanner, deeds, birthday, info, shelf),
            times=times,
            prices=Prices(scanner, times, deployment.pool_manager),
        )

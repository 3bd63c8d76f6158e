"""The Writer port of the simulated chain: every transaction is mined at once, in a block of its own."""

from collections.abc import Callable, Sequence

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.transactions import SimTransaction
from zuno.adapters.chain.world import DEPLOYMENT, SIM
from zuno.amm.model import Depth, Range
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId
from zuno.lp.model.market import GasQuote
from zuno.lp.model.plan import Allowances, WalletState
from zuno.lp.ports import spending


class SimWriter:
    """Shares its world with the chain that is read: both see what was sent."""

    info = SIM

    def __init__(self, chain: SimChain) -> None:
        self._chain = chain

    async def genesis(self) -> HexId:
        """The seed's: it is all that tells two simulated chains apart."""
        return self._chain.latest().genesis

    async def wallet_state(
        self, wallet: Address, currencies: Sequence[Address], spenders: Sequence[Address]
    ) -> WalletState:
        world, owner = self._chain.latest(), _lower(wallet)
        permissions, tokens = world.books.permissions, [token for token in map(_lower, currencies) if token != NATIVE]
        allowances = Allowances(
            {token: permissions.allowance(owner, token, DEPLOYMENT.permit2) for token in tokens},
            {
                (token, spender): permissions.grant(owner, token, spender)
                for token in tokens
                for spender in map(_lower, spenders)
            },
        )
        holdings = {currency: world.ledger.of(owner, currency) for currency in map(_lower, currencies)}
        nonce = world.nonces[owner]
        return WalletState(world.head, holdings, allowances, nonce, nonce)

    async def simulate(
        self, wallet: Address, calls: Sequence[spending.Call], currencies: Sequence[Address], pool_id: HexId
    ) -> spending.Simulation:
        world, owner = self._chain.latest(), _lower(wallet)
        index = self._chain.index(pool_id)
        tried = world.attempt(owner, [_normalize(call) for call in calls])
        after = tried[-1].books if tried else world.books
        return spending.Simulation(
            world.head,
            spending.SimulationMethod.SIMULATED,
            tuple(spending.SimulatedCall(call.gas_used, call.error) for call in tried),
            {token: after.ledger.of(owner, token) - world.ledger.of(owner, token) for token in map(_lower, currencies)},
            after.pools[index].slot0.sqrt_price_x96,
        )

    async def estimate(self, wallet: Address, call: spending.Call) -> int:
        (tried,) = self._chain.latest().attempt(_lower(wallet), [_normalize(call)])
        if tried.error is not None:
            raise Refused(f"The call to {call.to} would revert: {tried.error}.")
        return tried.gas_needed

    async def list_gas(self) -> tuple[GasQuote, ...]:
        return ()

    async def depth(self, pool_id: HexId) -> Depth:
        self._chain.latest()
        return await self._chain.depth(pool_id)

    async def send(self, raw: bytes) -> spending.SendResult:
        return self._chain.take(raw)

    async def trace(self, wallet: Address, nonce: int, hashes: Sequence[HexId]) -> spending.NonceStatus:
        world, owner = self._chain.latest(), _lower(wallet)
        candidates = [world.mined[tx] for name in hashes if (tx := HexId(name.lower())) in world.mined]
        mined = next((result for sent, result in candidates if sent.sender == owner), None)
        return spending.NonceStatus(world.head, mined, (), world.nonces[owner], world.nonces[owner])

    async def find_sent(self, wallet: Address, after: int) -> spending.SentTransactions:
        owner = _lower(wallet)
        return self._select_sent(lambda sent, mined: sent.sender == owner and mined.block.number > after)

    async def find_touching(
        self, wallet: Address, after: int, pool_id: HexId, band: Range
    ) -> spending.SentTransactions:
        return self._select_sent(lambda sent, mined: False)  # every wallet here is a key's

    async def find_transaction(self, wallet: Address, tx: HexId) -> spending.SentTransactions:
        return self._select_sent(lambda sent, mined: sent.hash == tx)

    async def is_contract(self, wallet: Address) -> bool:
        return False

    def _select_sent(self, wanted: Callable[[SimTransaction, spending.Mined], bool]) -> spending.SentTransactions:
        world = self._chain.latest()
        sent = ((sent, mined) for sent, mined in world.mined.values() if wanted(sent, mined))
        transactions = tuple(spending.SentTransaction(sent.sender, sent.call, mined) for sent, mined in sent)
        return spending.SentTransactions(world.head, world.head, transactions)


def _normalize(call: spending.Call) -> spending.Call:
    return spending.Call(_lower(call.to), call.value, call.data)


def _lower(address: Address) -> Address:
    return Address(address.lower())

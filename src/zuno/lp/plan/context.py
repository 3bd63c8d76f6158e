"""Who acts, where and within what bounds: the input of every step builder."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from zuno.amm.model import LpPosition, PoolState
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE, format_units
from zuno.kernel.units import Address, Seconds
from zuno.lp.model.chains import Deployment, NativeCoin
from zuno.lp.model.plan import Allowances, Bounds, Flow, Holds, Need, TickWithin


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The wallet and its chain at one block."""

    deployment: Deployment
    wallet: Address
    now: Seconds
    """The head block's time: a chain can run ahead of every clock."""
    holdings: Mapping[Address, int] = field(default_factory=dict)
    """What the wallet has of each currency; what is not listed it does not have."""
    allowances: Allowances = field(default_factory=Allowances)
    bounds: Bounds = field(default_factory=Bounds)
    wrapper: Address | None = None
    """The token that wraps the chain's own currency."""
    coin: NativeCoin | None = None
    """The chain's own currency, for texts."""

    @property
    def deadline(self) -> Seconds:
        return Seconds(self.now + self.bounds.deadline_seconds)

    def drift(self, pool: PoolState, tick: int | None = None) -> TickWithin:
        """How far the pool may move from here, or from the tick an approval was given at."""
        centre = pool.tick if tick is None else tick
        return TickWithin(pool.id, centre - self.bounds.tick_drift, centre + self.bounds.tick_drift)

    def holding(self, flows: tuple[Flow, ...]) -> tuple[Need, ...]:
        return tuple(Holds(flow.currency, flow.amount) for flow in flows)

    def check_holds(self, flows: tuple[Flow, ...], pool: PoolState) -> None:
        """`Refused`, with the number, where the wallet cannot pay what a plan may take at worst."""
        for flow in flows:
            have = self.holdings.get(flow.currency, 0)
            if have < flow.amount:
                holds, most = (amount_text(pool, flow.currency, each, self.coin) for each in (have, flow.amount))
                raise Refused(f"The wallet holds {holds}, the plan may take {most}.")

    def check_owns(self, position: LpPosition) -> None:
        if position.owner != self.wallet:
            raise Refused(f"position {position.id} belongs to {position.owner}, not to {self.wallet}")


def amount_text(pool: PoolState, currency: Address, amount: int, coin: NativeCoin | None = None) -> str:
    """An amount of one of the pool's tokens, or of the chain's native coin, as people write it."""
    for token in (pool.token0, pool.token1):
        if token.address == currency:
            return f"{format_units(amount, token.decimals)} {token.display_name}"
    return coin.amount_text(amount) if coin and currency == NATIVE else f"{amount} base units of {currency}"


def flows(*amounts: tuple[Address, int]) -> tuple[Flow, ...]:
    """The amounts that are not zero."""
    return tuple(Flow(currency, amount) for currency, amount in amounts if amount > 0)

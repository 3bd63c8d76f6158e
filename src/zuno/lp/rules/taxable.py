"""Taxable events of liquidity positions: mint, burn, collect, swap, gas."""

from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from zuno.amm.model import whole_price
from zuno.kernel.taxable import Amount, TaxableEvent, TaxableKind
from zuno.kernel.text import base_and_quote, format_units, is_stable
from zuno.kernel.units import Millis
from zuno.lp.model.chains import market_name
from zuno.lp.model.history import PositionEvent, PositionHistory, WalletSwap
from zuno.lp.rules.attribution import principal_exchanged

_CONTEXT: Final = Context(prec=40)
_ETHER: Final = 18


def list_taxable_events(
    chain: str, native: str, wallet: str, history: PositionHistory, event: PositionEvent | WalletSwap
) -> Iterator[TaxableEvent]:
    """What one event of a history counts as: a burn pays out principal (`burn`) and fees (`collect`); each transaction
    costs gas once. `native`: the chain's own currency. Amounts are measured; the part of fees in a mint or burn is what
    remains beside the principal by formula."""
    at = Millis(event.block.timestamp * 1_000)
    if isinstance(event, PositionEvent):
        price, reference = event.sqrt_price_x96, f"position {event.position_id}"
        principal = principal_exchanged(event) if event.liquidity_delta else (0, 0)
        fees = (event.paid0 - principal[0], event.paid1 - principal[1])
        kind: TaxableKind = "mint" if event.liquidity_delta > 0 else "burn"
        flows: list[tuple[TaxableKind, tuple[int, int]]] = [(kind, principal)]
        flows.append(("collect" if max(fees) <= 0 else "fee", fees))  # a hook or a token may take instead of give
    else:
        price, reference = event.sqrt_price_before_x96, "swap"
        flows = [("swap", (event.paid0, event.paid1))]

    def record(kind: TaxableKind, amounts: tuple[int, int]) -> TaxableEvent:
        value, source = _value(history, amounts, price, event.block.number)
        received, given = (_whole(history, [sign * amount for amount in amounts]) for sign in (-1, 1))
        return TaxableEvent(at, kind, chain, wallet, received, given, value, source, event.tx, reference)

    yield from (record(kind, amounts) for kind, amounts in flows if any(amounts))
    gas = event.gas if event.gas_paid is None else event.gas_paid
    if gas:
        paid = Amount(Decimal(format_units(gas, _ETHER)), native)
        side = history.native_side
        value, source = (
            (paid, "")
            if side is None
            else _value(history, (gas, 0) if side == 0 else (0, gas), price, event.block.number)
        )
        cost = value and Amount(-value.quantity, value.asset)
        yield TaxableEvent(at, "gas", chain, wallet, (), (paid,), cost, source, event.tx, reference)


def _whole(history: PositionHistory, amounts: list[int]) -> tuple[Amount, ...]:
    """Those above zero, in whole tokens."""
    pairs = zip(amounts, (history.token0, history.token1), strict=True)
    return tuple(Amount(Decimal(format_units(n, token.decimals)), token.display_name) for n, token in pairs if n > 0)


def _value(
    history: PositionHistory, amounts: tuple[int, int], sqrt_price_x96: int, block: int
) -> tuple[Amount | None, str]:
    """Both amounts in the pool's quote token at the pool's price: of a swap what was given, else what moved."""
    tokens = (history.token0, history.token1)
    base, quote = base_and_quote(*tokens)
    price = whole_price(sqrt_price_x96, *tokens)
    given = amounts[0] > 0 > amounts[1] or amounts[1] > 0 > amounts[0]
    total = Fraction(0)
    for amount, token in zip(amounts, tokens, strict=True):
        if not given or amount > 0:
            total += Fraction(abs(amount), 10**token.decimals) * (price if token is base else 1)
    quantity = _CONTEXT.divide(Decimal(total.numerator), Decimal(total.denominator))
    source = f"pool price at block {block}"
    if is_stable(quote):
        return Amount(quantity, "USD"), f"{source}, 1 {quote.symbol} taken as 1 USD"
    if not quote.verified:
        return None, ""
    return Amount(quantity, market_name(quote)), source

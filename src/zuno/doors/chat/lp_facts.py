"""The LP desk's views as facts."""

from __future__ import annotations

from zuno.doors.chat.facts import MAX_ROWS, FactWriter, ToolFacts
from zuno.kernel.clock import iso
from zuno.kernel.text import Token, base_and_quote
from zuno.kernel.units import Millis
from zuno.lp.service.portfolio import PortfolioView
from zuno.lp.service.views import InspectView, PnlView, PoolKeyView, PositionsView, PositionView, TermsView, WhatIfView
from zuno.lp.service.wallets import BalancesView
from zuno.lp.watch.alerts import AlertsView


def write_positions(view: PositionsView, facts: FactWriter) -> ToolFacts:
    facts.line(facts.rows(view.positions, f"positions on {view.chain}"))
    for position in view.positions[:MAX_ROWS]:
        _write_position(position, facts)
    if not view.complete:
        facts.line("the list is not complete")
    return facts.build(_moment(view.timestamp))


def write_inspect(view: InspectView, facts: FactWriter) -> ToolFacts:
    _write_position(view, facts)
    return facts.build(_moment(view.timestamp))


def write_portfolio(view: PortfolioView, facts: FactWriter) -> ToolFacts:
    totals = view.totals
    facts.line(
        "all watched positions together",
        facts.count("count", len(view.positions)),
        facts.usd("worth", totals.worth),
        facts.usd("uncollected", totals.uncollected) + " fees uncollected",
        facts.usd("fees_24h", totals.fees24h),
        facts.usd("lvr_24h", totals.lvr24h),
        facts.share("fee_apr", totals.fee_apr),
        facts.share("net_apr", totals.net_apr, signed=True) + " after LVR",
        facts.hours("window", totals.window_hours),
        facts.count("unpriced", len(totals.unpriced)),
    )
    for position in view.positions[:MAX_ROWS]:
        own = f"p{position.id}"
        facts.id(position.id)
        facts.line(
            f"{facts.name(f'position {position.id}')} on {position.chain}, {_pool(position.pool, facts)}",
            "in range" if position.in_range else "out of range",
            facts.usd(f"{own}.worth", position.worth),
            facts.usd(f"{own}.uncollected", position.uncollected),
            facts.usd(f"{own}.fees_24h", position.fees24h),
            facts.usd(f"{own}.lvr_24h", position.lvr24h),
            facts.share(f"{own}.fee_apr", position.fee_apr),
            facts.share(f"{own}.net_apr", position.net_apr, signed=True),
            facts.share(f"{own}.time_in_range", position.time_in_range),
        )
    return facts.build()


def write_pnl(view: PnlView, facts: FactWriter) -> ToolFacts:
    facts.id(view.id)
    facts.line(
        f"{facts.name(f'position {view.id}')} on {view.chain}, {_pool(view.pool, facts)}",
        "open" if view.open else "closed",
        facts.words("since", _moment(view.from_timestamp)),
    )
    quote = base_and_quote(view.pool.currency0, view.pool.currency1)[1]
    terms = view.in_token1 if quote == view.pool.currency1 else view.in_token0
    facts.line(*_write_terms(terms, _safe_symbol(quote), facts))
    return facts.build(_moment(view.to_timestamp))


def write_whatif(view: WhatIfView, facts: FactWriter) -> ToolFacts:
    quote = _quote(view.pool, view.unit)
    facts.id(view.id)
    facts.line(
        f"{facts.name(f'position {view.id}')} on {view.chain}, {_pool(view.pool, facts)}",
        "in range there" if view.in_range else "out of range there",
        facts.percent("move", view.percent, signed=True),
        facts.price("price", view.price, quote),
        facts.price("price_now", view.price_now, quote),
        facts.price("price_lower", view.price_lower, quote),
        facts.price("price_upper", view.price_upper, quote),
        facts.amount("worth", view.worth, quote),
        facts.amount("hodl_worth", view.hodl_worth, quote),
        facts.amount("divergence_loss", view.divergence_loss, quote) + " (impermanent loss; above zero is a loss)",
    )
    return facts.build(_moment(view.timestamp))


def write_alerts(view: AlertsView, facts: FactWriter) -> ToolFacts:
    facts.line(facts.rows(view.alerts, "alerts"), facts.count("waiting", view.waiting) + " not delivered yet")
    for alert in view.alerts[:MAX_ROWS]:
        facts.id(alert.id, alert.position)
        of = facts.name(f"position {alert.position}") if alert.position else "the chain"
        facts.line(
            f"{facts.name(alert.id)}: {alert.severity}, {alert.condition}, {of} on {alert.chain}, {alert.state}",
            facts.words(f"{alert.id}.raised", _moment(alert.raised_at)),
            facts.stranger(alert.reason),
        )
    return facts.build(None if view.looked_at is None else _moment(view.looked_at))


def write_balances(view: BalancesView, facts: FactWriter) -> ToolFacts:
    facts.line(f"the wallet on {view.chain}")
    for number, balance in enumerate(view.balances[:MAX_ROWS], 1):
        known = balance.token.verified
        label = balance.token.symbol if known else facts.stranger(balance.token.symbol)
        symbol = balance.token.symbol if known else ""
        facts.line(f"b{number}: {label}", facts.amount(f"b{number}.balance", balance.amount_human, symbol))
    return facts.build(_moment(view.timestamp))


def _write_position(position: PositionView, facts: FactWriter) -> None:
    own = f"p{position.id}"
    pool, quote = position.pool, _quote(position.pool, position.value_unit)
    facts.id(position.id)
    facts.line(
        f"{facts.name(f'position {position.id}')} on {position.chain}, {_pool(pool, facts)}",
        "in range" if position.in_range else "out of range",
        facts.amount(f"{own}.worth", position.value_human, quote),
        facts.amount(f"{own}.amount0", position.amount0_human, _safe_symbol(pool.currency0)),
        facts.amount(f"{own}.amount1", position.amount1_human, _safe_symbol(pool.currency1)),
        facts.amount(f"{own}.fees0", position.fees0_human, _safe_symbol(pool.currency0)),
        facts.amount(f"{own}.fees1", position.fees1_human, _safe_symbol(pool.currency1)),
        facts.price(f"{own}.price", position.price, quote),
        facts.price(f"{own}.price_lower", position.price_lower, quote),
        facts.price(f"{own}.price_upper", position.price_upper, quote),
        facts.percent(f"{own}.edge_distance", position.edge_distance_percent) + " of the width to the nearer edge",
    )


def _write_terms(terms: TermsView, token: str, facts: FactWriter) -> list[str]:
    return [
        facts.amount("result", terms.result, token),
        facts.amount("fees", terms.fees, token),
        facts.amount("price_effect", terms.price_effect, token),
        facts.amount("divergence_loss", terms.divergence_loss, token),
        facts.amount("gas", terms.gas, token),
        facts.amount("swap_cost", terms.swap_cost, token),
        facts.amount("lvr", terms.lvr, token),
    ]


def _pool(pool: PoolKeyView, facts: FactWriter) -> str:
    return facts.name(pool.label, own=pool.currency0.verified and pool.currency1.verified)


def _safe_symbol(token: Token) -> str:
    """Of a token that we named; a stranger's symbol is not printed in an answer."""
    return token.symbol if token.verified else ""


def _quote(pool: PoolKeyView, unit: str) -> str:
    return unit if unit in (_safe_symbol(pool.currency0), _safe_symbol(pool.currency1)) else ""


def _moment(seconds: int) -> str:
    return iso(Millis(seconds * 1_000))

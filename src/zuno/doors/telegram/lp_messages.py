"""Liquidity positions in a chat: ranges drawn as a line of text, what they are worth, where the money went, alerts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from zuno.doors.plan_text import pair_text
from zuno.doors.telegram.layout import block, bold, code, fact, italic, join, note, paragraphs, table, text, warning
from zuno.doors.telegram.reply import Button, Reply
from zuno.kernel.numbers_text import percent_text, short_text, time_text
from zuno.lp.service.portfolio import PortfolioPositionView, PortfolioView, PortfolioWalletView
from zuno.lp.service.views import (
    FactView,
    InspectView,
    PnlView,
    PoolKeyView,
    PositionsView,
    PositionView,
    TermsView,
    WhatIfView,
)
from zuno.lp.watch.alerts import (
    AlertEventView,
    AlertRuleView,
    AlertsView,
    AlertView,
    AnsweredView,
    RuleView,
    chain_label,
)

BAR_WIDTH: Final = 24
"""Characters of a range between its edges."""
MOST_EVENTS: Final = 10


def show_positions(view: PositionsView) -> Reply:
    head = _head(view.chain, "Positions", view.block)
    if not view.positions and not view.missing:
        if not view.complete:
            return Reply(paragraphs(head, warning(f"the positions of {view.wallet} could not be listed: {view.note}")))
        return Reply(paragraphs(head, text(f"No positions of {view.wallet}. {view.note}")))
    missing = [note(f"position {position.id}: {position.reason}") for position in view.missing]
    buttons = [
        Button(f"Recommend {position.id}", f"/recommend {position.id} {view.chain}") for position in view.positions[:3]
    ]
    return Reply(
        paragraphs(
            head,
            *map(_position, view.positions),
            join(*missing, note(view.note) if view.note else ""),
            warn_unverified(position.pool for position in view.positions),
        ),
        (*buttons, Button("Portfolio", "/portfolio")),
    )


def show_inspect(view: InspectView) -> Reply:
    market = view.market
    facts = (
        ("reference", market.reference_price),
        ("volatility", market.realized_vol),
        ("gas", market.gas_price),
        ("native", market.native_price),
    )
    subscribed = warning("this position is subscribed (staked): burning it unsubscribes") if view.subscribed else ""
    return Reply(
        paragraphs(
            _head(view.chain, f"Position {view.id}", view.block),
            _position(view),
            join(*(fact(name, _market_fact(found)) for name, found in facts)),
            subscribed,
            warn_unverified([view.pool]),
        ),
        (
            Button("Recommend", f"/recommend {view.id} {view.chain}"),
            Button("PnL", f"/pnl {view.id} {view.chain}"),
            Button("What if", f"/whatif {view.id} {view.chain}"),
        ),
    )


def show_pnl(view: PnlView) -> Reply:
    rows = []
    for name, field, sign in _TERMS:
        if field == "external" and view.in_token1.external == view.in_token0.external == "0":
            continue
        rows.append((name, *(_term(terms, field, sign) for terms in (view.in_token1, view.in_token0))))
    proof = "The terms add up to the result: exact to the last wei."
    if not view.exact:
        proof = "The terms add up, but not everything in them was measured."
    head = join(
        bold(f"{chain_label(view.chain)} · PnL of position {view.id}"),
        italic(
            f"{view.pool.label} on {view.chain}, {time_text(view.from_timestamp)} to {time_text(view.to_timestamp)}"
        ),
    )
    return Reply(
        paragraphs(
            head,
            table(("", view.in_token1.token, view.in_token0.token), rows, spare=(view.in_token0.token,)),
            join(text(proof), *(note(f"computed: {figure}") for figure in view.computed), *map(note, view.notes)),
            warn_unverified([view.pool]),
        )
    )


_TERMS: Final = (
    ("worth at start", "nav_start", ""),
    ("put in (net)", "flows", ""),
    ("of it by others", "external", ""),
    ("worth at end", "nav_end", ""),
    ("result", "result", ""),
    ("· fees", "fees", ""),
    ("· price effect", "price_effect", ""),
    ("· divergence", "divergence_loss", "-"),
    ("· gas", "gas", "-"),
    ("· swap cost", "swap_cost", "-"),
    ("unexplained", "residual", ""),
    ("LVR", "lvr", ""),
)


def show_whatif(view: WhatIfView) -> Reply:
    rows = [
        (
            f"{_add_sign(case.percent)} %",
            short_text(case.worth),
            short_text(case.divergence_loss),
            "?" if case.since_mint is None else short_text(case.since_mint.divergence_loss),
            "in" if case.in_range else "out",
        )
        for case in view.table
    ]
    price = f"{short_text(view.price)} {view.price_unit}, {_add_sign(view.percent)} % from {short_text(view.price_now)}"
    facts = [
        fact("price", price),
        _range_bar(view.price_lower, view.price_upper, view.price),
        fact("state", "in range" if view.in_range else "out of range"),
        fact("holds", pair_text(view.pool, short_text(view.amount0_human), short_text(view.amount1_human))),
        fact("worth", f"{short_text(view.worth)} {view.unit}, and fees of {short_text(view.fees_worth)} {view.unit}"),
        fact("loss", _loss("today's tokens held", view.hodl_worth, view.divergence_loss, view.unit)),
    ]
    if (since := view.since_mint) is not None:
        facts.append(fact("since mint", _loss("what was put in", since.hodl_worth, since.divergence_loss, view.unit)))
    return Reply(
        paragraphs(
            _head(view.chain, f"Position {view.id} at another price", view.block),
            join(text(view.pool.label), *facts),
            join(
                table(("change", "worth", "loss", "since mint", "range"), rows, spare=("since mint",)),
                italic(f"in {view.unit}, without fees; a positive loss is a loss"),
            ),
            join(*map(note, view.notes)),
            warn_unverified([view.pool]),
        )
    )


def show_portfolio(view: PortfolioView) -> Reply:
    totals = view.totals
    parts = []
    for wallet in view.wallets:
        mine = [line for line in view.positions if (line.wallet, line.chain) == (wallet.address, wallet.chain)]
        parts.append(_wallet(wallet, mine))
    whole = join(
        bold(f"In all, over {totals.window_hours:g} h"),
        fact("worth", f"{_usd(totals.worth)}, of it {_usd(totals.uncollected)} uncollected fees"),
        fact("per day", f"{_usd(totals.fees24h)} fees, {_usd(totals.lvr24h)} LVR"),
        fact("fee APR", f"{_rate(totals.fee_apr)}, net of LVR {_rate(totals.net_apr)}"),
    )
    named = set(totals.unknown)
    notes = [
        *(f"not priced: position {line.id} on {line.chain} ({line.pool}): {line.why}" for line in totals.unpriced),
        *(
            f"fees unknown: position {line.id} on {line.chain}: {line.how}"
            for line in view.positions
            if f"{line.id} on {line.chain}" in named
        ),
        *view.notes,
    ]
    labels = dict.fromkeys(chain_label(wallet.chain).value for wallet in view.wallets)
    return Reply(
        paragraphs(bold(f"{', '.join(labels)} · Portfolio in USD"), *parts, whole, join(*map(note, notes))),
        (Button("Positions", "/positions"), Button("Alerts", "/alerts")),
    )


def show_alerts(view: AlertsView) -> Reply:
    when = "never" if view.looked_at is None else time_text(view.looked_at)
    head = join(bold("Alerts"), italic(f"last look: {when}"))
    alerts = [_alert(alert) for alert in view.alerts] or ["No alert is on."]
    rules = join(bold("Your levels"), *map(_rule, view.rules)) if view.rules else ""
    past = ""
    if view.events is not None:
        past = join(bold("What happened, newest first"), *map(_event, view.events[:MOST_EVENTS]))
    return Reply(
        paragraphs(head, *alerts, rules, past, join(*map(note, view.notes))),
        tuple(button for alert in view.alerts[:1] for button in _answers(alert)),
    )


def show_answer(view: AnsweredView) -> Reply:
    return Reply(paragraphs(text(view.done), _alert(view.alert)))


def show_rule(view: RuleView) -> Reply:
    return Reply(paragraphs(text(view.done), _rule(view.rule), join(*map(note, view.notes))))


# -- parts


def _head(chain: str, title: str, at_block: int) -> str:
    return join(bold(f"{chain_label(chain)} · {title}"), italic(f"on {chain} at block {at_block}"))


def _position(position: PositionView) -> str:
    if position.liquidity == "0":
        state = "empty"
    elif position.in_range:
        state = f"in range, {Decimal(position.edge_distance_percent):.1f} % to edge"
    else:
        state = "⚠ out of range"
    return join(
        bold(f"{position.id}: {position.pool.label}"),
        _range_bar(position.price_lower, position.price_upper, position.price),
        fact("price", f"{short_text(position.price)} {position.price_unit}"),
        fact("state", state),
        fact("worth", f"{short_text(position.value_human)} {position.value_unit}"),
        fact("holds", pair_text(position.pool, short_text(position.amount0_human), short_text(position.amount1_human))),
        fact("fees", pair_text(position.pool, short_text(position.fees0_human), short_text(position.fees1_human))),
    )


def range_bar(low: float, high: float, price: float) -> str:
    """The price within its range, by the logarithm: `├──●─────┤`, outside it `● ├───────┤`."""
    share = (math.log(price) - math.log(low)) / (math.log(high) - math.log(low))
    if share < 0:
        return f"● ├{'─' * BAR_WIDTH}┤"
    if share > 1:
        return f"├{'─' * BAR_WIDTH}┤ ●"
    place = min(BAR_WIDTH - 1, int(share * BAR_WIDTH))
    return f"├{'─' * place}●{'─' * (BAR_WIDTH - 1 - place)}┤"


def _range_bar(low: str, high: str, price: str) -> str:
    edges = [short_text(low), short_text(high)]
    try:
        bar = range_bar(float(low), float(high), float(price))
    except (ValueError, OverflowError, ZeroDivisionError):  # the widest ranges have no figures a float can hold
        return fact("range", " – ".join(edges))
    inset = " " * bar.index("├")
    between = BAR_WIDTH + 2 - len(edges[0])
    return block([bar, f"{inset}{edges[0]}{edges[1]:>{max(between, len(edges[1]) + 1)}}"])


def warn_unverified(pools: Iterable[PoolKeyView]) -> str:
    """A line for each token that only its own contract vouches for."""
    tokens = {token.address: token for pool in pools for token in (pool.currency0, pool.currency1)}
    return join(
        *(
            f"⚠ {text(token.display_name)} is {code(token.address)}: its contract alone gives it this name, "
            "so no price is looked up"
            for token in tokens.values()
            if not token.verified
        )
    )


def _market_fact(found: FactView) -> str:
    if found.value is None:
        return f"none: {'; '.join(found.notes)}"
    about = "; ".join((f"{found.source}, {found.age_seconds} s old", *found.notes))
    return f"{short_text(found.value)} {found.unit} ({about}){' STALE' if found.stale else ''}"


def _term(terms: TermsView, field: str, sign: str) -> str:
    value = short_text(getattr(terms, field))
    if sign and value != "0":
        return value[1:] if value.startswith("-") else f"-{value}"
    return value


def _add_sign(percent: str) -> str:
    return percent if percent.startswith("-") or percent == "0" else f"+{percent}"


def _loss(than: str, held: str, loss: str, unit: str) -> str:
    share = f" ({Decimal(loss) / Decimal(held) * 100:.2f} %)" if Decimal(held) else ""
    return f"{short_text(loss)} {unit}{share} against {than}, worth {short_text(held)} {unit}"


def _wallet(wallet: PortfolioWalletView, lines: Sequence[PortfolioPositionView]) -> str:
    worth = "not read" if wallet.worth is None else f"{short_text(wallet.worth)} USD"
    name = wallet.label or (f"{wallet.address[:6]}…{wallet.address[-4:]}" if wallet.address else "no wallet")
    return join(
        bold(f"{name} on {wallet.chain}: {worth}"),
        *map(_portfolio_position, lines),
        "" if wallet.complete else warning("not every position could be read"),
        note(wallet.note) if wallet.note else "",
    )


def _portfolio_position(line: PortfolioPositionView) -> str:
    state = "in range" if line.in_range else "⚠ out of range"
    return join(
        f"{text(f'{line.id}: {line.pool.label}, {state}')}",
        _range_bar(line.price_lower, line.price_upper, line.price),
        fact("worth", _usd(line.worth)),
        fact("per day", f"{_usd(line.fees24h)} fees, {_usd(line.lvr24h)} LVR"),
        fact("net APR", f"{_rate(line.net_apr)}, in range {_rate(line.time_in_range)} of the time"),
    )


def _usd(value: str | None) -> str:
    return "unknown" if value is None else f"{short_text(value)} USD"


def _rate(value: float | None) -> str:
    return "?" if value is None else percent_text(value)


def _about(alert: AlertView | AlertEventView) -> str:
    return alert.chain if alert.position is None else f"position {alert.position} on {alert.chain}"


def _alert(alert: AlertView) -> str:
    state = f"snoozed until {time_text(alert.snoozed_until)}" if alert.snoozed_until is not None else alert.state
    mark = "🔴" if alert.severity == "critical" else "🟡" if alert.severity == "warning" else "🟢"
    return join(
        f"{mark} {bold(alert.condition.replace('_', ' '))}: {text(_about(alert))}",
        text(alert.reason),
        italic(f"{state}, since {time_text(alert.raised_at)}"),
        code(alert.id),
    )


def _answers(alert: AlertView) -> tuple[Button, ...]:
    answers = (Button("Ack", f"/ack {alert.id}"), Button("Snooze 6 h", f"/snooze {alert.id} 6h"))
    if alert.position is None:
        return answers
    return (*answers, Button("Recommend", f"/recommend {alert.position} {alert.chain}"))


def _rule(rule: AlertRuleView) -> str:
    level = f"{rule.condition.replace('_', ' ')} {rule.level} {rule.unit}"
    return f"{text(f'position {rule.position} on {rule.chain}: {level}, {rule.state}')} {code(rule.id)}"


def _event(event: AlertEventView) -> str:
    return text(f"{time_text(event.at)} {event.happening}: {_about(event)}: {event.reason}")

"""How pools, positions and wallets are shown to people."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, grid, heading, notes_block
from zuno.doors.plan_text import pair_text
from zuno.kernel.numbers_text import short_text, thousands_text, time_text

if TYPE_CHECKING:
    from zuno.kernel.text import Token
    from zuno.lp.service.views import (
        FactView,
        InspectView,
        MoveView,
        NodeView,
        PnlView,
        PoolKeyView,
        PoolsView,
        PoolView,
        PositionsView,
        PositionView,
        ResetView,
        TermsView,
    )
    from zuno.lp.service.wallets import AllowancesView, AllowanceView, BalancesView, WalletsView, WalletView

_JOINED = {"range": " – ", "state": ", ", "holds": ", ", "fees": ", "}


def show_pools(view: PoolsView) -> RenderableType:
    table = Rows("pool", "price", "liquidity", "tick", "fee now", spare=("liquidity", "tick"))
    for pool in view.pools:
        table.add_row(
            pool.label,
            f"{short_text(pool.price)} {pool.price_unit}",
            f"{int(pool.liquidity):.4g}",
            str(pool.tick),
            _fee(pool),
        )
    title = heading(_at("Pools", view.chain, view.block))
    return Group(title, table, *notes_block(view.notes), *_strangers(*view.pools))


def show_pool(view: PoolView) -> RenderableType:
    facts = grid()
    for name, value in (
        ("pool id", view.id),
        ("price", f"{short_text(view.price)} {view.price_unit}  (tick {view.tick})"),
        ("liquidity", thousands_text(view.liquidity)),
        ("fee now", _fee(view)),
        ("spacing", f"{view.tick_spacing} ticks"),
        ("hooks", view.hooks if int(view.hooks, 16) else "none"),
        *(
            (token.display_name, f"{token.address}, {token.decimals} decimals")
            for token in (view.currency0, view.currency1)
        ),
    ):
        facts.add_row(name, value)
    return Group(heading(_at(f"Pool {view.label}", view.chain, view.block)), facts, *_strangers(view))


def show_positions(view: PositionsView) -> RenderableType:
    if not view.positions and not view.missing:
        if not view.complete:
            return Text(f"The positions of {view.wallet} on {view.chain} could not be listed: {view.note}", style=BAD)
        return Text(f"No positions of {view.wallet} on {view.chain} at block {view.block}. {view.note}".strip())
    table = Rows("id", "pool", "range", "state", "holds", "fees", "worth", between=_JOINED)
    for position in view.positions:
        table.add_row(
            position.id,
            _pool(position),
            _range(position),
            _state(position),
            _pair(position, fees=False),
            _pair(position, fees=True),
            _worth(position, "\n"),
        )
    missing = [f"position {position.id}: {position.reason}" for position in view.missing]
    return Group(
        heading(_at("Positions", view.chain, view.block)),
        table,
        *notes_block((*missing, *([view.note] if view.note else []))),
        *_strangers(*(position.pool for position in view.positions)),
    )


def show_inspect(view: InspectView) -> RenderableType:
    facts = grid()
    rows: list[tuple[str, RenderableType]] = [
        ("pool", view.pool.label),
        ("pool id", view.pool.id),
        ("owner", view.owner),
        ("range", f"{_range(view, ' – ')} {view.price_unit}  (ticks {view.tick_lower} to {view.tick_upper})"),
        ("price", f"{short_text(view.price)} {view.price_unit}  (tick {view.tick})"),
        ("state", _state(view, ", ")),
        ("liquidity", thousands_text(view.liquidity)),
        ("holds", pair_text(view.pool, view.amount0_human, view.amount1_human)),
        ("fees", pair_text(view.pool, view.fees0_human, view.fees1_human)),
        ("worth", _worth(view)),
        ("reference", _fact(view.market.reference_price)),
        ("volatility", _fact(view.market.realized_vol)),
        ("gas", _fact(view.market.gas_price)),
        ("data fee", _fact(view.market.l1_data_fee)),
        ("native", _fact(view.market.native_price)),
    ]
    if view.subscribed:
        rows.append(("warning", Text("this position is subscribed (staked): burning it unsubscribes", style=BAD)))
    for name, value in rows:
        facts.add_row(name, value)
    return Group(heading(_at(f"Position {view.id}", view.chain, view.block)), facts, *_strangers(view.pool))


def show_pnl(view: PnlView) -> RenderableType:
    title = (
        f"Where the money went: position {view.id} ({view.pool.label}) on {view.chain},\n"
        f"{time_text(view.from_timestamp)} to {time_text(view.to_timestamp)}"
    )
    table = Rows("", f"in {view.in_token1.token}", f"in {view.in_token0.token}")
    for name, field, sign in _TERM_ROWS:
        if field == "external" and view.in_token1.external == view.in_token0.external == "0":
            continue
        values = [_term(terms, field, sign) for terms in (view.in_token1, view.in_token0)]
        table.add_row(
            name, *values, style="bold" if field == "result" else "", end_section=field in {"result", "swap_cost"}
        )
    proof = (
        Text("The terms add up to the result: exact to the last wei.", style=GOOD)
        if view.exact
        else Text("The terms add up, but not everything in them was measured or is on record.", style=QUIET)
    )
    unproved = notes_block([f"computed: {figure}" for figure in view.computed])
    return Group(heading(title), table, proof, *unproved, *notes_block(view.notes), *_strangers(view.pool))


_TERM_ROWS = (
    ("worth at the start", "nav_start", ""),
    ("put in (net, gas included)", "flows", ""),
    ("of that by others", "external", ""),
    ("worth at the end", "nav_end", ""),
    ("result", "result", ""),
    ("  fees", "fees", ""),
    ("  price effect", "price_effect", ""),
    ("  divergence loss", "divergence_loss", "-"),
    ("  gas", "gas", "-"),
    ("  swap cost", "swap_cost", "-"),
    ("unexplained", "residual", ""),
    ("LVR, the benchmark for fees", "lvr", ""),
)


def _term(terms: TermsView, field: str, sign: str) -> Text:
    raw: str = getattr(terms, field)
    text = short_text(raw)
    if sign and text != "0":
        text = text[1:] if text.startswith("-") else f"-{text}"
    style = "" if field in {"nav_start", "nav_end", "flows", "lvr"} else BAD if text.startswith("-") else GOOD
    return Text(text, style=style if text != "0" else QUIET, justify="right")


def show_move(view: MoveView) -> RenderableType:
    table = Rows("", "before", "after")
    table.add_row("reference", short_text(view.reference_before), short_text(view.reference_after))
    for pool in view.pools:
        table.add_row(pool.label, short_text(pool.before), short_text(pool.after))
    return Group(heading(f"ETH {view.percent} % on {view.chain} (block {view.block}), {view.price_unit}"), table)


def show_reset(view: ResetView) -> RenderableType:
    return Text(f"A new world of seed {view.seed} on {view.chain}: block {view.block}, {time_text(view.timestamp)}.")


def show_node(view: NodeView) -> RenderableType:
    if not view.running:
        return Text(view.note or "No devnet is running; `zuno devnet up --background` starts one.")
    return Text(
        f"Devnet at {view.url} (pid {view.pid}), block {view.block}, chain time {time_text(view.timestamp or 0)}; "
        f"addresses and the test key are in {view.file}. {view.note}".strip()
    )


def show_wallet(view: WalletView) -> RenderableType:
    facts = grid()
    facts.add_row("address", view.checksummed)
    facts.add_row("key", "elsewhere: watched only" if view.watch_only else "here, under its passphrase")
    facts.add_row("file", view.file or "none")
    if not view.watch_only:
        facts.add_row("", "Keep a copy of the file and its passphrase: without both, nobody can move what it holds.")
    return Group(heading("Wallet kept"), facts, *notes_block(view.notes))


def show_wallets(view: WalletsView) -> RenderableType:
    if not view.wallets:
        return Text(view.note)
    table = Rows("wallet", "key", "acts", "file", spare=("file",))
    for wallet in view.wallets:
        key = Text("elsewhere", style=QUIET) if wallet.watch_only else Text("here")
        table.add_row(wallet.checksummed, key, Text("yes", style=GOOD) if wallet.acts else "", wallet.file or "")
    return Group(
        table, Text(view.note, style=QUIET), *notes_block([note for wallet in view.wallets for note in wallet.notes])
    )


def show_balances(view: BalancesView) -> RenderableType:
    table = Rows("token", "amount")
    for balance in view.balances:
        style = QUIET if balance.amount == "0" else ""
        table.add_row(balance.token.display_name, balance.amount_human, style=style)
    title = heading(_at(f"Balances of {view.wallet}", view.chain, view.block, "\n"))
    return Group(title, table, *notes_block(view.notes), *_warn_unverified(balance.token for balance in view.balances))


def show_allowances(view: AllowancesView) -> RenderableType:
    title = heading(_at(f"Allowances of {view.wallet}", view.chain, view.block, "\n"))
    if not view.allowances:
        return Group(title, Text("Nobody may move its tokens."), *notes_block(view.notes))
    table = Rows("token", "who may move it", "amount", "until")
    for allowance in view.allowances:
        amount = Text(allowance.amount_human, style=BAD if allowance.unlimited and not allowance.expired else "")
        table.add_row(allowance.token.display_name, allowance.spender_name, amount, _until(allowance))
    return Group(
        title, table, *notes_block(view.notes), *_warn_unverified(allowance.token for allowance in view.allowances)
    )


def _until(allowance: AllowanceView) -> Text:
    if allowance.expires is None:
        return Text("you revoke it")
    return Text(
        f"{time_text(allowance.expires)}{', past' if allowance.expired else ''}",
        style=QUIET if allowance.expired else "",
    )


def _at(what: str, chain: str, block: int, between: str = " ") -> str:
    return f"{what}{between}on {chain} at block {block}"


def _range(view: PositionView, between: str = "\n") -> str:
    return f"{short_text(view.price_lower)}{between}{short_text(view.price_upper)}"


def _state(view: PositionView, between: str = "\n") -> Text:
    if view.liquidity == "0":
        return Text("empty", style=QUIET)
    if not view.in_range:
        return Text("out of range", style=BAD)
    return Text(f"in range{between}{Decimal(view.edge_distance_percent):.1f} % to edge", style=GOOD)


def _pair(view: PositionView, *, fees: bool) -> str:
    amount0, amount1 = (view.fees0_human, view.fees1_human) if fees else (view.amount0_human, view.amount1_human)
    return pair_text(view.pool, short_text(amount0), short_text(amount1), "\n")


def _strangers(*pools: PoolKeyView) -> list[Text]:
    return _warn_unverified(token for pool in pools for token in (pool.currency0, pool.currency1))


def _warn_unverified(shown: Iterable[Token]) -> list[Text]:
    """A line for each token that only its own contract vouches for."""
    tokens = {token.address: token for token in shown}
    return [
        Text(
            f"{token.display_name} is {token.address}: its contract alone gives it this name, so no price is looked up",
            style=BAD,
        )
        for token in tokens.values()
        if not token.verified
    ]


def _pool(view: PositionView) -> str:
    return view.pool.label.replace(" ", "\n", 1)


def _worth(view: PositionView, between: str = " ") -> str:
    return f"{short_text(view.value_human)}{between}{view.value_unit}"


def _fee(pool: PoolView) -> str:
    from zuno.lp.service.to_views import fee_text

    note = " (set by its hook)" if pool.dynamic_fee else ""
    return f"{fee_text(pool.lp_fee)}{note}"


def _fact(fact: FactView) -> Text:
    if fact.value is None:
        return Text(f"none: {'; '.join(fact.notes)}", style=QUIET)
    text = Text(f"{short_text(fact.value)} {fact.unit}")
    note = "; ".join((f"{fact.source}, {fact.age_seconds} s old", *fact.notes))
    text.append(f"  ({note})", style=QUIET)
    if fact.stale:
        text.append("  STALE", style=BAD)
    return text

"""Read models as tables for people; colours only where a terminal can show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, console, grid, heading, notes_block
from zuno.doors.cli.transcript import thought_line
from zuno.doors.plan_text import (
    candidate_kind,
    candidate_range,
    capital_in,
    capital_verb,
    confidence_text,
    count_text,
    leftover_text,
    opens_nothing,
    pair_text,
    regimes_text,
    stress_hours,
    voices_text,
)
from zuno.kernel.numbers_text import short_text, thousands_text, time_text

if TYPE_CHECKING:
    from zuno.doors.cli.demo_tour import CarriedOut, DemoOpening
    from zuno.journal.audit import JournalTailView, JournalVerdictView
    from zuno.kernel.text import Token
    from zuno.kernel.view import ReplayView, View
    from zuno.lp.service.archive import PlanDiffView, PlanListView, WhyView
    from zuno.lp.service.mesh_peer import PeerEndView
    from zuno.lp.service.plan_view import CandidateView, PlanView
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


def render(view: View) -> None:
    """Print a read model."""
    if type(view).__name__ == "ExportView":
        import sys

        from zuno.doors.cli.system_screens import csv_text
        from zuno.doors.export import ExportView

        assert isinstance(view, ExportView)
        sys.stdout.write(csv_text(view))
        return
    screen = console()
    screen.print(_render_view(view))
    if type(view).__name__ == "UnsignedView":
        from zuno.doors.cli.plan_screens import copyable_lines
        from zuno.lp.service.execution_view import UnsignedView

        assert isinstance(view, UnsignedView)
        for title, line in copyable_lines(view):
            screen.print(heading(title))
            screen.print(Text(line), soft_wrap=True)


def _render_view(view: View) -> RenderableType:
    return _find_screen(type(view))(view)


def _find_screen(kind: type[View]) -> Callable[[Any], RenderableType]:
    for name in (known.__name__ for known in kind.__mro__):
        if name in _SCREENS:
            return _SCREENS[name]
        if name in _SCREENS_ELSEWHERE:
            module, screen = _SCREENS_ELSEWHERE[name]
            found: Callable[[Any], RenderableType] = getattr(import_module(f"zuno.doors.cli.{module}"), screen)
            return found
    raise TypeError(f"no screen for {kind.__name__}")


def _show_pools(view: PoolsView) -> RenderableType:
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


def _show_pool(view: PoolView) -> RenderableType:
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


def _show_positions(view: PositionsView) -> RenderableType:
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


def _show_inspect(view: InspectView) -> RenderableType:
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


def _show_pnl(view: PnlView) -> RenderableType:
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
        else Text("The terms add up, but not everything in them was measured.", style=QUIET)
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


def _show_move(view: MoveView) -> RenderableType:
    table = Rows("", "before", "after")
    table.add_row("reference", short_text(view.reference_before), short_text(view.reference_after))
    for pool in view.pools:
        table.add_row(pool.label, short_text(pool.before), short_text(pool.after))
    return Group(heading(f"ETH {view.percent} % on {view.chain} (block {view.block}), {view.price_unit}"), table)


def _show_reset(view: ResetView) -> RenderableType:
    return Text(f"A new world of seed {view.seed} on {view.chain}: block {view.block}, {time_text(view.timestamp)}.")


def _show_node(view: NodeView) -> RenderableType:
    if not view.running:
        return Text(view.note or "No devnet is running; `zuno devnet up --background` starts one.")
    return Text(
        f"Devnet at {view.url} (pid {view.pid}), block {view.block}, chain time {time_text(view.timestamp or 0)}; "
        f"addresses and the test key are in {view.file}. {view.note}".strip()
    )


def _show_journal_verdict(view: JournalVerdictView) -> RenderableType:
    entries = f"{view.entries:,} {'entry' if view.entries == 1 else 'entries'}"
    if view.first_bad is None:
        told = Text(f"The journal is whole: {entries}, each chained to the one before and signed.", style=GOOD)
    else:
        where = "" if view.first_bad.seq is None else f" at entry {view.first_bad.seq}"
        told = Text(f"The journal is BROKEN{where}: {view.first_bad.reason}. ", style=BAD)
        told.append(f"{entries} before that hold.", style=QUIET)
    return Group(told, *notes_block(view.notes))


def _show_journal_tail(view: JournalTailView) -> RenderableType:
    if not view.entries:
        return Text("The journal is empty.")
    table = Rows("entry", "time", "kind", "request", "by", "hash", spare=("hash", "request"))
    for entry in view.entries:
        table.add_row(
            str(entry.seq),
            time_text(entry.at // 1_000),
            entry.kind,
            entry.request_id or "",
            entry.role,
            entry.hash[:12],
        )
    return table


def _show_wallet(view: WalletView) -> RenderableType:
    facts = grid()
    facts.add_row("address", view.checksummed)
    facts.add_row("key", "elsewhere: watched only" if view.watch_only else "here, under its passphrase")
    facts.add_row("file", view.file or "none")
    if not view.watch_only:
        facts.add_row("", "Keep a copy of the file and its passphrase: without both, nobody can move what it holds.")
    return Group(heading("Wallet kept"), facts, *notes_block(view.notes))


def _show_wallets(view: WalletsView) -> RenderableType:
    if not view.wallets:
        return Text(view.note)
    table = Rows("wallet", "key", "acts", "file", spare=("file",))
    for wallet in view.wallets:
        key = Text("elsewhere", style=QUIET) if wallet.watch_only else Text("here")
        table.add_row(wallet.checksummed, key, Text("yes", style=GOOD) if wallet.acts else "", wallet.file or "")
    return Group(
        table, Text(view.note, style=QUIET), *notes_block([note for wallet in view.wallets for note in wallet.notes])
    )


def _show_balances(view: BalancesView) -> RenderableType:
    table = Rows("token", "amount")
    for balance in view.balances:
        style = QUIET if balance.amount == "0" else ""
        table.add_row(balance.token.display_name, balance.amount_human, style=style)
    title = heading(_at(f"Balances of {view.wallet}", view.chain, view.block, "\n"))
    return Group(title, table, *notes_block(view.notes), *_warn_unverified(balance.token for balance in view.balances))


def _show_allowances(view: AllowancesView) -> RenderableType:
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


def _show_plan(view: PlanView) -> RenderableType:
    chosen = view.recommended
    style = {"approve": GOOD, "reject": BAD}.get(view.verdict, "yellow")
    what = f"{candidate_kind(view, chosen)} {candidate_range(chosen)}".strip()
    head = Text(f"{view.verdict.replace('_', ' ')}: {what}", style=f"bold {style}")
    facts = grid()
    rows = [
        ("plan", f"{view.plan_id} ({view.request_id}), {view.kind} on {view.chain} at block {view.block}"),
        (
            "decided by",
            f"{view.decided_by} after {count_text(view.rounds, 'revision')}, "
            f"profile {view.profile}, regime {view.regime}",
        ),
        ("why", view.because),
        ("confidence", confidence_text(view)),
        *(("caution", caution) for caution in view.cautions),
        *((("regimes", regimes_text(view)),) if len(view.regimes) > 1 else ()),
        *(() if view.own_range is None else (("your range", view.own_range),)),
        *(() if opens_nothing(view, chosen) else (("pool", chosen.pool.label),)),
        *((("ticks", f"{chosen.tick_lower} to {chosen.tick_upper}"),) if chosen.tick_lower is not None else ()),
        *(((capital_verb(chosen), capital_in(chosen)),) if chosen.tick_lower is not None else ()),
        *((("before", chosen.prep_action.removesuffix(" first")),) if chosen.prep_action else ()),
        *((("stays home", leftover_text(chosen.leftover)),) if chosen.leftover else ()),
        ("voices", voices_text(view)),
    ]
    for name, value in rows:
        facts.add_row(name, value)
    table = Rows(
        "",
        "range",
        "1×/2×/3× h",
        "fees",
        "LVR",
        "net",
        "cost",
        "worth",
        "even",
        "verdict",
        spare=("fees", "even", "cost"),
        between=_JOINED,
    )
    for candidate in view.candidates:
        mark = "→ " if candidate.index == chosen.index else "  "
        own = " (yours)" if candidate.own else ""
        table.add_row(
            f"{mark}{candidate.index} {candidate_kind(view, candidate)}{own}{_where(view, candidate)}",
            candidate_range(candidate, "\n"),
            stress_hours(candidate),
            *(
                _money(value)
                for value in (
                    candidate.carry.fees24h,
                    candidate.carry.lvr24h,
                    candidate.carry.net24h,
                    candidate.carry.cost,
                    candidate.carry.worth,
                )
            ),
            "–" if candidate.carry.breakeven_hours is None else f"{Decimal(candidate.carry.breakeven_hours):.0f} h",
            Text(candidate.verdict, style={"accept": GOOD, "veto": BAD}.get(candidate.verdict, "yellow")),
        )
    reasons = [
        f"{candidate.index} {candidate_kind(view, candidate)}, {candidate.verdict}: {candidate.reason}"
        for candidate in view.candidates
        if candidate.verdict != "accept"
    ]
    reasons += [
        f"round {candidate.round}: {candidate.kind} "
        f"{short_text(candidate.price_lower)} – {short_text(candidate.price_upper)}"
        f"{f' in {candidate.pool}' if view.kind == 'create' else ''}, {candidate.verdict}: {candidate.reason}"
        for candidate in view.earlier
    ]
    units = {candidate.carry.token for candidate in view.candidates}
    unit = units.pop() if len(units) == 1 else "the second token of its pool"
    return Group(
        head,
        facts,
        Text(f"per 24 h, cost once, worth over 14 days after cost, in {unit}:", style=QUIET),
        table,
        *notes_block(reasons),
        *_sources(view),
        *_strangers(*(candidate.pool for candidate in view.candidates)),
        *map(thought_line, view.transcript),
    )


def _show_plan_list(view: PlanListView) -> RenderableType:
    notes = notes_block(view.notes)
    if not view.plans:
        said = "No plan waits." if notes else "No plans yet; `zuno lp recommend rebalance 1` asks for one."
        return Group(Text(said), *notes)
    table = Rows(
        "plan",
        "when",
        "for",
        "verdict",
        "choice",
        "decided by",
        "state",
        "request",
        spare=("request", "decided by", "when", "choice"),
    )
    for plan in view.plans:
        what = f"{plan.kind} {plan.position_id or ''} on {plan.chain}".replace("  ", " ")
        table.add_row(
            plan.plan_id,
            time_text(plan.at // 1000),
            what,
            plan.verdict or "–",
            plan.choice,
            plan.decided_by,
            "–" if plan.choice == "hold" else plan.state,
            plan.request_id,
        )
    return Group(table, *notes) if notes else table


def _show_why(view: WhyView) -> RenderableType:
    parts: list[RenderableType] = [heading(f"{view.request_id}, held by {view.code}")]
    if view.plan is None:
        parts += map(thought_line, view.transcript)
    if view.failed is not None:
        parts.append(Text(f"The flow failed: {view.failed}", style=BAD))
    elif view.plan is None:
        parts.append(Text("The debate did not end: nothing was decided.", style=BAD))
    if view.plan is not None:
        parts.append(_render_view(view.plan))
    return Group(*parts)


def _show_plan_diff(view: PlanDiffView) -> RenderableType:
    if not view.changes:
        return Text(f"{view.before} and {view.after} say the same.")
    table = Rows("", view.before, view.after)
    for change in view.changes:
        table.add_row(change.what, change.before, change.after)
    return table


def _show_replay(view: ReplayView) -> RenderableType:
    by = f"decided by {view.code_then}, replayed by {view.code_now}"
    match view.identical, view.ok:
        case True, _:
            told = Text(f"Identical: {view.hash}", style=GOOD)
        case False, _:
            told = Text(f"NOT identical: {view.hash} then, {view.replayed_hash} now", style=BAD)
        case None, holds:
            by = f"decided by {view.code_then} in edition {view.edition}, by other rules than today's: not argued again"
            told = Text(
                f"The record {'holds' if holds else 'does NOT hold'}: {view.hash}", style=GOOD if holds else BAD
            )
    return Group(told, Text(by, style=QUIET), *notes_block(view.differences))


def _where(view: PlanView, candidate: CandidateView) -> str:
    """Only a create has candidates in several pools, and opening nothing happens in none."""
    several = view.kind == "create" and not opens_nothing(view, candidate)
    return f"\n  {candidate.pool.label}" if several else ""


def _money(value: str | None) -> str:
    return "?" if value is None else short_text(value)


def _sources(view: PlanView) -> list[Text]:
    lines = []
    for source in view.sources:
        note = f"; {'; '.join(source.notes)}" if source.notes else ""
        about = f"{source.source}, {source.age_seconds} s old" if source.source else "none"
        lines.append(Text(f"{source.feed}: {about}{' STALE' if source.stale else ''}{note}", style=QUIET))
    return lines


def _show_carried_out(view: CarriedOut) -> RenderableType:
    return Group(
        heading("The plan, approved and applied"), _render_view(view.execution), Text(), _render_view(view.after)
    )


def _show_demo_opening(view: DemoOpening) -> RenderableType:
    return Group(
        _render_view(view.pools),
        _render_view(view.before),
        _render_view(view.move),
        _render_view(view.after),
        Text("\nPosition 1 is at its edge. The desk argues:", style=QUIET),
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


def _show_end(view: Any) -> RenderableType:
    return Text(view.said)


def _show_peer_end(view: PeerEndView) -> RenderableType:
    return Text(view.text)


# By the names of the views, so that a command loads the screens of its own answer and no others.
_SCREENS: Final[Mapping[str, Callable[[Any], RenderableType]]] = {
    "PoolsView": _show_pools,
    "PoolView": _show_pool,
    "PositionsView": _show_positions,
    "InspectView": _show_inspect,
    "PnlView": _show_pnl,
    "MoveView": _show_move,
    "ResetView": _show_reset,
    "NodeView": _show_node,
    "JournalVerdictView": _show_journal_verdict,
    "JournalTailView": _show_journal_tail,
    "WalletView": _show_wallet,
    "WalletsView": _show_wallets,
    "BalancesView": _show_balances,
    "AllowancesView": _show_allowances,
    "PlanView": _show_plan,
    "PlanListView": _show_plan_list,
    "WhyView": _show_why,
    "PlanDiffView": _show_plan_diff,
    "ReplayView": _show_replay,
    "CarriedOut": _show_carried_out,
    "DemoOpening": _show_demo_opening,
    "PeerEndView": _show_peer_end,
    "StoppedView": _show_end,
    "DownView": _show_end,
    "UpEndView": _show_end,
    "DeskStopView": _show_end,
}
_SCREENS_ELSEWHERE: Final[Mapping[str, tuple[str, str]]] = {
    "ParseView": ("shell_screens", "show_reading"),
    "AgentsView": ("shell_screens", "render_agents"),
    "WhatIfView": ("portfolio_screens", "show_whatif"),
    "ClosedPositionsView": ("portfolio_screens", "show_closed"),
    "PortfolioView": ("portfolio_screens", "show_portfolio"),
    "AlertsView": ("alert_screens", "show_alerts"),
    "AnsweredView": ("alert_screens", "show_answer"),
    "RuleView": ("alert_screens", "show_rule"),
    "TelegramEndView": ("telegram_screens", "show_end"),
    "TelegramSetupView": ("telegram_screens", "show_setup"),
    "WebEndView": ("web_screens", "show_web_end"),
    "TickView": ("alert_screens", "show_tick"),
    "DataStatusView": ("data_screens", "show_data"),
    "FeaturesView": ("trade_screens", "show_features"),
    "BookView": ("book_screens", "show_book"),
    "ChartView": ("trade_screens", "show_chart"),
    "RunView": ("cycle_screens", "show_run"),
    "CycleWhyView": ("cycle_screens", "show_why"),
    "RunsView": ("cycle_screens", "show_runs"),
    "MemoriesView": ("memory_screens", "show_memories"),
    "SearchView": ("memory_screens", "show_search"),
    "PostMortemView": ("memory_screens", "show_post_mortem"),
    "LessonsView": ("memory_screens", "show_lessons"),
    "ForgottenView": ("memory_screens", "show_forgotten"),
    "DataCheckView": ("data_screens", "show_check"),
    "StudyView": ("lab_screens", "show_study"),
    "MemoryStudyView": ("lab_screens", "show_memory_study"),
    "LpLabView": ("lab_screens", "show_lp_lab"),
    "LpAblationView": ("lab_screens", "show_lp_ablation"),
    "SweepView": ("lab_screens", "show_sweep"),
    "TradeLabView": ("lab_screens", "show_trade_lab"),
    "LabReportsView": ("lab_screens", "show_reports"),
    "InvarianceView": ("lab_check_screens", "show_invariance"),
    "LookaheadView": ("lab_check_screens", "show_lookahead"),
    "NoEdgeView": ("lab_check_screens", "show_no_edge"),
    "SynthView": ("data_screens", "show_synth"),
    "RoundView": ("data_screens", "show_round"),
    "CollectedView": ("data_screens", "show_collected"),
    "DownloadView": ("data_screens", "show_download"),
    "ImportView": ("data_screens", "show_import"),
    "MeshTableView": ("mesh_screens", "show_table"),
    "MeshView": ("mesh_screens", "show_mesh"),
    "PingView": ("mesh_screens", "show_ping"),
    "SimulationView": ("plan_screens", "show_simulation"),
    "ExecutionView": ("plan_screens", "show_execution"),
    "UnsignedView": ("plan_screens", "show_unsigned"),
    "DeskRunView": ("desk_screens", "show_desk_run"),
    "TradeStatusView": ("account_screens", "show_status"),
    "TradePositionsView": ("account_screens", "show_positions"),
    "TradeOrdersView": ("account_screens", "show_orders"),
    "FillsView": ("account_screens", "show_fills"),
    "TradesView": ("account_screens", "show_trades"),
    "LedgerView": ("account_screens", "show_ledger"),
    "TradeBalanceView": ("account_screens", "show_balance"),
    "ProfitView": ("account_screens", "show_profit"),
    "PerformanceView": ("account_screens", "show_performance"),
    "LocksView": ("account_screens", "show_locks"),
    "MandateStateView": ("account_screens", "show_mandate"),
    "ActionView": ("account_screens", "show_action"),
    "EvaluationView": ("learning_screens", "show_evaluation"),
    "TradeCalibrationView": ("learning_screens", "show_calibration"),
    "VetoesView": ("learning_screens", "show_vetoes"),
    "DoctorView": ("system_screens", "show_doctor"),
    "LogsView": ("system_screens", "show_logs"),
}

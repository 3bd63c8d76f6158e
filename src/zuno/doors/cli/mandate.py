"""`zuno lp mandate`, `zuno lp pause` and `zuno lp resume`: what the monitor may do with positions by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from zuno.doors.cli import consent
from zuno.doors.cli.options import Answer, ChainName, Json, command, flag, group, option
from zuno.doors.cli.plan import Yes, lp

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno

mandate = group("Mandate: what the monitor may do with positions by itself. Without one it only watches.")


@command(mandate, "grant")
def mandate_grant(
    zuno: Zuno,
    positions: Annotated[list[str] | None, option("--position", "ID", "For this position; repeatable.")] = None,
    pools: Annotated[list[str] | None, option("--pool", "ID", "For every position in this pool; repeatable.")] = None,
    wallet: Annotated[str | None, option("--wallet", "ADDRESS", "Refuse unless this wallet acts.")] = None,
    below: Annotated[str | None, option("--exit-below", "PRICE", "Close when the pool's price is below.")] = None,
    above: Annotated[str | None, option("--exit-above", "PRICE", "Close when it is above.")] = None,
    when_close_wins: Annotated[bool, flag("--exit-when-close-wins", "Close when the debate wants to.")] = False,
    to: Annotated[
        str, option("--to", "as-is|token0|token1", "What an exit ends in; as-is is no stop-loss, none is guaranteed.")
    ] = "as-is",
    worst: Annotated[str, option("--worst-price", "PERCENT", "Exit at most this far beyond the level.")] = "5",
    in_a_crash: Annotated[bool, flag("--in-a-crash", "Exit while the reference is up to 5 % off, not 1 %.")] = False,
    rebalance: Annotated[bool, flag("--rebalance", "Move positions when the debate wants to.")] = False,
    compound: Annotated[bool, flag("--compound", "Put fees back when they pay for it.")] = False,
    hedge: Annotated[bool, flag("--hedge", "Let a hedge go along with a rebalance.")] = False,
    worth: Annotated[str, option("--worth-per-day", "USD", "Maximum worth moved in 24 h.")] = "10000",
    gas: Annotated[
        str | None, option("--gas-per-day", "COINS", "Maximum gas in 24 h, in the chain's coin; by default 0.02 to 1.")
    ] = None,
    exit_gas: Annotated[
        str | None,
        option("--exit-gas-per-day", "COINS", "The same of exits alone; by default what ZUNO_MAX_EXIT_GAS allows one."),
    ] = None,
    gap: Annotated[str, option("--gap", "SPAN", "Least time between acts; an exit at a price waits for none.")] = "6h",
    lasts: Annotated[str, option("--for", "SPAN", "How long: 7d; at most 30d.")] = "7d",
    chain: ChainName = None,
    yes: Yes = False,
    json: Json = False,
) -> Answer:
    """Grant a mandate, signed and expiring, after a typed confirmation. Every approval under it cites its hash."""
    from zuno.lp.model.mandate import MandatedAct
    from zuno.lp.service.mandates import MandateRequest

    named = {MandatedAct.REBALANCE: rebalance, MandatedAct.COMPOUND: compound, MandatedAct.HEDGE: hedge}
    acts = [act for act, wanted in named.items() if wanted]
    exits = (below, above, when_close_wins, to, worst, in_a_crash)
    asked = MandateRequest(positions or (), pools or (), chain, wallet, *exits, acts, worth, gas, exit_gas, gap, lasts)
    return zuno.mandates().grant(asked, consent.ask_to_type(json=json, yes=yes), scripted=yes)


@command(mandate, "show")
def mandate_show(zuno: Zuno) -> Answer:
    """Show what is granted: wallets, positions, acts, bounds, expiry, hash."""
    return zuno.mandates().show()


@command(mandate, "revoke")
def mandate_revoke(zuno: Zuno, chain: ChainName = None) -> Answer:
    """Revoke a chain's mandate, or all: nothing that is not signed yet is begun."""
    return zuno.mandates().revoke(chain)


@command(lp, "pause")
def lp_pause(zuno: Zuno) -> Answer:
    """Begin nothing under mandates until `zuno lp resume`; what is signed goes on."""
    return zuno.mandates().pause()


@command(lp, "resume")
def lp_resume(zuno: Zuno, json: Json = False) -> Answer:
    """Let acts under mandates go on. With real money it asks for confirmation."""
    return zuno.mandates().resume(consent.ask_to_type(json=json))

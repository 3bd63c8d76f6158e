"""Commands of `zuno plan` that carry a plan out, of `zuno lp` that make one without a debate, and `zuno wallet`.

A key or a passphrase is never an argument."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from zuno.doors.cli import consent, run_command
from zuno.doors.cli.options import Answer, ChainName, Json, argument, command, flag, group, option

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View


lp = group("Uniswap v4 pools, positions, PnL and recommendations.")
plan = group("List, simulate, approve and apply plans.")

PlanId = Annotated[str, argument("PLAN", "plan_ and 12 hex digits.")]
PositionId = Annotated[str, argument("ID", "Position id (NFT token id).")]
SomePositionId = Annotated[str | None, argument("ID", "Position id (NFT token id).")]
All = Annotated[bool, flag("--all", "Every position of the wallet, in one plan.")]
Anyway = Annotated[bool, flag("--anyway", "Allow it while the pool is over 1 % off the reference.")]
Tx = Annotated[str | None, option("--tx", "HASH", "Transaction of the step that was signed elsewhere, if not found.")]
Yes = Annotated[bool, flag("--yes", "Skip the confirmation; only on sim, devnet and testnets.")]


@command(plan, "simulate")
def simulate(zuno: Zuno, plan_id: PlanId) -> Answer:
    """Simulate a plan's calldata on the latest block: balance changes, gas, price impact."""
    return zuno.execution().simulate(plan_id)


@command(plan, "approve")
def approve(
    zuno: Zuno,
    plan_id: PlanId,
    yes: Yes = False,
    costs_more: Annotated[bool, flag("--costs-more", "With --yes: even if it costs more than it moves.")] = False,
    json: Json = False,
) -> Answer:
    """Show every call of a plan, ask for confirmation and sign the approval."""
    return zuno.execution().approve(plan_id, consent.of(json=json, yes=yes, costs_more=costs_more))


@command(plan, "apply")
def apply(zuno: Zuno, plan_id: PlanId, tx: Tx = None, yes: Yes = False, json: Json = False) -> Answer:
    """Execute an approved plan exactly once; resumes after an interruption. For a watch-only wallet or a Safe, print
    what to sign elsewhere and continue once it is on the chain."""
    return zuno.execution().apply(plan_id, consent.of(json=json, yes=yes), consent.progress(json), tx)


@command(plan, "cancel")
def cancel(zuno: Zuno, plan_id: PlanId, json: Json = False) -> Answer:
    """Cancel a plan: replace pending transactions, revoke allowances."""
    return zuno.execution().cancel(plan_id, consent.progress(json))


@command(plan, "status")
def status(zuno: Zuno, plan_id: PlanId) -> Answer:
    """Show a plan's progress, checked against the chain."""
    return zuno.execution().status(plan_id)


@command(plan, "check", by=run_command.verdict)
async def check(
    zuno: Zuno,
    file: Annotated[str, argument("FILE", "A Safe's batch, what `plan apply --json` printed, or a list of calls.")],
    which: Annotated[str | None, option("--plan", "PLAN", "The plan, where the file does not name it.")] = None,
) -> View:
    """Hold the calls of a file against an approved plan before they are signed; exit 5 if any of them differs."""
    from zuno.lp.service.plan_check import MOST_BYTES

    return await zuno.execution().check(zuno.read_file(Path(file), MOST_BYTES), which)


@command(lp, "collect")
def collect(zuno: Zuno, position: SomePositionId = None, every: All = False, chain: ChainName = None) -> Answer:
    """Plan to collect a position's fees, or those of every position."""
    return zuno.execution().collect(position, chain, every=every)


@command(lp, "close")
def close(
    zuno: Zuno, position: SomePositionId = None, every: All = False, anyway: Anyway = False, chain: ChainName = None
) -> Answer:
    """Plan to close a position, or every position."""
    return zuno.execution().close(position, chain, every=every, anyway=anyway)


@command(lp, "add")
def add(
    zuno: Zuno,
    position: PositionId,
    amount: Annotated[
        list[str] | None, option("--amount", "AMOUNT", 'Amount, e.g. "0.5 WETH"; repeat for the second token.')
    ] = None,
    chain: ChainName = None,
) -> Answer:
    """Plan to add liquidity; an amount not given is matched to the other token."""
    return zuno.execution().add(position, amount or (), chain)


@command(lp, "remove")
def remove(
    zuno: Zuno,
    position: PositionId,
    percent: Annotated[str, option("--percent", "P", "Share of the liquidity in %, e.g. 50.")],
    anyway: Anyway = False,
    chain: ChainName = None,
) -> Answer:
    """Plan to remove part of the liquidity and collect all fees."""
    return zuno.execution().remove(position, percent, chain, anyway)


@command(lp, "revoke")
def revoke(zuno: Zuno, chain: ChainName = None) -> Answer:
    """Plan to set every allowance of the wallet to zero."""
    return zuno.execution().revoke(chain)


@command(lp, "compound")
def compound(
    zuno: Zuno,
    position: PositionId,
    anyway: Annotated[bool, flag("--anyway", "Even if it never earns back the gas.")] = False,
    chain: ChainName = None,
) -> Answer:
    """Plan to put a position's fees back into it, if that pays for the gas."""
    return zuno.execution().compound(position, chain, anyway=anyway)


wallet = group("Encrypted keys, watched addresses, balances and allowances.")


@command(wallet, "create")
def wallet_create(zuno: Zuno) -> Answer:
    """Create a key, encrypted with a passphrase."""
    return zuno.wallets().create()


@command(wallet, "import")
def wallet_import(
    zuno: Zuno,
    file: Annotated[
        str | None, argument("FILE", "Keystore file (version 3); without it the key is prompted for.")
    ] = None,
    watch: Annotated[str | None, option("--watch", "ADDRESS", "Add a watch-only address.")] = None,
) -> Answer:
    """Import a key, or add a watch-only address."""
    return zuno.wallets().add(file, watch)


@command(wallet, "show")
def wallet_show(zuno: Zuno) -> Answer:
    """List wallets and show which one signs."""
    return zuno.wallets().show()


@command(wallet, "balance")
def wallet_balance(zuno: Zuno, chain: ChainName = None) -> Answer:
    """Show balances: native coin, known tokens and tokens of positions."""
    return zuno.wallet(chain).balance()


@command(wallet, "allowances")
def wallet_allowances(zuno: Zuno, chain: ChainName = None) -> Answer:
    """Show token allowances: spender, amount, expiry."""
    return zuno.wallet(chain).allowances()

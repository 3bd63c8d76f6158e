"""Plans carried out: simulate, approve, apply, cancel, status; and plans that an owner makes without a debate."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

from zuno.amm.model import LpPosition, PoolState
from zuno.journal.port import Journal
from zuno.kernel.canonical import canonical, to_json
from zuno.kernel.errors import Broken, Malformed, NotFound, Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.logs import logged_by_id
from zuno.kernel.text import parse_units
from zuno.kernel.units import HexId, Seconds, Wei
from zuno.kernel.wire import derive
from zuno.lp.agents.pool_choice import matches_token, to_wrap
from zuno.lp.execute.checks import gas_usd, usd_value
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.draft import SimulatedDraft
from zuno.lp.execute.gate import ActReason, Gate
from zuno.lp.execute.hedges import HedgeKeeper
from zuno.lp.execute.mandates import check_act
from zuno.lp.execute.plan_state import PlanProgress, append_event, catch_up, load_progress
from zuno.lp.execute.routes import native_token1
from zuno.lp.execute.send import Notify
from zuno.lp.execute.verify_outcome import gas_spent
from zuno.lp.model.ballot import CandidateKind
from zuno.lp.model.market import GasQuote
from zuno.lp.model.plan import Flow, PlanState
from zuno.lp.model.plan_events import (
    Action,
    Approval,
    InstructedHedge,
    Instruction,
    PlanInstructed,
    PlanOutcome,
    PlanPosition,
    PositionOutcome,
    SwapHome,
)
from zuno.lp.plan.inventory import fit
from zuno.lp.plan.positions import check_owed
from zuno.lp.plan.sizing import fix_capital
from zuno.lp.rules.fee_yield import Compounding, weigh_compounding
from zuno.lp.rules.portfolio import annual_rate, figures_of_history, figures_of_window
from zuno.lp.rules.stress import HORIZON_HOURS
from zuno.lp.service import arguments
from zuno.lp.service.archive import Archive, DecidedPlan, PlanLine, PlanListView
from zuno.lp.service.execution_to_views import approval_view, execution_view, simulation_view, unsigned_view
from zuno.lp.service.execution_view import ApprovalView, CompoundView, ExecutionView, SimulationView, UnsignedView
from zuno.lp.service.plan_check import PlanCheckView, check_calls, read_calls
from zuno.lp.service.positions import LpDesk

MOST_WAITING: Final = 20
"""The newest plans that are checked for whether they wait."""
OpenContext = Callable[[str], Awaitable[ExecutionContext]]
"""What it takes to act on a chain, by its name."""


@dataclass(frozen=True, slots=True)
class Consent:
    """How the owner is asked to confirm: each function shows the approval and returns yes or no."""

    to_approve: Callable[[ApprovalView], bool]
    to_apply: Callable[[ApprovalView], bool]
    scripted: bool = False
    """A script confirms in the owner's place: `Refused` on networks with real money."""
    who: str = "cli"
    costs_more: bool = False
    """A script confirms as well that it may cost more than it moves."""

    @staticmethod
    def bound_to(approval: str, who: str) -> Consent:
        """To apply exactly the approval of this hash, and to approve nothing."""
        return Consent(lambda view: False, lambda view: view.approval_hash == approval, who=who)


@dataclass(frozen=True, slots=True)
class ApprovalOffer:
    """What the owner is shown before an approval; `sign` signs exactly that. An offer ends with its process."""

    view: ApprovalView
    sign: Callable[[], Awaitable[ExecutionView]]


@dataclass(frozen=True, slots=True)
class PlanTask:
    """A plan with the instruction that carries it out."""

    plan_id: str
    plan_hash: str
    instruction: Instruction
    progress: PlanProgress
    reject: str | None = None
    """Why the desk advises against it."""


@dataclass(frozen=True, slots=True)
class Execution:
    """Everything a person can do with a plan beyond reading it."""

    open_journal: Callable[[], Awaitable[Journal]]
    archive: Archive
    context_of: OpenContext
    desk_of: Callable[[str], LpDesk]
    default_chain: str
    random: Callable[[int], bytes]
    hedges: HedgeKeeper | None = None
    """Keeps the hedges that plans are approved with; None: none can be kept."""

    @logged_by_id
    async def simulate(self, plan_id: str, *, looks: bool = False) -> SimulationView:
        """Exact calldata on the latest block: balance changes, gas, price impact. `looks`: nothing is written down."""
        task, execution = await self._open_task(plan_id, current=True)
        drafted = await Gate(execution).simulate(
            task.plan_id, task.plan_hash, task.instruction, task.progress, looks=looks
        )
        return simulation_view(execution, drafted, *await _read_prices(execution, drafted.draft.pool))

    async def approve(self, plan_id: str, consent: Consent) -> ExecutionView:
        offer = await self.offer_approval(plan_id, consent.who, scripted=consent.scripted)
        if offer.view.cost.exceeds_moved and consent.scripted and not consent.costs_more:
            raise Refused(f"{plan_id} {offer.view.cost.text}: more than it moves. --costs-more approves it.")
        if not consent.to_approve(offer.view):
            raise Refused(f"{plan_id} was not approved: it was not confirmed.")
        return await offer.sign()

    @logged_by_id
    async def offer_approval(
        self,
        plan_id: str,
        who: str,
        *,
        scripted: bool = False,
        mandate: str | None = None,
        reason: ActReason | None = None,
    ) -> ApprovalOffer:
        """Everything an approval is bound to, for the owner to read. Signing checks expiry and state again.
        `mandate`: its hash, where nobody is asked, and why it is done."""
        task, execution = await self._open_task(plan_id, current=True)
        _check_scripted(execution, scripted)
        gate = Gate(execution)
        if task.reject is not None:
            await gate.reject(task.plan_id, task.reject, task.progress)
            raise Refused(f"The desk rejected {plan_id}: {task.reject}. Ask it again, or take another candidate.")
        drafted = await gate.draft(task.plan_id, task.plan_hash, task.instruction, task.progress)
        approval = gate.approval(drafted.draft, who, mandate)
        gas, native = await _read_prices(execution, drafted.draft.pool)
        shown = approval_view(execution, drafted, gas, approval, native)
        if shown.cost.exceeds_moved and mandate is not None:
            raise Refused(f"It {shown.cost.text}: more than it moves, which a mandate does not allow.")

        async def sign() -> ExecutionView:
            if drafted.draft.instruction.hedge is not None:
                if self.hedges is None:
                    raise Refused("No hedge can be kept here.")
                if mandate is not None:  # before margin is set aside
                    await check_act(execution, drafted.draft, mandate)
                await self.hedges.approve(drafted.draft)
            progress = await gate.approve(drafted.draft, approval, task.progress, reason)
            return await execution_view(execution, progress, task.instruction)

        return ApprovalOffer(shown, sign)

    async def offer_apply(self, plan_id: str) -> ApprovalView | UnsignedView:
        """What the owner reads before an approved plan is applied, for `Consent.bound_to`; of a step that waits for its
        signer elsewhere, that step. A look: it takes no lock and writes nothing."""
        task, execution = await self._open_task(plan_id, current=True)
        drafted, approval = await Gate(execution).offer(task.progress)
        if task.progress.state is PlanState.HANDED_OUT:
            return unsigned_view(task.progress)
        gas, native = await _read_prices(execution, drafted.draft.pool)
        return approval_view(execution, drafted, gas, approval, native)

    @logged_by_id
    async def apply(
        self, plan_id: str, consent: Consent, tell: Notify, tx: str | None = None
    ) -> ExecutionView | UnsignedView:
        """`tx`: the hash under which a step that was handed out was sent, where it is not found by itself."""
        task, execution = await self._open_task(plan_id, current=True)
        _check_scripted(execution, consent.scripted)
        gate = Gate(execution)
        pool = await execution.chain.pool(HexId(task.instruction.pool_id))
        gas, native = await _read_prices(execution, pool)

        def ask_owner(drafted: SimulatedDraft, approval: Approval) -> bool:
            return consent.to_apply(approval_view(execution, drafted, gas, approval, native))

        try:
            named = None if tx is None else arguments.tx_hash(tx)
            await gate.apply(plan_id, ask_owner, tell, named, progress=task.progress)
        finally:
            await self._note_outcome(execution, task.progress)
            await self._hedge(task.progress, tell)
        if task.progress.state is PlanState.HANDED_OUT:
            return unsigned_view(task.progress)
        view = await execution_view(execution, task.progress, task.instruction)
        if view.problems:
            raise Broken(f"{plan_id} was applied, and the chain shows something else: {'; '.join(view.problems)}.")
        return view

    @logged_by_id
    async def prepare(self, plan_id: str) -> UnsignedView:
        """What an approved plan's signer elsewhere is to sign next; asked again, the same bytes."""
        task, execution = await self._open_task(plan_id, current=True)
        try:
            await Gate(execution).hand_out(task.progress)
        finally:
            await self._note_outcome(execution, task.progress)
        return unsigned_view(task.progress)

    async def check(self, content: bytes, plan_id: str | None = None) -> PlanCheckView:
        """Hold the calls of a file against an approved plan: the named one, else that which the file names."""
        given = read_calls(content)
        named = plan_id or given.named_plan
        if named is None:
            raise UsageError("The file names no plan: --plan says which it is to be held against.")
        task, execution = await self._open_task(named)
        return await check_calls(execution, task.progress, given)

    async def _hedge(self, progress: PlanProgress, tell: Notify) -> None:
        """The second leg, as soon as the first is done; what cannot be done now the monitor goes on with."""
        if self.hedges is None or progress.over is None:
            return
        try:
            for line in await self.hedges.keep():
                tell(line)
        except ZunoError as error:
            tell(f"the hedge was not set: {error}")

    async def uses_play_money(self, plan_id: str) -> bool:
        """Whether it is of a simulated, local or test network."""
        return (await self._open_task(plan_id))[1].local

    @logged_by_id
    async def cancel(self, plan_id: str, tell: Notify) -> ExecutionView:
        task, execution = await self._open_task(plan_id)
        try:
            await Gate(execution).cancel(plan_id, tell, task.progress)
        finally:
            await self._note_outcome(execution, task.progress)
        return await execution_view(execution, task.progress, task.instruction)

    async def status(self, plan_id: str) -> ExecutionView:
        task, execution = await self._open_task(plan_id, holding=True)
        progress, late = await Gate(execution).status(plan_id, task.progress)
        return await execution_view(execution, progress, task.instruction, late=late)

    async def list_waiting(self) -> PlanListView:
        """Of the newest plans those that an owner can still approve or apply: neither rejected nor argued by older
        rules, no approval that has run out, and their position still there."""
        waiting: list[PlanLine] = []
        notes: list[str] = []
        for line in (await self.archive.plans(MOST_WAITING)).plans:
            if line.choice == Action.HOLD or PlanState(line.state).over:
                continue
            try:
                why = await self._find_obstacle(line)
            except (Unavailable, Malformed) as error:
                why = None  # nobody knows: it is left to its owner
                notes.append(f"{line.plan_id} could not be checked: {error}")
            if why is None:
                waiting.append(line)
            else:
                notes.append(f"{line.plan_id} waits no longer: {why}")
        return PlanListView(plans=tuple(waiting), notes=tuple(notes))

    async def _find_obstacle(self, line: PlanLine) -> str | None:
        """Why a plan that is not over can be neither approved nor applied any more."""
        try:
            task = await self._load_task(line.plan_id, current=True)
        except Refused as error:
            return str(error)
        if task.reject is not None:
            return f"the desk rejected it: {task.reject}"
        if line.state == PlanState.APPROVED:
            _, late = await Gate(await self.context_of(line.chain)).status(line.plan_id, task.progress)
            if late:
                return "its approval has run out"
        if line.state in (PlanState.APPLYING, PlanState.HANDED_OUT, PlanState.PARTIAL) or line.position_id is None:
            return None
        try:
            positions = (await self.desk_of(line.chain).positions([line.position_id])).positions
        except NotFound:
            positions = ()
        there = any(int(position.liquidity) for position in positions)
        return None if there else f"position {line.position_id} is gone"

    async def collect(self, position: str | None, chain: str | None, *, every: bool = False) -> ExecutionView:
        """Of one position, or of every one that is owed something."""
        return await self._instruct_one_or_all(Action.COLLECT, position, chain, every=every)

    async def close(
        self, position: str | None, chain: str | None, *, every: bool = False, anyway: bool = False
    ) -> ExecutionView:
        """`anyway`: also at a price that the reference does not bear out."""
        return await self._instruct_one_or_all(Action.CLOSE, position, chain, every=every, anyway=anyway)

    async def close_under_mandate(
        self, position: str, chain: str, plan_swap: Callable[[PoolState], SwapHome | None], in_a_crash: bool
    ) -> ExecutionView:
        """The swap is planned from the very price that the instruction is decided at."""
        execution = await self.context_of(chain)
        own = await self._own_position(execution, position)
        swap = plan_swap(own.pool)
        return await self._record(
            execution, Action.CLOSE, own.pool, position_id=own.id, swap_home=swap, in_a_crash=in_a_crash
        )

    async def revoke(self, chain: str | None) -> ExecutionView:
        """Revoke every allowance on the wallet's tokens."""
        execution = await self.context_of(chain or self.default_chain)
        held = (await execution.chain.holdings(execution.wallet)).snapshot.positions
        pools = [position.pool for position in held] or list((await execution.chain.pools()).pools)
        known = (*execution.info.tokens, *(token for pool in pools for token in (pool.token0, pool.token1)))
        tokens = tuple(dict.fromkeys(token.address for token in known if not token.native))
        at = execution.info.deployment
        seen = await execution.writer.wallet_state(execution.wallet, tokens, (at.position_manager, at.universal_router))
        allowed = seen.allowances
        granted = {token for (token, _), grant in allowed.grants.items() if grant.amount}
        open_tokens = tuple(token for token in tokens if allowed.to_permit2.get(token, 0) or token in granted)
        if not open_tokens or not pools:
            raise Refused(f"Nobody may take any token of {execution.wallet}: there is nothing to revoke.")
        return await self._record(execution, Action.REVOKE, pools[0], tokens=open_tokens)

    async def compound(self, position: str, chain: str | None, *, anyway: bool = False) -> CompoundView:
        """Put the fees back into their position, where what they earn there pays for the gas."""
        execution = await self.context_of(chain or self.default_chain)
        own = await self._own_position(execution, position)
        check_owed(own)
        weighed, owed = await _weigh_compounding(execution, own)
        figures = {
            "fees_usd": f"{float(owed):.2f}",
            "goes_in_usd": f"{float(weighed.goes_in):.2f}",
            "gas_usd": f"{float(weighed.gas):.2f}",
            "fees24h_usd": f"{float(24 * weighed.fees_per_hour):.2f}",
            "net24h_usd": f"{float(24 * weighed.net_per_hour):.2f}",
            "break_even_hours": None if weighed.break_even_hours is None else f"{float(weighed.break_even_hours):.1f}",
            "best_in_hours": None if weighed.best_in_hours is None else f"{weighed.best_in_hours:.1f}",
        }
        if not weighed.pays and not anyway:
            day = f"${figures['fees24h_usd']} of fees and {_usd_text(24 * weighed.net_per_hour)} after LVR a day"
            earned = f"after {figures['break_even_hours']} h; the bound is {HORIZON_HOURS} h"
            back = f"never earns it back at {day}" if weighed.break_even_hours is None else f"earns it back {earned}"
            best = "" if not weighed.best_in_hours else f" It pays best in {figures['best_in_hours']} h."
            raise Refused(
                f"Gas of ${figures['gas_usd']} would put ${figures['goes_in_usd']} of fees back into position "
                f"{own.id}, which {back}.{best} --anyway does it."
            )
        plan = await self._instruct(Action.COMPOUND, position, chain)
        return CompoundView(**dict(plan), **figures)

    async def remove(self, position: str, percent: str, chain: str | None, anyway: bool = False) -> ExecutionView:
        """Take a share of the liquidity out; all of it is a close."""
        share = arguments.share(percent)
        action = Action.CLOSE if share == 1 else Action.REMOVE
        return await self._instruct(action, position, chain, share=None if share == 1 else share, anyway=anyway)

    async def add(self, position: str, amounts: Sequence[str], chain: str | None) -> ExecutionView:
        """Bring at most so much; of a token that is not named, what goes with it is fixed now."""
        if not amounts:
            raise UsageError('How much? Give --amount, such as --amount "0.5 WETH"; once or for both tokens.')
        return await self._instruct(Action.ADD, position, chain, amounts=amounts)

    async def _instruct_one_or_all(
        self, action: Action, position: str | None, chain: str | None, *, every: bool, anyway: bool = False
    ) -> ExecutionView:
        if every == (position is not None):
            raise UsageError(
                f"Which? `zuno lp {action} ID` is for one position, `zuno lp {action} --all` for all of them."
            )
        if position is not None:
            return await self._instruct(action, position, chain, anyway=anyway)
        execution = await self.context_of(chain or self.default_chain)
        holdings = await execution.chain.holdings(execution.wallet)
        if not holdings.owned.complete:
            raise Refused(f"Not every position of the wallet is known ({holdings.owned.note}); name them one by one.")
        held = [each for each in holdings.snapshot.positions if action is Action.CLOSE or each.fees0 or each.fees1]
        if not held:
            owed = "is owed fees" if action is Action.COLLECT else "is there"
            raise Refused(f"No position of {execution.wallet} {owed}: there is nothing to {action}.")
        first, *rest = sorted(held, key=lambda each: each.id)
        others = tuple(PlanPosition(position_id=each.id, pool_id=each.pool.id, tick=each.pool.tick) for each in rest)
        return await self._record(execution, action, first.pool, position_id=first.id, others=others, anyway=anyway)

    async def _instruct(
        self,
        action: Action,
        position: str,
        chain: str | None,
        *,
        amounts: Sequence[str] = (),
        **terms: Any,
    ) -> ExecutionView:
        execution = await self.context_of(chain or self.default_chain)
        own = await self._own_position(execution, position)
        if action is Action.COLLECT:
            check_owed(own)
        capital, counterpart = await _fix_capital(execution, own, amounts) if amounts else ((0, 0), None)
        brought: dict[str, Any] = {"capital0": capital[0], "capital1": capital[1], "counterpart": counterpart}
        return await self._record(execution, action, own.pool, position_id=own.id, **brought, **terms)

    async def _own_position(self, execution: ExecutionContext, position: str) -> LpPosition:
        own = await self.desk_of(execution.info.name).position(arguments.position_id(position))
        if own.owner != execution.wallet:
            raise Refused(f"Position {own.id} belongs to {own.owner}, not to {execution.wallet}.")
        return own

    async def _record(
        self, execution: ExecutionContext, action: Action, pool: PoolState, **terms: Any
    ) -> ExecutionView:
        """The instruction as a plan of its own in the journal."""
        chain = execution.info.name
        instruction = Instruction(action=action, chain=chain, pool_id=pool.id, tick=pool.tick, **terms)
        digest = hashlib.sha256(canonical(instruction)).hexdigest()
        plan_id = "plan_" + hashlib.sha256(self.random(16) + digest.encode()).hexdigest()[:12]
        progress = PlanProgress(plan_id)
        event = PlanInstructed(plan_id=plan_id, plan_hash=digest, instruction=instruction)
        await append_event(execution.journal, progress, event)
        return await execution_view(execution, progress, instruction)

    async def _open_task(self, plan_id: str, **wanted: bool) -> tuple[PlanTask, ExecutionContext]:
        """A plan, and what it takes to act on its chain."""
        task = await self._load_task(plan_id, **wanted)
        return task, await self.context_of(task.instruction.chain)

    async def _load_task(self, plan_id: str, *, holding: bool = False, current: bool = False) -> PlanTask:
        """`current`: unless something of it is signed, it must have been argued by today's rules."""
        journal = await self.open_journal()
        arguments.plan_id(plan_id)
        progress = await load_progress(journal, plan_id)
        if progress.instructed is not None:
            return PlanTask(plan_id, progress.instructed.plan_hash, progress.instructed.instruction, progress)
        if progress.draft is not None and progress.begun:  # approved, whatever edition argued it
            return PlanTask(plan_id, progress.draft.plan_hash, progress.draft.instruction, progress)
        decided = await self.archive.decision(plan_id, current=current and progress.over is None)
        instruction = _build_instruction(decided)
        if instruction.action is Action.HOLD and not holding:
            raise Refused(f"{plan_id} says hold: there is nothing to do.")
        return PlanTask(plan_id, decided.hash, instruction, progress, decided.rejected)

    async def _attribute(self, chain: str, position_id: int) -> tuple[dict[str, Any] | None, str]:
        """A position's attribution, or why it is unknown."""
        try:
            lowered = to_json(await self.desk_of(chain).pnl(str(position_id), None))
        except ZunoError as error:
            return None, str(error)
        return (lowered if isinstance(lowered, dict) else None), ""

    async def _note_outcome(self, execution: ExecutionContext, progress: PlanProgress) -> None:
        """Journal where the positions' money went. A failed query is recorded as unknown and hides nothing else."""
        await catch_up(execution.journal, progress)
        draft = progress.draft
        if progress.over is None or progress.outcome is not None or draft is None or draft.position is None:
            return
        if progress.over.state is not PlanState.CONFIRMED and not progress.halfway:
            return  # nothing became of the position
        first, *others = [
            PositionOutcome(position_id=position.id, attribution=attribution, why=why)
            for position in (draft.position, *draft.others)
            for attribution, why in [await self._attribute(draft.instruction.chain, position.id)]
        ]
        outcome = derive(
            PlanOutcome, first, plan_id=progress.plan_id, gas_cost=gas_spent(progress), others=tuple(others)
        )
        await append_event(execution.journal, progress, outcome)


async def _read_prices(execution: ExecutionContext, pool: PoolState) -> tuple[GasQuote, Fraction | None]:
    """Of gas, and of a wei in base units of the pool's token1."""
    return await execution.chain.gas(), await native_token1(execution, pool)


def _check_scripted(execution: ExecutionContext, scripted: bool) -> None:
    if scripted and not execution.local:
        raise Refused(f"--yes is for sim, devnet and test networks; on {execution.info.name} type the confirmation.")


_ACTIONS = {CandidateKind.HOLD: Action.HOLD, CandidateKind.OPEN: Action.CREATE, CandidateKind.CLOSE: Action.CLOSE}


def _build_instruction(decided: DecidedPlan) -> Instruction:
    """What a debate decided, as an instruction; a hold has one too, so that its status can be asked for."""
    context, chosen = decided.context, decided.chosen
    action = _ACTIONS.get(chosen.kind, Action.REBALANCE)
    pool_facts = context.scenes[0 if action is Action.HOLD else chosen.pool_index]
    creates = action is Action.CREATE
    if pool_facts.position is None and action in (Action.CLOSE, Action.REBALANCE):
        raise Broken(f"A {chosen.kind} of no position was decided; run `zuno journal verify`.")
    return Instruction(
        action=action,
        chain=context.chain,
        pool_id=pool_facts.pool.id,
        tick=pool_facts.pool.tick,
        position_id=None if creates or pool_facts.position is None else pool_facts.position.id,
        range=None if action is Action.HOLD else chosen.range,
        capital0=pool_facts.capital0 if creates else 0,
        capital1=pool_facts.capital1 if creates else 0,
        brings_ether=creates and bool(context.wish and to_wrap(context.wish, pool_facts.pool, context.chain)),
        use_all=creates and bool(context.wish and context.wish.use_all),
        anyway=decided.anyway,
        hedge=None if action is Action.HOLD or chosen.hedge is None else derive(InstructedHedge, chosen.hedge),
    )


async def _weigh_compounding(execution: ExecutionContext, position: LpPosition) -> tuple[Compounding, Fraction]:
    """Gas in dollars against what the reinvested fees would earn, and what the fees are worth."""
    pool, price = position.pool, position.pool.sqrt_price_x96

    async def usd(amount0: int, amount1: int) -> Fraction:
        worth = Fraction(0)
        for flow in (Flow(pool.key.currency0, amount0), Flow(pool.key.currency1, amount1)):
            value = await usd_value(execution, pool, flow) if flow.amount else Fraction(0)
            if value is None:
                raise Unavailable(f"Nobody can say what the tokens of position {position.id} are worth in dollars.")
            worth += value
        return worth

    put_in = fit(price, position.range, position.fees0, position.fees1, 0)
    quote = await execution.chain.gas()
    gas = await gas_usd(execution, pool, Wei(quote.price * COMPOUND_GAS))
    since = Seconds(position.block.timestamp - YIELD_WINDOW)
    window = await execution.chain.window([position], since)
    if position.id in window.fees:
        figures = figures_of_window(position, window.fees[position.id], window.paths[pool.id], "fee growth")
    else:
        figures = figures_of_history(await execution.chain.history(position.id, since), "its history")
    hourly = lost = Fraction(0)
    if figures is not None:
        yearly = (annual_rate(gain, figures.mean_worth, figures.seconds) for gain in (figures.fees, figures.lvr))
        hourly, lost = ((rate or Fraction(0)) / (365 * 24) for rate in yearly)
    owed, worth = await usd(position.fees0, position.fees1), await usd(position.amount0, position.amount1)
    return weigh_compounding(await usd(put_in.amount0, put_in.amount1), owed, gas, worth, hourly, lost), owed


def _usd_text(amount: Fraction) -> str:
    return f"{'−' if amount < 0 else ''}${float(abs(amount)):.2f}"


COMPOUND_GAS: Final = 200_000
YIELD_WINDOW: Final = 7 * 86_400


async def _fix_capital(
    execution: ExecutionContext, position: LpPosition, amounts: Sequence[str]
) -> tuple[tuple[int, int], Literal[0, 1] | None]:
    """What the owner named in base units; of a token that was not named, what goes with it at the worst price in the
    bounds. What the plan may take is fixed here, before anybody is asked."""
    tokens = (position.pool.token0, position.pool.token1)
    named: dict[int, int] = {}
    for text in amounts:
        amount, name = arguments.capital(text)
        side = next((side for side, token in enumerate(tokens) if matches_token(name, token)), None)
        if side is None:
            raise UsageError(f"Position {position.id} is of {tokens[0].symbol} and {tokens[1].symbol}, not of {name}.")
        if side in named:
            raise UsageError(f"{name} is named twice.")
        try:
            named[side] = parse_units(f"{amount:f}", tokens[side].decimals)
        except ValueError:
            raise UsageError(
                f"{tokens[side].symbol} has {tokens[side].decimals} decimals; {amount:f} has more."
            ) from None
    wallet_state = await execution.writer.wallet_state(execution.wallet, [token.address for token in tokens], ())
    holdings = (wallet_state.holdings.get(tokens[0].address, 0), wallet_state.holdings.get(tokens[1].address, 0))
    capital = fix_capital(position, named, holdings, execution.limits.bounds.slippage_bps)
    return capital, None if len(named) == len(tokens) else 0 if 1 in named else 1

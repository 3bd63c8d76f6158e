"""One approved plan on its way: held against the chain, signed step by step, and ended as the chain shows it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from zuno.kernel.errors import Malformed, NotFound, Refused, Unavailable
from zuno.kernel.units import Address, HexId
from zuno.kernel.wire import derive
from zuno.lp.execute import checks
from zuno.lp.execute import draft as drafts
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.gas import choose_fees, find_held_number
from zuno.lp.execute.mandates import GasTooHigh
from zuno.lp.execute.plan_state import PlanPart, PlanProgress, StepProgress, append_event
from zuno.lp.execute.routes import load_route, load_swap_quotes
from zuno.lp.execute.send import Notify, SigningInputs, StepSender
from zuno.lp.execute.verify_outcome import measure_proceeds, position_actions, verify_outcome
from zuno.lp.model.gas import BUMPS
from zuno.lp.model.plan import Allowances, Flow, Owns, PlanState, SecondHalf, Step, StepKind, StepState
from zuno.lp.model.plan_events import Approval, Draft, PlanApplying, PlanEvent, PlanFinishing, PlanOver, PlanRevoking
from zuno.lp.plan.approvals import build_revocations
from zuno.lp.plan.calls import Approve, Execute, Mint, MintFromDeltas, Permit, RouterSwap, SwapIn
from zuno.lp.plan.positions import finish_close, finish_rebalance
from zuno.lp.ports.spending import Simulation, SimulationMethod

AskOwner = Callable[[drafts.SimulatedDraft, Approval], bool]
"""Shows the owner the draft and its newest simulation; False means no."""


@dataclass(frozen=True, slots=True)
class PlanRun:
    """A plan with its approved draft. Whoever writes through it holds the wallet's lock."""

    context: ExecutionContext
    progress: PlanProgress
    draft: Draft
    notify: Notify

    async def sync_with_chain(self, *, looks: bool = False) -> None:
        """Update the steps in flight from the chain. `looks`: nothing is sent or written down."""
        sender = self.step_sender(looks=looks)
        for index, step in self.progress.awaited_steps:
            while (step.in_flight or step.may_be_sent) and await sender.sync_step(index):
                pass

    def is_complete(self) -> bool:
        """Nothing that was approved is left to do."""
        parts = [step for step in self.progress.steps if step.part is not PlanPart.REVOKING]
        return all(map(is_final, parts)) and (self.draft.later is None or self._later_is_final)

    async def simulate_again(self) -> tuple[drafts.SimulatedDraft, Approval]:
        if self.progress.approved is None:
            raise Refused(f"{self.progress.plan_id} was not approved.")
        if not self.progress.begun:
            return await self._check_fresh(), self.progress.approved.approval
        # Its first steps are done, so that the whole cannot be tried any more.
        untried = Simulation(await self.context.chain.head(), SimulationMethod.FIRST_CALL, (), {}, None)
        return self._with_simulation(untried), self.progress.approved.approval

    async def confirm(self, ask_owner: AskOwner) -> None:
        if not ask_owner(*await self.simulate_again()):
            raise Refused(f"{self.progress.plan_id} was not applied: it was not confirmed.")

    async def record_intent(self) -> None:
        if self.progress.applying is None:
            head, local = await self.context.chain.head(), self.context.local
            with self.context.lock("spending"):  # of the home: plans of other wallets and chains count toward the day
                spend = await checks.check_spend(self.context, self.draft)
                intent = PlanApplying(plan_id=self.progress.plan_id, block=head, spend_usd=spend, play_money=local)
                await self.append(intent)

    async def run(self) -> None:
        if self.progress.called_off is not None:
            await self.cancel_in_flight()
            raise Refused(f"{self.progress.plan_id} was called off before, and is {self.progress.state} now.")
        try:
            await self._run_part(PlanPart.FIRST)
            if self.draft.later is not None:
                await self.build_second_half()
                await self._run_part(PlanPart.LATER)
        except checks.ApprovalExpired as late:
            if not self.progress.begun:
                raise
            ending = PlanState.PARTIAL if self.progress.halfway else PlanState.FAILED
            over = await self._end_plan(ending, "its approval ran out half-way")
            raise Refused(f"{late} {self.describe_end(over)}") from late
        await self.conclude()

    async def _run_part(self, part: PlanPart) -> None:
        sender = self.step_sender()
        for index, step in enumerate(self.progress.steps):
            if step.part is part:
                try:
                    done = await sender.run_step(index, self.prepare_signing)
                except checks.ApprovalExpired:
                    raise
                except Refused as refusal:
                    raise self.explain_unfinished(refusal) from refusal
                if not is_final(done):
                    await self._end_failed_plan(step)

    async def build_second_half(self) -> None:
        """Build the second half from what the first paid; again, unless a step of it is in flight or over."""
        under_way = any(step.in_flight or step.has_failed for step in self._later_steps)
        if not under_way and not self._later_is_final:
            paid, steps, onchain = await self._build_later_steps()
            head = onchain.wallet_state.block
            await self.append(PlanFinishing(plan_id=self.progress.plan_id, block=head, paid=paid, steps=steps))

    async def _build_later_steps(self) -> tuple[tuple[Flow, ...], tuple[Step, ...], drafts.OnChainState]:
        if self.draft.later is None:
            raise Refused(f"{self.progress.plan_id} has no second half")
        onchain = await drafts.read_onchain_state(self.context, HexId(self.draft.later.pool_id), None)
        paid = measure_proceeds(self.progress, self.draft, onchain.wallet_state.holdings)
        half = self.draft.later
        terms = onchain.terms(self.context, self.draft.bounds)
        amounts = {flow.currency: flow.amount for flow in paid}
        have = tuple(amounts.get(currency, 0) for currency in (half.key.currency0, half.key.currency1))
        try:
            if not self.progress.handed_out:  # one that a signer elsewhere sends gets a deadline of its own
                checks.check_not_expired(self.draft, onchain.wallet_state.block.timestamp)
            quote = await load_swap_quotes(self.context, onchain.pool, None)
            route = await load_route(self.context, onchain.pool, self.draft.route)
            if half.range is None:
                steps = finish_close(half, terms, onchain.pool, (have[0], have[1]), quotes=quote, route=route)
            else:
                steps = finish_rebalance(half, terms, onchain.pool, *have, quotes=quote, route=route)
            for step in steps:
                self._check_later(step)
        except checks.ApprovalExpired:
            raise
        except Refused as refusal:
            raise self.explain_unfinished(refusal) from refusal
        return paid, steps, onchain

    def _check_later(self, step: Step) -> None:
        """A later step must decode to what was approved: this range of this pool, this way round, at this rate."""
        if self.draft.later is None:
            raise Refused("no later steps were approved")
        if step.kind not in (StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE, *_last_kinds(self.draft.later)):
            raise Refused(f"a {step.kind} was not approved as a later step")
        if self.draft.later.range is None:
            return  # one swap, which the policy holds to its approved rate
        for action in position_actions(self.context, step):
            if not isinstance(action, Mint | MintFromDeltas):
                continue
            if (action.range, action.key) != (self.draft.later.range, self.draft.later.key):
                raise Refused(f"ticks {action.range.lower} to {action.range.upper} were not approved")
        call = drafts.decode_step(self.context, step).call
        commands = call.commands if isinstance(call, Execute) else ()
        called = [action for command in commands if isinstance(command, RouterSwap) for action in command.actions]
        if swaps := [action for action in called if isinstance(action, SwapIn)]:
            _check_approved_swaps(swaps, self.draft)

    async def prepare_signing(self, index: int) -> SigningInputs:
        """Repeats every check just before a signature."""
        at = self.progress.steps[index]
        step = at.step
        about = next((need.token_id for need in step.needs if isinstance(need, Owns)), None)
        more = (*drafts.plan_currencies(self.draft), *map(Address, self.draft.instruction.tokens))
        pool, _ = drafts.find_position_of_step(self.draft, step)
        onchain = await drafts.read_onchain_state(self.context, HexId(pool.id), about, more)
        if at.part is PlanPart.FIRST or (at.part is PlanPart.LATER and not self.progress.handed_out):
            checks.check_not_expired(self.draft, onchain.wallet_state.block.timestamp)
        checks.check_needs(step, onchain)
        checks.check_policy(self.context, step, onchain, self.draft, self._step_caps(at.part))
        if step.needs and step.kind is not StepKind.COLLECT and not self.draft.instruction.leaves_anyway:
            await checks.check_reference(self.context, onchain.pool, checks.reference_limit(self.draft.instruction))
        gas = await self.context.writer.estimate(self.context.wallet, drafts.step_call(step))
        price, wallet_state = await self.context.read_gas(), onchain.wallet_state
        now, posting = drafts.suggest_fees(price), drafts.data_fee([step], price)
        checks.check_gas(onchain, step, gas, self._gas_bound(at), now.max_fee, posting)
        dead = await find_held_number(self.context, self.draft, wallet_state)
        fees, bound = await choose_fees(
            self.context,
            self.draft,
            now,
            gas,
            dead,
            data_fee=posting,
            unplanned=at.part is PlanPart.REVOKING,
            bumps=BUMPS,
        )
        nonce = wallet_state.next_nonce if dead is None else dead.nonce
        held = tuple(Flow(each, wallet_state.holdings.get(each, 0)) for each in drafts.plan_currencies(self.draft))
        return SigningInputs(nonce, gas, fees, held, bound)

    def _step_caps(self, part: PlanPart) -> tuple[Flow, ...]:
        if part is PlanPart.LATER and self.progress.finishing is not None:
            return self.progress.finishing.paid
        return self.draft.caps if part is PlanPart.FIRST else ()

    def _gas_bound(self, at: StepProgress) -> int:
        """The bound of the steps of this kind; a second half may have lost its swap and mint alone."""
        bounds = zip(self.draft.gas.units, drafts.all_steps(self.draft), strict=True)
        of_kind = (units for units, step in bounds if step.kind is at.step.kind)
        return max(of_kind, default=drafts.GAS_MARGIN * drafts.measured_gas(at.step.kind))

    async def _check_fresh(self) -> drafts.SimulatedDraft:
        """Before anything is signed: check the whole plan against the chain as it is now, and simulate it again."""
        instruction, states = self.draft.instruction, dict[int | None, drafts.OnChainState]()
        for single in instruction.each():
            try:
                seen = await drafts.read_onchain_state(
                    self.context, HexId(single.pool_id), single.position_id, tuple(map(Address, single.tokens))
                )
            except NotFound as gone:
                raise Refused(f"What {self.draft.plan_id} is about has changed: {gone}") from gone
            checks.check_not_expired(self.draft, seen.wallet_state.block.timestamp)
            await checks.check_market(self.context, single, seen.pool, self.draft.bounds)
            states[single.position_id] = seen
        onchain = states[instruction.position_id]
        drafts.check_named_tokens_used(instruction, onchain)
        steps = self.draft.steps
        drafts.check_capital_limits(instruction, onchain.pool, drafts.wrapped_native(self.context), steps)
        for index, step in enumerate(steps):
            _, position = drafts.find_position_of_step(self.draft, step)
            state = onchain if position is None else states[position.id]
            checks.check_needs(step, state, after=steps[:index])
            checks.check_policy(self.context, step, state, self.draft, self.draft.caps)
        simulated = await self._simulate(drafts.all_steps(self.draft))
        batch = self.context.signer.watch_only and await self.context.writer.is_contract(self.context.wallet)
        if simulated.error is not None and self.draft.later is not None and not batch:
            # The second half is built anew from what the first pays: what was approved of it need not go through as is.
            simulated = await self._simulate(steps)
        if simulated.error is not None:
            raise Refused(as_sentence(simulated.error))
        if not batch:  # whoever runs a Safe's transaction pays for its gas
            limit = await self.context.writer.estimate(self.context.wallet, drafts.step_call(steps[0]))
            checks.check_whole_gas(onchain, simulated, await self.context.read_gas(), limit)
        return simulated

    async def _simulate(self, steps: Sequence[Step]) -> drafts.SimulatedDraft:
        calls, traded = [drafts.step_call(step) for step in steps], drafts.plan_currencies(self.draft)
        simulation = await self.context.writer.simulate(self.context.wallet, calls, traded, HexId(self.draft.pool.id))
        return self._with_simulation(simulation)

    def _with_simulation(self, simulation: Simulation) -> drafts.SimulatedDraft:
        return drafts.SimulatedDraft(self.draft, simulation, self.context.info.deployment.swap_struct)

    async def conclude(self) -> None:
        outcome = await verify_outcome(self.context, self.progress, self.draft)
        plan, new = self.progress.plan_id, outcome.new_id
        await self.append(derive(PlanOver, outcome, plan_id=plan, state=PlanState.CONFIRMED, new_position_id=new))

    async def _end_failed_plan(self, step: StepProgress) -> None:
        why = f"{drafts.step_name(step.step)}: {step.why}{await self._revert_reason(step)}"
        late = step.is_cancelled and step.mined is not None and step.mined.block.timestamp > self.draft.expires
        if step.is_cancelled or step.expired:
            in_time = step.is_cancelled and not late
            why = "called off before it was mined" if in_time else "its deadline passed before it was mined"
        ending = PlanState.PARTIAL if self.progress.halfway else PlanState.FAILED
        if step.is_cancelled and not late:
            ending = PlanState.CANCELLED
        over = await self._end_plan(ending, why)
        raise Refused(self.describe_end(over))

    async def cancel_in_flight(self) -> None:
        """Replace transactions in flight by empty ones, then end the plan as the chain shows it."""
        sender = self.step_sender()
        for index, step in list(self.progress.in_flight):
            if step.part is not PlanPart.REVOKING:  # taking back goes on below
                await sender.run_step(index, None)
        if self.is_complete():
            await self.conclude()
            return
        why = "called off after its first half, its tokens are in the wallet" if self.progress.halfway else "called off"
        await self._end_plan(PlanState.CANCELLED, why)

    async def _revert_reason(self, step: StepProgress) -> str:
        """Why a step reverted, by simulating it on the head; empty where it would succeed by now."""
        if step.state is not StepState.REVERTED:
            return ""
        try:
            again = await self.context.writer.estimate(self.context.wallet, drafts.step_call(step.step))
        except Refused as refusal:
            return f" ({str(refusal).rstrip('.')})"
        except (Unavailable, Malformed):
            return ""
        limit = step.newest.gas
        return f" (it had {limit} gas, and needs {again})" if again > limit else ""

    async def _end_plan(self, ending: PlanState, why: str) -> PlanOver:
        """Revoke unused allowances, then journal the end of the plan."""
        left = await self._revoke_allowances()
        over = PlanOver(plan_id=self.progress.plan_id, state=ending, why=why, problems=left)
        await self.append(over)
        return over

    async def _revoke_allowances(self) -> tuple[str, ...]:
        if not any(step.part is PlanPart.REVOKING for step in self.progress.steps):
            steps = await self._revocation_steps()
            if not steps:
                return ()
            await self.append(PlanRevoking(plan_id=self.progress.plan_id, steps=steps))
        sender = self.step_sender()
        left = []
        for index, step in enumerate(self.progress.steps):
            if step.part is PlanPart.REVOKING:
                try:
                    done = await sender.run_step(index, self.prepare_signing)
                except GasTooHigh:
                    raise  # an allowance that stands is taken back once gas is inside its bound
                except Refused as refusal:
                    left.append(f"an allowance could not be taken back: {refusal}")
                    continue
                if not is_final(done):
                    left.append(f"an allowance could not be taken back: {done.why}")
        return tuple(left)

    async def _revocation_steps(self) -> tuple[Step, ...]:
        """Revokes only what this plan granted; earlier allowances stay."""
        if (standing := await self.standing_allowances()) is None:
            return ()
        onchain, ours = standing
        terms = replace(onchain.terms(self.context, self.draft.bounds), allowances=ours)
        return build_revocations(terms, tuple(dict.fromkeys((*ours.to_permit2, *(token for token, _ in ours.grants)))))

    async def standing_allowances(self) -> tuple[drafts.OnChainState, Allowances] | None:
        """What this plan granted and nobody has used up; None where it granted nothing."""
        tokens, spenders = self._list_granted()
        if not tokens and not spenders:
            return None
        onchain = await drafts.read_onchain_state(self.context, HexId(self.draft.pool.id), None)
        standing = onchain.wallet_state.allowances
        return onchain, Allowances(
            {token: amount for token, amount in standing.to_permit2.items() if token in tokens and amount},
            {pair: grant for pair, grant in standing.grants.items() if pair in spenders and grant.amount},
        )

    def explain_unfinished(self, refusal: Refused) -> Refused:
        """Refused on the way: finished steps and their allowances stay in place, and between the halves the tokens are
        in the wallet."""
        if not self.progress.begun:
            return refusal
        name = self.progress.plan_id
        return Refused(
            f"{refusal} {name} is {self.progress.state}. Apply it again while its approval lasts, or `zuno plan cancel "
            f"{name}` ends it.{self._explain_where_tokens_are()}"
        )

    def describe_end(self, over: PlanOver) -> str:
        return f"{over.plan_id} ended as {over.state}: {over.why}.{self._explain_where_tokens_are()}"

    def _explain_where_tokens_are(self) -> str:
        """Between the halves they are in the wallet."""
        if not self.progress.halfway:
            return ""
        names = (self.draft.pool.token0.symbol, self.draft.pool.token1.symbol)
        return (
            f" Its {' and '.join(names)} rest in the wallet; to open a new position with them: "
            f"`zuno lp recommend create --chain {self.draft.instruction.chain} --pair {'/'.join(names)} …`"
        )

    @property
    def _later_steps(self) -> list[StepProgress]:
        return [step for step in self.progress.steps if step.part is PlanPart.LATER]

    @property
    def _later_is_final(self) -> bool:
        """What the second half is for is done."""
        half = self.draft.later
        if half is not None and half.range is None and self.progress.finishing is not None and not self._later_steps:
            return True  # the first half paid the right token alone
        kinds = () if half is None else _last_kinds(half)
        return any(step.step.kind in kinds and is_final(step) for step in self._later_steps)

    def _list_granted(self) -> tuple[set[Address], set[tuple[Address, Address]]]:
        """The tokens whose allowance to Permit2 this plan set, and the pairs of token and spender it let through
        there."""
        tokens: set[Address] = set()
        spenders: set[tuple[Address, Address]] = set()
        for step in filter(is_final, self.progress.steps):
            match drafts.decode_step(self.context, step.step).call:
                case Approve(_, amount) if amount:
                    tokens.add(step.step.to)
                case Permit(token, spender, amount, _) if amount:
                    spenders.add((token, spender))
                case _:
                    pass
        return tokens, spenders

    def step_sender(self, *, looks: bool = False) -> StepSender:
        return StepSender(self.context, self.progress, self.draft, self.notify, looks=looks)

    async def append(self, event: PlanEvent) -> None:
        await append_event(self.context.journal, self.progress, event)


def _last_kinds(half: SecondHalf) -> tuple[StepKind, ...]:
    return (StepKind.SWAP,) if half.range is None else (StepKind.MINT, StepKind.SWAP_AND_MINT)


def _check_approved_swaps(swaps: Sequence[SwapIn], draft: Draft) -> None:
    """One swap the approved way, then one back of no more than it pays, each at its approved rate at least; where the
    first goes through another pool, a small one the same way in between."""
    half = draft.later
    if half is None:
        raise Refused("no later steps were approved")
    pair, way = (half.key.currency0, half.key.currency1), half.zero_for_one
    rates = [half.least_rate, half.guard_rate]
    if half.probe_rate is not None:  # of which two are left where nothing has to be swapped any more
        rates = [half.least_rate, half.probe_rate, half.guard_rate][-len(swaps) :]
    if [swap.sells_first(pair) for swap in swaps] != [*[way] * (len(rates) - 1), not way]:
        raise Refused("the swaps go another way round than was approved")
    for swap, rate in zip(swaps, rates, strict=True):
        if rate is not None and Fraction(swap.amount_out_min, swap.amount_in) < rate:
            raise Refused(f"the swap takes {swap.amount_out_min} for {swap.amount_in}, less than the approved rate")
    if swaps[-1].amount_in > swaps[-2].amount_out_min:
        raise Refused(f"a swap back of {swaps[-1].amount_in} is more than the {swaps[-2].amount_out_min} there will be")


def as_sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def is_final(step: StepProgress) -> bool:
    return step.state is StepState.FINAL

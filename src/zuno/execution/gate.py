"""The one door to money: a plan is tried, approved by its owner and applied once, as it was approved or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from zuno.core.planning.approvals import revoking
from zuno.core.planning.calls import Approve, Execute, Mint, Permit, RouterSwap, SwapIn
from zuno.core.planning.positions import finish
from zuno.domain.errors import Malformed, Refused, Unavailable, Unknown
from zuno.domain.execution import Allowances, Flow, Owns, PlanState, Step, StepKind, StepState
from zuno.domain.tokens import NATIVE
from zuno.domain.units import Address, HexId, Seconds, Wei
from zuno.execution import checks
from zuno.execution.after import actions_of, gas_of, problems
from zuno.execution.book import Book, Part, StepBook, draft_digest, open_book, say, unfinished
from zuno.execution.drafting import (
    FEE_MARGIN,
    GAS_MARGIN,
    Drafted,
    Sight,
    all_steps,
    call_of,
    currencies,
    data_fee,
    first_fees,
    look,
    measured_gas,
    name_of,
    quoting,
    said_by,
    write_draft,
)
from zuno.execution.hands import Hands
from zuno.execution.sending import Courier, Prepare, Ready, Tell
from zuno.messages.execution import (
    Approval,
    Draft,
    Instruction,
    PlanApplying,
    PlanApproved,
    PlanCalledOff,
    PlanFinishing,
    PlanOver,
    PlanRevoking,
    PlanSimulated,
    StepRecord,
)
from zuno.ports.spending import Fees, Rehearsal, Rehearsing

Agreed = Callable[[Drafted, Approval], bool]
"""Asks the owner, who sees what it is about and how it went when it was tried just now; False is no."""


@dataclass(frozen=True, slots=True)
class Offered:
    """What a signer elsewhere needs to know beside the calls."""

    nonce: int
    fees: Fees


class Gate:
    """Every promise of the room, for one wallet on one chain. One plan at a time: others of the wallet wait."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    # -- before anything is signed

    async def simulate(self, plan_id: str, plan_hash: str, told: Instruction) -> Drafted:
        """The plan as exact calldata on the latest block, and what it would do there."""
        book = await self._book(plan_id)
        _check_not_over(book)
        drafted = await write_draft(self._hands, plan_id, plan_hash, told)
        if not book.signed_anything:
            await say(
                self._hands.journal,
                book,
                PlanSimulated(
                    plan_id=plan_id, block=drafted.draft.block, ok=drafted.error is None, why=drafted.error or ""
                ),
            )
        return drafted

    async def draft(self, plan_id: str, plan_hash: str, told: Instruction) -> Drafted:
        """What an approval would be about; `Refused` where it would be refused anyway."""
        book = await self._book(plan_id)
        _check_not_over(book)
        if book.signed_anything:
            raise Refused(f"{plan_id} is {book.state} already; `zuno plan apply {plan_id}` goes on with it.")
        drafted = await write_draft(self._hands, plan_id, plan_hash, told)
        await checks.check_market(self._hands, told, drafted.draft.pool, drafted.draft.bounds)
        await checks.check_spend(self._hands, drafted.draft)
        if drafted.error is not None:
            raise Refused(_sentence(drafted.error))
        return drafted

    def approval(self, draft: Draft, who: str) -> Approval:
        """The words that would be signed."""
        return Approval(
            plan_id=draft.plan_id,
            plan_hash=draft.plan_hash,
            draft=draft_digest(draft),
            chain_id=draft.chain_id,
            genesis=draft.genesis,
            wallet=draft.wallet,
            expires=draft.expires,
            who=f"{who} at node {self._hands.key.public[:16]}",
        )

    async def approve(self, draft: Draft, approval: Approval) -> Book:
        """Sign the owner's word and keep it. The head may have moved on while the owner read."""
        with self._hands.turn(self._name):
            book = await self._book(draft.plan_id)
            _check_not_over(book)
            if book.signed_anything:
                raise Refused(f"{draft.plan_id} is {book.state} already.")
            checks.check_in_time(draft, (await self._hands.chain.head()).timestamp)
            signature = self._hands.key.sign(checks.signing_bytes(approval)).hex()
            event = PlanApproved(plan_id=draft.plan_id, approval=approval, signature=signature)
            await say(self._hands.journal, book, event, draft)
            return book

    async def reject(self, plan_id: str, why: str) -> None:
        """The desk itself advised against it: nothing is ever signed for this plan."""
        book = await self._book(plan_id)
        if book.over is None and not book.signed_anything:
            await say(self._hands.journal, book, PlanOver(plan_id=plan_id, state=PlanState.REJECTED, why=why))

    # -- carrying it out

    async def approved(self, plan_id: str) -> tuple[Book, Draft]:
        """The plan with its approval, checked; `Refused` where there is nothing to apply."""
        book = await self._book(plan_id)
        _check_not_over(book)
        draft = checks.check_approval(book, self._hands.key)
        await checks.check_chain(self._hands, draft)
        return book, draft

    async def apply(self, plan_id: str, agreed: Agreed, tell: Tell) -> Book:
        """Do what was approved, or go on doing it; a second time after its end is refused."""
        with self._hands.turn(self._name):
            await self.reconcile(tell, but=plan_id)
            book, draft = await self.approved(plan_id)
            tried = await self._untried(draft) if book.signed_anything else await self._check_fresh(draft)
            if book.approved is None or not agreed(tried, book.approved.approval):
                raise Refused(f"{plan_id} was not applied: the word was not given.")
            self._hands.signer.ready()  # whatever takes a person's time comes before the last look at the chain
            if book.applying is None:
                spend = await checks.check_spend(self._hands, draft)
                head = await self._hands.chain.head()
                intent = PlanApplying(plan_id=plan_id, block=head, spend_usd=spend, play_money=self._hands.local)
                await say(self._hands.journal, book, intent)
            await self._run(book, draft, tell)
            return book

    async def cancel(self, plan_id: str, tell: Tell) -> Book:
        """Call a plan off: what is on its way is overtaken by an empty transaction, what was allowed is taken back."""
        with self._hands.turn(self._name):
            book = await self._book(plan_id)
            _check_not_over(book)
            draft = book.draft
            if draft is None or not book.signed_anything:
                await say(
                    self._hands.journal,
                    book,
                    PlanOver(plan_id=plan_id, state=PlanState.CANCELLED, why="called off before anything was signed"),
                )
                return book
            await checks.check_chain(self._hands, draft)
            self._hands.signer.ready()
            if book.called_off is None:
                await say(self._hands.journal, book, PlanCalledOff(plan_id=plan_id))
            await self._call_off(book, draft, tell)
            return book

    async def reconcile(self, tell: Tell, *, but: str | None = None, send: bool = True) -> None:
        """Hold every unfinished step of this wallet against the chain, before anything else is done.

        `but`: the plan that is about to go on anyway. Others must have nothing in flight: their number would be ours.
        """
        for plan_id in await unfinished(self._hands.journal):
            if plan_id == but:
                continue
            book = await self._book(plan_id)
            draft = book.draft
            if draft is None or not await self._ours(draft):
                continue
            await self._settle(book, draft, tell, send=send)
            for _, step in book.in_flight:
                if send:
                    raise Refused(
                        f"{plan_id} still has a transaction on its way ({step.newest.hash}); "
                        f"`zuno plan apply {plan_id}` or `zuno plan cancel {plan_id}` first."
                    )

    async def status(self, plan_id: str) -> tuple[Book, bool]:
        """The plan, held against the chain if nobody is applying it right now; and whether its approval has run out."""
        try:
            with self._hands.turn(self._name):
                book = await self._book(plan_id)
                if book.draft is not None and await self._ours(book.draft):
                    await self._settle(book, book.draft, _silently, send=False)
        except Refused:
            book = await self._book(plan_id)
        late = False
        if book.draft is not None and book.state is PlanState.APPROVED:
            late = (await self._hands.chain.head()).timestamp > book.draft.expires
        return book, late

    async def _settle(self, book: Book, draft: Draft, tell: Tell, *, send: bool) -> None:
        """Take from the chain whatever it knows by now of a plan's steps in flight."""
        courier = self._courier(book, draft, tell)
        for index, step in list(book.in_flight):
            while step.in_flight and await courier.settle(index, send=send):
                pass

    # -- the run itself

    async def _run(self, book: Book, draft: Draft, tell: Tell) -> None:
        courier = self._courier(book, draft, tell)

        async def prepare(index: int) -> Ready:
            return await self._prepare(book, draft, index)

        if book.called_off is not None:
            await self._call_off(book, draft, tell)
            raise Refused(f"{book.plan_id} was called off before, and is {book.state} now.")
        try:
            await self._both_halves(book, draft, courier, prepare, tell)
        except checks.Expired as late:
            if not book.signed_anything:
                raise
            ending = PlanState.PARTIAL if book.halfway else PlanState.FAILED
            await self._give_up(book, draft, ending, "its approval ran out half-way", tell)
            where = _where_tokens_are(draft) if book.halfway else ""
            raise Refused(f"{late} {book.plan_id} ended as {ending}.{where}") from late
        await self._conclude(book, draft)

    async def _both_halves(self, book: Book, draft: Draft, courier: Courier, prepare: Prepare, tell: Tell) -> None:
        for index, step in enumerate(book.steps):
            if step.part is Part.FIRST:
                try:
                    done = await courier.carry(index, prepare)
                except checks.Expired:
                    raise
                except Refused as refusal:
                    raise self._begun(book, refusal) from refusal
                if not _went_well(done):
                    await self._fail(book, draft, step, tell)
        if draft.later is not None:
            await self._second_half(book, draft, courier, prepare, tell)

    async def _second_half(self, book: Book, draft: Draft, courier: Courier, prepare: Prepare, tell: Tell) -> None:
        """Built from what the first half really paid, and once more wherever nothing of it is under way or over."""
        if not any(step.in_flight or step.failed for step in _later(book)) and not _minted_later(book):
            paid, steps, sight = await self._cooked(book, draft)
            await say(
                self._hands.journal,
                book,
                PlanFinishing(
                    plan_id=book.plan_id,
                    block=sight.purse.block,
                    paid=paid,
                    steps=tuple(map(StepRecord.of, steps)),
                ),
            )
        for index, step in enumerate(book.steps):
            if step.part is Part.LATER:
                try:
                    done = await courier.carry(index, prepare)
                except checks.Expired:
                    raise
                except Refused as refusal:
                    raise self._resting(book, draft, refusal) from refusal
                if not _went_well(done):
                    await self._fail(book, draft, step, tell)

    async def _cooked(self, book: Book, draft: Draft) -> tuple[tuple[Flow, ...], tuple[Step, ...], Sight]:
        if draft.later is None:
            raise Refused(f"{book.plan_id} has no second half")
        sight = await look(self._hands, HexId(draft.later.pool_id), None)
        paid = _paid(book, draft, sight)
        recipe = draft.later.recipe(draft.bounds)
        terms = sight.terms(self._hands, draft.bounds)
        amounts = {flow.currency: flow.amount for flow in paid}
        have = tuple(amounts.get(currency, 0) for currency in (recipe.key.currency0, recipe.key.currency1))
        try:
            checks.check_in_time(draft, sight.purse.block.timestamp)
            quote = await quoting(self._hands, sight.pool, None)
            steps = finish(recipe, terms, sight.pool, have[0], have[1], quotes=quote)
            for step in steps:
                self._check_later(draft, step)
        except checks.Expired:
            raise
        except Refused as refusal:
            raise self._resting(book, draft, refusal) from refusal
        return paid, steps, sight

    def _check_later(self, draft: Draft, step: Step) -> None:
        """A later step must decode to what was approved: this range of this pool, this way round, at this rate."""
        if draft.later is None:
            raise Refused("no later steps were approved")
        kinds = (StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE, StepKind.MINT, StepKind.SWAP_AND_MINT)
        if step.kind not in kinds:
            raise Refused(f"a {step.kind} was not approved as a later step")
        for action in actions_of(self._hands, step):
            if isinstance(action, Mint) and (action.range, action.key) != (draft.later.range, draft.later.key):
                raise Refused(f"ticks {action.range.lower} to {action.range.upper} were not approved")
        call = said_by(self._hands, step).call
        commands = call.commands if isinstance(call, Execute) else ()
        for swap in (one for command in commands if isinstance(command, RouterSwap) for one in command.actions):
            if isinstance(swap, SwapIn):
                if swap.zero_for_one != draft.later.zero_for_one:
                    raise Refused("the swap goes the other way round than was approved")
                if Fraction(swap.amount_out_min, swap.amount_in) < draft.later.least_rate:
                    raise Refused(
                        f"the swap takes {swap.amount_out_min} for {swap.amount_in}, less than the approved rate"
                    )

    async def _prepare(self, book: Book, draft: Draft, index: int) -> Ready:
        """Everything once more, just before a signature."""
        at = book.steps[index]
        step = at.step
        about = next((need.token_id for need in step.needs if isinstance(need, Owns)), None)
        sight = await look(self._hands, HexId(draft.pool.id), about)
        if at.part is not Part.REVOKING:
            checks.check_in_time(draft, sight.purse.block.timestamp)
        checks.check_needs(step, sight)
        checks.check_policy(self._hands, step, sight, draft, self._caps(book, draft, at.part))
        if step.needs and step.kind is not StepKind.COLLECT:
            await checks.check_reference(self._hands, sight.pool)
        gas = await self._hands.writer.estimate(self._hands.wallet, call_of(step))
        price = await self._hands.chain.gas()
        fees = first_fees(price)
        most_fee = max(draft.gas.max_fee, FEE_MARGIN * fees.max_fee) if at.part is Part.REVOKING else draft.gas.max_fee
        checks.check_gas(sight, step, gas, fees.max_fee, self._most_gas(draft, at), most_fee, data_fee([step], price))
        purse = sight.purse
        held = tuple(Flow(each, purse.holdings.get(each, 0)) for each in currencies(draft.pool.key))
        return Ready(purse.next_nonce, gas, fees, held)

    def _caps(self, book: Book, draft: Draft, part: Part) -> tuple[Flow, ...]:
        if part is Part.LATER and book.finishing is not None:
            return book.finishing.paid
        return draft.caps if part is Part.FIRST else ()

    def _most_gas(self, draft: Draft, at: StepBook) -> int:
        """The bound of the steps of this kind; a second half may have lost its swap and mint alone."""
        bounds = [
            units
            for units, step in zip(draft.gas.units, all_steps(draft), strict=True)
            if step.kind is at.step.kind
        ]  # fmt: skip
        return max(bounds, default=GAS_MARGIN * measured_gas(at.step.kind))

    async def unsigned(self, draft: Draft) -> Offered:
        """For a wallet whose key is elsewhere: every check, no signature."""
        await self._check_fresh(draft)
        purse = await self._hands.writer.purse(self._hands.wallet, (NATIVE,), ())
        return Offered(purse.next_nonce, first_fees(await self._hands.chain.gas()))

    async def _try(self, draft: Draft, steps: Sequence[Step]) -> Drafted:
        calls, pair = [call_of(step) for step in steps], currencies(draft.pool.key)
        rehearsal = await self._hands.writer.rehearse(self._hands.wallet, calls, pair, HexId(draft.pool.id))
        return self._tried(draft, rehearsal)

    async def _untried(self, draft: Draft) -> Drafted:
        """A plan that is under way: its first steps are done, so the whole cannot be tried any more."""
        head = await self._hands.chain.head()
        return self._tried(draft, Rehearsal(head, Rehearsing.FIRST_CALL, (), {}, None))

    async def _check_fresh(self, draft: Draft) -> Drafted:
        """Nothing is signed yet: the whole plan is held against the world as it is now, and tried once more."""
        told = draft.instruction
        try:
            sight = await look(self._hands, HexId(draft.pool.id), told.position_id)
        except Unknown as gone:
            raise Refused(f"What {draft.plan_id} is about has changed: {gone}") from gone
        checks.check_in_time(draft, sight.purse.block.timestamp)
        await checks.check_market(self._hands, told, sight.pool, draft.bounds)
        steps = [record.step() for record in draft.steps]
        for index, step in enumerate(steps):
            checks.check_needs(step, sight, after=steps[:index])
            checks.check_policy(self._hands, step, sight, draft, draft.caps)
        tried = await self._try(draft, all_steps(draft))
        if tried.error is not None and draft.later is not None:
            # The second half is built anew from what the first pays: what was approved of it need not go through as is.
            tried = await self._try(draft, steps)
        if tried.error is not None:
            raise Refused(_sentence(tried.error))
        checks.check_whole_gas(sight, draft, await self._hands.chain.gas())
        return tried

    # -- endings

    async def _conclude(self, book: Book, draft: Draft) -> None:
        new_id, found = await problems(self._hands, book, draft)
        await say(
            self._hands.journal,
            book,
            PlanOver(plan_id=book.plan_id, state=PlanState.CONFIRMED, new_position_id=new_id, problems=found),
        )

    async def _fail(self, book: Book, draft: Draft, step: StepBook, tell: Tell) -> None:
        why = f"{name_of(step.step)}: {step.why}{await self._reason(step)}"
        late = step.cancelled and step.mined is not None and step.mined.block.timestamp > draft.expires
        if step.cancelled:
            why = "its deadline passed before it was mined" if late else "called off before it was mined"
        ending = PlanState.PARTIAL if book.halfway else PlanState.FAILED
        if step.cancelled and not late:
            ending = PlanState.CANCELLED
        await self._give_up(book, draft, ending, why, tell)
        raise Refused(f"{book.plan_id} ended as {ending}: {why}." + (_where_tokens_are(draft) if book.halfway else ""))

    async def _call_off(self, book: Book, draft: Draft, tell: Tell) -> None:
        """Overtake what is on its way, and end the plan as whatever the chain then shows."""
        courier = self._courier(book, draft, tell)
        for index, step in list(book.in_flight):
            if step.part is Part.REVOKING:
                continue  # taking back goes on below
            if step.state is not StepState.MINED and not await courier.settle(index, send=False):
                await courier.cancel(index)
            await courier.carry(index, None)
        if self._complete(book, draft):
            await self._conclude(book, draft)
            return
        why = "called off after its first half" if book.halfway else "called off"
        await self._give_up(book, draft, PlanState.CANCELLED, why, tell)

    async def _reason(self, step: StepBook) -> str:
        """Why a step reverted, as far as trying it on the head tells; nothing where it would go through by now."""
        if step.state is not StepState.REVERTED:
            return ""
        try:
            again = await self._hands.writer.estimate(self._hands.wallet, call_of(step.step))
        except Refused as refusal:
            return f" ({str(refusal).rstrip('.')})"
        except (Unavailable, Malformed):
            return ""
        limit = step.newest.gas
        return f" (it had {limit} gas, and needs {again})" if again > limit else ""

    async def _give_up(self, book: Book, draft: Draft, ending: PlanState, why: str, tell: Tell) -> None:
        """Take back what was allowed and not used up, then close the book."""
        found = await self._take_back(book, draft, tell)
        over = PlanOver(plan_id=book.plan_id, state=ending, why=why, problems=found)
        await say(self._hands.journal, book, over)

    async def _take_back(self, book: Book, draft: Draft, tell: Tell) -> tuple[str, ...]:
        if not any(step.part is Part.REVOKING for step in book.steps):
            steps = await self._leftover(book, draft)
            if not steps:
                return ()
            records = tuple(map(StepRecord.of, steps))
            await say(self._hands.journal, book, PlanRevoking(plan_id=book.plan_id, steps=records))
        courier = self._courier(book, draft, tell, anyhow=True)

        async def prepare(index: int) -> Ready:
            return await self._prepare(book, draft, index)

        left = []
        for index, step in enumerate(book.steps):
            if step.part is Part.REVOKING:
                try:
                    done = await courier.carry(index, prepare)
                except Refused as refusal:
                    left.append(f"an allowance could not be taken back: {refusal}")
                    continue
                if not _went_well(done):
                    left.append(f"an allowance could not be taken back: {done.why}")
        return tuple(left)

    async def _leftover(self, book: Book, draft: Draft) -> tuple[Step, ...]:
        """Only what this plan granted: what stood before it is the owner's own affair."""
        tokens, spenders = _granted(book, self._hands)
        if not tokens and not spenders:
            return ()
        sight = await look(self._hands, HexId(draft.pool.id), None)
        standing = sight.purse.allowances
        ours = Allowances(
            {token: amount for token, amount in standing.to_permit2.items() if token in tokens},
            {pair: grant for pair, grant in standing.grants.items() if pair in spenders},
        )
        terms = replace(sight.terms(self._hands, draft.bounds), allowances=ours)
        return revoking(terms, tuple(dict.fromkeys((*tokens, *(token for token, _ in spenders)))))

    def _resting(self, book: Book, draft: Draft, refusal: Refused) -> Refused:
        """Between the halves: nothing is lost, and the owner is told where it is."""
        go_on = f"Apply it again while its approval lasts, or `zuno plan cancel {book.plan_id}` ends it."
        return Refused(f"{refusal} {book.plan_id} is partial. {go_on}{_where_tokens_are(draft)}")

    def _begun(self, book: Book, refusal: Refused) -> Refused:
        """Somewhere in the first half: what is done stays done, and what it allowed stays allowed."""
        if not book.signed_anything:
            return refusal
        return Refused(
            f"{refusal} {book.plan_id} has begun: apply it again while its approval lasts, or "
            f"`zuno plan cancel {book.plan_id}`, which also takes back what was allowed."
        )

    # -- small things

    async def _book(self, plan_id: str) -> Book:
        return await open_book(self._hands.journal, plan_id)

    async def _ours(self, draft: Draft) -> bool:
        """Of this wallet on this very chain: bytes signed for a world that is gone would be good in the next one."""
        same = (draft.chain_id, draft.wallet) == (self._hands.info.id, self._hands.wallet)
        named = same and draft.instruction.chain == self._hands.info.name
        return named and draft.genesis == await self._hands.writer.genesis()

    def _complete(self, book: Book, draft: Draft) -> bool:
        """Nothing that was approved is left to do."""
        parts = [step for step in book.steps if step.part is not Part.REVOKING]
        done = all(step.state is StepState.FINAL for step in parts)
        return done and (draft.later is None or _minted_later(book))

    def _courier(self, book: Book, draft: Draft, tell: Tell, *, anyhow: bool = False) -> Courier:
        most = Wei(1 << 255) if anyhow else draft.gas.max_fee
        return Courier(self._hands, book, Seconds(draft.expires), most, tell)

    def _tried(self, draft: Draft, rehearsal: Rehearsal) -> Drafted:
        return Drafted(draft, rehearsal, self._hands.info.deployment.swap_struct)

    @property
    def _name(self) -> str:
        return f"{self._hands.info.name}-{self._hands.wallet}"


def _silently(line: str) -> None:
    """Nobody listens."""


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def _went_well(step: StepBook) -> bool:
    return step.state is StepState.FINAL


def _check_not_over(book: Book) -> None:
    if book.over is not None:
        ended = f"{book.plan_id} is {book.over.state} already"
        raise Refused(f"{ended}{f' ({book.over.why})' if book.over.why else ''}; it is never applied again.")


def _later(book: Book) -> list[StepBook]:
    return [step for step in book.steps if step.part is Part.LATER]


def _minted_later(book: Book) -> bool:
    mints = (StepKind.MINT, StepKind.SWAP_AND_MINT)
    return any(step.step.kind in mints and step.state is StepState.FINAL for step in _later(book))


def _paid(book: Book, draft: Draft, sight: Sight) -> tuple[Flow, ...]:
    """What the first half brought: the wallet's holdings now against before it, gas added back, and never more than the
    approval knew it could bring."""
    first = next(step for step in book.steps if step.part is Part.FIRST and step.signed)
    before = {flow.currency: flow.amount for flow in first.newest.holdings}
    paid = []
    for flow in draft.proceeds:
        now = sight.purse.holdings.get(flow.currency, 0) + (gas_of(book) if flow.currency == NATIVE else 0)
        gained = min(flow.amount, max(0, now - before.get(flow.currency, 0)))
        paid.append(Flow(flow.currency, gained))
    return tuple(paid)


def _granted(book: Book, hands: Hands) -> tuple[set[Address], set[tuple[Address, Address]]]:
    """The tokens whose allowance to Permit2 this plan set, and the pairs of token and spender it let through there."""
    tokens: set[Address] = set()
    spenders: set[tuple[Address, Address]] = set()
    for step in book.steps:
        if step.state is not StepState.FINAL:
            continue
        match said_by(hands, step.step).call:
            case Approve(_, amount) if amount:
                tokens.add(step.step.to)
            case Permit(token, spender, amount, _) if amount:
                spenders.add((token, spender))
            case _:
                pass
    return tokens, spenders


def _where_tokens_are(draft: Draft) -> str:
    names = (draft.pool.token0.symbol, draft.pool.token1.symbol)
    return (
        f" Its {' and '.join(names)} rest in the wallet; to open a new position with them: "
        f"`zuno lp recommend create --chain {draft.instruction.chain} --pair {'/'.join(names)} …`"
    )

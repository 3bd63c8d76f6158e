"""Keeps the hedge of approved positions: the liquidity comes first, the short follows what is there.

What is to be short is written before it is asked for, under the moment it was decided; whoever looks next goes on from
there. So a crash between the legs is an open position whose short is still to be set, and the next round sets it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from zuno.amm.model import LpPosition
from zuno.journal.port import Author, Journal
from zuno.kernel.canonical import digest
from zuno.kernel.errors import Refused, Unavailable, ZunoError
from zuno.kernel.notify import Notice, NoticeKind, NoticeLabel, Outbox, Severity
from zuno.kernel.units import Millis, Seconds
from zuno.lp.execute.context import AcquireLock
from zuno.lp.model.hedges import HedgeApproved, HedgeSet, Short, ShortResult
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import Draft, InstructedHedge, PlanApplying, PlanApproved, PlanOver
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.hedging import ShortDesk
from zuno.lp.rules.hedging import is_off

_AUTHOR: Final = Author("hedge")
ZERO: Final = Decimal(0)
TURN_LOOKS: Final = 200
TURN_SECONDS: Final = 0.05
"""Between two looks whether a round that sets shorts is over."""


@dataclass(frozen=True, slots=True)
class HedgeKeeper:
    """`keep` is one round: after a plan was applied, and with every look of the monitor."""

    shorts: ShortDesk
    chain_of: Callable[[str], Chain]
    journal: Callable[[], Awaitable[Journal]]
    lock: AcquireLock
    now: Callable[[], Millis]
    outbox: Outbox | None = None

    async def approve(self, draft: Draft) -> None:
        """Set margin aside for the hedge of a plan that is about to be approved. `Refused` where there is none."""
        hedge = draft.instruction.hedge
        if hedge is None:
            return
        account = await self.shorts.choose_account(self.chain_of(draft.instruction.chain).info)
        with ExitStack() as locked:  # else a round could give back what is set aside here
            for look in range(TURN_LOOKS):
                try:
                    locked.enter_context(self.lock(name_of_set(account)))
                    break
                except Refused:
                    if look + 1 == TURN_LOOKS:
                        raise
                    await asyncio.sleep(TURN_SECONDS)
            await self._approve_at(account, draft, hedge)

    async def _approve_at(self, account: str, draft: Draft, hedge: InstructedHedge) -> None:
        token = (draft.pool.token0, draft.pool.token1)[hedge.side]
        most, about = Decimal(hedge.most).scaleb(-token.decimals), draft.instruction
        last = await self._read_set(account)
        kept: list[Short | HedgeApproved] = [*last.shorts, *await self._list_pending(account, last, draft.plan_id)]
        # What it does to a hedged position takes that one's place.
        others = [
            each
            for each in kept
            if each.position_id is None or (each.chain, each.position_id) != (about.chain, about.position_id)
        ]
        wanted = _sum(others, most=True)
        wanted[hedge.market] = wanted.get(hedge.market, ZERO) + most
        await self.shorts.reserve(account, wanted, draft.plan_id)
        record = HedgeApproved(
            plan_id=draft.plan_id,
            chain=draft.instruction.chain,
            account=account,
            position_id=draft.instruction.position_id,
            market=hedge.market,
            symbol=token.symbol,
            side=hedge.side,
            decimals=token.decimals,
            most=most,
        )
        journal = await self.journal()
        await journal.append_once(kind=record.kind, author=_AUTHOR, payload=record, request_id=draft.plan_id)

    async def _list_pending(self, account: str, last: HedgeSet, but: str) -> list[HedgeApproved]:
        """What was approved with a hedge that nobody has begun to keep, and may still be done."""
        known, journal = {but, *last.ended, *(each.plan_id for each in last.shorts)}, await self.journal()
        pending = list[HedgeApproved]()
        for each in await self._list_approved():
            if each.account != account or each.plan_id in known:
                continue
            if over := await journal.latest(1, request_id=each.plan_id, kind=PlanOver.kind):
                waits = PlanOver.model_validate(dict(over[0].payload)).state is PlanState.CONFIRMED
            else:
                waits = not await self._has_run_out(each)
            if waits:
                pending.append(each)
        return pending

    async def _has_run_out(self, each: HedgeApproved) -> bool:
        """Of an approval that was never applied."""
        journal = await self.journal()
        found = await journal.latest(1, request_id=each.plan_id, kind=PlanApproved.kind)
        if not found or await journal.latest(1, request_id=each.plan_id, kind=PlanApplying.kind):
            return False
        expires = PlanApproved.model_validate(dict(found[0].payload)).approval.expires
        return (await self.chain_of(each.chain).head()).timestamp > expires

    async def list_shorts(self, account: str | None = None) -> tuple[Short, ...]:
        """As they were set last; of one account, or of all."""
        names = {approved.account for approved in await self._list_approved()} if account is None else {account}
        sets = [await self._read_set(name) for name in sorted(names)]
        return tuple(short for each in sets for short in each.shorts if short.quantity)

    async def find_short(self, chain: str, position_id: int) -> Short | None:
        shorts = await self.list_shorts()
        return next((each for each in shorts if (each.chain, each.position_id) == (chain, position_id)), None)

    async def list_unhedged(self, chain: str) -> dict[int, str]:
        """By position of a chain, what its short is off by more than it may be. Nothing is ordered."""
        approved, off = await self._list_approved(), dict[int, str]()
        for account in dict.fromkeys(each.account for each in approved):
            own = [each for each in approved if each.account == account]
            shorts, *_ = await self._follow(own, await self._read_set(account))
            wanted, most = _sum(shorts), _sum(shorts, most=True)
            held = await self.shorts.read_held(account, wanted)
            for short in shorts:
                left = wanted[short.market] - held[short.market]
                if short.chain == chain and is_off(held[short.market], wanted[short.market], most[short.market]):
                    off[short.position_id] = _describe_off(left, short.symbol)
        return off

    async def read_result(self, chain: str, ids: frozenset[int]) -> tuple[ShortResult, str] | None:
        """What the shorts beside a position and its ancestors have made, and what has to be said of it; None: it was
        never hedged. Positions that share a market share its result by the most each was counted to need."""
        held = [(each, end) for each in await self._list_approved() if (end := await self._find_position(each))]
        own = [each for each, end in held if each.chain == chain and end in ids]
        if not own:
            return None
        account, market = own[-1].account, own[-1].market
        sharing = [each for each, _ in held if (each.account, each.market) == (account, market)]
        result, part = await self.shorts.read_result(account, market), sum((each.most for each in own), ZERO)
        whole = sum((each.most for each in sharing), ZERO)
        if len(sharing) == len(own):
            return result, f"the hedge is that of {market} in the account {account}"
        scaled = (amount * part / whole for amount in (result.ledger, result.trades, result.funding))
        with_others = f"shared with {len(sharing) - len(own)} others"
        return ShortResult(*scaled), f"the hedge is {float(part / whole):.0%} of {market} in {account}, {with_others}"

    async def _find_position(self, each: HedgeApproved) -> int | None:
        """Of a hedged plan that was carried out."""
        over = await (await self.journal()).latest(1, request_id=each.plan_id, kind=PlanOver.kind)
        end = PlanOver.model_validate(dict(over[0].payload)) if over else None
        done = end is not None and end.state is PlanState.CONFIRMED
        return (end.new_position_id or each.position_id) if end is not None and done else None

    async def keep(self) -> tuple[str, ...]:
        """What is not hedged as it should be, each pushed. Another process at it is left to it."""
        said: list[str] = []
        approved = await self._list_approved()
        for account in dict.fromkeys(each.account for each in approved):
            with ExitStack() as locked:
                try:
                    locked.enter_context(self.lock(name_of_set(account)))
                except Refused:
                    continue
                own = [each for each in await self._list_approved() if each.account == account]
                try:
                    said += await self._keep_account(account, own)
                except ZunoError as error:
                    last = await self._read_set(account)
                    word = "hedges are not kept" if last.shorts else "margin of hedges is not given back"
                    said.append(await self._push(account, "", word, str(error), last.shorts))
        return tuple(said)

    async def _keep_account(self, account: str, approved: Sequence[HedgeApproved]) -> list[str]:
        last = await self._read_set(account)
        shorts, ended, notes, given = await self._follow(approved, last)
        for short in given:
            word = f"{short.symbol} of position {short.position_id} is hedged no more"
            why = "the wallet that it was hedged for does not hold it"
            notes.append(await self._push(account, short.market, word, why, [short]))
        before, wanted, most = _sum(last.shorts), _sum(shorts), _sum(shorts, most=True)
        markets = dict.fromkeys((*before, *wanted))
        if not markets:
            await self._end(account, approved, last, ended)
            return notes
        off = any(is_off(before.get(at, ZERO), wanted.get(at, ZERO), most.get(at, ZERO)) for at in markets)
        if off or {each.plan_id for each in shorts} != {each.plan_id for each in last.shorts}:
            last = await self._write(account, shorts, last.ended)
        asked = {**dict.fromkeys(markets, ZERO), **_sum(last.shorts)}
        for again in (True, False):
            held = await self.shorts.set_shorts(account, asked, Millis(last.decided))
            missing = {at: asked[at] - state.held for at, state in held.items()}
            open_ = {at: left for at, left in missing.items() if abs(left) >= (held[at].lot or ZERO) and left}
            if not again or not any(held[at].over for at in open_):
                break
            last = await self._write(account, last.shorts, last.ended)  # its orders are over: they are sent anew
        for at, left in open_.items():
            names = [each for each in last.shorts if each.market == at]
            coin = names[0].symbol if names else at
            notes.append(await self._push(account, at, _describe_off(left, coin), held[at].why, names))
        if not open_:
            await self._end(account, approved, last, ended)
        return notes

    async def _end(self, account: str, approved: Sequence[HedgeApproved], last: HedgeSet, ended: Sequence[str]) -> None:
        """Hedges that are over are looked at no more; after the last of them the margin goes back."""
        if ended:
            over = (*last.ended, *ended)
            if {each.plan_id for each in approved}.issubset(over):
                await self.shorts.release(account)  # first: what is over is not looked at again
            await self._write(account, [each for each in last.shorts if each.plan_id not in over], over)

    async def _follow(
        self, approved: Sequence[HedgeApproved], last: HedgeSet
    ) -> tuple[list[Short], list[str], list[str], list[Short]]:
        """What each hedged position holds of its volatile token, which hedges are over, what could not be read, and
        which hedges are over because another wallet holds the position by now. While a plan changes a position its
        short stays, and so it does where the chain does not answer."""
        journal, known = await self.journal(), {each.plan_id: each for each in last.shorts}
        shorts, ended, notes, given = list[Short](), list[str](), list[str](), list[Short]()
        positions: dict[str, tuple[HedgeApproved, int]] = {}
        moving: set[tuple[str, int | None]] = set()
        for each in approved:
            over = await journal.latest(1, request_id=each.plan_id, kind=PlanOver.kind)
            if not over:
                if await journal.latest(1, request_id=each.plan_id, kind=PlanApplying.kind):
                    moving.add((each.chain, each.position_id))
                continue
            end = PlanOver.model_validate(dict(over[0].payload))
            position_id = end.new_position_id or each.position_id
            if end.state is PlanState.CONFIRMED and position_id is not None:
                positions[each.plan_id] = each, position_id
            elif each.plan_id not in last.ended:
                ended.append(each.plan_id)
        for plan_id, (each, position_id) in positions.items():
            if plan_id in last.ended:
                continue
            try:
                if (each.chain, position_id) in moving:
                    raise Unavailable("a plan is changing it")
                position = await self._read_position(each, position_id)
                wallet = await self._find_wallet(plan_id)
            except ZunoError as error:
                notes.append(f"the hedge of position {position_id} on {each.chain} stays as it is: {error}")
                shorts += [known[plan_id]] if plan_id in known else []
                continue
            is_held = position is not None and wallet in (None, position.owner.lower())
            amounts = (position.amount0, position.amount1) if position is not None and is_held else (0, 0)
            quantity = Decimal(amounts[each.side]).scaleb(-each.decimals)
            same = each.model_dump(include=set(Short.model_fields) - {"position_id", "quantity"}, by_alias=False)
            shorts.append(Short(**same, position_id=position_id, quantity=quantity))
            ended += [] if is_held else [plan_id]
            given += [] if is_held or position is None else [shorts[-1]]
        return shorts, ended, notes, given

    async def _find_wallet(self, plan_id: str) -> str | None:
        """Which the position is for; None where the journal does not say."""
        approved = await (await self.journal()).latest(1, request_id=plan_id, kind=PlanApproved.kind)
        return PlanApproved.model_validate(dict(approved[0].payload)).approval.wallet.lower() if approved else None

    async def _read_position(self, each: HedgeApproved, position_id: int) -> LpPosition | None:
        """Whoever holds it; None: there is no liquidity any more."""
        snapshot = await self.chain_of(each.chain).positions([position_id])
        if snapshot.missing and snapshot.missing[0].unread:
            raise Unavailable(snapshot.missing[0].reason)
        return next((position for position in snapshot.positions if position.liquidity), None)

    async def _push(self, account: str, market: str, word: str, why: str, shorts: Sequence[Short]) -> str:
        at, chains = self.now(), sorted({each.chain for each in shorts})
        where = f"{word} on {', '.join(chains) or account}"
        if self.outbox is not None:
            play = all(self.chain_of(name).info.testnet for name in chains)
            notice = Notice(
                kind=NoticeKind.PLAN,
                title=where,
                severity=Severity.CRITICAL,
                label=NoticeLabel.SYNTHETIC if play else NoticeLabel.LIVE,
                at=Seconds(at // 1_000),
                reason=why,
                reference=shorts[0].plan_id if shorts else "",
            )
            await self.outbox.append(notice, f"hedge:{account}:{market}:{at}")
        return f"{where}: {why}" if why else where

    async def _list_approved(self) -> list[HedgeApproved]:
        journal = await self.journal()
        entries = [entry async for entry in journal.entries(kind=HedgeApproved.kind)]
        return [HedgeApproved.model_validate(dict(entry.payload)) for entry in entries]

    async def _read_set(self, account: str) -> HedgeSet:
        found = await (await self.journal()).latest(1, request_id=name_of_set(account), kind=HedgeSet.kind)
        nothing = HedgeSet(account=account, decided=0, shorts=(), ended=())
        return HedgeSet.model_validate(dict(found[0].payload)) if found else nothing

    async def _write(self, account: str, shorts: Sequence[Short], ended: Sequence[str]) -> HedgeSet:
        decided = max(self.now(), (await self._read_set(account)).decided + 1)  # no two decisions share their orders
        record = HedgeSet(account=account, decided=decided, shorts=tuple(shorts), ended=tuple(ended))
        await (await self.journal()).append(
            kind=record.kind, author=_AUTHOR, payload=record, request_id=name_of_set(account)
        )
        return record


def name_of_set(account: str) -> str:
    """Under which an account's shorts are journaled, and its lock."""
    return f"hedges_{digest(account.encode())[:16]}"


def _describe_off(left: Decimal, coin: str) -> str:
    size = f"{abs(left).normalize():f} {coin}"
    return f"unhedged {size}" if left > 0 else f"{size} short too much"


def _sum(shorts: Sequence[Short | HedgeApproved], *, most: bool = False) -> dict[str, Decimal]:
    totals: dict[str, Decimal] = {}
    for short in shorts:
        counted = short.most if most or isinstance(short, HedgeApproved) else short.quantity
        totals[short.market] = totals.get(short.market, ZERO) + counted
    return totals

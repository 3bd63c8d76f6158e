"""Mandates of liquidity, as their owner grants, sees, revokes and pauses them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, get_args

from zuno.amm.model import LpPosition, PoolState, whole_price
from zuno.journal.port import Author, Journal
from zuno.kernel.arguments import parse_amount, parse_span
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.notify import NoticeLabel
from zuno.kernel.numbers_text import decimal_text
from zuno.kernel.text import base_and_quote, parse_units, plain_text
from zuno.kernel.units import Millis, Seconds, Wei
from zuno.kernel.view import IsoTime, View
from zuno.kernel.wire import derive
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.mandate_book import load_mandates
from zuno.lp.execute.mandates import append_mandate_event, count_worth
from zuno.lp.model.chains import chain_label, chain_named, native_coin
from zuno.lp.model.mandate import (
    ActsPaused,
    ExitInto,
    ExitTerms,
    LpMandate,
    MandatedAct,
    MandateGranted,
    MandateRevoked,
)
from zuno.lp.rules.mandate import LONGEST_MANDATE, check_grant, find_level, hash_mandate, mandate_bytes
from zuno.lp.service import arguments
from zuno.lp.service.execution import OpenContext
from zuno.present.document import Document, Section, Value, document, facts, lines, section
from zuno.present.values import good, id_, quiet, warn

Confirm = Callable[[str, str], bool]
"""Shows what is meant and asks for the word."""
OWNER: Final = Author("owner")
AS_IS: Final = (
    "As-is is no stop-loss: below its range a position holds nothing but the falling token, and that is what it pays."
)


@dataclass(frozen=True, slots=True)
class MandateRequest:
    positions: Sequence[str] = ()
    pools: Sequence[str] = ()
    chain: str | None = None
    wallet: str | None = None
    below: str | None = None
    above: str | None = None
    when_close_wins: bool = False
    to: str = "as-is"
    worst: str = "5"
    in_a_crash: bool = False
    acts: Sequence[MandatedAct] = ()
    """Beside the exit."""
    worth_per_day: str = "10000"
    gas_per_day: str | None = None  # a fifth of what one transaction may cost, and 0.02 coins at least
    exit_gas_per_day: str | None = None  # what one transaction of an exit may cost: an approval is several times dearer
    gap: str = "6h"
    lasts: str = "7d"


class LpMandateView(View):
    hash: str
    expires: IsoTime
    active: bool
    outdated: bool = False
    terms: tuple[str, ...]
    mandate: LpMandate

    def write(self) -> Section:
        over = "older than the backup of this home" if self.outdated else f"expired at {self.expires}"
        until = Value(f"until {self.expires}") if self.active else warn(f"{over}: nothing is done")
        head = facts(("mandate", id_(self.hash)), ("state", until))
        return section(f"{chain_label(self.mandate.chain)} · {self.mandate.chain}", head, lines(*self.terms))


class LpMandatesView(View):
    said: str
    paused: bool
    mandates: tuple[LpMandateView, ...]
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        paused = [warn("acts under mandates are paused; `zuno lp resume` lets them go on")] if self.paused else []
        return document(
            good(self.said) if self.mandates else quiet(self.said),
            *(mandate.write() for mandate in self.mandates),
            urgent=paused,
            notes=self.notes,
        )


@dataclass(frozen=True, slots=True)
class MandateDesk:
    """Granting needs a person at a terminal; revoking and pausing need nothing but the journal."""

    open_journal: Callable[[], Awaitable[Journal]]
    context_of: OpenContext
    default_chain: str
    now: Callable[[], Millis]
    gaps: Callable[[], Sequence[str]] = tuple
    """Why pushes do not reach the owner."""
    restored: int = 0  # the newest entry when this home was restored: mandates up to it do not count

    async def grant(self, asked: MandateRequest, confirm: Confirm, *, scripted: bool = False) -> LpMandatesView:
        """Once the word `grant` was typed. `scripted`: `Refused` where there is real money."""
        execution = await self.context_of(asked.chain or self.default_chain)
        if scripted and not execution.local:
            raise Refused(f"--yes is for sim, devnet and test networks; on {execution.info.name} type the word.")
        mandate = await self._build(execution, asked)
        before = (await load_mandates(execution.journal)).standing.get((mandate.chain, mandate.wallet))
        replaced = () if before is None else (f"It replaces {before.hash[:16]}….",)
        if not confirm("grant", "\n".join((*describe_terms(mandate), *replaced))):
            raise Refused("The word was not typed; nothing was granted.")
        check_grant(mandate, self.now())
        signature = execution.key.sign(mandate_bytes(mandate)).hex()
        granted = MandateGranted(mandate=mandate, hash=hash_mandate(mandate), signature=signature)
        await append_mandate_event(execution.journal, granted, OWNER)
        notes = ("it is acted on while `zuno monitor run` or `zuno serve` runs", *self.gaps())
        return await self.show(f"granted; every approval under it cites {granted.hash}", notes)

    async def show(self, done: str = "", notes: tuple[str, ...] = ()) -> LpMandatesView:
        """What stands, after what was `done`."""
        journal = await self.open_journal()
        book = await load_mandates(journal)
        shown = tuple(
            derive(
                LpMandateView,
                each,
                each.mandate,
                active=each.mandate.expires > self.now() and book.numbers[each.hash] > self.restored,
                outdated=book.numbers[each.hash] <= self.restored,
                terms=describe_terms(each.mandate),
            )
            for each in book.standing.values()
        )
        said = f"Mandates: {len(shown)}" if shown else "No mandate is granted: the monitor only watches."
        return LpMandatesView(said=done or said, paused=book.paused, mandates=shown, notes=notes)

    async def revoke(self, chain: str | None = None) -> LpMandatesView:
        """That of a chain, or every one: an act that is not signed yet is not begun any more."""
        journal = await self.open_journal()
        standing = (await load_mandates(journal)).standing
        wanted = None if chain is None else chain_named(chain)
        word = chain if wanted is None else wanted.name
        meant = [each for (name, _), each in standing.items() if word in (None, name)]
        if not meant:
            raise Refused("No mandate stands.")
        for each in meant:
            await append_mandate_event(journal, MandateRevoked(hash=each.hash), OWNER)
        names = ", ".join(each.hash for each in meant)
        return await self.show(f"revoked: {names}; nothing is begun under it any more")

    @staticmethod
    def guards_money(shown: LpMandatesView) -> bool:
        return any(each.active and chain_label(each.mandate.chain) is NoticeLabel.LIVE for each in shown.mandates)

    async def pause(self) -> LpMandatesView:
        """No act begins; one that is signed goes on."""
        await append_mandate_event(await self.open_journal(), ActsPaused(paused=True), OWNER)
        return await self.show("paused: no act begins under a mandate")

    async def resume(self, confirm: Confirm) -> LpMandatesView:
        """Where a mandate is for real money the word `resume` is typed."""
        before = await self.show()
        terms = "\n".join(line for each in before.mandates for line in each.terms)
        if self.guards_money(before) and not confirm("resume", f"The monitor acts again under what stands:\n{terms}"):
            raise Refused("The word was not typed; acts stay paused.")
        await append_mandate_event(await self.open_journal(), ActsPaused(paused=False), OWNER)
        return await self.show("acts under mandates go on")

    async def _build(self, execution: ExecutionContext, asked: MandateRequest) -> LpMandate:
        info, span = execution.info, parse_span(asked.lasts) * 1_000
        if span > LONGEST_MANDATE:
            raise Refused(f"A mandate lasts 30 days at most, not {plain_text(asked.lasts, 40)}.")
        await _check_wallet(execution, asked.wallet)
        positions = await _read_positions(execution, [arguments.position_id(text) for text in asked.positions])
        pools = [await execution.chain.pool(arguments.pool_id(text)) for text in asked.pools]
        named = (*(position.pool for position in positions), *pools)
        ends, pair = _read_exit(asked, named)
        rules, digits = execution.limits.gas or info.gas, info.native.token.decimals
        usual = (max(rules.whole // 5, 2 * 10**16), rules.exit_whole)
        named_caps = (asked.gas_per_day, asked.exit_gas_per_day)
        caps = [
            cap or decimal_text(Fraction(most, 10**digits), digits) for cap, most in zip(named_caps, usual, strict=True)
        ]
        try:
            gas, exit_gas = (Wei(parse_units(f"{parse_amount(cap):f}", digits)) for cap in caps)
        except ValueError:
            raise UsageError(f"{plain_text(' or '.join(caps), 80)} has too many decimals.") from None
        now = self.now()
        mandate = LpMandate(
            chain=info.name,
            chain_id=info.id,
            genesis=await execution.writer.genesis(),
            wallet=execution.wallet,
            positions=tuple(position.id for position in positions),
            pools=tuple(dict.fromkeys(pool.id for pool in pools)),
            pair=pair,
            acts=tuple(dict.fromkeys((*([] if ends is None else [MandatedAct.EXIT]), *asked.acts))),
            exit=ends,
            worth_usd_per_day=parse_amount(asked.worth_per_day),
            gas_per_day=gas,
            exit_gas_per_day=None if ends is None else exit_gas,
            least_gap=Seconds(max(60, parse_span(asked.gap))),
            granted=now,
            expires=Millis(now + span),
        )
        check_grant(mandate, now)
        for pool in named:
            if find_level(mandate, pool) is not None:
                price = decimal_text(whole_price(pool.sqrt_price_x96, pool.token0, pool.token1), 8)
                raise Refused(f"The price is {price}, beyond that level already: `zuno lp close` leaves now.")
        if {MandatedAct.EXIT, MandatedAct.REBALANCE} & set(mandate.acts):
            for position in positions:
                worth = await count_worth(execution, position)
                if worth is None or worth > Fraction(mandate.worth_usd_per_day):
                    told = "an unknown sum" if worth is None else f"${float(worth):,.2f}"
                    raise Refused(
                        f"Position {position.id} is worth {told}, and at most ${mandate.worth_usd_per_day:,.2f} may be "
                        f"moved a day (--worth-per-day): it could never be."
                    )
        return mandate


async def _check_wallet(execution: ExecutionContext, named: str | None) -> None:
    wallet = execution.wallet
    if named is not None and arguments.wallet_address(named) != wallet:
        raise Refused(f"The wallet that acts on {execution.info.name} is {wallet}; no other gets a mandate here.")
    if execution.signer.watch_only or await execution.writer.is_contract(wallet):
        raise Refused(
            f"{wallet} is a Safe or is signed for elsewhere: nothing here could act for it, so it gets no mandate."
        )


async def _read_positions(execution: ExecutionContext, ids: Sequence[int]) -> Sequence[LpPosition]:
    if not ids:
        return ()
    seen = await execution.chain.positions(ids)
    for missing in seen.missing:
        raise Refused(f"Position {missing.id} could not be read: {missing.reason}.")
    for position in seen.positions:
        if position.owner != execution.wallet:
            raise Refused(f"Position {position.id} belongs to {position.owner}, not to {execution.wallet}.")
    return seen.positions


def describe_terms(mandate: LpMandate) -> tuple[str, ...]:
    """What a mandate allows, for its owner to read before it is granted and afterwards."""
    ends, coin = mandate.exit, native_coin(mandate.chain)
    about = [f"position {each}" for each in mandate.positions]
    about += [f"every position in pool {each}" for each in mandate.pools]
    told = [
        f"The monitor may act by itself for {', '.join(about)} of {mandate.wallet} on {mandate.chain} until "
        f"{iso(mandate.expires)}."
    ]
    if ends is not None:
        levels = [(side, level) for side, level in (("below", ends.below), ("above", ends.above)) if level is not None]
        when = [f"{side} {level:f} {ends.unit}" for side, level in levels]
        when += ["when close wins the debate"] if ends.when_close_wins else []
        told.append(f"Exit {' or '.join(when)}, at most {ends.worst_percent} % beyond that price. Not guaranteed.")
        told.append(AS_IS if ends.to == "as-is" else f"What it pays is swapped into {ends.to} of its pool.")
        told += ["In a crash: also while the reference is up to 5 % off."] if ends.in_a_crash else []
    rest = [act for act in mandate.acts if act is not MandatedAct.EXIT]
    told += [f"{', '.join(rest).capitalize()} where the debate wants it."] if rest else []
    told += ["A position that is hedged stays so where it is rebalanced."] if MandatedAct.HEDGE in rest else []
    own = mandate.exit_gas_per_day
    apart = "" if own is None else f" (of exits {coin.amount_text(own)})"
    told.append(
        f"At most ${mandate.worth_usd_per_day:,f} moved and {coin.amount_text(mandate.gas_per_day)}{apart} of gas a "
        f"day, {mandate.least_gap // 60} min between two acts; an exit at a price waits for none."
    )
    return tuple(told)


def _read_exit(asked: MandateRequest, pools: Sequence[PoolState]) -> tuple[ExitTerms | None, tuple[str, str] | None]:
    """When it exits, and the pair whose price its levels are."""
    below, above = (None if text is None else parse_amount(text) for text in (asked.below, asked.above))
    into = next((word for word in get_args(ExitInto) if word == asked.to), None)
    worst = parse_amount(asked.worst.strip().removesuffix("%"))
    if into is None or worst >= 100:
        raise UsageError("An exit ends --to as-is, token0 or token1, at a --worst-price of under 100 % beyond.")
    if not pools:
        raise UsageError("For what? Give --position or --pool; `zuno lp positions` and `zuno lp pools` list them.")
    ends = ExitTerms(
        below=below,
        above=above,
        when_close_wins=asked.when_close_wins,
        to=into,
        worst_percent=worst,
        in_a_crash=asked.in_a_crash,
    )
    if below is None and above is None:
        if not asked.when_close_wins and (into != "as-is" or asked.in_a_crash):
            raise UsageError("Exit when? Give --exit-below, --exit-above or --exit-when-close-wins.")
        return ends if asked.when_close_wins else None, None
    pool, pairs = pools[0], {(pool.key.currency0, pool.key.currency1) for pool in pools}
    if len(pairs) > 1:
        raise Refused("A level is a price of one pair; grant it for positions and pools of that pair alone.")
    base, quote = base_and_quote(pool.token0, pool.token1)
    unit = f"{quote.display_name} per {base.display_name}"
    return ends.model_copy(update={"unit": unit}), pairs.pop()

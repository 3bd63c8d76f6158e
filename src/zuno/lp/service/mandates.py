"""Mandates of liquidity, as their owner grants, sees, revokes and pauses them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Final, cast, get_args

from zuno.amm.model import LpPosition, PoolState, whole_price
from zuno.journal.port import Author, Journal
from zuno.kernel.arguments import parse_amount, parse_span
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.numbers_text import decimal_text, short_text
from zuno.kernel.text import base_and_quote, format_units, parse_units, plain_text
from zuno.kernel.units import Millis, Wei
from zuno.kernel.view import IsoTime, View
from zuno.kernel.wire import derive
from zuno.lp.execute.checks import usd_value
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.mandates import append_mandate_event, load_mandates
from zuno.lp.model.chains import native_coin
from zuno.lp.model.mandate import (
    ActsPaused,
    ExitInto,
    ExitTerms,
    LpMandate,
    MandatedAct,
    MandateGranted,
    MandateRevoked,
)
from zuno.lp.model.plan import Flow
from zuno.lp.plan.inventory import burn_proceeds
from zuno.lp.rules.mandate import LONGEST_MANDATE, check_grant, find_level, hash_mandate, mandate_bytes
from zuno.lp.service import arguments
from zuno.lp.service.execution import OpenContext
from zuno.lp.watch.alerts import chain_label
from zuno.present.document import Document, Section, Value, document, facts, lines, section
from zuno.present.values import good, id_, quiet, warn

Confirm = Callable[[str, str], bool]
"""Shows what is meant and asks for the word."""
OWNER: Final = Author("owner")
AS_IS: Final = (
    "as-is is no stop-loss: below its range a position holds nothing but the falling token, and that is what an exit "
    "pays"
)


@dataclass(frozen=True, slots=True)
class MandateRequest:
    """A mandate as it was typed."""

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
    gas_per_day: str = "0.02"
    gap: str = "6h"
    lasts: str = "7d"


class LpMandateView(View):
    hash: str
    chain: str
    wallet: str
    positions: tuple[int, ...]
    pools: tuple[str, ...]
    acts: tuple[str, ...]
    exit: ExitTerms | None
    worth_usd_per_day: str
    gas_per_day: str
    """In wei."""
    least_gap: int
    granted: IsoTime
    expires: IsoTime
    active: bool
    terms: tuple[str, ...]
    LEFT_OUT: ClassVar = frozenset(
        {"positions", "pools", "acts", "exit", "worth_usd_per_day", "gas_per_day", "least_gap"}
    )
    """The terms tell them."""

    def write(self) -> Section:
        until = Value(f"until {self.expires}") if self.active else warn(f"expired at {self.expires}: nothing is done")
        head = facts(
            ("mandate", id_(self.hash)), ("wallet", id_(self.wallet)), ("granted", self.granted), ("state", until)
        )
        return section(f"{chain_label(self.chain)} · {self.chain}", head, lines(*self.terms))


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
        shown = await self.show()
        runs = "it is acted on while `zuno monitor run` or `zuno serve` runs"
        return shown.model_copy(
            update={
                "said": f"granted; every approval under it cites {granted.hash}",
                "notes": (*shown.notes, runs, *self.gaps()),
            }
        )

    async def show(self) -> LpMandatesView:
        journal = await self.open_journal()
        book = await load_mandates(journal)
        shown = tuple(self._view(each) for each in book.standing.values())
        some = f"{len(shown)} mandate{'s' * (len(shown) != 1)}"
        said = f"{some}" if shown else "No mandate is granted: the monitor only watches."
        return LpMandatesView(said=said, paused=book.paused, mandates=shown)

    async def revoke(self, chain: str | None = None) -> LpMandatesView:
        """That of a chain, or every one: an act that is not signed yet is not begun any more."""
        journal = await self.open_journal()
        standing = (await load_mandates(journal)).standing
        meant = [each for (name, _), each in standing.items() if chain in (None, name)]
        if not meant:
            raise Refused("No mandate stands.")
        for each in meant:
            await append_mandate_event(journal, MandateRevoked(hash=each.hash), OWNER)
        names = ", ".join(each.hash for each in meant)
        return (await self.show()).model_copy(update={"said": f"revoked: {names}; nothing is begun under it any more"})

    async def pause(self) -> LpMandatesView:
        """No act begins; one that is signed goes on."""
        await append_mandate_event(await self.open_journal(), ActsPaused(paused=True), OWNER)
        return (await self.show()).model_copy(update={"said": "paused: no act begins under a mandate"})

    async def resume(self, confirm: Confirm) -> LpMandatesView:
        """Where a mandate is for real money the word `resume` is typed."""
        before = await self.show()
        real = [each for each in before.mandates if each.active and chain_label(each.chain) == "LIVE"]
        terms = "\n".join(line for each in real for line in each.terms)
        if real and not confirm("resume", f"The monitor acts again under what stands:\n{terms}"):
            raise Refused("The word was not typed; acts stay paused.")
        await append_mandate_event(await self.open_journal(), ActsPaused(paused=False), OWNER)
        return (await self.show()).model_copy(update={"said": "acts under mandates go on"})

    def _view(self, granted: MandateGranted) -> LpMandateView:
        mandate = granted.mandate
        return derive(
            LpMandateView,
            mandate,
            hash=granted.hash,
            worth_usd_per_day=f"{mandate.worth_usd_per_day:f}",
            gas_per_day=str(mandate.gas_per_day),
            active=mandate.expires > self.now(),
            terms=describe_terms(mandate),
        )

    async def _build(self, execution: ExecutionContext, asked: MandateRequest) -> LpMandate:
        info, span = execution.info, parse_span(asked.lasts) * 1_000
        if span > LONGEST_MANDATE:
            raise Refused(f"A mandate lasts 30 days at most, not {plain_text(asked.lasts, 40)}.")
        await self._check_wallet(execution, asked.wallet)
        positions = await self._read_positions(execution, [arguments.position_id(text) for text in asked.positions])
        pools = [await execution.chain.pool(arguments.pool_id(text)) for text in asked.pools]
        named = (*(position.pool for position in positions), *pools)
        ends, pair = _read_exit(asked, named)
        try:
            gas = Wei(parse_units(f"{parse_amount(asked.gas_per_day):f}", info.native.token.decimals))
        except ValueError:
            raise UsageError(f"{plain_text(asked.gas_per_day, 40)} has too many decimals.") from None
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
            least_gap=parse_span(asked.gap) or _refuse_gap(),
            granted=now,
            expires=Millis(now + span),
        )
        check_grant(mandate, now)
        if {MandatedAct.EXIT, MandatedAct.REBALANCE} & set(mandate.acts):
            for position in positions:
                await _check_worth(execution, position, mandate.worth_usd_per_day)
        return mandate

    async def _check_wallet(self, execution: ExecutionContext, named: str | None) -> None:
        wallet = execution.wallet
        if named is not None and arguments.wallet_address(named) != wallet:
            raise Refused(f"The wallet that acts on {execution.info.name} is {wallet}; no other gets a mandate here.")
        if execution.signer.watch_only or await execution.writer.is_contract(wallet):
            raise Refused(
                f"{wallet} is a Safe or is signed for elsewhere: nothing here could act for it, so it gets no mandate."
            )

    async def _read_positions(self, execution: ExecutionContext, ids: Sequence[int]) -> Sequence[LpPosition]:
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
    ends, gas = mandate.exit, format_units(mandate.gas_per_day, 18)
    coin = native_coin(mandate.chain).symbol
    about = [f"position {each}" for each in mandate.positions] + [
        f"every position in pool {each}" for each in mandate.pools
    ]
    told = [
        f"The monitor may act by itself for {', '.join(about)} of {mandate.wallet} on {mandate.chain} until "
        f"{iso(mandate.expires)}."
    ]
    if ends is not None:
        when = [
            f"{side} {level:f} {ends.unit}" for side, level in (("below", ends.below), ("above", ends.above)) if level
        ]
        when += ["when close wins the debate"] if ends.when_close_wins else []
        told.append(f"Exit {' or '.join(when)}, {_describe_into(ends)} Not guaranteed.")
        if ends.to == "as-is":
            told.append(f"{AS_IS[0].upper()}{AS_IS[1:]}.")
        if ends.in_a_crash:
            told.append("In a crash: also while the reference is up to 5 % off.")
    rest = [act for act in mandate.acts if act is not MandatedAct.EXIT]
    if rest:
        told.append(f"{', '.join(rest).capitalize()} where the debate wants it.")
    if MandatedAct.HEDGE in rest:
        told.append("Hedging is on record only: nothing hedges by this mandate alone.")
    told.append(
        f"At most ${mandate.worth_usd_per_day:,f} moved and {gas} {coin} of gas in 24 hours, "
        f"{mandate.least_gap // 60} min between two acts; an exit at a price waits for none."
    )
    return tuple(told)


def _describe_into(ends: ExitTerms) -> str:
    if ends.to == "as-is":
        return f"as-is, at most {ends.worst_percent} % beyond the level."
    worst = [
        f"{short_text(decimal_text(Fraction(level) * (1 + sign * Fraction(ends.worst_percent) / 100), 8))} {ends.unit}"
        for level, sign in ((ends.below, -1), (ends.above, -1))
        if level is not None
    ]
    at = f" ({' or '.join(worst)})" if worst else ""
    return f"swapped into {ends.to} of its pool at most {ends.worst_percent} % worse{at}."


def _read_exit(asked: MandateRequest, pools: Sequence[PoolState]) -> tuple[ExitTerms | None, tuple[str, str] | None]:
    levels = {
        name: None if text is None else parse_amount(text)
        for name, text in (("below", asked.below), ("above", asked.above))
    }
    if asked.to not in get_args(ExitInto):
        raise UsageError(f"{plain_text(asked.to, 40)!r} is nothing to exit into; write as-is, token0 or token1.")
    if not any(levels.values()) and not asked.when_close_wins:
        if asked.to != "as-is" or asked.in_a_crash:
            raise UsageError("Exit when? Give --exit-below, --exit-above or --exit-when-close-wins.")
        return None, None
    worst = parse_amount(asked.worst.strip().removesuffix("%"))
    if worst >= 100:
        raise UsageError(f"A worst price of {worst} % beyond is no price.")
    if not any(levels.values()):
        return ExitTerms(when_close_wins=True, to=cast(ExitInto, asked.to), worst_percent=worst), None
    pairs = {(pool.key.currency0, pool.key.currency1): pool for pool in pools}
    if len(pairs) > 1:
        raise Refused("A level is a price of one pair; grant it for positions and pools of that pair alone.")
    ((pair, pool),) = pairs.items() or [_refuse_nothing()]
    base, quote = base_and_quote(pool.token0, pool.token1)
    ends = ExitTerms(
        **levels,
        when_close_wins=asked.when_close_wins,
        to=cast(ExitInto, asked.to),
        worst_percent=worst,
        in_a_crash=asked.in_a_crash,
        unit=f"{quote.display_name} per {base.display_name}",
    )
    if any((level := find_level(ends, each)) is not None for each in pools):
        price = decimal_text(whole_price(pool.sqrt_price_x96, pool.token0, pool.token1), 8)
        raise Refused(f"The price is {price} {ends.unit}, beyond {level} already: `zuno lp close` leaves now.")
    return ends, pair


def _refuse_nothing() -> tuple[tuple[str, str], PoolState]:
    raise UsageError("For what? Give --position or --pool; `zuno lp positions` and `zuno lp pools` list them.")


def _refuse_gap() -> int:
    raise UsageError("Between two acts lies a time above zero: --gap 6h.")


async def _check_worth(execution: ExecutionContext, position: LpPosition, cap: Decimal) -> None:
    """`Refused` for a cap under which a position could never be moved."""
    total, key = Fraction(0), position.pool.key
    for currency, amount in zip((key.currency0, key.currency1), burn_proceeds(position), strict=True):
        usd = await usd_value(execution, position.pool, Flow(currency, amount)) if amount else Fraction(0)
        if usd is None:
            raise Refused(f"Nobody can say what position {position.id} is worth in dollars, so no cap can be held.")
        total += usd
    if total > Fraction(cap):
        raise Refused(
            f"Position {position.id} is worth ${float(total):,.2f}, and at most ${cap:,.2f} may be moved a day: it "
            f"could never be. Raise --worth-per-day."
        )

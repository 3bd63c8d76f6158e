"""What positions made, and what one would be worth at another price."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field

from zuno.kernel.numbers_text import short_text, time_text
from zuno.kernel.text import base_and_quote
from zuno.kernel.view import View
from zuno.lp.model.chains import chain_label
from zuno.lp.service import views
from zuno.present.document import Document, Mark, Row, Table, Tone, Value, document, facts, lines, row, section, table
from zuno.present.values import amount, bad, foreign, good, id_, percent, quiet, when


class ClosedPositionView(View):
    """A position that is gone; money in whole tokens of `unit`, null where its past could not be read."""

    id: str
    became: str
    """`rebalanced`, `closed` or `transferred`; `gone` where neither chain nor journal tells."""
    new_position_id: str | None
    plan_id: str | None
    """The plan of this home that did it."""
    pool: views.PoolKeyView | None
    position_ids: tuple[str, ...]
    """It and those it was rebalanced from, oldest first: the figures are of all of them."""
    opened_at: int | None
    closed_at: int | None
    unit: str | None
    result: str | None
    fees: str | None
    divergence_loss: str | None
    gas: str | None
    swap_cost: str | None
    lvr: str | None
    why: str
    """Why figures are missing."""

    @property
    def cells(self) -> tuple[str | Value, ...]:
        unit = "?" if self.pool is None or self.unit is None else self.pool.trust_unit(self.unit)
        return (
            id_(self.id),
            quiet("?") if self.pool is None else self.pool.name,
            self.became if self.new_position_id is None else f"{self.became} into {self.new_position_id}",
            quiet("?") if self.result is None else replace(amount(self.result, self.unit or ""), unit=unit),
            views.bare_amount(self.fees, unit),
            views.bare_amount(self.lvr, unit),
            *("" if at is None else time_text(at).split(" ")[0] for at in (self.opened_at, self.closed_at)),
        )


class ClosedPositionsView(views.ChainView):
    wallet: str
    complete: bool
    note: str
    positions: tuple[ClosedPositionView, ...]
    """The newest first."""

    def to_document(self) -> Document:
        known = self.positions
        columns = ("position", "pool", "became", "result", "fees", "LVR", "from", "to")
        cells = (position.cells for position in known)
        lineages = (
            f"{line.id} with those it came from: {', '.join(line.position_ids)}"
            for line in known
            if line.position_ids[1:]
        )
        return document(
            f"Positions that are gone: {len(known) or 'none' if self.complete else f'{len(known)} so far'}",
            table(columns, cells, spare=("from", "to", "LVR", "fees")) if known else None,
            lines(*lineages, mark=Mark.NOTE),
            lines(*(foreign(f"{line.id}: {line.why}") for line in known if line.why), mark=Mark.NOTE),
            lines(*views.warn_unverified(line.pool for line in known if line.pool is not None), mark=Mark.WARNING),
            context=views.describe_place(self.chain, self.block),
            notes=[foreign(self.note)],
            as_of=views.format_moment(self.timestamp),
        )


HedgeTerm = Annotated[str | None, Field(exclude_if=lambda term: term is None)]


class ExactTermsView(View):
    """The identity's terms in base units, unrounded: whole numbers or fractions ("7/3") that anyone can add."""

    nav_start: str
    nav_end: str
    flows: str
    external: str
    fees: str
    price_effect: str
    divergence_loss: str
    gas: str
    swap_cost: str
    residual: str
    hedge: HedgeTerm = None
    funding: HedgeTerm = None


class TermsView(View):
    """The identity in one numeraire, as decimal strings of whole tokens, rounded to be read; `exact` is not."""

    token: str
    nav_start: str
    nav_end: str
    flows: str
    external: str
    """The part of the flows that others paid in, or (negative) took."""
    result: str
    fees: str
    price_effect: str
    divergence_loss: str
    gas: str
    swap_cost: str
    residual: str
    lvr: str
    hedge: HedgeTerm = None
    """What the short perpetual made before funding, its fees taken off; absent where it was never hedged."""
    funding: HedgeTerm = None
    exact: ExactTermsView

    def cell(self, field: str, unit: str) -> Value:
        """A term as it counts in the result."""
        raw: str = getattr(self, field)
        shown = str(-Decimal(raw)) if field in _COSTS and Decimal(raw) else raw
        value = views.bare_amount(shown, unit)
        if field in _WORTHS or not value.number:
            return value if value.number else value.with_tone(Tone.QUIET)
        return value.with_tone(Tone.GOOD if value.number > 0 else Tone.BAD)


_COSTS: Final = frozenset({"divergence_loss", "gas", "swap_cost"})
_WORTHS: Final = frozenset({"nav_start", "nav_end", "flows", "lvr"})
_SUM: Final = (
    (Value("worth at the start", short="worth at start"), "nav_start"),
    (Value("put in (net, gas included)", short="put in (net)"), "flows"),
    (Value("of that by others"), "external"),
    (Value("worth at the end", short="worth at end"), "nav_end"),
    (Value("result"), "result"),
)
_PARTS: Final = (
    (Value("fees"), "fees"),
    (Value("price effect"), "price_effect"),
    (Value("divergence loss"), "divergence_loss"),
    (Value("gas"), "gas"),
    (Value("swap cost"), "swap_cost"),
    (Value("hedge, its fees off", short="hedge"), "hedge"),
    (Value("funding"), "funding"),
    (Value("unexplained"), "residual"),
    (Value("LVR, the benchmark for fees", short="LVR"), "lvr"),
)


class PnlView(View):
    id: str
    chain: str
    pool: views.PoolKeyView
    position_ids: tuple[str, ...]
    """This position and those it was rebalanced from, oldest first."""
    from_block: int
    from_timestamp: int
    to_block: int
    to_timestamp: int
    open: bool
    fees0: str
    fees1: str
    fees0_human: str
    fees1_human: str
    gas_wei: str
    gas_valued: bool
    in_token0: TermsView
    in_token1: TermsView
    lineage: str | None
    """Who says which positions belong to it: `journal`, or `chain guess` for those of other homes; null where it is
    alone and no plan of this home minted it."""
    exact: bool
    """True when the residual is zero in both numeraires and nothing in it was merely computed or guessed."""
    computed: tuple[str, ...]
    """What could not be measured: a residual of zero proves nothing about these."""
    notes: tuple[str, ...]

    def to_document(self) -> Document:
        pool = self.pool
        second_is_quote = base_and_quote(pool.currency0, pool.currency1)[1] == pool.currency1
        sides = [
            (self.in_token0, f"in {self.in_token0.token}" if pool.currency0.verified else "in token 0"),
            (self.in_token1, f"in {self.in_token1.token}" if pool.currency1.verified else "in token 1"),
        ]
        (terms, in_quote), (others, in_base) = reversed(sides) if second_is_quote else sides
        result = Decimal(terms.result)
        made = f"{'lost' if result < 0 else 'made'} {short_text(str(abs(result)))} {terms.token}"
        fees0, fees1 = pool.amounts(self.fees0_human, self.fees1_human)
        quote, base = pool.trust_unit(terms.token), pool.trust_unit(others.token)
        alone = terms.external == others.external == "0"

        def build(labels: Iterable[tuple[Value, str]]) -> Table:
            rows = (
                row(label, terms.cell(field, quote), others.cell(field, base), tone=_TERM_TONES.get(field, Tone.PLAIN))
                for label, field in labels
                if (field != "external" or not alone) and getattr(terms, field) is not None
            )
            return table(("", in_quote, in_base), rows, spare=(in_base,))

        proof = good("The terms add up to the result: exact to the last wei.")
        if not self.exact:
            proof = quiet("The terms add up, but not everything in them was measured or is on record.")
        return document(
            pool.sentence(f"Position {self.id} {made}", terms.cell("result", "").tone),
            facts(
                ("position", id_(self.id)),
                ("pool", pool.name),
                ("when", f"{when(self.from_timestamp).text} – {when(self.to_timestamp).text}"),
                ("counted with", f"{', '.join(self.position_ids)} ({self.lineage or 'alone'})")
                if self.position_ids[1:]
                else None,
                ("fees earned", fees0),
                ("fees earned", fees1),
            ),
            build(_SUM),
            section("Where the money went", build(_PARTS), lines(proof)),
            lines(*(foreign(f"computed: {figure}") for figure in self.computed), mark=Mark.NOTE),
            lines(*views.warn_unverified([pool]), mark=Mark.WARNING),
            context=f"{chain_label(self.chain)} · {self.chain}, {'open' if self.open else 'closed'}",
            notes=map(foreign, self.notes),
            as_of=views.format_moment(self.to_timestamp),
        )


_TERM_TONES: Final = {"result": Tone.STRONG}


class HodlView(View):
    """A position against tokens that were held instead; positive is a loss. In whole quote tokens."""

    hodl_worth: str
    divergence_loss: str

    def build_loss(self, pool: views.PoolKeyView, unit: str) -> Value:
        loss, held = pool.amount_of(self.divergence_loss, unit), Decimal(self.hodl_worth)
        share = f" ({Decimal(self.divergence_loss) / held * 100:.2f} %)" if held else ""
        return replace(loss, text=f"{loss.text}{share}")


class PriceCaseView(HodlView):
    """A position at one price; `worth` is without uncollected fees."""

    percent: str
    """The change from today's price."""
    price: str
    amount0: str
    amount1: str
    amount0_human: str
    amount1_human: str
    worth: str
    fees_worth: str
    """Today's uncollected fees at that price."""
    in_range: bool
    since_mint: HodlView | None
    """Against the tokens put in at the mint; None where the mint is not on record."""

    @property
    def change(self) -> Value:
        return percent(self.percent, len(self.percent.partition(".")[2]), signed=Decimal(self.percent) != 0)

    def build_row(self, pool: views.PoolKeyView, unit: str) -> Row:
        since, unit = None if self.since_mint is None else self.since_mint.divergence_loss, pool.trust_unit(unit)
        return row(
            self.change,
            views.bare_amount(self.price, unit),
            pool.pair(self.amount0_human, self.amount1_human),
            views.bare_amount(self.worth, unit),
            views.bare_amount(self.divergence_loss, unit),
            views.bare_amount(since, unit),
            good("in") if self.in_range else bad("out"),
            tone=Tone.PLAIN if Decimal(self.percent) else Tone.STRONG,
        )


class WhatIfView(PriceCaseView, views.ChainView):
    """A position at a price that is not today's."""

    id: str
    pool: views.PoolKeyView
    price_now: str
    price_lower: str
    price_upper: str
    price_unit: str
    unit: str
    """The quote token that everything is valued in."""
    deposited0_human: str | None
    deposited1_human: str | None
    table: tuple[PriceCaseView, ...]
    """The same from -50 % to +50 %."""
    notes: tuple[str, ...]

    def to_document(self) -> Document:
        pool, unit, since = self.pool, self.unit, self.since_mint
        state = good("in range") if self.in_range else bad("out of range")
        held0, held1 = pool.amounts(self.amount0_human, self.amount1_human)
        columns = ("change", "price", "holds", "worth", "loss", "since mint", "range")
        about = f"worth and loss against holding, in {unit}, without fees; a positive loss is a loss"
        worth = pool.amount_of(self.worth, unit)
        at = f"Position {self.id} at {short_text(self.price)} ({self.change.text})"
        return document(
            pool.sentence(f"{at}: {state.text}, worth {worth.text}", state.tone),
            views.draw_edges(self.price_lower, self.price_upper, self.price),
            facts(
                ("position", id_(self.id)),
                ("pool", pool.name),
                ("change", self.change),
                ("price", pool.price_of(self.price, self.price_unit)),
                ("price now", pool.price_of(self.price_now, self.price_unit)),
                ("range", f"{short_text(self.price_lower)} – {short_text(self.price_upper)}"),
                ("state", state),
                ("holds", held0),
                ("holds", held1),
                ("worth", worth),
                ("uncollected fees", pool.amount_of(self.fees_worth, unit)),
                ("loss against holding", self.build_loss(pool, unit)),
                ("worth if held", pool.amount_of(self.hodl_worth, unit)),
                None if since is None else ("loss since mint", since.build_loss(pool, unit)),
                None if since is None else ("what was put in is worth", pool.amount_of(since.hodl_worth, unit)),
            ),
            lines(pool.sentence(about, Tone.QUIET)),
            table(columns, (case.build_row(pool, unit) for case in self.table), spare=("price", "holds", "since mint")),
            lines(*views.warn_unverified([pool]), mark=Mark.WARNING),
            context=views.describe_place(self.chain, self.block),
            notes=map(foreign, self.notes),
            as_of=views.format_moment(self.timestamp),
        )

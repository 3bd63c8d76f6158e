"""What an owner asks of a position first: whether it earns, what it has made, and what to do next."""

from decimal import Decimal
from typing import Final, Literal

from pydantic import Field

from zuno.kernel.numbers_text import short_text, time_text
from zuno.kernel.view import ForeignText, View
from zuno.lp.model.plan import PlanState
from zuno.present.document import Act, Tone, Value
from zuno.present.values import foreign, percent, quiet, share

YIELD_DAYS: Final = 7
"""A yield is of so many days or more."""
_HOUR: Final = 3_600
_STEPS: Final = {
    PlanState.APPROVED: ("waits to be applied", "Apply", "plan apply"),
    PlanState.APPLYING: ("is being applied", "Status:", "plan status"),
    PlanState.HANDED_OUT: ("waits for its signer", "Status:", "plan status"),
    PlanState.PARTIAL: ("is half done: the tokens rest in the wallet", "Status:", "plan status"),
}
_FIRST_STEP: Final = ("waits for approval", "Approve", "plan approve")


class PlannedView(View):
    """A plan for a position that its owner can still approve or apply, or that is under way."""

    plan_id: str
    choice: str
    state: PlanState
    price_lower: str | None = None
    price_upper: str | None = None
    by_owner: bool = False

    @property
    def waits(self) -> bool:
        return self.choice != "hold"

    def describe(self) -> str:
        span = " it" if self.choice == "close" else ""
        if self.price_lower is not None and self.price_upper is not None:
            span = f" to {short_text(self.price_lower)}–{short_text(self.price_upper)}"
        return f"{'Your plan is to' if self.by_owner else 'The desk would'} {self.choice}{span} ({self.plan_id})."

    def warn(self, position: str) -> str:
        return f"{self.plan_id}, to {self.choice} position {position}, {_STEPS.get(self.state, _FIRST_STEP)[0]}"

    def act(self, position: str) -> Act:
        if not self.waits:
            return Act(f"Why hold {position}", f"why {self.plan_id}")
        _, label, command = _STEPS.get(self.state, _FIRST_STEP)
        return Act(f"{label} {self.choice} of {position}", f"{command} {self.plan_id}")


class SummaryView(View):
    """Money in whole tokens of `unit`, fees at today's price; null where it is not known, and `why` says so."""

    state: Literal["in_range", "out_of_range", "empty"]
    out_for_hours: float | None = None
    to_lower_percent: str
    """The change of the price that takes it to that edge."""
    to_upper_percent: str
    unit: str
    opened_at: int | None = None
    """Of the first of `position_ids`; result and fees are of all of them."""
    result: str | None = None
    result_share: float | None = None
    """Of the most that was in it at a time."""
    against_holding: str | None = None
    """What it is ahead of the tokens put in and held, gas and hedge counted."""
    uncollected: str
    fees: str | None = None
    fees_collected: str | None = None
    fees7d: str | None = Field(None, alias="fees7d")
    fees7d_collected: str | None = Field(None, alias="fees7dCollected")
    fee_apr: float | None = None
    """Of seven days or more; null where it is younger."""
    lvr: str | None = None
    lvr7d: str | None = Field(None, alias="lvr7d")
    net_apr: float | None = None
    """After LVR."""
    young: bool
    """It is too young for a yield."""
    position_ids: tuple[str, ...]
    """This position and those it was rebalanced from, oldest first."""
    guessed: bool = False
    """Which those are is an estimate by the chain, not on record."""
    plan: PlannedView | None = None
    why: ForeignText
    """Why figures are missing."""

    @property
    def edges(self) -> tuple[Value, Value]:
        """How far the price may go to either side."""
        lower, upper = (_describe_edge(text) for text in (self.to_lower_percent, self.to_upper_percent))
        return lower, upper

    @property
    def yield_of_fees(self) -> Value:
        return quiet("too young for a yield") if self.young else share(self.fee_apr)

    def open(self, position: str, tone: Tone, *, ours: bool) -> Value:
        """The sentence under the position's name; `ours`: its tokens are verified."""
        told = f"{position}: {self.describe()}" if position else self.describe()
        return Value(told, tone) if ours and self.result is not None else foreign(told, tone)

    def describe(self) -> str:
        """One or two sentences: the state and the result; then what the desk would do."""
        lower, upper = (edge.text for edge in self.edges)
        out = f" for {_describe_hours(self.out_for_hours)}" if self.out_for_hours else ""
        state = {
            "in_range": f"In range, {lower} to the lower edge and {upper} to the upper",
            "out_of_range": f"Out of range{out}, earning nothing",
            "empty": "Empty",
        }[self.state]
        planned = "" if self.plan is None else self.plan.describe()
        return " ".join(filter(None, (f"{state}.", self._describe_result(), planned)))

    def _describe_result(self) -> str:
        if self.result is None or self.against_holding is None or self.opened_at is None:
            return f"What it made is not known: {self.why}."
        result, ahead = Decimal(self.result), Decimal(self.against_holding)
        part = "" if self.result_share is None else f" ({share(self.result_share, signed=True).text})"
        return (
            f"{'Down' if result < 0 else 'Up'} {short_text(str(abs(result)))} {self.unit}{part}"
            f" since {time_text(self.opened_at).partition(' ')[0]}, {short_text(str(abs(ahead)))} {self.unit}"
            f" {'worse' if ahead < 0 else 'better'} than holding."
        )

    @property
    def lineage(self) -> str:
        """Empty where it is alone."""
        how = "guessed from the chain" if self.guessed else "journal"
        return f"{', '.join(self.position_ids)} ({how})" if self.position_ids[1:] else ""

    def act(self, position: str, chain: str) -> Act:
        if self.plan is not None:
            return self.plan.act(position)
        return Act(f"Recommend {position}", f"lp recommend rebalance {position} --chain {chain}")


def _describe_edge(change: str) -> Value:
    value = percent(change, 1, signed=True)
    return value if abs(Decimal(change)) < 10**9 else Value("+∞ %", number=value.number, unit="%")


def _describe_hours(hours: float) -> str:
    return f"{hours * 60:.0f} min" if hours < 2 else f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} d"

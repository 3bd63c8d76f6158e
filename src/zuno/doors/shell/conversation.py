"""What the shell keeps in mind between lines: what was shown, the chain spoken of, and one open question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from zuno.doors.reading.commands import QUESTIONS, Words, command_of
from zuno.doors.reading.intents import DANGEROUS, Intent, Need, Reading, Slots, shape_of
from zuno.doors.reading.reader import fill_missing, read
from zuno.kernel.view import View
from zuno.lp.service.archive import PlanDiffView, PlanListView, WhyView
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.views import PnlView, PositionsView, PositionView
from zuno.lp.watch.alerts import AlertsView, AnsweredView

_PLACES: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4}
_PLAN: Final = re.compile(r"plan_[0-9a-f]{12}")
_MOST_KEPT: Final = 200


@dataclass(frozen=True, slots=True)
class Run:
    """Run these words of the command line."""

    words: Words
    by_model: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """Nothing is done; the person is asked."""

    question: str
    reading: Reading | None = None
    """What could not be read, where a model may help with it."""


@dataclass(frozen=True, slots=True)
class Switched:
    chain: str


@dataclass(frozen=True, slots=True)
class Help:
    pass


@dataclass(frozen=True, slots=True)
class Leave:
    pass


Turn = Run | Ask | Switched | Help | Leave


@dataclass(frozen=True, slots=True)
class Seen:
    """A position that was shown, and where."""

    chain: str
    id: str


class Conversation:
    """One person, one shell. `it` is the last of its kind that stood on the screen, never the last that was typed."""

    def __init__(self) -> None:
        self.chain: str | None = None
        """What lines mean that name no chain; None: the house's default."""
        self.wallet: str | None = None
        """The last wallet shown."""
        self._positions: list[Seen] = []
        """The last list shown, in its order."""
        self._position: Seen | None = None
        self._plans: list[str] = []
        """The last list shown, in its order."""
        self._past_plans: list[str] = []
        """Every plan that was shown by itself, the latest last."""
        self._alerts: list[str] = []
        self._open: Reading | None = None
        """The question that was asked last, if it may still be answered."""

    @property
    def plan(self) -> str | None:
        return self._past_plans[-1] if self._past_plans else None

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id on the screens so far, for completion."""
        shown = (*(position.id for position in self._positions), *self._plans, *self._past_plans, *self._alerts)
        return tuple(dict.fromkeys(shown))

    def hear(self, line: str) -> Turn:
        """What a line asks for. A question that was open is answered by it, or forgotten."""
        pending, self._open = self._open, None
        if pending is not None and (whole := fill_missing(pending, line)):
            return self.act_on(whole)
        return self.act_on(read(line))

    def act_on(self, reading: Reading) -> Turn:
        """The turn a reading leads to, with what points at the screen put in its place."""
        match reading.intent:
            case Intent.UNCLEAR:
                return Ask(reading.ask, reading)
            case Intent.HELP:
                return Help()
            case Intent.EXIT:
                return Leave()
        resolved = self._resolve(reading)
        if isinstance(resolved, Ask):
            return resolved
        if resolved.missing:
            return self._question(resolved, resolved.missing[0])
        if resolved.intent is Intent.SWITCH:
            self.chain = resolved.slots.chain
            return Switched(str(resolved.slots.chain))
        return Run(command_of(resolved, self.chain), by_model=resolved.source == "model")

    def remember_view(self, view: View) -> None:
        """A view stood on the screen."""
        wallet = getattr(view, "wallet", None)
        self.wallet = wallet if isinstance(wallet, str) else self.wallet
        match view:
            case PositionsView():
                self._positions = [Seen(position.chain, position.id) for position in view.positions[:_MOST_KEPT]]
                if len(self._positions) == 1:
                    self._position = self._positions[0]
            case PositionView() | PnlView():
                self._position = Seen(view.chain, view.id)
            case PlanListView():
                self._plans = [shown.plan_id for shown in view.plans[:_MOST_KEPT]]
                if len(self._plans) == 1:
                    self._show_plan(self._plans[0])
            case PlanView():
                self._show_plan(view.plan_id)
                if view.position_id is not None:
                    self._position = Seen(view.chain, view.position_id)
            case WhyView():
                if view.plan is not None:
                    self.remember_view(view.plan)
            case PlanDiffView():
                self._show_plan(view.before)
                self._show_plan(view.after)
            case AlertsView():
                self._alerts = [alert.id for alert in view.alerts[:_MOST_KEPT]]
            case AnsweredView():
                self._alerts = [view.alert.id]
            case _:
                self._notice_plan_of(view)

    def _notice_plan_of(self, view: View) -> None:
        """Whatever speaks of one plan says its id."""
        plan = getattr(view, "plan_id", None)
        if isinstance(plan, str) and _PLAN.fullmatch(plan):
            self._show_plan(plan)

    def _show_plan(self, plan: str) -> None:
        kept = [earlier for earlier in self._past_plans if earlier != plan]
        self._past_plans = [*kept[-_MOST_KEPT:], plan]

    # -- putting what was shown in the place of what points at it

    def _resolve(self, reading: Reading) -> Reading | Ask:
        slots, takes = reading.slots, shape_of(reading.intent).takes
        if reading.intent is Intent.DIFF:
            return self._two_plans(reading)
        if reading.intent is Intent.OPTIONS and slots.plan is None and self.plan is None and self._position:
            reading = replace(reading, intent=Intent.REBALANCE, slots=Slots())
            slots, takes = reading.slots, shape_of(Intent.REBALANCE).takes
        if slots.refers is not None:
            return self._resolve_reference(reading, slots.refers)
        # What only shows may take the last one for granted; what signs is told which.
        if reading.intent not in DANGEROUS and reading.missing:
            if reading.missing[0] == "position" and self._position is not None:
                return _with_position(reading, self._position)
            if reading.missing[0] in ("plan", "reference") and self.plan is not None:
                return _with(reading, plan=self.plan)
        if slots.position is not None and slots.chain is None and "chain" in takes and self.chain is None:
            return _with_position(reading, self._where(slots.position))
        return reading

    def _where(self, position: str) -> Seen:
        """On which chain a position of that number was shown; the one pointed at last goes first."""
        shown = [*([self._position] if self._position else []), *self._positions]
        return next((seen for seen in shown if seen.id == position), Seen("", position))

    def _resolve_reference(self, reading: Reading, refers: str) -> Reading | Ask:
        needs = shape_of(reading.intent)
        bare = replace(reading, slots=replace(reading.slots, refers=None))
        if "position" in needs.takes:
            seen = self._nth_position(refers)
            return _with_position(bare, seen) if seen else self._question(bare, "position", shown=False)
        if "alert" in needs.takes:
            alert = _nth(self._alerts, refers)
            return _with(bare, alert=alert) if alert else self._question(bare, "alert", shown=False)
        plan = self._nth_plan(refers)
        return _with(bare, plan=plan) if plan else self._question(bare, "plan", shown=False)

    def _nth_position(self, refers: str) -> Seen | None:
        if refers == "last":
            return self._position
        place = _PLACES.get(refers)
        return self._positions[place] if place is not None and place < len(self._positions) else None

    def _nth_plan(self, refers: str) -> str | None:
        if refers == "last":
            return self.plan
        if refers == "previous":
            return self._past_plans[-2] if len(self._past_plans) > 1 else None
        return _nth(self._plans, refers)

    def _two_plans(self, reading: Reading) -> Reading | Ask:
        named = [plan for plan in (reading.slots.plan, reading.slots.other) if plan is not None]
        others = [plan for plan in self._past_plans if plan not in named]
        if len(named) < 2:
            named = [*others[-(2 - len(named)) :], *named]
        if len(named) < 2:
            return Ask("Which two plans? Say `diff` and both ids; `plans` lists them.")
        return _with(reading, plan=named[0], other=named[1])

    def _question(self, reading: Reading, need: Need, *, shown: bool = True) -> Ask:
        """Ask once; the next line may be the answer."""
        self._open = reading
        question = QUESTIONS[need]
        last = {"position": self._position.id if self._position else None, "plan": self.plan}.get(need)
        if last is not None:
            return Ask(f"{question} The last one shown is {last}: say its id, or `it`.")
        if not shown:
            return Ask(f"{question} None was shown by itself yet; say its id.")
        return Ask(question)


def _nth(shown: Sequence[str], refers: str) -> str | None:
    if refers == "last":
        return shown[0] if len(shown) == 1 else None
    place = _PLACES.get(refers)
    return shown[place] if place is not None and place < len(shown) else None


def _with(reading: Reading, **slots: str) -> Reading:
    return replace(reading, slots=replace(reading.slots, **slots))


def _with_position(reading: Reading, seen: Seen) -> Reading:
    """A position keeps the chain it was shown on, unless the line names another."""
    chain = reading.slots.chain or seen.chain
    return _with(reading, position=seen.id, **({"chain": chain} if chain else {}))


PHRASES: Final = (
    "show positions",
    "inspect position",
    "are we in range",
    "which positions are risky",
    "recommend rebalance",
    "what are my options",
    "why",
    "diff",
    "simulate it",
    "approve it",
    "apply it",
    "cancel it",
    "create a position with",
    "show balances",
    "show allowances",
    "switch to",
    "agents status",
    "show alerts",
    "ack alert",
    "refresh pools",
    "collect fees",
    "close position",
    "history",
    "logs",
    "help",
    "exit",
)
"""Lines that people type; what is asked of the shell most."""

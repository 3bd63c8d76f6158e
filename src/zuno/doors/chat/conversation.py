"""What is kept in mind between lines: what was shown, the chain spoken of, what was asked and offered."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from zuno.doors.reading.intents import UNCLEAR, Reading, Words, intent_of
from zuno.doors.reading.parse_view import question_for
from zuno.doors.reading.reader import fill_missing, read
from zuno.doors.reading.seen import (
    PLACES,
    ShownPosition,
    asks_for_list,
    find_position,
    to_shown_position,
    to_shown_positions,
)
from zuno.kernel.view import View
from zuno.lp.service.archive import PlanDiffView, PlanListView, WhyView
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.result_views import PnlView
from zuno.lp.service.views import PositionsView, PositionView
from zuno.lp.watch.alerts import AlertsView, AnsweredView

_PLAN: Final = re.compile(r"plan_[0-9a-f]{12}")
_MOST_KEPT: Final = 200


@dataclass(frozen=True, slots=True)
class Run:
    """Run these words of the command line."""

    words: Words
    reading: Reading
    """With what was pointed at in its place."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Nothing is done; the person is asked."""

    question: str
    reading: Reading | None = None
    """What could not be read, where a model may help with it."""
    offered: tuple[Reading, ...] = ()
    """What may have been meant; the next line may be the number of one."""


@dataclass(frozen=True, slots=True)
class ChainSwitched:
    chain: str


@dataclass(frozen=True, slots=True)
class Help:
    pass


@dataclass(frozen=True, slots=True)
class EndConversation:
    pass


Turn = Run | Ask | ChainSwitched | Help | EndConversation


class Conversation:
    """One person, one shell or chat. `it` is the last of its kind that was shown, never the last that was typed.

    `look` fetches the positions of a chain where a line means one by what it holds and none were shown yet.
    """

    def __init__(self, look: Callable[[str | None], PositionsView | None] = lambda chain: None) -> None:
        self.chain: str | None = None
        """What lines mean that name no chain; None: the default chain."""
        self.wallet: str | None = None
        """The last wallet shown."""
        self._look = look
        self._positions: list[ShownPosition] = []
        """The last list shown, in its order."""
        self._position: ShownPosition | None = None
        self._plans: list[str] = []
        """The last list shown, in its order."""
        self._past_plans: list[str] = []
        """Every plan that was shown by itself, the latest last."""
        self._alerts: list[str] = []
        self._open: Reading | None = None
        """The question that was asked last, if it may still be answered."""
        self._offered: tuple[Reading, ...] = ()

    @property
    def plan(self) -> str | None:
        return self._past_plans[-1] if self._past_plans else None

    @property
    def has_positions(self) -> bool:
        """Whether a list of positions was shown."""
        return bool(self._positions)

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id on the screens so far, for completion."""
        shown = (*(position.id for position in self._positions), *self._plans, *self._past_plans, *self._alerts)
        return tuple(dict.fromkeys(shown))

    def hear(self, line: str) -> Turn:
        """What a line asks for. A question or an offer that was open is answered by it, or forgotten."""
        pending, self._open = self._open, None
        offered, self._offered = self._offered, ()
        if line.strip().isdigit() and 0 < int(line) <= len(offered):
            return self.act_on(offered[int(line) - 1])
        if pending is not None and (whole := fill_missing(pending, line)):
            return self.act_on(whole)
        return self.act_on(read(line))

    def act_on(self, reading: Reading) -> Turn:
        """The turn a reading leads to, with what points at the screen put in its place."""
        if reading.ask:
            self._offered = reading.choices
            unread = reading if reading.intent == UNCLEAR else None
            return Ask(reading.ask, unread, reading.choices)
        if reading.intent == "help":
            return Help()
        if reading.intent == "exit":
            return EndConversation()
        resolved = self._resolve(reading)
        if isinstance(resolved, Ask):
            return resolved
        if resolved.ask:
            return self.act_on(resolved)
        if resolved.missing:
            return self._question(resolved, resolved.missing[0])
        if resolved.intent == "switch":
            self.chain = resolved.slots["chain"]
            return ChainSwitched(self.chain)
        return Run(resolved.command(self.chain), resolved)

    def drop_question(self) -> None:
        """What was asked or offered last was not shown."""
        self._open, self._offered = None, ()

    def remember_view(self, view: View) -> None:
        """A view stood on the screen."""
        wallet = getattr(view, "wallet", None)
        self.wallet = wallet if isinstance(wallet, str) else self.wallet
        match view:
            case PositionsView():
                self._positions = to_shown_positions(view)
                if len(self._positions) == 1:
                    self._position = self._positions[0]
            case PositionView():
                self._position = to_shown_position(view)
            case PnlView():
                self._position = ShownPosition(view.chain, view.id)
            case PlanListView():
                self._plans = [shown.plan_id for shown in view.plans[:_MOST_KEPT]]
                if len(self._plans) == 1:
                    self._show_plan(self._plans[0])
            case PlanView():
                self._show_plan(view.plan_id)
                if view.position_id is not None:
                    self._position = ShownPosition(view.chain, view.position_id)
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
            case _:  # whatever speaks of one plan says its id
                plan = getattr(view, "plan_id", None)
                if isinstance(plan, str) and _PLAN.fullmatch(plan):
                    self._show_plan(plan)

    def _show_plan(self, plan: str) -> None:
        kept = [earlier for earlier in self._past_plans if earlier != plan]
        self._past_plans = [*kept[-_MOST_KEPT:], plan]

    # -- putting what was shown in the place of what points at it

    def _resolve(self, reading: Reading) -> Reading | Ask:
        slots, takes = reading.slots, intent_of(reading.intent).takes
        if reading.intent == "diff":
            return self._two_plans(reading)
        if reading.intent == "plan" and "plan" not in slots and self.plan is None and self._position:
            return self._resolve(Reading(reading.text, "rebalance", confidence=reading.confidence))
        if asks_for_list(reading):
            return self._from_list(reading)
        if "refers" in slots:
            return self._resolve_reference(reading, slots["refers"])
        # What only shows may take the last one for granted; what signs is told which.
        if not reading.signs and reading.missing:
            if reading.missing[0] == "position" and self._position is not None:
                return _with_position(reading, self._position)
            if reading.missing[0] == "plan" and self.plan is not None:
                return _with(reading, plan=self.plan)
        if reading.intent in {"why", "replay"} and "reference" not in slots and self.plan is not None:
            return _with(reading, reference=self.plan)
        if "position" in slots and "chain" not in slots and "chain" in takes and self.chain is None:
            return _with_position(reading, self._where(slots["position"]))
        return reading

    def _from_list(self, reading: Reading) -> Reading:
        """A position by its place, or by what it holds: in the list shown, else in the chain's own."""
        shown = self._positions
        if not shown and (view := self._look(reading.slots.get("chain", self.chain))):
            shown = to_shown_positions(view)
        resolved = find_position(reading, shown)
        if resolved.ask and not resolved.choices:
            self._open = replace(resolved, ask="")
        if "position" not in resolved.slots:
            return resolved
        return _with_position(resolved, self._where(resolved.slots["position"], shown))

    def _where(self, position: str, shown: Sequence[ShownPosition] = ()) -> ShownPosition:
        """On which chain a position of that number was shown; the one pointed at last goes first."""
        seen = [*([self._position] if self._position else []), *(shown or self._positions)]
        return next((known for known in seen if known.id == position), ShownPosition("", position))

    def _resolve_reference(self, reading: Reading, refers: str) -> Reading | Ask:
        takes = intent_of(reading.intent).takes
        bare = replace(reading, slots={name: value for name, value in reading.slots.items() if name != "refers"})
        if "position" in takes:
            if self._position is None:
                return self._question(bare, "position", shown=False)
            return _with_position(bare, self._position)
        if "alert" in takes:
            alert = _nth(self._alerts, refers)
            return _with(bare, alert=alert) if alert else self._question(bare, "alert", shown=False)
        if "plan" not in takes:
            return bare
        plan = self._nth_plan(refers)
        return _with(bare, plan=plan) if plan else self._question(bare, "plan", shown=False)

    def _nth_plan(self, refers: str) -> str | None:
        if refers == "last":
            return self.plan
        if refers == "previous":
            return self._past_plans[-2] if len(self._past_plans) > 1 else None
        return _nth(self._plans, refers)

    def _two_plans(self, reading: Reading) -> Reading | Ask:
        named = [reading.slots[name] for name in ("plan", "other") if name in reading.slots]
        others = [plan for plan in self._past_plans if plan not in named]
        if len(named) < 2:
            named = [*others[-(2 - len(named)) :], *named]
        if len(named) < 2:
            return Ask(question_for("other"))
        return replace(reading, slots={"plan": named[0], "other": named[1]})

    def _question(self, reading: Reading, need: str, *, shown: bool = True) -> Ask:
        """Ask once; the next line may be the answer."""
        self._open = reading
        question = question_for(need)
        last = {"position": self._position.id if self._position else None, "plan": self.plan}.get(need)
        if last is not None:
            return Ask(f"{question} The last one shown is {last}: say its id, or `it`.")
        if not shown:
            return Ask(f"{question} None was shown by itself yet; say its id.")
        return Ask(question)


def _nth(shown: Sequence[str], refers: str) -> str | None:
    if refers == "last":
        return shown[0] if len(shown) == 1 else None
    place = PLACES.get(refers)
    return shown[place] if place is not None and place < len(shown) else None


def _with(reading: Reading, **slots: str) -> Reading:
    return replace(reading, slots={**reading.slots, **slots})


def _with_position(reading: Reading, seen: ShownPosition) -> Reading:
    """A position keeps the chain it was shown on, unless the line names another."""
    takes_chain = seen.chain and "chain" not in reading.slots and "chain" in intent_of(reading.intent).takes
    return _with(reading, position=seen.id, **({"chain": seen.chain} if takes_chain else {}))

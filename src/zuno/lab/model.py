"""What a study finds: of one moment, and of all of them together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from zuno.kernel.units import Millis
from zuno.kernel.view import IsoTime, PartialView, View
from zuno.present.document import Block, Document, Tone, Value, document, facts, lines, row, section, table
from zuno.present.values import bad, count, good, number, percent, quiet, share

T = TypeVar("T")
"""Fields that the origin names."""


@dataclass(frozen=True, slots=True)
class TradeScore:
    """A decision to open something, and how it would have ended on the hours the desk could not see."""

    side: str
    fair: float
    """The share of wins that distances alone give: L / (G + L)."""
    y: float
    """(exit % + L) / (G + L), from 0 at the stop to 1 at the target; its mean without drift is `fair`."""
    span_pct: float
    """G + L, in per cent of the entry."""


@dataclass(frozen=True, slots=True)
class RulingSummary:
    decision: str
    ruling: str
    veto: str | None
    ev_pct: float | None
    score: float | None = None
    """Of the blackboard, from -1 to 1."""


@dataclass(frozen=True, slots=True)
class StudiedMoment:
    seed: int
    number: int
    at: Millis
    symbol: str
    mode: str


@dataclass(frozen=True, slots=True)
class MomentResult(StudiedMoment):
    kind: str
    holding: str
    """What the account held: nothing, long, short, other, heavy."""
    own: RulingSummary
    mirrored: RulingSummary | None
    """The same moment of the mirrored market; None where account or venue have no mirror image."""
    rules: tuple[str, ...]
    anomalies: tuple[str, ...]
    regime: str
    exploration: bool
    trade: TradeScore | None


class CountView(View):
    name: str
    count: int
    share: float
    """Of all moments."""


class KindView(View):
    """Moments that were chosen for one reason."""

    kind: str
    moments: int
    active: int
    """How many rulings are not HOLD."""


class BucketView(View):
    """Trades whose fair rate lies in [low, high)."""

    low: float
    high: float
    trades: int
    fair: float
    realised: float
    """The mean of y."""
    se: float
    """Of the realised mean, in a market without drift."""


class CalibrationView(View):
    """How the decisions to open would have ended, beside the fair rate."""

    trades: int
    fair: float | None
    realised: float | None
    difference: float | None
    se: float | None
    """The larger of two: of independent trades, and of independent markets."""
    inside: bool | None
    """Whether the difference lies within 1.96 standard errors of zero."""
    buckets: tuple[BucketView, ...]

    def list_blocks(self) -> Iterator[Block | None]:
        if not self.trades:
            yield lines("No decision to open was scored.")
            return
        rows = [
            (f"{bucket.low:.0%} to {bucket.high:.0%}", bucket.trades, bucket.fair, bucket.realised, bucket.se)
            for bucket in self.buckets
        ]
        yield table(
            ("fair rate", "trades", "fair", "realised", "± 1 se"),
            [
                (place, count(trades), *map(share, rates))
                for place, trades, *rates in (*rows, ("all", self.trades, self.fair, self.realised, self.se))
            ],
        )
        if self.inside is not None:
            text = "The realised rate is {} the 95 % band of a market without drift."
            yield lines(text.format("inside") if self.inside else bad(text.format("OUTSIDE")))


class PowerView(View):
    """Which edge the study could have seen."""

    trades: int
    smallest_edge: float | None
    """In points of the win rate: found in four of five studies of this size."""
    smallest_edge_pct: float | None
    """The same in per cent of the notional of an average trade."""
    said: str


class MomentView(View):
    """One moment of a synthetic market."""

    seed: int
    at: IsoTime
    symbol: str
    mode: str

    def describe(self) -> str:
        return f"seed {self.seed} {self.symbol} {self.mode} {self.at}"


class MirrorDifferenceView(MomentView):
    """A moment whose mirror image was not ruled the other way round."""

    ruling: str
    mirrored: str
    """As the mirrored market was ruled."""
    ev_pct: float | None
    mirrored_ev_pct: float | None
    veto: str | None
    mirrored_veto: str | None
    score: float | None
    mirrored_score: float | None
    small: bool
    """Whether the two differ by no more than 0.15 % of EV; what was not to be opened is worth nothing."""


class SymmetryView(View):
    """Whether the desk prefers a side."""

    long: int
    """Decisions of the Judge, before any rule."""
    short: int
    chance: float | None
    """How likely so uneven a split is where both sides are alike."""
    ruled_long: int
    ruled_short: int
    compared: int
    """Moments that were also ruled in the mirrored market."""
    mirrored: int
    """Of these, how many were ruled the other way round."""
    share: float | None
    differences: tuple[MirrorDifferenceView, ...]

    def list_blocks(self) -> Iterator[Block | None]:
        chance = "" if self.chance is None else f" (so uneven a split has a chance of {self.chance:.0%})"
        yield lines(
            f"Judge: {self.long} LONG, {self.short} SHORT{chance}; ruled {self.ruled_long} and {self.ruled_short}.",
            ""
            if self.share is None
            else f"Mirrored market: {self.mirrored} of {self.compared} rulings mirrored, {self.share:.1%}.",
        )
        if self.differences:
            yield table_of(
                self.differences,
                {
                    "difference": lambda each: each.describe(),
                    "ruling": lambda each: each.ruling,
                    "mirror": lambda each: each.mirrored,
                    "EV": lambda each: percent(each.ev_pct, signed=True),
                    "EV mirror": lambda each: percent(each.mirrored_ev_pct, signed=True),
                    "score": lambda each: number(each.score, 3, signed=True),
                    "score mirror": lambda each: number(each.mirrored_score, 3, signed=True),
                    "veto": lambda each: each.veto or "",
                    "veto mirror": lambda each: each.mirrored_veto or "",
                },
                spare=("veto", "veto mirror"),
                tone=lambda each: Tone.QUIET if each.small else Tone.PLAIN,
            )


class MarketStudyView(PartialView):
    """What a study of synthetic markets found."""

    synthetic: bool
    origin: str
    edition: int
    seeds: tuple[int, ...]
    moments: int
    asked: int
    judged: bool
    missed: tuple[str, ...]

    def list_bars(self, needed: str) -> Block | None:
        """Which bars were missed. `needed`: what a study must be for its bars to be judged."""
        met = "" if not self.ok else good("Every bar is met.")
        judged = met if self.judged else quiet(f"The bars are not judged: {needed} is needed.")
        return lines(judged, *(bad(f"MISSED  {line}") for line in self.missed))


class StudyView(MarketStudyView):
    """`ok`: no bar was missed; a bar is judged from 200 moments on. `stopped`: Ctrl-C came before the end."""

    decisions: tuple[CountView, ...]
    rulings: tuple[CountView, ...]
    exploration: int
    """How many of the rulings open on paper alone, to be learned from."""
    vetoes: tuple[CountView, ...]
    regimes: tuple[CountView, ...]
    triage: tuple[CountView, ...]
    rules: dict[str, tuple[CountView, ...]]
    """By owner: how often each rule changed or vetoed something; a rule that never fired has count 0."""
    kinds: tuple[KindView, ...]
    open_positions: int
    """Moments at which a position of the symbol was open."""
    closed: int
    """Of these, how many were closed."""
    symmetry: SymmetryView
    calibration: CalibrationView
    power: PowerView

    def to_document(self) -> Document:
        counted = {
            "Judge decides": self.decisions,
            "desk rules": self.rulings,
            "vetoed by": self.vetoes,
            "regime": self.regimes,
            "triage": self.triage,
            **{f"rules: {owner}": counts for owner, counts in self.rules.items()},
        }
        return document(
            describe_study(self),
            *(section("", _count_table(title, counts)) for title, counts in counted.items() if counts),
            lines(
                f"{self.exploration} rulings are exploration: a quarter of the size, on paper."
                if self.exploration
                else ""
            ),
            facts(
                *(
                    (kind.kind, f"{kind.moments} moments, {kind.active / kind.moments:.1%} not HOLD")
                    for kind in self.kinds
                ),
                ("with an open position", f"{self.open_positions} moments, {self.closed} close it"),
            ),
            section("", *self.symmetry.list_blocks()),
            section("", *self.calibration.list_blocks()),
            lines(self.power.said),
            self.list_bars("a whole study of 200 moments or more"),
            urgent=warn_partial(self),
        )


def _count_table(title: str, counts: Sequence[CountView]) -> Block:
    return table_of(
        counts,
        {
            title: lambda each: each.name,
            "count": lambda each: count(each.count),
            "share": lambda each: share(each.share),
        },
        tone=lambda each: Tone.PLAIN if each.count else Tone.QUIET,
    )


class CheckView(PartialView):
    """What a check of the desk found."""

    report: str = ""
    """The id of its report in the home."""

    def name_report(self) -> tuple[str, ...]:
        return name_report(self.report)


class MarketCheckView(CheckView):
    """What a check over synthetic markets found."""

    synthetic: bool
    origin: str
    edition: int
    seeds: tuple[int, ...]
    asked: int
    moments: int


class RateView(View):
    """How often something happened, of as many times as it could."""

    count: int
    total: int
    rate: float | None
    ci95: tuple[float, float] | None
    """Wilson's."""

    def to_cells(self) -> tuple[str | Value, str]:
        """With its interval; blank where nothing was counted."""
        if self.rate is None or self.ci95 is None:
            return "", ""
        return share(self.rate), f"{self.ci95[0]:.1%} to {self.ci95[1]:.1%}"


def table_of(
    items: Iterable[T],
    columns: Mapping[str, Callable[[T], str | Value]],
    *,
    spare: Sequence[str] = (),
    tone: Callable[[T], Tone] = lambda item: Tone.PLAIN,
) -> Block:
    """A row for each item; `columns` say what stands in it."""
    rows = [row(*(cell(item) for cell in columns.values()), tone=tone(item)) for item in items]
    return table(tuple(columns), rows, spare=spare)


def figure(value: float | None, digits: int = 2, *, signed: bool = False) -> str | Value:
    """Blank where there is none."""
    return "" if value is None else number(value, digits, signed=signed)


def remark(text: str) -> Block | None:
    """Beside figures: how they are to be read."""
    return lines(quiet(text))


def describe_study(view: MarketStudyView | MarketCheckView) -> str:
    return f"{view.origin}: {view.moments:,} of {view.asked:,} moments, edition {view.edition}, no model"


def name_report(report: str, data: str = "") -> tuple[str, ...]:
    """The note that names a report, and the folder it is about."""
    return (f"report {report}{f' of {data}' if data else ''} (zuno lab reports)",) if report else ()


def format_span(ends: tuple[float, float] | None) -> str:
    return "too few" if ends is None else f"{ends[0]:+,.2f} to {ends[1]:+,.2f}"


class AskingArm(Protocol):
    """An arm that may have asked models."""

    @property
    def arm(self) -> str: ...
    @property
    def unanswered(self) -> int: ...
    @property
    def model_tokens(self) -> int: ...
    @property
    def model_cost_usd(self) -> float: ...


def warn_partial(view: PartialView, arms: Sequence[AskingArm] = (), *, left_out: Sequence[str] = ()) -> list[Value]:
    """What a reader must know before the figures: a run that was stopped, files of a folder that are in no figure, arms
    that rules answered for."""
    stopped = [bad("STOPPED before the end: only what was done by then is counted")] if view.stopped else []
    return [
        *stopped,
        *(bad(f"LEFT OUT  {file}") for file in left_out),
        *(
            bad(f"UNANSWERED  {arm.arm}: rules answered {arm.unanswered:,} questions to models")
            for arm in arms
            if arm.unanswered
        ),
    ]

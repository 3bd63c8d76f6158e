"""What each part of the LP desk's argument adds: arms over frozen episodes, paired."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from zuno.kernel.errors import UsageError
from zuno.kernel.text import plain_text
from zuno.lab.comparisons import Estimate, correct_p_values, estimate_mean
from zuno.lab.cutoffs import ModelCutoffView, judge_models
from zuno.lab.lp.arms import NEED_MODEL, Arm
from zuno.lab.lp.backtest import Schedule
from zuno.lab.lp.episodes import EpisodeView, mix_random
from zuno.lab.lp.fast import USD
from zuno.lab.lp.question import LpQuestion, ReadMinutes, fingerprint_minutes, plan_schedule
from zuno.lab.lp.views import DECIDED_BY, ArmGainView, LpAblationView, NotRunView, RegimeGainView
from zuno.lab.replies import NameModels, describe_unanswered
from zuno.lab.reports import LabReports, report_id, trial_id
from zuno.lab.workers import Progress, RunTasks, check_any_done, check_workers, read_or_stop, write_command
from zuno.lp.model.ballot import EDITION
from zuno.lp.model.market import HOUR
from zuno.lp.model.minutes import MinuteRepairs

KIND: Final = "ablate-lp"
MOST_HORIZON: Final = 168
"""Hours."""
REGIMES: Final = ("bull", "bear", "sideways")
TREND: Final = 0.02
"""A price that changed by less over the horizon went sideways."""
SIGNIFICANT: Final = 0.05
_WHY_NOT: Final = {
    Arm.SINGLE: "it is a model's choice, and no model argued",
    Arm.VOTE: "it is a vote of models, and no model argued",
    Arm.AA: "rules answer the same twice, so the noise floor is 0 by construction; it needs a model",
}
_NO_FRESH: Final = "not measured: nobody can be asked once more, and no fresh reply is kept"


@dataclass(frozen=True, slots=True)
class AblationQuestion:
    """`base`: market, position and desk of a backtest; its arms are ignored."""

    base: LpQuestion
    horizon_hours: int

    @property
    def command(self) -> str:
        options = {"desk": "lp", **self.base.data_option, **self.base.list_conditions(), "horizon": self.horizon_hours}
        return write_command("ablate", options, models=self.base.models)


@dataclass(frozen=True, slots=True)
class EpisodesTask:
    question: AblationQuestion
    schedule: Schedule
    moments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LpAblation:
    read_minutes: ReadMinutes
    run_episodes: RunTasks[EpisodesTask, EpisodeView]
    reports: LabReports
    name_models: NameModels

    async def ablate(
        self, question: AblationQuestion, workers: int, tell: Progress, stop: asyncio.Event, *, resume: bool = False
    ) -> LpAblationView:
        """Compare all arms at the same moments. Once `stop` is set, the view holds the finished episodes."""
        check_workers(workers)
        base = question.base
        recorded = await read_or_stop(self.read_minutes, base.folder, stop)
        schedule = plan_schedule(recorded, base.every_hours)
        moments = plan_moments(schedule, question.horizon_hours)
        data = fingerprint_minutes(recorded)
        models = dict(await self.name_models() if base.models else {})
        asked = base.conditions | models | {"horizonHours": question.horizon_hours}
        report = report_id(KIND, asked, data, EDITION)
        done = {episode.at: episode for episode in self.reports.load_parts(report, EpisodeView, resume=resume)}
        left = [moment for moment in moments if moment not in done]

        def hear(episode: EpisodeView) -> None:
            done[episode.at] = episode
            if not episode.unanswered:
                self.reports.keep_part(report, episode)
            tell(len(done), len(moments))

        tell(len(done), len(moments))
        shares = [left[place::workers] for place in range(workers)]
        tasks = [EpisodesTask(question, schedule, tuple(share)) for share in shares if share]
        if tasks:
            await self.run_episodes(tasks, workers, hear, stop)
        check_any_done(len(done) or not moments)
        view = build_view(question, report, recorded.repairs, schedule, [done[at] for at in sorted(done)], len(moments))
        tried = {trial_id(KIND, row.arm, asked, data, EDITION): row.arm for row in view.arms}
        self.reports.note_trials(KIND, tried)
        title, unanswered = f"LP ablation: {view.episodes} frozen episodes", sum(arm.unanswered for arm in view.arms)
        self.reports.save_view(report, KIND, title, question.command, view, unanswered=unanswered)
        return view


def read_horizon(base: LpQuestion, horizon_hours: int) -> AblationQuestion:
    if not base.every_hours <= horizon_hours <= MOST_HORIZON:
        raise UsageError(
            f"--horizon is {horizon_hours}; give hours from {base.every_hours}, the time between two decisions, to "
            f"{MOST_HORIZON}."
        )
    return AblationQuestion(base, horizon_hours)


def plan_moments(schedule: Schedule, horizon_hours: int) -> tuple[int, ...]:
    """Every decision whose horizon ends within the record."""
    last = schedule.end - horizon_hours * HOUR
    return tuple(range(schedule.start + schedule.every, last + 1, schedule.every))


def build_view(
    question: AblationQuestion,
    report: str,
    repairs: MinuteRepairs,
    schedule: Schedule,
    episodes: Sequence[EpisodeView],
    asked: int,
) -> LpAblationView:
    base = question.base
    models = judge_models(frozenset(name for episode in episodes for name in episode.models), schedule.start)
    nets = _net_outcomes(episodes, lambda episode: episode.carry)
    worths = _net_outcomes(episodes, lambda episode: episode.outcomes)
    gains = _compare_all(episodes, nets, worths, -(-question.horizon_hours // base.every_hours))
    floor = _noise_floor(nets)
    return LpAblationView(
        ok=True,
        stopped=len(episodes) < asked,
        report=report,
        desk="lp",
        data=plain_text(base.folder, 200),
        edition=EDITION,
        since=schedule.start,
        until=schedule.end,
        episodes=len(episodes),
        asked=asked,
        every_hours=base.every_hours,
        horizon_hours=question.horizon_hours,
        capital_usd=base.capital,
        half_width_pct=float(100 * base.half_width),
        profile=base.profile,
        repairs=repairs,
        reference="debate" if models else "debate (rules)",
        noise_floor_usd=0.0 if floor is None and not models else floor,
        noise_floor_said="measured by aa" if floor is not None else _NO_FRESH if models else _WHY_NOT[Arm.AA],
        headline=_headline(models, gains),
        models=models,
        arms=tuple(gains),
        not_run=tuple(NotRunView(arm=arm, why=_explain_not_run(arm, bool(models))) for arm in Arm if arm not in nets),
    )


def _explain_not_run(arm: Arm, models: bool) -> str:
    if arm not in NEED_MODEL:
        return "no episode is done"
    return _NO_FRESH if models and arm is Arm.AA else _WHY_NOT[arm]


def _net_outcomes(
    episodes: Sequence[EpisodeView], read: Callable[[EpisodeView], Mapping[str, int]]
) -> dict[str, list[int]]:
    """By arm, in millionths of a dollar, after model costs. An arm that is missing in an episode is left out."""
    nets: dict[str, list[int]] = {}
    for arm in Arm:
        if arm is Arm.RANDOM or not episodes or not all(arm in read(episode) for episode in episodes):
            continue
        nets[arm] = [read(episode)[arm] - round(episode.model_usd.get(arm, 0.0) * USD) for episode in episodes]
    if Arm.DEBATE in nets:
        nets[Arm.RANDOM] = mix_random(episodes, Arm.DEBATE, read)
    return nets


def _compare_all(
    episodes: Sequence[EpisodeView],
    nets: Mapping[str, Sequence[int]],
    worths: Mapping[str, Sequence[int]],
    phases: int,
) -> list[ArmGainView]:
    """`phases`: rows of episodes that do not overlap."""
    if Arm.DEBATE not in nets:
        return []
    ours = nets[Arm.DEBATE]
    pairs = {arm: estimate_mean(_subtract(ours, theirs), phases) for arm, theirs in nets.items() if arm != Arm.DEBATE}
    known = [(arm, pair.p) for arm, pair in pairs.items() if pair is not None]
    corrected = dict(zip((arm for arm, _ in known), correct_p_values([p for _, p in known]), strict=True))
    return [
        _gain_view(arm, episodes, nets, sum(worths[arm]), pairs.get(arm), corrected.get(arm))
        for arm in Arm
        if arm in nets
    ]


def _subtract(ours: Sequence[int], theirs: Sequence[int]) -> list[int]:
    return [left - right for left, right in zip(ours, theirs, strict=True)]


def _gain_view(
    arm: Arm,
    episodes: Sequence[EpisodeView],
    nets: Mapping[str, Sequence[int]],
    worth: int,
    pair: Estimate | None,
    corrected: float | None,
) -> ArmGainView:
    ours, theirs, count = nets[Arm.DEBATE], nets[arm], len(episodes)
    itself, drawn = arm is Arm.DEBATE, arm is Arm.RANDOM
    flipped = [
        left - right
        for episode, left, right in zip(episodes, ours, theirs, strict=True)
        if not drawn and episode.acts[arm] != episode.acts[Arm.DEBATE]
    ]
    return ArmGainView(
        arm=arm,
        by=describe_decider(arm, episodes),
        episodes=count,
        moved=sum(episode.acts.get(Arm.DEBATE if drawn else arm, "stay") != "stay" for episode in episodes),
        fees_less_lvr=_each(sum(theirs), count),
        net_usd=_each(worth, count),
        model_tokens=sum(episode.tokens.get(arm, 0) for episode in episodes),
        model_cost_usd=round(sum(episode.model_usd.get(arm, 0.0) for episode in episodes), 6),
        unanswered=sum(episode.unanswered.get(arm, 0) for episode in episodes),
        gain_usd=None if itself else _each(sum(_subtract(ours, theirs)), count),
        ci95=None if pair is None else (_each(round(pair.low), 1), _each(round(pair.high), 1)),
        smallest=None if pair is None else _each(round(pair.smallest), 1),
        p=None if pair is None else pair.p,
        p_corrected=corrected,
        better=None if itself or drawn else sum(change > 0 for change in flipped),
        worse=None if itself or drawn else sum(change < 0 for change in flipped),
        verdict="" if itself else judge_gain(sum(ours) - sum(theirs), corrected),
        regimes=() if itself else tuple(_split(episodes, _subtract(ours, theirs))),
    )


def judge_gain(gain: int, corrected: float | None) -> str:
    if corrected is None or corrected >= SIGNIFICANT:
        return "not shown"
    return "gain" if gain > 0 else "loss"


def _split(episodes: Sequence[EpisodeView], gains: Sequence[int]) -> Iterator[RegimeGainView]:
    """Without an interval: episodes of one kind overlap as it happens."""
    for regime in REGIMES:
        kept = [
            gain for episode, gain in zip(episodes, gains, strict=True) if name_regime(episode.price_change) == regime
        ]
        yield RegimeGainView(regime=regime, episodes=len(kept), gain_usd=_each(sum(kept), len(kept)))


def name_regime(price_change: float) -> str:
    if abs(price_change) < TREND:
        return "sideways"
    return "bull" if price_change > 0 else "bear"


def describe_decider(arm: Arm, episodes: Sequence[EpisodeView]) -> str:
    if any(episode.tokens.get(arm) for episode in episodes):
        return "model"
    return DECIDED_BY.get(arm, "rules in its place")


def _noise_floor(nets: Mapping[str, Sequence[int]]) -> float | None:
    if Arm.AA not in nets:
        return None
    pairs = zip(nets[Arm.DEBATE], nets[Arm.AA], strict=True)
    return _each(sum(abs(left - right) for left, right in pairs), len(nets[Arm.AA]))


def _headline(models: Sequence[ModelCutoffView], gains: Sequence[ArmGainView]) -> str:
    if unanswered := sum(gain.unanswered for gain in gains):
        return f"Not judged: {describe_unanswered(unanswered)}"
    if any(model.in_sample for model in models):
        names = ", ".join(model.model for model in models if model.in_sample)
        return f"Not provable here: these days lie before the end of what {names} was trained on."
    if all(gain.p is None for gain in gains):
        return "Not judged: fewer than five episodes that do not overlap."
    shown = [gain for gain in gains if gain.verdict in ("gain", "loss")]
    who = "the debate" if models else "the debate by rules"
    if not shown:
        return f"No arm differs from {who} by more than chance, all comparisons taken together."
    gained = "; ".join(f"{gain.verdict} of {gain.gain_usd:+.2f} USD a decision over {gain.arm}" for gain in shown)
    return f"Shown for {who}, all comparisons taken together: {gained}."


def _each(total: int, count: int) -> float:
    return round(float(Fraction(total, USD * max(1, count))), 6)

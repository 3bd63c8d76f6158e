"""The page of an LP ablation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zuno.lab.report_page import build_page, format_span, heading, interval_chart, paragraph, table

if TYPE_CHECKING:
    from zuno.lab.lp.views import ArmGainView, LpAblationView
from zuno.lab.lp.repairs import describe_repairs


def build_ablation_page(view: LpAblationView, title: str, command: str) -> str:
    compared = [arm for arm in view.arms if arm.gain_usd is not None]
    return build_page(
        title,
        command,
        [
            *([] if not view.stopped else [paragraph("Unfinished: stopped before every episode was done.", "warn")]),
            paragraph(view.headline),
            paragraph(
                f"{view.episodes} moments, {view.every_hours} h apart; at each of them every arm decides about the "
                f"same position of {view.capital_usd:,} USD (as resetting ±{view.half_width_pct:g} % at the edge has "
                f"left it), and its decision is played for {view.horizon_hours} h. USD a decision; gas, swaps and "
                "models are paid."
            ),
            heading(f"What {view.reference} gains over each arm"),
            interval_chart("Gain a decision, 95 %", [(arm.arm, arm.gain_usd or 0.0, arm.ci95) for arm in compared]),
            table(
                (
                    "arm",
                    "decided by",
                    "moved",
                    "net",
                    "gain of the debate",
                    "95 %",
                    "p",
                    "p (Holm)",
                    "better",
                    "worse",
                    "verdict",
                ),
                [_row(arm) for arm in view.arms],
                text_columns=2,
            ),
            paragraph(f"Noise floor: {describe_floor(view)}.", "quiet"),
            heading("By market"),
            paragraph(
                f"Told afterwards: by whether the price moved 2 % in the same {view.horizon_hours} h that are scored.",
                "quiet",
            ),
            table(
                ("arm", *(f"{regime.regime} ({regime.episodes})" for regime in compared[0].regimes))
                if compared
                else ("arm",),
                [
                    (
                        arm.arm,
                        *(
                            f"{regime.gain_usd:+.2f}, {format_span(regime.ci95)}" if regime.episodes else ""
                            for regime in arm.regimes
                        ),
                    )
                    for arm in compared
                ],
            ),
            heading("Models"),
            *(
                [
                    paragraph(
                        f"{model.model}: trained until {model.cutoff or 'an unknown month'}; "
                        + ("these episodes are in-sample for it." if model.in_sample else "these episodes came later.")
                    )
                    for model in view.models
                ]
                or [paragraph("None: the agents argued by rules.")]
            ),
            heading("Not run"),
            table(("arm", "why"), [(arm.arm, arm.why) for arm in view.not_run], text_columns=2),
            heading("Data"),
            paragraph(describe_repairs(view.repairs)),
        ],
    )


def describe_floor(view: LpAblationView) -> str:
    if view.noise_floor_usd is None:
        return view.noise_floor_said
    return f"{view.noise_floor_usd:.2f} USD a decision ({view.noise_floor_said})"


def _row(arm: ArmGainView) -> tuple[str, ...]:
    return (
        arm.arm,
        arm.by,
        f"{arm.moved} of {arm.episodes}",
        f"{arm.net_usd:+.2f}",
        "" if arm.gain_usd is None else f"{arm.gain_usd:+.2f}",
        "" if arm.gain_usd is None else format_span(arm.ci95),
        "" if arm.p is None else f"{arm.p:.3f}",
        "" if arm.p_corrected is None else f"{arm.p_corrected:.3f}",
        "" if arm.better is None else f"{arm.better}",
        "" if arm.worse is None else f"{arm.worse}",
        arm.verdict,
    )

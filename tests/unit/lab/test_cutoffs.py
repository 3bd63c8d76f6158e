"""Until when a model may have read what happened."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from zuno.lab.cutoffs import find_cutoff, judge_models


@pytest.mark.parametrize(
    ("model", "cutoff"),
    [
        ("anthropic:claude-sonnet-4-20250514", "2025-03"),
        ("claude-3-5-sonnet-20241022", "2024-07"),
        ("openai:gpt-4o-mini", "2023-10"),
        ("gpt-4o-2024-08-06", "2023-10"),
        ("meta/llama-3.1-8b-instruct", "2023-12"),
        ("anthropic:claude-sonnet-4-6", None),
        ("claude-opus-4-5-20251101", None),
        ("gpt-5.2", None),
        ("gpt-5-mini", "2024-09"),
        ("nobody-knows", None),
    ],
)
def test_a_later_version_is_another_model(model: str, cutoff: str | None) -> None:
    assert find_cutoff(model) == cutoff


def test_a_model_of_no_known_cutoff_has_read_everything() -> None:
    moment = round(datetime(2030, 1, 1, tzinfo=UTC).timestamp())
    (unknown,) = judge_models(frozenset({"anthropic:claude-sonnet-4-6"}), moment)
    assert unknown.in_sample

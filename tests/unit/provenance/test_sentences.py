"""Sentences as models write them at the desks, honest and invented: how many honest ones are refused, and by what.

`../shared/data/judge-sentences.jsonl` lies beside the checkout; `held_out.jsonl` was written for this test. What the
rules let pass is a form of words, and no sentence of either.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.paths import GOLDEN, SHARED_DATA
from zuno.provenance.facts import FactSheet, Figure, Unit
from zuno.provenance.refusal import Code, find_faults
from zuno.provenance.slots import find_slots

SHARED = SHARED_DATA / "judge-sentences.jsonl"
HELD_OUT = GOLDEN / "provenance" / "held_out.jsonl"
MISSING = "no sentences: ../shared/data/judge-sentences.jsonl is not beside the checkout"
MOST_REFUSED = 0.03


def sheet_of(texts: list[str]) -> FactSheet:
    """Every fact that the sentences cite: what is asked is whether their words may stand."""
    ids = {slot.id for text in texts for slot in find_slots(text)[0]} | {f"c{at}.worth" for at in range(5)}
    figures = [
        Figure(id_, 30 if id_ == "c3.fees_24h" else 12, Unit.NUMBER, derived="_less_" in id_ or "_over_" in id_)
        for id_ in sorted(ids)
    ]
    return FactSheet(figures, names=["WETH/USDC 0.05 %"], aliases={"hold": 0}, rounds=2)


@pytest.mark.parametrize("path", [SHARED, HELD_OUT], ids=lambda path: path.stem)
def test_honest_sentences_pass_and_invented_ones_do_not(path: Path) -> None:
    if not path.exists():
        pytest.skip(MISSING)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    facts = sheet_of([row["text"] for row in rows])
    honest: Counter[Code] = Counter()
    invented: Counter[Code] = Counter()
    refused: list[str] = []
    passed: list[str] = []
    for row in rows:
        codes = {fault.code for fault in find_faults(row["text"], facts)}
        (invented if row["invented"] else honest).update(codes)
        if bool(codes) != row["invented"]:
            (passed if row["invented"] else refused).append(row["text"])
    count = sum(not row["invented"] for row in rows)
    print(
        f"\n{path.name}: {len(refused)} of {count} honest refused, {len(passed)} of {len(rows) - count} others passed"
    )
    for code in Code:
        if honest[code] or invented[code]:
            print(f"  {code:12} honest {honest[code]:3}  invented {invented[code]:3}")
    print("\n".join(f"  {text}" for text in refused + passed))
    assert passed == []
    assert len(refused) < MOST_REFUSED * count


@pytest.mark.parametrize("ratio", ["2:1", "1:2", "2 to 1", "2.0:1"])
def test_a_ratio_stands_where_it_is_the_cards(ratio: str) -> None:
    text = f"A {ratio} reward pays for it."
    card = FactSheet([Figure("decision.reward_over_risk", 2.04, Unit.RATIO)])
    other = FactSheet([Figure("decision.reward_over_risk", 2.4, Unit.RATIO), Figure("c2.cost", 2, Unit.RATIO)])
    assert find_faults(text, card) == []
    assert {fault.code for fault in find_faults(text, other)} == {Code.NUMERAL}


@pytest.mark.parametrize("text", ["The 0.618 retracement held.", "The 61.8 % retracement held."])
def test_a_retracement_is_named_where_the_card_has_it(text: str) -> None:
    card = FactSheet([Figure("4h.retracement_618", 64_200, Unit.PRICE)])
    other = FactSheet([Figure("4h.retracement_382", 64_200, Unit.PRICE)])
    assert find_faults(text, card) == []
    assert {fault.code for fault in find_faults(text, other)} == {Code.NUMERAL}


@pytest.mark.parametrize("text", ["Take it at 3x.", "The trade fails at 2x."])
def test_a_stress_is_named_only_where_the_facts_are_stressed(text: str) -> None:
    stressed = FactSheet([Figure("c2.buffer_2x", 30, Unit.HOURS)])
    leveraged = FactSheet([Figure("decision.leverage", 2, Unit.RATIO)])
    assert find_faults(text, stressed) == []
    assert {fault.code for fault in find_faults(text, leveraged)} == {Code.NUMERAL}

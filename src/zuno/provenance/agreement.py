"""Check that the words around a slot agree with the figure it cites: candidate, stress, name, sign and comparison."""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from zuno.provenance.facts import FactSheet, Figure, Unit
from zuno.provenance.slots import LOSING, MARK, Slot, candidate_mentions, mask_slots, sentence_around

_LINK = (
    r"(?: |is|of|at|to|the|an?|about|around|roughly|near|nearly|only|just|now|was|were|are|stands?|sits?"
    r"|reach\w*|grows?|shrinks?|rises?|falls?|drops?|jumps?|remains?|equals?|=|\(|~|≈|[123](?:\.0)? ?[×x]"
    r"|still|has|have|of candidate \d|for candidate \d)*"
)
_NAMES: Final = {
    "fees": "fees?",
    "lvr": "lvr",
    "net": "net|carry|nets",
    "cost": "costs?|outlay|bill",
    "buffer": "buffers?",
    "floor": "floors?",
    "breakeven": "break-?even",
    "volatility": "volatility|vol",
    "p10": "p10",
    "ceiling": "ceiling",
    "rsi14": "rsi14",
    "adx14": "adx14",
    "ema": r"ema\d+",
    "funding": "funding",
    "dvol": "dvol",
    "imbalance": "imbalance",
    "spread": "spread",
    "confidence": "confidence",
    "price": "price|spot",
}
"""Names that prose can tell apart, and the words for them."""
_NAMED_BEFORE: Final = {
    name: re.compile(rf"(?i)(?<!{MARK} )(?<!{MARK} of )\b(?:{words}){_LINK}$")
    for name, words in _NAMES.items()
    if name != "price"
} | {"price": re.compile(rf"(?i)(?<!{MARK} )\b(?:price|spot) (?:is|stands at|at|now){_LINK}$")}
_NAMED_BEHIND: Final = {
    name: re.compile(rf"(?i)^ (?:of (?:daily |net |expected )?)?(?:{words})\b(?!/)")
    for name, words in _NAMES.items()
    if name not in ("price", "net", "funding", "volatility")
}
_AKIN: Final = {
    "net": {"fees", "lvr", "net"},
    "gas_yield": {"ceiling", "cost", "fees", "net"},
    "gas_price": {"gas", "price", "cost"},
    "pool_fee": {"fees"},
    "uncollected": {"fees"},
    "breakeven": {"cost", "breakeven", "net"},
}
_MULTIPLES = r"((?:[123](?:\.0)? ?[×x](?:/|, (?=[123])|,? and (?=[123]))?)+)"
_STRESS_BEFORE: Final = re.compile(rf"{_MULTIPLES}[^,;:({MARK}]*$")
_STRESS_BEHIND: Final = re.compile(rf"^(?: (?!and|but|while)[a-z]+){{0,3}}? (?:the )?{_MULTIPLES}")
_TO_TRADERS: Final = re.compile(r"(?i) (?:more )?(?:a day )?(?:to|in|of) (?:lvr|traders|arbitrage)")
_GAIN: Final = re.compile(
    r"(?i)\b(?:earns|earning|gains|gained|rose|climbed|jumped|up|profit of|gain of|profits? by)"
    r"(?: (?:about|by|roughly|nearly|only|some|a|around|another))* ?$"
)
_MORE = (
    r"exceed(?:s|ed|ing)?|above|over|beats?|beating|more than|greater than|higher than|larger than|longer than|tops?|"
)
_MORE += r"outweighs?|out-?earns?|clears?|better than|covers?|>"
_LESS = r"below|under|less than|lower than|smaller than|shorter than|short of|worse than|trails?|misses|fails|beneath|<"
_SAME = r"equals?|matches|the same as"
_MUCH = r"twice|double|half|triple|three times|four times"
_COMPARISON: Final = re.compile(
    rf"(?i)(?P<not>\b(?:not|never|no longer|n't|hardly|barely|fails? to|cannot)\b[^{MARK}]*?)?"
    rf"(?:(?P<near>nearly |almost |about |roughly )?(?P<than>(?:more|less) than )?\b(?P<times>{_MUCH})\b"
    rf"|(?:\b|(?<=[ ]))(?:(?P<more>{_MORE})|(?P<less>{_LESS})|(?P<same>{_SAME}))(?:\b|(?=[ ])))"
)
_STOPPING: Final = re.compile(r"[:;.]|\b(?:while|whereas|but|and|for)\b")
_CHANGED: Final = re.compile(
    rf"(?i)(?P<than>(?:more|less) than )?\b(?P<word>doubl|tripl|halv)(?:es|ed|ing)\b[^{MARK}.;]* from $"
)
_CHANGES: Final = {"doubl": Fraction(2), "tripl": Fraction(3), "halv": Fraction(1, 2)}
_TIMES: Final = {
    "twice": Fraction(2),
    "double": Fraction(2),
    "half": Fraction(1, 2),
    "triple": Fraction(3),
    "three times": Fraction(3),
    "four times": Fraction(4),
}
_FAMILIES: Final = {
    "venue": {"binance", "bybit", "okx", "deribit", "upbit"},
    "expert": {"liquidity", "microstructure", "macro", "vlm_geometry"},
}
"""Subjects beside timeframes that are named in prose as they are in ids."""
_ROUGHLY: Final = Fraction(1, 10)
_TURNING: Final = re.compile(r"(?i)\b(?:by|within|than it|while|whereas|but|although|last|past)\b")


def check_slots(text: str, slots: Sequence[Slot], facts: FactSheet, about: int | None) -> Iterator[str]:
    """What does not agree, in words for the author of the text."""
    for at, slot in enumerate(slots):
        fact = facts[slot.id]
        start, end = sentence_around(text, slot.start)
        in_sentence = [other for other in slots[:at] if other.start >= start]
        before = mask_slots(text[start : slot.start], [_shift(other, start) for other in in_sentence])
        behind = mask_slots(
            text[slot.end : end], [_shift(other, slot.end) for other in slots[at + 1 :] if other.end <= end]
        )
        cited = [facts[other.id] for other in in_sentence]
        if wrong := _check_candidate(before, behind, fact, facts, about, cited) or _check_subject(before, fact, facts):
            yield f"{{{slot.id}}} stands at {wrong}"
        if wrong := _check_stress(before, behind, fact):
            yield f"{{{slot.id}}} stands at {wrong}"
        if wrong := _check_name(before, behind, fact):
            yield f"{{{slot.id}}} is called {wrong}"
        if wrong := _check_sign(before, behind, fact):
            yield f"{{{slot.id}}} is {fact.print()}, {wrong}"
        yield from _check_comparison(before, fact, cited)


def _shift(slot: Slot, by: int) -> Slot:
    return Slot(slot.id, slot.start - by, slot.end - by)


def _check_candidate(
    before: str, behind: str, fact: Figure, facts: FactSheet, about: int | None, cited: Sequence[Figure]
) -> str:
    """A figure belongs to the candidate named last, unless that one has had its figure and the text's own is meant
    again, or another is named right behind. After a colon any named one may be meant."""
    if fact.candidate is None:
        return ""
    named = candidate_mentions(before, facts)
    everybody = {number for _, _, number in named}
    against_hold = fact.id.endswith("_less_hold") and 0 in everybody
    if fact.derived and (against_hold or fact.candidate in everybody | {about}):
        return ""
    if follows := re.match(r"(?:[ /][a-zA-Z0-9×]+){0,4}? (?:for|of|by|on|from|in) ", behind):
        after = candidate_mentions(behind[follows.end() :], facts)
        if after and after[0][0] == 0:
            return "" if after[0][2] == fact.candidate else f"candidate {after[0][2]}"
    if not named or fact.candidate == named[-1][2]:
        return ""
    start, end, last = named[-1]
    between = before[end:]
    together = {number for at, _, number in named if at == start}
    if fact.candidate in together or (":" in between and fact.candidate in everybody):
        return ""
    spent = between.count(MARK)
    at_mention = cited[len(cited) - spent - 1 : len(cited)]
    had_its_own = any(other.candidate == last or (other.derived and other.candidate == about) for other in at_mention)
    if fact.candidate == about and (had_its_own or _TURNING.search(between)):
        return ""
    return f"candidate {last}"


def _check_subject(before: str, fact: Figure, facts: FactSheet) -> str:
    """A timeframe, venue or expert that is named must be the one the figure is of."""
    family = _family(fact.subject)
    if family is None:
        return ""
    clause = re.split(r"[;:]|, ", before)[-1]
    words = re.findall(r"[a-z0-9_]+", clause.lower())
    alike = [word for word in words if word in facts.subjects and _family(word) == family]
    return alike[-1] if alike and alike[-1] != fact.subject else ""


def _family(subject: str) -> str | None:
    if re.fullmatch(r"\d+[mhdw]", subject):
        return "timeframe"
    return next((family for family, members in _FAMILIES.items() if subject in members), None)


def _check_stress(before: str, behind: str, fact: Figure) -> str:
    if fact.stress is None:
        at = re.match(r" (?:at|under) ([123])(?:\.0)? ?[×x]", behind) if fact.candidate is not None else None
        return f"{at[1]}×" if at else ""
    match = _STRESS_BEHIND.search(behind) or _STRESS_BEFORE.search(before)
    if match is None:
        return ""
    multiples = {int(number) for number in re.findall(r"[123](?=(?:\.0)? ?[×x])", match[1])}
    return "" if fact.stress in multiples else f"{min(multiples)}×"


def _check_name(before: str, behind: str, fact: Figure) -> str:
    if fact.derived:
        return ""
    own = _names_of(fact) | ({"price"} if fact.unit is Unit.PRICE else set())
    for patterns, words in ((_NAMED_BEFORE, before), (_NAMED_BEHIND, behind)):
        called = {name for name, pattern in patterns.items() if pattern.search(words)}
        if called and called.isdisjoint(own):
            return min(called)
    return ""


def _names_of(fact: Figure) -> set[str]:
    last = fact.id.rpartition(".")[2]
    parts = set(re.split(r"[_.]", fact.id)) | ({"ema"} if re.search(r"\bema\d", fact.id) else set())
    own = {name for name, words in _NAMES.items() if name in parts or any(re.fullmatch(words, part) for part in parts)}
    for name, akin in _AKIN.items():
        if last.startswith(name):
            own |= akin if name != "net" else {"net"}
    return own


def _check_sign(before: str, behind: str, fact: Figure) -> str:
    if fact.number > 0 and LOSING.search(before) and not fact.derived:
        return "" if "lvr" in _names_of(fact) and _TO_TRADERS.match(behind) else "no loss"
    if fact.number < 0 and _GAIN.search(before):
        return "no gain"
    return ""


def hide_multiples(prose: str, cited: Sequence[Figure]) -> str:
    """The masked prose without the multiples in words that compare two of its slots, and are therefore checked."""
    parts = prose.split(MARK)
    for at, (left, right) in enumerate(pairwise(cited), 1):
        if not _are_comparable(left, right):
            continue
        if (match := _find_comparison(parts[at])) and match["times"]:
            parts[at] = parts[at][: match.start("times")] + parts[at][match.end("times") :]
        elif parts[at] == " to " and (changed := _CHANGED.search(parts[at - 1])):
            parts[at - 1] = parts[at - 1][: changed.start("word")] + parts[at - 1][changed.end("word") :]
    return MARK.join(parts)


def _are_comparable(left: Figure, right: Figure) -> bool:
    return (left.unit, left.symbol) == (right.unit, right.symbol) and not (left.derived or right.derived)


def _find_comparison(between: str) -> re.Match[str] | None:
    match = _COMPARISON.search(between)
    return None if match is None or _STOPPING.search(between[: match.start()]) else match


def _check_comparison(before: str, fact: Figure, cited: Sequence[Figure]) -> Iterator[str]:
    """What stands before a word of comparison is compared with what stands behind it; a difference in between ("3 h
    above") is part of the comparison."""
    parts = before.split(MARK)
    back = next((step for step, other in enumerate(reversed(cited), 1) if not other.derived), 0)
    if not back or not _are_comparable(other := cited[-back], fact):
        return
    figures = f"{{{other.id}}} is {other.print()} and {{{fact.id}}} is {fact.print()}: not"
    if back == 1 and parts[-1] == " to " and (changed := _CHANGED.search(parts[-2])):
        if not _is_times(fact.number, other.number, _CHANGES[changed["word"].lower()], changed["than"]):
            yield f"{figures} {changed[0].partition(' from')[0]}"
        return
    comparison = _find_comparison(" ".join(parts[-back:]))
    if comparison and not _holds(comparison, other.number, fact.number):
        yield f"{figures} {comparison[0].strip()}"


def _holds(comparison: re.Match[str], left: Fraction, right: Fraction) -> bool:
    if comparison["times"]:
        holds = _is_times(left, right, _TIMES[comparison["times"].lower()], comparison["than"])
    elif comparison["same"]:
        holds = abs(left - right) <= abs(right) * _ROUGHLY
    else:
        holds = left >= right if comparison["more"] else left <= right
        if comparison["not"]:
            return left <= right if comparison["more"] else left >= right
    return holds is not bool(comparison["not"])


def _is_times(left: Fraction, right: Fraction, times: Fraction, than: str | None) -> bool:
    wanted = right * times
    if than:
        return left > wanted if than.lower().startswith("more") else left < wanted
    return abs(left - wanted) <= abs(wanted) * _ROUGHLY

"""The bar of number provenance, counted: honest prose passes, prose with one figure changed does not.

Honest sentences live in tests/golden/provenance with holes for their figures; this file prints each hole from the
context's facts with its own arithmetic, so it knows what every figure *means* without asking the checker. That meaning
is the independent criterion for mutants: one is left out when the changed figure still rounds what the hole means
("true again"), or rounds another fact of the context in the unit it is written in: whether that one may be meant is a
question of its own, asked below by putting other facts' figures into the holes. A figure that some *pair* of facts
would give is not left out: accepting it by chance counts against us.
"""

from __future__ import annotations

import ast
import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from zuno.core.provenance.check import Facts, check
from zuno.core.provenance.figures import Checked, Figure, Unit

GOLDEN = Path(__file__).parents[2] / "golden" / "provenance"
_HOLE = re.compile(r"\{([^{}:]+):([^{}]*)\}")
_FORMAT = re.compile(r"(,?)([+|]?)([%b]?)(g?)([0-9]+)([kM]?)")
_SCALES = {"%": Fraction(100), "b": Fraction(10_000), "k": Fraction(1, 10**3), "M": Fraction(1, 10**6), "": Fraction(1)}


@dataclass(frozen=True, slots=True)
class Context:
    name: str
    values: dict[str, Fraction]
    figures: tuple[Figure, ...]
    facts: Facts
    ids: dict[str, str]


@dataclass(frozen=True, slots=True)
class Hole:
    """A printed figure: where it stands in the sentence, and the exact value its text rounds."""

    start: int
    end: int
    text: str
    meant: Fraction
    hedged: bool
    derived: bool
    """Made of two facts."""
    expression: str = ""
    form: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    context: Context
    role: str
    about: str
    text: str
    holes: tuple[Hole, ...]

    def checked(self, text: str | None = None) -> Checked:
        # The Arbiter weighs the whole ballot; the others speak of one candidate at a time.
        return check(self.text if text is None else text, self.context.facts, self.about, self.role == "arbiter")


def contexts() -> dict[str, Context]:
    found: dict[str, Context] = {}
    for raw in json.loads((GOLDEN / "contexts.json").read_text()):
        figures = tuple(_figure(fact) for fact in raw["facts"])
        values = {fact["key"]: Fraction(fact["value"]) for fact in raw["facts"]}
        facts = Facts(figures, raw["ids"].values())
        found[raw["name"]] = Context(raw["name"], values, figures, facts, raw["ids"])
    return found


def _figure(fact: dict[str, Any]) -> Figure:
    return Figure(
        name=fact["name"],
        value=Decimal(fact["value"]),
        unit=Unit(fact["unit"]),
        source=fact["source"],
        news=fact.get("news", False),
        symbol=fact.get("symbol", ""),
        about=fact.get("about", ""),
        per_day=int(fact["per_day"]) if "per_day" in fact else None,
    )


def sentences(file: str) -> Iterator[Sentence]:
    known = contexts()
    context: Context | None = None
    for line in (GOLDEN / file).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            context = known[line.strip("[]")]
            continue
        assert context is not None
        who, text = line.split(" | ", 1)
        role, _, about = who.partition(" @")
        # A text with no candidate of its own speaks of the position as it stands.
        yield printed(context, role, about or "hold", text)


def printed(context: Context, role: str, about: str, template: str) -> Sentence:
    text, holes, last = "", [], 0
    for match in _HOLE.finditer(template):
        text += template[last : match.start()]
        last = match.end()
        if match[2] == "id":
            text += context.ids[match[1]]
            continue
        shown, meant = show(worth(match[1], context.values), match[2])
        hedged = re.search(r"(?:about|near|nearly|around|roughly|~|≈) ?$", text) is not None
        derived = sum(key in context.values for key in re.findall(r"[a-z]\w*", match[1])) > 1
        holes.append(Hole(len(text), len(text) + len(shown), shown, meant, hedged, derived, match[1], match[2]))
        text += shown
    return Sentence(context, role, about, text + template[last:], tuple(holes))


def worth(expression: str, values: dict[str, Fraction]) -> Fraction:
    """+, −, ×, ÷ over the context's keys, exactly."""

    def of(node: ast.expr) -> Fraction:
        match node:
            case ast.Name(id=key):
                return values[key]
            case ast.Constant(value=int(number)):
                return Fraction(number)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return of(left) - of(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return of(left) * of(right)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return of(left) / of(right)
        raise ValueError(expression)

    return of(ast.parse(expression, mode="eval").body)


def show(value: Fraction, form: str) -> tuple[str, Fraction]:
    """The figure as prose prints it, and the exact value its digits round."""
    parts = _FORMAT.fullmatch(form)
    assert parts, form
    comma, sign, times, significant, digits, suffix = parts.groups()
    value *= _SCALES[times] * _SCALES[suffix]
    places = int(digits)
    if significant:
        places -= len(str(int(abs(value))))
    rounded = rounding(abs(value), places)
    text = f"{rounded:{comma}f}"
    mark = {"+": "+" if value > 0 else "−", "|": ""}.get(sign, "−" if value < 0 and rounded else "")
    return mark + text + suffix, value


def rounding(value: Fraction, places: int) -> Decimal:
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return Decimal(format(exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN), "f"))


FIRST = tuple(sentences("honest.txt"))
SECOND = tuple(sentences("honest_second.txt"))
UNSEEN = tuple(sentences("honest_unseen.txt")) + tuple(sentences("honest_fresh.txt"))
BOUND = tuple(sentences("honest_bound.txt"))
ALL = FIRST + SECOND + BOUND


def test_the_corpus_is_as_large_and_varied_as_the_bar_asks() -> None:
    assert len({sentence.text for sentence in ALL}) >= 220
    assert {sentence.role for sentence in ALL} == {"scout", "strategist", "critic", "arbiter"}
    assert len({sentence.context.name for sentence in ALL}) >= 8
    assert all(len(sentence.context.figures) >= 50 for sentence in ALL)
    assert all(len(sentence.text) <= 280 for sentence in ALL)


def refusals(of: tuple[Sentence, ...], what: str, bar: str) -> float:
    rejected = [(sentence.text, checked.complaint) for sentence in of if not (checked := sentence.checked()).ok]
    figures = [hole for sentence in of for hole in sentence.holes]
    derived = sum(hole.derived for hole in figures)
    rate = len(rejected) / len(of)
    print(f"\n{what}: {len(of)} sentences, {len(rejected)} rejected: {rate:.1%} ({bar}); figures {len(figures)}")
    print(f"  {derived} of them derived from two facts")
    for text, complaint in rejected:
        print(f"  {text}\n    → {complaint}")
    return rate


def test_honest_sentences_pass() -> None:
    assert refusals(ALL, "honest", "the bar is 1 %") <= 0.01


def test_sentences_it_was_never_fitted_to_pass_too() -> None:
    assert refusals(UNSEEN, "unseen", "no bar is set; 5 % is alarming") <= 0.05


def test_every_printed_figure_is_accounted_for() -> None:
    """A screen can show, under each figure of a sound sentence, the facts it rests on or why it needs none."""
    for sentence in ALL:
        checked = sentence.checked()
        spans = [(backing.claim.start, backing.claim.end) for backing in checked.supported if backing.facts]
        spans += [(exempt.start, exempt.end) for exempt in checked.exempt]
        if checked.ok:
            assert all(any(start <= hole.start < end for start, end in spans) for hole in sentence.holes), sentence.text


def test_a_text_is_checked_in_about_a_millisecond() -> None:
    def spent(sentence: Sentence) -> float:
        best = 1.0
        for _ in range(3):
            started = time.process_time()
            sentence.checked()
            best = min(best, time.process_time() - started)
        return best

    times = [spent(sentence) for sentence in ALL[::3]]
    facts = min(len(sentence.context.figures) for sentence in ALL)
    print(f"\nspeed: median {1000 * median(times):.2f} ms, slowest {1000 * max(times):.2f} ms, over {facts}+ facts")
    assert median(times) < 0.002


# ── mutants ───────────────────────────────────────────────────────────────────────────────────────────────────────

SEEDS = (9, 10)
KINDS = ("digit", "tenfold", "unit", "sign", "made up", "nudge")
_NUMBER = re.compile(r"([+−-]?)([0-9,]+(?:\.[0-9]+)?)([kM]?)")
_UNIT = re.compile(r" ?(%|h\b|hours\b|days\b|minutes\b|bps\b|USDC\b|WETH\b|WBTC\b|ticks?\b|gwei\b|×|x\b|times\b)")
_SWAPS = {
    "%": (" h", " bps", " USDC", "×"),
    "h": (" %", " USDC", " minutes", " bps"),
    "hours": (" %", " days"),
    "days": (" h", " %"),
    "minutes": (" h", " %"),
    "bps": (" %", " h"),
    "USDC": (" %", " h", " ETH", " bps"),
    "WETH": (" USDC", " %"),
    "WBTC": (" USDC", " %"),
    "ticks": (" %", " h"),
    "tick": (" h", " bps"),
    "gwei": (" USDC", " h"),
    "×": (" %", " h"),
    "x": (" %", " h"),
    "times": (" %", " h"),
}
_SHARES = {"%": Fraction(1, 100), "bps": Fraction(1, 10_000), "×": Fraction(1), "x": Fraction(1), "times": Fraction(1)}
_HOURS = {"h": Fraction(1), "hours": Fraction(1), "days": Fraction(24), "minutes": Fraction(1, 60)}
_OWN = {
    "percent": Fraction(1, 100),
    "bps": Fraction(1, 10_000),
    "pips": Fraction(1, 10**6),
    "ratio": Fraction(1),
    "hours": Fraction(1),
    "seconds": Fraction(1, 3600),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    sentence: Sentence
    kind: str
    was: str
    now: str
    text: str
    derived: bool
    of_another_fact: bool

    @property
    def passes(self) -> bool:
        return self.sentence.checked(self.text).ok


def mutants(sentence: Sentence, chance: random.Random) -> Iterator[Mutant]:
    """One mutant of each kind the sentence can suffer, each with one of its figures changed."""
    for kind in KINDS:
        holes = list(sentence.holes)
        chance.shuffle(holes)
        for hole in holes:
            mutant = _mutant(sentence, hole, kind, chance)
            if mutant is not None:
                yield mutant
                break


def _mutant(sentence: Sentence, hole: Hole, kind: str, chance: random.Random) -> Mutant | None:
    number = _NUMBER.fullmatch(hole.text)
    assert number, hole.text
    sign, digits, suffix = number.groups()
    behind = sentence.text[hole.end :]
    unit = _UNIT.match(behind)
    unit_text = unit[0] if unit else ""
    if kind == "unit":
        if unit is None:
            return None
        unit_text = chance.choice(_SWAPS[unit[1]])
        if unit_text.strip() in {"ETH"} and sentence.context.name.startswith("btc"):
            unit_text = " WBTC"
    elif kind == "sign":
        if not sign or (sign != "+" and hole.text.strip("−0.,") == ""):
            return None
        sign = "+" if sign in "−-" else "−"
    else:
        digits = _changed(digits, kind, chance)
    now = sign + digits + suffix + unit_text
    if now == hole.text + (unit[0] if unit else ""):
        return None
    if _true_again(hole, sign, digits, kind):
        return None
    text = sentence.text[: hole.start] + now + behind[len(unit[0]) if unit else 0 :]
    before = sentence.text[: hole.start]
    dollars = before.endswith("$")
    another = _is_a_fact(sentence.context, sign, digits, suffix, "USDC" if dollars else unit_text.strip())
    return Mutant(sentence, kind, hole.text + (unit[0] if unit else ""), now, text, hole.derived, another)


def _changed(digits: str, kind: str, chance: random.Random) -> str:
    places = len(digits.partition(".")[2])
    comma = "," if "," in digits or len(digits.partition(".")[0]) <= 3 else ""
    value = Decimal(digits.replace(",", ""))
    if kind == "digit":
        at = chance.choice([index for index, char in enumerate(digits) if char.isdigit()])
        low = "1" if at == 0 and len(digits.partition(".")[0]) > 1 else "0"
        other = chance.choice([char for char in "0123456789" if char != digits[at] and char >= low])
        return digits[:at] + other + digits[at + 1 :]
    if kind == "tenfold":
        value = value * 10 if chance.random() < 0.5 or places == 0 else value / 10
    elif kind == "made up":
        value *= Decimal(str(round(chance.choice([1, -1]) * chance.uniform(0.02, 0.2) + 1, 4)))
    else:
        value += chance.choice([-3, -2, -1, 1, 2, 3]) * Decimal(1).scaleb(-places)
    if value < 0:
        value = -value
    return f"{value.quantize(Decimal(1).scaleb(-places)):{comma}f}"


def _true_again(hole: Hole, sign: str, digits: str, kind: str) -> bool:
    """Whether the changed digits round what the hole means after all; a swapped unit never does."""
    if kind in {"unit", "sign"}:
        return False
    shown = Fraction(digits.replace(",", ""))
    half = Fraction(1, 2 * 10 ** len(digits.partition(".")[2]))
    room = max(half, abs(hole.meant) / 50) if hole.hedged else half
    return abs(shown - abs(hole.meant)) <= room


def _is_a_fact(context: Context, sign: str, digits: str, suffix: str, unit: str) -> bool:
    """Whether the changed figure, in the unit it is written in, is a fact of the context after all."""
    scale = Fraction({"k": 1000, "M": 10**6, "": 1}[suffix])
    shown = Fraction(digits.replace(",", "")) * scale
    half = Fraction(1, 2 * 10 ** len(digits.partition(".")[2])) * scale
    for figure in context.figures:
        value = Fraction(figure.value)
        if figure.unit is not Unit.TICK and not sign:
            value = abs(value)
        own = _OWN.get(figure.unit.value)
        if unit in _SHARES:
            fits = figure.unit.value in {"percent", "bps", "pips", "ratio"}
            value, size = (value * own if own else value), _SHARES[unit]
        elif unit in _HOURS:
            fits = figure.unit.value in {"hours", "seconds"}
            value, size = (value * own if own else value), _HOURS[unit]
        elif unit:
            size = Fraction(1)
            match unit:
                case "USDC":
                    fits = figure.symbol in {"USDC", "USD", "DAI"}
                case "WETH" | "WBTC" | "ETH":
                    fits = figure.symbol.endswith(unit.removeprefix("W"))
                case "gwei":
                    fits = figure.unit is Unit.GWEI
                case _:
                    fits = figure.unit is Unit.TICK
        else:
            fits, size = True, Fraction(1)
        written = (-shown if sign in {"−", "-"} else shown) * size
        if fits and not figure.news and abs(value - written) <= half * size:
            return True
    return False


@pytest.mark.parametrize("seed", SEEDS)
def test_a_changed_figure_is_caught(seed: int) -> None:
    chance = random.Random(seed)
    made = [mutant for sentence in ALL + UNSEEN for mutant in mutants(sentence, chance)]
    others = [mutant for mutant in made if mutant.of_another_fact]
    judged = [mutant for mutant in made if not mutant.of_another_fact]
    missed = [mutant for mutant in judged if mutant.passes]
    print(f"\nmutants: {len(judged)}, {len(missed)} missed: {_caught(judged, missed)} caught (the bar is 98 %)")
    for kind in KINDS:
        print(f"  {kind:8} {_share([mutant for mutant in judged if mutant.kind == kind], missed)}")
    print(f"  a fact   {_share([mutant for mutant in judged if not mutant.derived], missed)}")
    print(f"  derived  {_share([mutant for mutant in judged if mutant.derived], missed)}")
    fooled = [mutant for mutant in others if mutant.passes]
    print(f"  left out: {len(others)} that print another fact; with them {_caught(made, missed + fooled)} caught")
    for mutant in missed:
        print(f"  {mutant.kind}: {mutant.was} → {mutant.now} | {mutant.text}")
    assert len(judged) >= 220
    assert len(missed) <= 0.02 * len(judged)


# ── true figures in the wrong place ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A sentence in which one figure is another fact's, as true as the one it stands for."""

    sentence: Sentence
    kind: str
    was: str
    text: str

    @property
    def passes(self) -> bool:
        return self.sentence.checked(self.text).ok


def misplaced(sentence: Sentence) -> Iterator[Misplaced]:
    """Each figure replaced by the same thing of every other candidate, and by every other thing of its own."""
    own = dict(zip(sentence.context.values, sentence.context.figures, strict=True))
    for hole in sentence.holes:
        meant = own.get(hole.expression)
        for key, figure in own.items() if meant is not None else ():
            if meant is None or figure is meant or figure.unit is not meant.unit or figure.symbol != meant.symbol:
                continue
            if figure.name == meant.name:
                kind = "another candidate's"
            elif figure.about == meant.about:
                kind = "another name's"
            else:
                continue
            shown, _ = show(sentence.context.values[key], hole.form)
            if shown != hole.text and not _true_again(hole, "", shown.strip("+−kM"), "misplaced"):
                text = sentence.text[: hole.start] + shown + sentence.text[hole.end :]
                yield Misplaced(sentence, kind, hole.text, text)


def test_a_figure_that_says_what_it_is_and_whose_is_no_other() -> None:
    made = [one for sentence in BOUND for one in misplaced(sentence)]
    missed = [one for one in made if one.passes]
    print(f"\nmisplaced: {len(made)}, {len(missed)} missed: {1 - len(missed) / len(made):.1%} caught (the bar is 98 %)")
    for one in missed:
        print(f"  {one.kind}: {one.was} | {one.text}")
    assert len(made) >= 200
    assert {one.kind for one in made} == {"another candidate's", "another name's"}
    assert len(missed) <= 0.02 * len(made)


def test_figures_of_the_whole_corpus_are_mostly_held_to_their_place() -> None:
    """Most prose says less than what a figure is and whose; the rate is shown, and may not sink unnoticed."""
    made = [one for sentence in FIRST + SECOND + UNSEEN for one in misplaced(sentence)][::5]
    missed = sum(one.passes for one in made)
    print(f"\nmisplaced anywhere: {len(made)}, {1 - missed / len(made):.1%} caught")
    assert missed <= 0.5 * len(made)


def _caught(judged: list[Mutant], missed: list[Mutant]) -> str:
    return f"{1 - len(missed) / len(judged):.1%}"


def _share(some: list[Mutant], missed: list[Mutant]) -> str:
    return f"{len(some):5} {_caught(some, [mutant for mutant in missed if mutant in some])}"

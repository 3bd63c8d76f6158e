"""Read one line: intent, slots, how surely, and what may have been meant instead. It never raises."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from zuno.doors.glossary import asked_term
from zuno.doors.reading.intents import (
    UNCLEAR,
    Intent,
    Reading,
    intent_of,
    load_catalogue,
    may_be_guessed,
    normalize,
    write_out,
)
from zuno.doors.reading.nearest import NearestIntent, load_nearest
from zuno.doors.reading.slots import Filled, fill_slots
from zuno.kernel.errors import UsageError
from zuno.kernel.text import plain_text
from zuno.lp.service.create_request import parse_sentence
from zuno.lp.service.phrase import MAX_TEXT, RISK, SPECIAL_WORDS, Form, Term, split_phrase

NEGATIONS: Final = frozenset(
    """not don't dont never no cannot can't cant won't wont nothing without neither nor doesn't doesnt isn't isnt
    shouldn't wouldn't aren't arent refuse avoid except stop nt none nicht nein pas nao ne non""".split()
)
CONDITIONS: Final = frozenset(
    "if when whenever unless until till once after before later tomorrow tonight already maybe perhaps wait".split()
)


def is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith(("n't", "'nt"))


_SAID: Final = frozenset({Form.WORD, Form.SHARE})
_LEADING: Final = frozenset({Form.WORD, Form.SHARE, Form.POINTER, Form.ORDINAL, Form.ODD})


def verb_of(intent: Intent, terms: Sequence[Term]) -> int | None:
    """Where one of the intent's words stands."""
    return next((at for at, term in enumerate(terms) if term.kind in _SAID and term.low in intent.signs), None)


def doubt_about(intent: Intent, terms: Sequence[Term], filled: Filled) -> str:
    """Why this is no plain order; empty where it is one."""
    at = verb_of(intent, terms)
    if at is None:
        return "Nothing is signed on a guess; `help` lists what can be said."
    verb = terms[at].low
    words = [term.low for term in terms if term.kind is not Form.JOINT]
    stop = "stop" if "stop" in filled.slots else ""  # `stop 58000` is a price and no no
    noes = [word for word in words if word != stop and is_negation(word)]
    if noes == ["stop"] and "stop" in intent.takes:
        return "Nothing is done without a price. Say it in plain digits: set stop of BTC to 71500."
    if noes:
        return f"Nothing is done: I read a no. To {verb}, say `{verb}` and what."
    if any(word in CONDITIONS for word in words):
        return f"Nothing is done on a condition. Say `{verb}` and what, once it is time."
    if any(term.kind is Form.MARK for term in terms):
        return f"Nothing is done on a question. To {verb}, say so without a question mark."
    if broken := next((term for term in terms if term.kind is Form.AMBIGUOUS), None):
        return ambiguity(broken)
    verbs = load_catalogue().verbs
    levels = filled.slots.keys()  # `set stop of BTC to …` sets one thing
    if sum(t.kind in _SAID and t.low in verbs - levels and _orders(t, intent) for t in terms) > 1:
        return "One thing at a time: say the first of these alone."
    lead = without_courtesies([term.low for term in terms[:at] if term.kind in _LEADING])
    if not all(word in load_catalogue().groups for word in lead):
        return f"I am not sure that this is an order. To {verb}, begin with `{verb}`."
    if filled.doubled:
        return f"Name one thing to {verb}, not several."
    known = intent.vocabulary | load_catalogue().fillers | intent.signs
    slots = {id(term) for term in terms if term.kind is not Form.WORD and term.kind is not Form.ODD}
    strange = [*filled.unused, *(t for t in terms[at:] if id(t) not in slots and t.low not in known)]
    strange += [term for term in terms if term.kind is Form.ODD]
    if strange and strange[0].kind is Form.SHARE and "amount" in intent.takes:
        share = plain_text(strange[0].text, 40)
        return f"To {verb}, say how much in tokens, like 500 USDC: what {share!r} is of a wallet is not read here."
    if strange:
        return f"I do not know what {plain_text(strange[0].text, 40)!r} has to do with {verb}; leave it out."
    return ""


def _orders(term: Term, intent: Intent) -> bool:
    """A verb of another order is a second request, unless it is a word of this order's examples."""
    return term.low in intent.signs or term.low not in intent.vocabulary


def without_courtesies(words: Sequence[str]) -> Sequence[str]:
    while lead := next((c for c in load_catalogue().courtesies if tuple(words[: len(c)]) == c), None):
        words = words[len(lead) :]
    return words


def ambiguity(term: Term) -> str:
    word = plain_text(term.text, 40)
    if "_" in word:
        return f"{word!r} is no id; ids are plan_ or alert_ and 12 hex digits, req_ or run_ and 16."
    return f"{word!r} can be read in more than one way; write plain digits such as 0.5 or 1500."


_WORD = re.compile(r"(?<![\w/.-])[a-z][a-z']{3,23}(?![\w/.-])", re.IGNORECASE)
_SHORTEST: Final = 4


def mend(text: str) -> str:
    """The line with its slips mended. A `not` is never the result; an order is taken from what was typed alone."""
    return _WORD.sub(lambda match: nearest_word(match.group().lower()) or match.group(), text)


@lru_cache(maxsize=4_096)
def nearest_word(word: str) -> str | None:
    """The known word one slip away; None where there is none, or several that are as likely."""
    if word in load_catalogue().vocabulary or word in SPECIAL_WORDS or word.removesuffix("s") in SPECIAL_WORDS:
        return None
    if any(word == no or _is_one_slip(word, no) for no in NEGATIONS | CONDITIONS if len(no) >= _SHORTEST - 1):
        return None  # it may be a no
    near = {other for shorter in _with_a_letter_less(word) for other in _mendable().get(shorter, ())}
    near = {other for other in near if _is_one_slip(word, other)}
    swapped = {other for other in near if sorted(other) == sorted(word)}
    alike = {other for other in near if (other[0], other[-1]) == (word[0], word[-1])}
    best = swapped or alike or near
    return best.pop() if len(best) == 1 else None


def _with_a_letter_less(word: str) -> list[str]:
    return [word, *(word[:at] + word[at + 1 :] for at in range(len(word)))]


def _is_one_slip(word: str, other: str) -> bool:
    """A letter too many, too few or changed, or two neighbours swapped."""
    if len(word) != len(other):
        longer, shorter = sorted((word, other), key=len, reverse=True)
        return shorter in _with_a_letter_less(longer)
    wrong = [at for at, (ours, theirs) in enumerate(zip(word, other, strict=True)) if ours != theirs]
    swapped = len(wrong) == 2 and wrong[1] == wrong[0] + 1 and word[wrong[0]] == other[wrong[1]]
    return len(wrong) == 1 or (swapped and word[wrong[1]] == other[wrong[0]])


@lru_cache(maxsize=1)
def _mendable() -> Mapping[str, set[str]]:
    """Known words by what is left of them without one letter: two words that share one differ by one slip."""
    known = load_catalogue().vocabulary - NEGATIONS - CONDITIONS
    table: dict[str, set[str]] = defaultdict(set)
    for word in known | RISK.keys():
        if len(word) >= _SHORTEST and word.isalpha():
            for shorter in _with_a_letter_less(word):
                table[shorter].add(word)
    return table


_PER_UNUSED: Final = 0.8
"""What a slot that an intent has no use for takes from its score."""
_HARD: Final = frozenset(
    {Form.NUMBER, Form.AMOUNT, Form.PERCENT, Form.PLAN, Form.ALERT, Form.RUN, Form.REQUEST, Form.PAIR}
)
"""Counted twice: a line that names one of these is about it."""
_PER_MISSING: Final = 0.15
_SAME_WORDS: Final = 1.0
"""A line that is an example, word for word, gains so much."""
KNOWN: Final = 0.2
"""Below this the examples of an intent know too little of a line for it to be taken."""
MARGIN: Final = 0.4
_MARGIN_TO_MOVE: Final = 0.8
"""By so much the best intent must lead the next one; by more where it changes or stops something."""
_WISHES_APART = re.compile(r"\s*(?:[;,]|\band then\b|\bthen\b|\band\b|\balso\b)\s*", re.IGNORECASE)
_MOST_CHOICES: Final = 3
_LOOKED_AT: Final = 12
"""Of so many of the nearest intents the slots are filled."""
_NOTHING_SAID: Final = "Say what you want; `help` lists what can be said."
_ASK: Final = "I am not sure what you want."


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line under one intent."""

    intent: Intent
    score: float
    known: float
    slots: Mapping[str, str]
    unused: tuple[str, ...] = ()
    doubt: str = ""
    """Why it is no order, where it would sign; or what the intent cannot make of the line."""

    def reading(self, text: str, confidence: float = 0.0) -> Reading:
        why = (f"near {self.intent.name} ({self.known:g})", *(f"{name}: {value}" for name, value in self.slots.items()))
        return Reading(text, self.intent.name, self.slots, confidence, why, self.unused)


@lru_cache(maxsize=256)
def read(text: str) -> Reading:
    """What a line means, by its nearest examples."""
    if len(text) > MAX_TEXT:
        return Reading(text, UNCLEAR, ask=f"That is longer than {MAX_TEXT} characters; say it shorter.")
    first, _, rest = text.strip().partition(" ")
    if first.lower() == "parse" and rest.strip():
        return Reading(text, "parse", {"line": rest.strip()}, 1.0, ("'parse' asks how the rest is read",))
    if term := asked_term(text):
        return Reading(text, "glossary", {"term": term}, 1.0, (f"asks what {term!r} means",))
    terms, nearest = split_phrase(line := write_out(text)), load_nearest()
    if not normalize(terms):
        asked = any(term.kind is Form.MARK for term in terms)
        return Reading(text, "help", confidence=1.0) if asked else Reading(text, UNCLEAR, ask=_NOTHING_SAID)
    ranked = rank(line, nearest)
    return (
        _read_order(text, terms, ranked)
        or _read_number(text, terms)
        or _read_two_requests(line, ranked[0], nearest)
        or _read_best(text, terms, ranked)
    )


def rank(text: str, nearest: NearestIntent) -> list[Candidate]:
    """The nearest intents with what each makes of the line, the best first."""
    catalogue, typed = load_catalogue(), split_phrase(text)
    mended = mend(text)
    terms = typed if mended == text else split_phrase(mended)
    words = normalize(terms)
    line = tuple(without_courtesies(words) or words)
    scored = nearest.score_line(line)
    near = sorted(scored, key=lambda name: -scored[name][0])[:_LOOKED_AT]
    verbs = {term.low for term in typed} & catalogue.verbs
    near += [name for name, intent in catalogue.intents.items() if intent.signs & verbs and name not in near]
    candidates = []
    for name in near:
        score, known = scored[name]
        same = line in catalogue.intents[name].examples
        candidates.append(_candidate(catalogue.intents[name], mended, typed, terms, score + same * _SAME_WORDS, known))
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.intent.name))


def _candidate(
    intent: Intent, text: str, typed: Sequence[Term], terms: Sequence[Term], score: float, known: float
) -> Candidate:
    if intent.name == "create":
        return _read_create_request(intent, text, score, known)
    filled = fill_slots(intent, terms)
    unused = filled.unused
    bare = Reading(text, intent.name, filled.slots)
    hard = sum(term.kind in _HARD for term in unused)
    score -= _PER_UNUSED * (len(unused) + hard) + _PER_MISSING * len(bare.missing)
    doubt = doubt_about(intent, typed, filled) if intent.signs else ""
    if filled.doubled and not intent.signs:
        doubt = f"Name one at a time: {plain_text(filled.doubled[0].text, 40)!r} is another."
    return Candidate(intent, score, known, filled.slots, tuple(term.text for term in unused), doubt)


def _read_create_request(intent: Intent, text: str, score: float, known: float) -> Candidate:
    """The wish's own reader decides what a sentence about capital says; what it does not understand is asked back."""
    try:
        heard = parse_sentence(text.replace("?", " "), intent.vocabulary)
    except UsageError as mistake:
        return Candidate(intent, score - _PER_UNUSED, known, {}, doubt=str(mistake))
    lines = [line for line in heard.lines if line.amount is not None and line.token is not None]
    kept, amounts = heard.long_token, {line.amount for line in lines}
    bare = [line.amount for line in heard.lines if line.token is None and line.amount not in amounts]
    if lines and bare:
        doubt = f"{bare[0]:f} of what? A range is said like between 2800 and 3400."
        return Candidate(intent, score - _PER_UNUSED / 2, known, {}, doubt=doubt)
    lines.sort(key=lambda line: line.token != kept)  # what one stays long in comes first
    given = {
        "token": lines[0].token if lines else None,
        "quantity": f"{lines[0].amount:f}" if lines else None,
        "with": f"{lines[1].amount:f} {lines[1].token}" if len(lines) > 1 else None,
        "pair": None if heard.pair is None else "/".join(heard.pair),
        "fee": None if heard.fee is None else f"{heard.fee}pips",
        "exposure": None if heard.exposure is None else heard.exposure.value,
        "profile": None if heard.profile is None else heard.profile.value,
        "chain": heard.chain,
        "long": kept if not lines else None,
        **dict(zip(("low", "high"), heard.prices or (None, None), strict=True)),
    }
    unused = tuple(str(line.token or line.amount) for line in heard.lines if line not in lines and line.token != kept)
    slots = {name: value for name, value in given.items() if value is not None}
    return Candidate(intent, score - _PER_UNUSED * len(unused) / 2, known, slots, unused)


def _read_order(text: str, terms: Sequence[Term], ranked: Sequence[Candidate]) -> Reading | None:
    """A line with a word that signs: the order it gives, or why it is none. None where the word is another's too."""
    orders = [c for c in ranked if c.intent.signs and verb_of(c.intent, terms) is not None]
    if not orders:
        return None
    best = ranked[0]
    verbs = {term.low for term in terms if any(term.low in order.intent.signs for order in orders)}
    strange = verbs - best.intent.vocabulary
    if (not best.intent.signs and not strange) or (best not in orders and strange <= load_catalogue().soft):
        return None
    plain = [order for order in orders if not order.doubt]
    if not plain:
        first = orders[0]
        # Of what signs, only what the line itself says is offered: "add half" is no wish to remove.
        offered = [c for c in ranked if not c.intent.signs or c in orders]
        choices = _choices(text, offered, orders=not _is_refused(terms))
        return Reading(text, UNCLEAR, ask=first.doubt, choices=choices, suggestion=first.intent.name)
    if len(plain) > 1 and plain[0].score - plain[1].score < MARGIN / 2:
        return Reading(
            text, UNCLEAR, ask=_ASK, choices=_choices(text, plain, orders=True), suggestion=plain[0].intent.name
        )
    return _answer(text, terms, plain[0].intent, 1.0) or plain[0].reading(text, 1.0)


def _is_refused(terms: Sequence[Term]) -> bool:
    """Whether the line says no, perhaps, or asks."""
    return any(term.kind is Form.MARK or is_negation(term.low) or term.low in CONDITIONS for term in terms)


def _read_number(text: str, terms: Sequence[Term]) -> Reading | None:
    broken = next((term for term in terms if term.kind is Form.AMBIGUOUS), None)
    return None if broken is None else Reading(text, UNCLEAR, ask=ambiguity(broken))


def _read_two_requests(text: str, best: Candidate, nearest: NearestIntent) -> Reading | None:
    """Two clauses that mean different things by themselves."""
    clauses = [clause for clause in _WISHES_APART.split(text) if clause]
    if len(clauses) < 2 or len(clauses) > 5 or best.known >= 0.97:
        return None
    requests: dict[str, Candidate] = {}
    for clause in clauses:
        terms = split_phrase(clause)
        if not any(term.kind is Form.WORD and term.low not in load_catalogue().fillers for term in terms):
            continue
        ranked = rank(clause, nearest)
        if ranked[0].known >= 0.6 and _lead(ranked) >= MARGIN:
            requests.setdefault(ranked[0].intent.name, ranked[0])
    if len(requests) < 2:
        return None
    choices = tuple(c.reading(text) for c in requests.values() if not c.intent.answer and not c.intent.signs)
    return Reading(text, UNCLEAR, ask="That is more than one wish; say one at a time.", choices=choices[:_MOST_CHOICES])


def _lead(ranked: Sequence[Candidate]) -> float:
    """By how much the best leads the next one that means another command."""
    best = ranked[0]
    command = best.reading("").template
    second = next((c for c in ranked[1:] if not command or c.reading("").template != command), None)
    return best.score if second is None else best.score - second.score


def _read_best(text: str, terms: Sequence[Term], ranked: Sequence[Candidate]) -> Reading:
    best, lead = ranked[0], _lead(ranked)
    sure = min(lead / (_MARGIN_TO_MOVE if best.intent.moves else MARGIN), best.known / KNOWN)
    confidence = round(max(0.0, sure / (1 + sure)), 3)
    strange = [term for term in terms if term.kind is not Form.MARK and term.low not in best.intent.vocabulary]
    if best.intent.signs or sure < 1 or _is_refused(strange):
        choices = _choices(text, ranked, orders=not _is_refused(terms))
        ask = f"{_ASK} One of these?" if choices else f"{_ASK} `help` lists what can be said."
        order = best.intent.name if best.intent.signs and sure >= 1 else None
        if order is not None:
            ask = f"Did you mean {' or '.join(sorted(best.intent.signs))}? Type it out: it is never guessed."
        return Reading(text, UNCLEAR, confidence=min(confidence, 0.49), ask=ask, choices=choices, suggestion=order)
    if best.doubt:
        choices = _choices(text, ranked[1:], orders=False)
        return Reading(text, UNCLEAR, confidence=confidence, ask=best.doubt, choices=choices)
    return _answer(text, terms, best.intent, confidence) or best.reading(text, confidence)


def _answer(text: str, terms: Sequence[Term], intent: Intent, confidence: float) -> Reading | None:
    """What is said where there is no command, with the intents beside it."""
    if not intent.answer:
        return None
    beside = (intent_of(name) for name in intent.nearest)
    choices = tuple(Reading(text, other.name, fill_slots(other, terms).slots) for other in beside)
    return Reading(text, intent.name, confidence=confidence, ask=intent.answer, choices=choices)


def _choices(text: str, ranked: Sequence[Candidate], *, orders: bool) -> tuple[Reading, ...]:
    """The nearest readings that mean different commands."""
    chosen: dict[tuple[str, ...], Reading] = {}
    for candidate in ranked:
        reading = candidate.reading(text)
        fits = candidate.known >= (KNOWN if candidate.intent.signs else KNOWN / 4)
        if len(chosen) < _MOST_CHOICES and reading.template and fits and (orders or not reading.signs):
            chosen.setdefault(reading.template, reading)
    return tuple(chosen.values())


def fill_missing(reading: Reading, text: str) -> Reading | None:
    """The reading with what was missing, where the text is nothing but that; None where it is something else."""
    terms = split_phrase(write_out(text[:MAX_TEXT]))
    intent, fillers = intent_of(reading.intent), load_catalogue().fillers
    named = fillers | {"position", "plan", "alert", "run", "percent"}
    if any(term.kind in {Form.ODD, Form.MARK} or (term.kind is Form.WORD and term.low not in named) for term in terms):
        return None
    if intent.name == "create":
        candidate = _read_create_request(intent, f"{reading.text} {text}", 0.0, 1.0)
        whole = None if candidate.doubt else replace(candidate.reading(f"{reading.text} {text}", reading.confidence))
    else:
        filled = fill_slots(intent, terms)
        slots = {**reading.slots, **filled.slots}
        whole = None if filled.unused or filled.doubled else replace(reading, slots=slots)
    return whole if whole is not None and whole.missing != reading.missing else None


def apply_model_intent(name: str, text: str, copied: Mapping[str, str]) -> Reading | None:
    """The line under an intent that a model found, with the words it copied; None where these do not fit."""
    if not may_be_guessed(name):
        return None
    intent = intent_of(name)
    if name == "create":
        candidate = _read_create_request(intent, text, 0.0, 1.0)
        return None if candidate.doubt else replace(candidate.reading(text, 0.5), source="model")
    slots: dict[str, str] = {}
    for slot, words in copied.items():
        value = fill_slots(intent, split_phrase(words)).slots.get(slot)
        if value is None:
            return None
        slots[slot] = value
    why = ("a model read it so", *(f"{slot}: {value}" for slot, value in slots.items()))
    return Reading(text, name, slots, 0.5, tuple(plain_text(reason, 80) for reason in why), source="model")

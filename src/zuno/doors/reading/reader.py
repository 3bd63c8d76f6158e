"""Read one line: intent, slots, how surely, and which words said so. It never raises and never guesses a signature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from zuno.doors.reading.intents import DANGEROUS, GUESSABLE, Intent, Reading, Slots, shape_of
from zuno.doors.reading.rules import Match, best_match, second_wishes
from zuno.doors.reading.tokens import MAX_TEXT, Token, tokens_of
from zuno.doors.reading.words import DANGEROUS_VERBS, LEADS, ORDINALS, SHARES, TRAILS
from zuno.kernel.errors import Usage
from zuno.kernel.text import plain_text
from zuno.lp.service.wish_parser import parse_wish
from zuno.lp.service.wish_words import LONG, RISK

SURE: Final = 0.6
"""Below this a reading is asked back."""
_PER_MENDED: Final = 0.9
_HEADED: Final = 3.0
_WEAK: Final = 0.9
_LISTS: Final = frozenset(
    "POSITIONS POOLS PLANS ALERTS BALANCE ALLOWANCE PEERS AGENTS HISTORY JOURNAL OPTIONS PNL".split()
)
_VERBS: Final = frozenset(intent.name for intent in DANGEROUS_VERBS.values())
_POSITION_OBJECTS: Final = frozenset("PRON POSITION NUMBER ORDINAL CHAIN".split())
_PLAN_OBJECTS: Final = frozenset("PRON PLAN PLANID ORDINAL".split())
_OBJECTS: Final = MappingProxyType(
    {
        Intent.APPROVE: _PLAN_OBJECTS,
        Intent.APPLY: _PLAN_OBJECTS,
        Intent.CANCEL: _PLAN_OBJECTS,
        Intent.COLLECT: _POSITION_OBJECTS | {"FEES"},
        Intent.CLOSE: _POSITION_OBJECTS,
        Intent.ADD: _POSITION_OBJECTS | {"LIQUIDITY", "AMOUNT"},
        Intent.REMOVE: _POSITION_OBJECTS | {"LIQUIDITY", "PERCENT"},
    }
)
"""What may stand in an order, by what it orders."""
_POINTED_AT: Final = frozenset({"plan", "position", "alert"})
_ASIDES: Final = frozenset({"JOINT", "FILL", "DULL"})
_SLOTS_OF: Final = MappingProxyType(
    {
        "AMOUNT": {"amount"},
        "PERCENT": {"percent", "fee"},
        "PLANID": {"plan"},
        "REQUESTID": {"request"},
        "ALERTID": {"alert"},
        "NUMBER": {"position", "count", "candidate"},
        "SPAN": {"span"},
        "PAIR": {"pair"},
    }
)
_PARTICULARS: Final = frozenset(
    """NUMBER POSITION PRON ORDINAL PLANID PLAN REQUESTID ALERTID ALERTS AMOUNT PERCENT SPAN CHAIN PAIR FEE TOKEN FILL
    AND JOINT ALL LONG RISK""".split()
)
_WISH_NOISE: Final = frozenset(
    "play where should would recommend suggest what how new some something which best i".split()
)


def read(text: str) -> Reading:
    """What a line means, by rule."""
    if len(text) > MAX_TEXT:
        return _ask_back(text, f"That is longer than {MAX_TEXT} characters; say it shorter.")
    first, _, rest = text.strip().partition(" ")
    if first.lower() == "parse" and rest.strip():
        return Reading(text, Intent.PARSE, Slots(wish=rest.strip()), 1.0, ("'parse' asks how the rest is read",))
    tokens = list(_mark_tokens(tokens_of(text)))
    if not tokens:
        return _ask_back(text, "Say what you want; `help` lists what can be said.")
    if [token.concept for token in tokens] == ["QUESTION"]:
        return Reading(text, Intent.HELP, confidence=1.0, why=("'?' asks for help",))
    if any(token.concept in _VERBS for token in tokens) and not any(token.concept == "HOWTO" for token in tokens):
        return _read_order(text, tokens)
    if slip := next((token for token in tokens if token.concept == "SLIP"), None):
        meant = DANGEROUS_VERBS[slip.value]
        return _ask_back(text, f"Did you mean {slip.value}? Type it out: it is never guessed.", meant, (slip,))
    return _match_intent(text, tokens)


def fill_missing(reading: Reading, text: str) -> Reading | None:
    """The reading with what was missing, where the text is nothing but that; None where it is something else."""
    tokens = list(_mark_tokens(tokens_of(text[:MAX_TEXT])))
    if not tokens or any(token.concept not in _PARTICULARS for token in tokens):
        return None
    if reading.intent is Intent.CREATE:
        whole = _read_wish(f"{reading.slots.wish or ''} {text}".strip(), tokens, reading.confidence, reading.why)
    else:
        slots = _slots(reading.intent, tokens)
        if slots is None:
            return None
        known = reading.slots.said() | slots.said()
        whole = replace(reading, slots=Slots(**known), why=(*reading.why, *_slot_reasons(reading.intent, slots)))
    return whole if not whole.ask and whole.missing != reading.missing else None


def apply_model_intent(intent: Intent, text: str, said: Mapping[str, str]) -> Reading | None:
    """The line under an intent that somebody else found, with the words they copied; None where these do not fit."""
    if intent not in GUESSABLE:
        return None
    if intent is Intent.CREATE:
        wish = _read_wish(text, list(_mark_tokens(tokens_of(text))), SURE, ())
        return None if wish.ask else replace(wish, source="model")
    slots: dict[str, str] = {}
    for name, words in said.items():
        found = _slots(intent, list(_mark_tokens(tokens_of(words))))
        value = None if found is None else found.said().get(name)
        if value is None:
            return None
        slots[name] = value
    why = tuple(f"{name}: {value}" for name, value in slots.items())
    return Reading(text, intent, Slots(**slots), SURE, ("a model read it so", *why), source="model")


def _ask_back(text: str, ask: str, suggestion: Intent | None = None, seen: Sequence[Token] = ()) -> Reading:
    why = tuple(f"{plain_text(token.text, 40)!r} is not taken for granted" for token in seen)
    return Reading(text, Intent.UNCLEAR, why=why, ask=ask, suggestion=suggestion)


def _mark_tokens(tokens: Sequence[Token]) -> Iterator[Token]:
    """Ordinals, `long`, and what was made, by where they stand."""
    for at, token in enumerate(tokens):
        behind = tokens[at + 1].concept if at + 1 < len(tokens) else ""
        if token.value in ORDINALS and behind not in {"SPAN", "NUMBER"}:
            yield replace(token, concept="ORDINAL", value=ORDINALS[token.value])
        elif token.value == "that" and at and tokens[at - 1].concept in {"POSITIONS", "PLANS", "POOLS", "ALERTS"}:
            yield replace(token, concept="FILL")  # "positions that are …" points at nothing
        elif token.value in LONG:
            yield replace(token, concept="LONG")
        else:
            yield token


# -- what moves money: an order in which every word is understood, or nothing


def _read_order(text: str, tokens: list[Token]) -> Reading:
    at = next(at for at, token in enumerate(tokens) if token.concept in _VERBS)
    verb = tokens[at]
    intent = DANGEROUS_VERBS[verb.value]
    if refusal := _no_order(tokens, at, intent):
        return _ask_back(text, refusal, intent, (verb,))
    slots = _slots(intent, tokens)
    if slots is None:
        return _ask_back(text, f"Name one thing to {verb.value}, not several.", intent, (verb,))
    why = (f"{verb.text!r} orders {intent.value}", *_slot_reasons(intent, slots))
    return Reading(text, intent, slots, 1.0, why)


def _no_order(tokens: Sequence[Token], at: int, intent: Intent) -> str:
    """Why this is no plain order; empty where it is."""
    verb = tokens[at].text
    concepts = {token.concept for token in tokens}
    if refusal := _no_number(tokens):
        return refusal
    if "NEG" in concepts:
        return f"Nothing is done: I read a no. To {verb}, say `{verb}` and what."
    if "COND" in concepts:
        return f"Nothing is done on a condition. Say `{verb}` and what, once it is time."
    if "QUESTION" in concepts:
        return f"Nothing is done on a question. To {verb}, say so without a question mark."
    if sum(token.concept in _VERBS for token in tokens) > 1:
        return "One thing at a time: say the first of these alone."
    if not _leads(tokens[:at]):
        return f"I am not sure that this is an order. To {verb}, begin with `{verb}`."
    for place, token in enumerate(tokens[at + 1 :], at + 1):
        if token.concept in _OBJECTS[intent] or token.value in TRAILS or token.concept == "JOINT":
            continue
        if token.value in SHARES and intent is Intent.REMOVE:
            continue
        if token.concept == "AND" and place + 1 < len(tokens) and tokens[place + 1].concept == "AMOUNT":
            continue
        return f"I do not know what {plain_text(token.text, 40)!r} has to do with {verb}; leave it out."
    return ""


def _leads(tokens: Sequence[Token]) -> bool:
    """Whether only courtesies stand before the verb."""
    words = [word for token in tokens if token.concept != "JOINT" for word in (token.value or token.text).split()]
    while words:
        lead = max((lead for lead in LEADS if tuple(words[: len(lead)]) == lead), key=len, default=None)
        if lead is None:
            return False
        words = words[len(lead) :]
    return not any(token.mended for token in tokens)


# -- everything else


def _match_intent(text: str, tokens: list[Token]) -> Reading:
    match = best_match(tokens)
    if match is None:
        return _ask_back(text, _ask_again(tokens))
    intent = match.rule.intent
    if twice := _two_wishes(match, tokens):
        return _ask_back(text, twice, intent)
    if intent in DANGEROUS and (refusal := _not_plain(tokens)):
        return _ask_back(text, refusal, intent)
    confidence = _confidence(match, tokens)
    why = tuple(_reasons(match, tokens))
    if confidence < SURE:
        return replace(_ask_back(text, _ask_again(tokens), intent), confidence=confidence, why=why)
    if intent is Intent.CREATE:
        return _read_wish(text, tokens, confidence, why)
    slots = _slots(intent, tokens)
    if slots is None:
        return _ask_back(text, "Name one at a time, not several.", intent)
    if stray := _stray(intent, match, tokens):
        return _ask_back(
            text, f"I do not know what {stray.text!r} is for here; say it without, or more plainly.", intent
        )
    return Reading(text, intent, slots, confidence, (*why, *_slot_reasons(intent, slots)))


def _stray(intent: Intent, match: Match, tokens: Sequence[Token]) -> Token | None:
    """A particular the intent has no use for: then something else was meant."""
    takes = shape_of(intent).takes
    for at, token in enumerate(tokens):
        slots = _SLOTS_OF.get(token.concept)
        if slots is not None and at not in match.used and takes.isdisjoint(slots):
            return token
    return None


def _ask_again(tokens: Sequence[Token]) -> str:
    if any(token.concept == "SIGN" for token in tokens):
        return "Nothing is signed or sent by that word: plans are approved, then applied; `help` says how."
    if refusal := _no_number(tokens):
        return refusal
    unknown = next((token for token in tokens if token.concept in {"UNKNOWN", "ODD"}), None)
    if unknown is None:
        return "I am not sure what you want; `help` lists what can be said."
    return f"I do not know {plain_text(unknown.text, 40)!r} here; `help` lists what can be said."


def _no_number(tokens: Sequence[Token]) -> str:
    broken = next((token for token in tokens if token.concept == "BADNUMBER"), None)
    return "" if broken is None else f"{broken.text[:40]!r} is no number; write plain digits such as 0.5 or 1500."


def _two_wishes(match: Match, tokens: Sequence[Token]) -> str:
    if "SIGN" in {token.concept for token in tokens}:
        return _ask_again(tokens)
    if broken := next((token for token in tokens if token.concept == "BADID"), None):
        return f"{plain_text(broken.text, 40)!r} is no id; ids are plan_ or alert_ and 12 hex digits, req_ and 16."
    if refusal := _no_number(tokens):
        return refusal
    for token in tokens:
        if token.concept in {"NEG", "COND", "RANGE"} and token.concept not in match.rule.absorbs:
            return f"{plain_text(token.text, 40)!r} makes me unsure; say plainly what to show or do."
    others = list(second_wishes(match, tokens))
    lists = {token.concept for token in tokens if token.concept in _LISTS}
    joined = any(token.concept in {"AND", "JOINT"} for token in tokens)
    more = len(lists) > 1 or (lists and match.rule.intent is Intent.SWITCH)
    if others or (joined and more):
        said = others[0].text if others else "and"
        return f"That is more than one wish ({plain_text(said, 40)!r}); say one at a time."
    return ""


def _not_plain(tokens: Sequence[Token]) -> str:
    doubtful = next((t for t in tokens if t.mended or t.concept in {"UNKNOWN", "ODD", "QUESTION", "SLIP"}), None)
    return "" if doubtful is None else f"{plain_text(doubtful.text, 40)!r} makes me unsure; say it plainly."


def _confidence(match: Match, tokens: Sequence[Token]) -> float:
    content = [token for token in tokens if token.concept not in {*_ASIDES, "QUESTION", "IS", "AND"}]
    known = [token for token in content if token.concept not in {"UNKNOWN", "ODD"}]
    confidence = len(known) / max(1, len(content))
    confidence *= _PER_MENDED ** sum(token.mended for token in tokens)
    if match.score < _HEADED:
        # Only things were named, nothing was asked of them: a word that is not known may be what was asked.
        confidence *= _WEAK if known == content else SURE / 2
    return round(confidence, 3)


def _reasons(match: Match, tokens: Sequence[Token]) -> Iterator[str]:
    used = ", ".join(tokens[at].said for at in match.used)
    yield f"{used} → {match.rule.intent.value}"
    for at, token in enumerate(tokens):
        if token.mended and at not in match.used:
            yield f"{token.text!r} read as {token.value!r}"
        elif token.concept in {"UNKNOWN", "ODD"}:
            yield f"{plain_text(token.text, 40)!r} is not known"


def _slot_reasons(intent: Intent, slots: Slots) -> Iterator[str]:
    for name, value in slots.said().items():
        yield f"{name}: {value}"


# -- slots


def _slots(intent: Intent, tokens: Sequence[Token]) -> Slots | None:
    """The slots the intent takes; None where the line names several of what it takes one of."""
    takes = shape_of(intent).takes
    kinds = ("PLANID", "NUMBER", "AMOUNT", "PERCENT", "SPAN", "CHAIN", "PAIR")
    values: dict[str, list[str]] = {kind: [] for kind in kinds}
    candidate: str | None = None
    for at, token in enumerate(tokens):
        if token.concept == "NUMBER" and at and tokens[at - 1].value in {"candidate", "option"}:
            candidate = token.value
        elif token.concept in values:
            values[token.concept].append(token.value)
    single = {name: found for name, found in values.items() if name not in {"PLANID", "AMOUNT"}}
    plans = list(dict.fromkeys(values["PLANID"]))
    if len(plans) > (2 if "other" in takes else 1) or any(len(set(found)) > 1 for found in single.values()):
        return None
    said = {
        "position": _first(values["NUMBER"]),
        "count": _first(values["NUMBER"]),
        "plan": _first(plans),
        "other": plans[1] if len(plans) > 1 else None,
        "request": _value(tokens, "REQUESTID"),
        "alert": _value(tokens, "ALERTID"),
        "amount": " + ".join(values["AMOUNT"]) or None,
        "percent": _percent(tokens),
        "span": _first(values["SPAN"]),
        "chain": _first(values["CHAIN"]),
        "pair": _first(values["PAIR"]),
        "fee": _fee(tokens),
        "profile": next((RISK[token.value].value for token in tokens if token.value in RISK), None),
        "candidate": candidate,
        "all": "yes" if any(token.concept == "ALL" for token in tokens) else None,
        "refers": _refers(tokens),
    }
    kept = {name: value for name, value in said.items() if name in takes and value is not None}
    if any(kept.get(name) for name in ("position", "plan", "request", "alert")):
        kept.pop("refers", None)
    return Slots(**kept)


def _first(values: Sequence[str]) -> str | None:
    return values[0] if values else None


def _value(tokens: Sequence[Token], concept: str) -> str | None:
    return next((token.value for token in tokens if token.concept == concept), None)


def _percent(tokens: Sequence[Token]) -> str | None:
    share = next((SHARES[token.value] for token in tokens if token.value in SHARES), None)
    said = _value(tokens, "PERCENT")
    if said is None:
        return share
    falls = any(token.concept in {"DROP", "DOWN"} for token in tokens)
    return f"-{said}" if falls and not said.startswith("-") else said


def _fee(tokens: Sequence[Token]) -> str | None:
    from zuno.lp.service.arguments import fee_of

    said = next((token.text for token in tokens if token.concept in {"FEE", "PERCENT"}), None)
    if said is None:
        return None
    try:
        return str(fee_of(said.replace("basis points", "bps")))
    except Usage:
        return None


def _refers(tokens: Sequence[Token]) -> str | None:
    if ordinal := _value(tokens, "ORDINAL"):
        return ordinal
    pointing = any(token.concept == "PRON" or token.value == "try it" for token in tokens)
    definite = any(token.definite and _POINTED_AT.intersection(token.value.split()) for token in tokens)
    return "last" if pointing or definite else None


# -- a position to open


def _read_wish(text: str, tokens: Sequence[Token], confidence: float, why: tuple[str, ...]) -> Reading:
    """The wish's own reader decides what a sentence about capital says; what it does not understand is asked back."""
    wish = _wish_text(text, tokens)
    try:
        heard = parse_wish(wish)
    except Usage as mistake:
        reading = _ask_back(text, str(mistake), Intent.CREATE)
        return replace(reading, confidence=min(confidence, SURE / 2), why=why)
    lines = [f"{line.amount:f} {line.token}" for line in heard.lines if line.amount is not None and line.token]
    complete = lines and len(lines) == len(heard.lines)
    slots = Slots(
        amount=" + ".join(lines) if complete else None,
        pair=None if heard.pair is None else "/".join(heard.pair),
        fee=None if heard.fee is None else str(heard.fee),
        profile=None if heard.profile is None else heard.profile.value,
        exposure=None if heard.exposure is None else heard.exposure.value,
        chain=heard.chain,
        wish=wish,
    )
    return Reading(text, Intent.CREATE, slots, confidence, (*why, *heard.notes))


def _wish_text(text: str, tokens: Sequence[Token]) -> str:
    """The sentence as typed, with slips mended and without the words that only ask."""
    mended = {token.text: token.value for token in tokens if token.mended}
    words = []
    for word in text.split():
        bare = word.strip("?!.,;:").lower()
        if bare in _WISH_NOISE:
            continue
        words.append(word.lower().replace(bare, mended[bare]) if bare in mended else word)
    return " ".join(words)

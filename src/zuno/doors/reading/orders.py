"""When a line is an order to sign: its verb spelled right, every word about the order, no doubt of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from zuno.doors.reading.intents import Intent, load_catalogue
from zuno.doors.reading.slots import Filled
from zuno.kernel.text import plain_text
from zuno.lp.service.phrase import Form, Term

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
    if any(is_negation(word) for word in words if word != stop):
        return f"Nothing is done: I read a no. To {verb}, say `{verb}` and what."
    if any(word in CONDITIONS for word in words):
        return f"Nothing is done on a condition. Say `{verb}` and what, once it is time."
    if any(term.kind is Form.MARK for term in terms):
        return f"Nothing is done on a question. To {verb}, say so without a question mark."
    if broken := next((term for term in terms if term.kind is Form.AMBIGUOUS), None):
        return ambiguity(broken)
    verbs = load_catalogue().verbs
    if sum(term.kind in _SAID and term.low in verbs and _orders(term, intent) for term in terms) > 1:
        return "One thing at a time: say the first of these alone."
    if not _is_lead([term.low for term in terms[:at] if term.kind in _LEADING]):
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
    """A verb of another order is a second wish, unless it is a word of this one's examples."""
    return term.low in intent.signs or term.low not in intent.vocabulary


def _is_lead(words: Sequence[str]) -> bool:
    """Whether only courtesies stand before the verb."""
    rest = without_courtesies(words)
    return all(word in load_catalogue().groups for word in rest)


def without_courtesies(words: Sequence[str]) -> Sequence[str]:
    while lead := next((c for c in load_catalogue().courtesies if tuple(words[: len(c)]) == c), None):
        words = words[len(lead) :]
    return words


def ambiguity(term: Term) -> str:
    said = plain_text(term.text, 40)
    if "_" in said:
        return f"{said!r} is no id; ids are plan_ or alert_ and 12 hex digits, req_ or run_ and 16."
    return f"{said!r} can be read in more than one way; write plain digits such as 0.5 or 1500."

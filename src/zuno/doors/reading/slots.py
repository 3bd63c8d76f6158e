"""Fill an intent's slots from the terms of a line; what it has no use for is named, not dropped."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from zuno.doors.reading.intents import POINTED_AT, Intent
from zuno.kernel.errors import UsageError
from zuno.lp.service.arguments import fee_of
from zuno.lp.service.phrase import TOKENS, Form, Term
from zuno.markets.market import KNOWN_COINS

_PRICES: Final = frozenset({"move", "above", "below", "fees"})
_IDS: Final = {
    Form.PLAN: ("plan", "reference", "other"),
    Form.REQUEST: ("reference",),
    Form.RUN: ("run", "reference"),
    Form.ALERT: ("alert",),
    Form.RULE: ("rule",),
    Form.TRADE: ("trade",),
    Form.ORDER: ("order",),
    Form.SPAN: ("span", "since", "hold"),
    Form.DAY: ("since",),
    Form.TIMES: ("leverage",),
    Form.ADDRESS: ("address",),
    Form.FEE: ("fee",),
    Form.PROFILE: ("profile",),
    Form.FILE: ("file",),
}
"""Which slots a kind of term goes into, the first that is taken and free."""
_BEFORE_POSITION: Final = frozenset("position positions nft lp id number position's".split())
_BEFORE_PRICE: Final = frozenset(
    "at to hits hit reaches reach above over below under than exceeds exceed past price falls drops".split()
)
_DOWN: Final = frozenset(
    """drop drops dropped dropping fall falls fell falling crash crashes crashed down lower lowers lose loses dump dumps
    dumped sink sinks decline declines below under less""".split()
)
_UP: Final = frozenset("above over exceed exceeds more rises rise up higher exceeding past greater".split())
_EXITS: Final = {
    **dict.fromkeys("stop --stop sl stop-loss stoploss loss".split(), "stop"),
    **dict.fromkeys("target --target tp take-profit profit".split(), "target"),
}
"""Words in front of a price at which a position ends."""
_BEFORE_EXIT: Final = frozenset("at of is price to up loss level on for my the".split())
_MARKED: Final = frozenset({Form.TOKEN, Form.TRADE, Form.CHAIN})
"""What may stand between such a word and its price: `stop of BTC to 71500`."""
STRATEGIES: Final = frozenset({"debate", "trend", "cash-carry", "lp-hedge"})
"""Sleeves that an account may have."""
_KINDS: Final = {"spot": "spot", **dict.fromkeys("perp perps perpetual perpetuals".split(), "perp")}
_DOLLARS: Final = ("margin", "cash", "capital")
"""Slots that take a sum of money."""
_SIDES: Final = frozenset({"long", "short"})
_SOFT: Final = frozenset(
    {Form.TOKEN, Form.CHAIN, Form.PROFILE, Form.ORDINAL, Form.SHARE, Form.DAY, Form.SPAN, Form.NUMBER}
)
"""Kinds whose words may simply be words of an example."""


@dataclass(slots=True)
class Filled:
    slots: dict[str, str] = field(default_factory=dict)
    unused: list[Term] = field(default_factory=list)
    """Found in the line, of no use to the intent."""
    doubled: list[Term] = field(default_factory=list)
    """A second answer to what one is taken of."""


def fill_slots(intent: Intent, terms: Sequence[Term]) -> Filled:
    return _Filler(intent, terms).fill()


class _Filler:
    def __init__(self, intent: Intent, terms: Sequence[Term]) -> None:
        self._takes, self._terms = intent.takes, terms
        self._vocabulary = intent.vocabulary
        self._words = {term.value for term in terms if term.kind is Form.WORD}
        self._filled = Filled()

    def fill(self) -> Filled:
        self._place_numbers([at for at, term in enumerate(self._terms) if term.kind is Form.NUMBER])
        for at, term in enumerate(self._terms):
            if term.kind not in {Form.WORD, Form.MARK, Form.JOINT, Form.ODD, Form.NUMBER, Form.AMBIGUOUS}:
                self._place(at, term)
        self._place_words()
        slots = self._filled.slots
        if any(slots.get(name) for name in POINTED_AT):
            pointing = {slots.pop("refers", ""), slots.pop("holds", "")} - {"", "last"}
            self._filled.unused += [term for term in self._terms if term.value in pointing]
        return self._filled

    def _word(self, at: int) -> str:
        return self._terms[at].value if 0 <= at < len(self._terms) and self._terms[at].kind is Form.WORD else ""

    def _put(self, name: str, term: Term, value: str | None = None) -> None:
        filled = term.value if value is None else value
        if self._filled.slots.setdefault(name, filled) != filled:
            self._filled.doubled.append(term)

    def _leave(self, term: Term) -> None:
        word_of_ours = term.kind in _SOFT and term.low in self._vocabulary
        place = "{n}" if term.kind is Form.NUMBER else f"{{{term.kind.value}}}"
        market = term.kind is Form.TOKEN and _PRICES & self._takes and place in self._vocabulary
        if not word_of_ours and not market:
            self._filled.unused.append(term)

    def _place_numbers(self, places: list[int]) -> None:
        free = [at for at in places if not self._place_marked(at)]
        if "low" in self._takes and len(free) >= 2:
            wants_id = "position" not in self._filled.slots and len(free) > 2
            first, *free = free if wants_id else [-1, *free]
            if wants_id:
                self._put("position", self._terms[first])
            if all("position" in self._filled.slots or float(self._terms[at].value) >= 100 for at in free[:2]):
                low, high, *free = free
                self._put("low", self._terms[low])
                self._put("high", self._terms[high])
        for at in free:
            name = next((name for name in ("position", "count", "margin", "cash", "year") if name in self._takes), None)
            if name == "position" and name in self._filled.slots and _PRICES & self._takes:
                self._place_price(self._terms[at], self._terms[at].value)
            elif name is None or (name == "position" and not self._names_position(at)):
                self._leave(self._terms[at])
            else:
                self._put(name, self._terms[at])

    def _place_marked(self, at: int) -> bool:
        """A number whose neighbours say what it is."""
        term, before, after = self._terms[at], self._word(at - 1), self._word(at + 1)
        if before in {"candidate", "option"} and "candidate" in self._takes:
            self._put("candidate", term)
        elif exit_slot := self._exit_slot(at):
            self._put(exit_slot, term)
        elif before in _BEFORE_POSITION and "position" in self._takes and term.value.isdigit():
            self._put("position", term)
        elif "margin" in self._takes and "margin" in {before, after}:
            self._put("margin", term)
        elif before in _BEFORE_PRICE and _PRICES & self._takes:
            self._place_price(term, term.value)
        else:
            return False
        return True

    def _names_position(self, at: int) -> bool:
        """`4`, `four`; not the one of `four of them`."""
        term = self._terms[at]
        return term.value.isdigit() and not (term.low.isalpha() and self._word(at + 1) == "of")

    def _exit_slot(self, at: int) -> str | None:
        """`stop 58000`, `target at 64000`, `stop of BTC to 71500`."""
        at -= 1
        while self._word(at) in _BEFORE_EXIT or (at >= 0 and self._terms[at].kind in _MARKED):
            at -= 1
        name = _EXITS.get(self._word(at))
        return name if name in self._takes else None

    def _place_price(self, term: Term, value: str) -> None:
        if "move" in self._takes:
            self._put("move", term, value)
        elif {"fees", "fee", "earned", "made"} & self._words:
            self._put("fees", term, value)
        elif _DOWN & self._words:
            self._put("below", term, value)
        elif _UP & self._words:
            self._put("above", term, value)
        else:
            self._put("price", term, value)

    def _place(self, at: int, term: Term) -> None:
        takes, slots = self._takes, self._filled.slots
        match term.kind:
            case Form.AMOUNT if "amount" in takes:
                slots["amount"] = f"{slots['amount']} + {term.value}" if "amount" in slots else term.value
            case Form.AMOUNT | Form.MONEY if _PRICES & takes:
                self._place_price(term, term.value.split()[0])
            case Form.MONEY if exit_slot := self._exit_slot(at):
                self._put(exit_slot, term)
            case Form.MONEY if dollars := next((name for name in _DOLLARS if name in takes), None):
                self._put(dollars, term)
            case Form.AMOUNT if {"cash", "capital"} & takes and term.value.endswith((" USDC", " USDT", " USD")):
                self._put("cash" if "cash" in takes else "capital", term, term.value.split()[0])
            case Form.PERCENT:
                self._place_percent(term)
            case Form.SHARE if "percent" in takes:
                self._put("percent", term)
            case Form.SHARE if "move" in takes and term.value == "50":
                self._put("move", term, "-50%")
            case Form.PAIR if "pair" in takes:
                self._put("pair", term)
            case Form.PAIR if "traded" in takes:
                self._put("traded", term)
            case Form.PAIR if "position" in takes:
                self._put("holds", term)
            case Form.CHAIN | Form.TOKEN if "coin" in takes:
                self._put("coin", term)
            case Form.TOKEN:
                self._place_token(at, term)
            case Form.CHAIN if {"symbol", "trade"} & takes and term.low in TOKENS:
                self._put("symbol" if "symbol" in takes else "trade", term, "ETHUSDT")
            case Form.CHAIN if "chain" in takes:
                self._put("chain", term)
            case Form.POINTER:
                if self._points(at):
                    slots.setdefault("refers", "last")
            case Form.ORDINAL if any(name in takes for name in POINTED_AT) and "reference" not in takes:
                self._put("refers", term)
            case Form.ORDINAL if term.value == "last" and "reference" in takes:
                pass
            case _ if name := self._free_slot(term.kind):
                self._put(name, term, self._fee(term) if name == "fee" else None)
            case _:
                self._leave(term)

    def _free_slot(self, kind: Form) -> str | None:
        fitting = [name for name in _IDS.get(kind, ()) if name in self._takes]
        return next((name for name in fitting if name not in self._filled.slots), fitting[-1] if fitting else None)

    def _fee(self, term: Term) -> str | None:
        try:
            return f"{fee_of(term.value)}pips"
        except UsageError:
            return None

    def _points(self, at: int) -> bool:
        """`positions that are …` points at nothing."""
        named = any(name in self._takes for name in POINTED_AT if name != "reference")
        return named and self._word(at - 1) not in {"positions", "plans", "pools", "alerts", "ones"}

    def _place_percent(self, term: Term) -> None:
        if "percent" in self._takes:
            self._put("percent", term)
        elif "shift" in self._takes or "move" in self._takes:
            falls = bool(_DOWN & self._words) and not term.value.startswith("-")
            signed = f"-{term.value}" if falls else term.value
            self._put(*(("shift", term, signed) if "shift" in self._takes else ("move", term, f"{signed}%")))
        elif "fee" in self._takes:
            self._put("fee", term, self._fee(Term(Form.FEE, term.text, f"{term.value}%")))
        else:
            self._leave(term)

    def _place_token(self, at: int, term: Term) -> None:
        after, before = self._word(at + 1), self._word(at - 1)
        beside = after in {"position", "lp", "nft", "one", "liquidity"} or before in {"my", "the"}
        market = next((name for name in ("symbol", "trade") if name in self._takes), None)
        if market and (term.value in KNOWN_COINS or term.low.endswith("usdt")):
            self._put(market, term, f"{term.value}USDT")
        elif "position" in self._takes and (beside or not _PRICES & self._takes):
            self._put("holds", term)
        elif "traded" in self._takes:
            self._put("traded", term)
        else:
            self._leave(term)

    def _sleeve_slot(self, at: int) -> str | None:
        """Which end of a transfer a sleeve is, or the one asked about."""
        if "into" not in self._takes:
            return "sleeve" if "sleeve" in self._takes else None
        if self._word(at - 1) in {"to", "into"}:
            return "into"
        return "source" if self._word(at - 1) == "from" or "source" not in self._filled.slots else "into"

    def _place_words(self) -> None:
        """Slots that are plain words: a side, a mode, a definite thing."""
        takes, slots = self._takes, self._filled.slots
        sides = sorted(_SIDES & self._words)
        if "side" in takes and len(sides) == 1:
            slots["side"] = sides[0]
        for at, term in enumerate(self._terms):
            if term.value in STRATEGIES and (name := self._sleeve_slot(at)):
                self._put(name, term)
        kinds = {_KINDS[word] for word in self._words & _KINDS.keys()}
        if "kind" in takes and len(kinds) == 1:
            slots["kind"] = kinds.pop()
        if "mode" in takes and ("swing" in self._words or "position" in self._words):
            slots["mode"] = "swing" if "swing" in self._words else "position"
        if "move" in takes and "move" not in slots and {"doubles", "doubled", "double"} & self._words:
            slots["move"] = "100%"
        for at in range(len(self._terms)):
            named = self._word(at) if self._word(at - 1) == "the" else ""
            if named in takes and named in POINTED_AT:
                slots.setdefault("refers", "last")

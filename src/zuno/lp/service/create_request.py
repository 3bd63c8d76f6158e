"""What the owner wants to open, read from a sentence and from flags: by rules a person can check, never by a model.

Words that change nothing are listed and passed over; every other word must be understood or is asked back, because a
request that was read wrongly looks exactly like one that was read right.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeVar

from zuno.kernel.arguments import parse_amount
from zuno.kernel.errors import UsageError
from zuno.kernel.text import plain_text
from zuno.lp.model.ballot import Exposure, RiskProfile
from zuno.lp.model.chains import unwrap_symbol
from zuno.lp.model.debate import Capital, PositionRequest
from zuno.lp.service.arguments import fee_of, pair_of
from zuno.lp.service.phrase import CHAIN_WORDS, FILLERS, MAX_TEXT, TOKENS, Form, Term, split_phrase, token_named

_NOT_BEFORE_AMOUNT: Final = frozenset(
    "keep stay staying from by up off out at to for in into on against vs versus gas spare fee fees yield trade trades "
    "earn earning income get buy".split()
)
"""Before an amount these may make it something other than capital: a price, a reserve, a goal."""
_AFTER_ON: Final = frozenset("the a my uniswap v4 chain zuno top".split())
_AGAINST: Final = frozenset({"against", "versus", "vs"})
_HORIZON: Final = frozenset("term time run haul while period".split())
"""After "long" these speak of time, not of a token."""
_PERCENT_OF: Final = frozenset("of width wide range slippage apr apy yield each down up".split())
_SAYS_FEE: Final = frozenset("fee fees tier pool".split())
_MOST_BARE_FEE: Final = 10_000
"""Pips. A larger percentage is a fee only where the sentence says so."""
_RANGE: Final = {
    "between": frozenset({"and", ""}),
    "from": frozenset({"to", ""}),
    "range": frozenset({"to", "and", ""}),
}
"""Words before the two prices of a range, and what may stand between these."""
_HINT: Final = (
    'leave it out, or say it like "0.05 ETH passively", with ETH/USDC for a pair, 5bps for a fee, on base for a chain'
)
_PRICES: Final = (Form.NUMBER, Form.MONEY)
_END: Final = Term(Form.JOINT, "", "")
_LINE = re.compile(r"(?P<number>[-+.0-9][0-9.,_]*)\s*(?P<token>0x[0-9a-fA-F]{40}|[A-Za-z][A-Za-z0-9.]{0,15})")
_SYMBOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9.]{0,15}")
_ADDRESS = r"0x[0-9a-fA-F]{40}"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CapitalLine:
    """Capital as it was said: one half may be missing, and a flag may still bring it."""

    amount: Decimal | None
    token: str | None


@dataclass(slots=True)
class ParsedSentence:
    """What a sentence says, and what was made of which words."""

    lines: list[CapitalLine] = field(default_factory=list)
    pair: tuple[str, str] | None = None
    fee: int | None = None
    chain: str | None = None
    profile: RiskProfile | None = None
    exposure: Exposure | None = None
    long_token: str | None = None
    prices: tuple[str, str] | None = None
    """The edges of the range."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Flags:
    """What was said by flags; each wins over the sentence."""

    token: str | None = None
    amount: str | None = None
    with_: str | None = None
    pair: str | None = None
    fee: str | None = None
    exposure: str | None = None
    use_all: bool = False


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """A complete request, with the chain and the risk profile that the sentence named."""

    position: PositionRequest
    chain: str | None
    profile: RiskProfile | None
    prices: tuple[str, str] | None
    notes: tuple[str, ...]
    """Which words became what."""


def parse_create_request(text: str, flags: Flags | None = None) -> CreateRequest:
    """The whole request; `UsageError` names what is missing or cannot be read."""
    flags = flags or Flags()
    parsed = parse_sentence(text)
    lines = _with_flags(parsed.lines, flags)
    exposure = parsed.exposure if flags.exposure is None else _exposure(flags.exposure)
    if exposure is Exposure.LONG_TOKEN and flags.exposure is None and parsed.long_token is not None:
        lines = _put_kept_first(lines, parsed.long_token)
    pair = parsed.pair if flags.pair is None else pair_of(flags.pair)
    position = PositionRequest(
        capital=_capital(lines, pair),
        pair=pair,
        fee=parsed.fee if flags.fee is None else fee_of(flags.fee),
        exposure=exposure,
        use_all=flags.use_all,
    )
    if flags.use_all and len(position.capital) == 1:
        raise UsageError("--use-all is for two tokens; one alone is swapped as the range needs it.")
    return CreateRequest(position, parsed.chain, parsed.profile, parsed.prices, tuple(parsed.notes))


def same_token(name: str, other: str) -> bool:
    """Whether two names mean one token to a person: WETH counts as ETH."""
    return unwrap_symbol(name.upper()) == unwrap_symbol(other.upper())


def parse_sentence(text: str, known: Collection[str] = ()) -> ParsedSentence:
    """What the sentence says, complete or not. `known`: more words that change nothing."""
    if len(text) > MAX_TEXT:
        raise UsageError(f"A request has at most {MAX_TEXT} characters.")
    return _Reader(split_phrase(text), known).read()


class _Reader:
    """One walk over the terms, left to right."""

    def __init__(self, terms: Sequence[Term], known: Collection[str]) -> None:
        self._terms = [term for term in terms if term.kind not in {Form.JOINT, Form.MARK}]
        self._known = known
        self._at = 0
        self._heard = ParsedSentence()
        self._mentioned: list[str] = []
        """Tokens without an amount."""
        self._against: str | None = None

    def read(self) -> ParsedSentence:
        while self._at < len(self._terms):
            self._at += self._step(self._terms[self._at])
        parsed = self._heard
        for token in self._mentioned:
            # A second mention of what was already given an amount adds nothing.
            if not any(line.token is not None and same_token(line.token, token) for line in parsed.lines):
                parsed.lines.append(CapitalLine(None, token))
        if self._against is not None and parsed.pair is None:
            ours = next((line.token for line in parsed.lines if line.token is not None), None)
            if ours is None:
                parsed.lines.append(CapitalLine(None, self._against))
            else:
                parsed.pair = (ours, self._against)
        return parsed

    def _term(self, ahead: int) -> Term:
        index = self._at + ahead
        return self._terms[index] if 0 <= index < len(self._terms) else _END

    def _low(self, ahead: int) -> str:
        term = self._term(ahead)
        return term.value if term.kind is Form.WORD else ""

    def _step(self, term: Term) -> int:
        """Read what stands here; how many terms it took."""
        after = self._term(1)
        match term.kind:
            case Form.AMOUNT:
                number, token = term.value.split()
                return self._capital(number, token, term.text, 1)
            case Form.NUMBER if after.kind is Form.PAIR:  # "0.05 ETH/USDC": the token is half of a pair as well
                return self._capital(term.value, after.value.split("/")[0], f"{term.text} {after.text}", 1)
            case Form.NUMBER if after.kind is Form.WORD and self._may_be_token(after):
                return self._capital(term.value, token_named(after.text), f"{term.text} {after.text}", 2)
            case Form.NUMBER:
                self._heard.lines.append(CapitalLine(parse_amount(term.value), None))
            case Form.MONEY:
                raise UsageError(f"{term.text!r} names no token: amounts are in tokens, such as 50 USDC.")
            case Form.PERCENT if self._low(1) not in _PERCENT_OF:
                self._set_fee(term, f"{term.value}%")
            case Form.FEE:
                self._set_fee(term, term.value)
            case Form.PAIR:
                self._set_pair(term)
            case Form.CHAIN:
                self._heard.chain = _once("chain", self._heard.chain, term.value)
                self._note(term.text, f"the chain {term.value}")
            case Form.PROFILE:
                profile = RiskProfile(term.value)
                self._heard.profile = _once("profile", self._heard.profile, profile)
                self._note(term.text, f"profile {profile}")
            case Form.TOKEN if self._low(1) == "exposure":
                return self._stay_long(term.value, f"{term.text} exposure", 2)
            case Form.TOKEN | Form.ADDRESS:
                self._mentioned.append(term.value)
            case Form.POINTER:
                pass
            case Form.WORD:
                return self._word(term)
            case Form.ODD if _is_picture(term.text):
                pass
            case Form.AMBIGUOUS:
                raise UsageError(
                    f"{plain_text(term.text, 40)!r} can be read in two ways; write plain digits such as 1500."
                )
            case _:
                self._not_understood(term.text)
        return 1

    def _may_be_token(self, term: Term) -> bool:
        """A word behind a number that means nothing else."""
        return not (self._is_filler(term.value) or "-" in term.value or term.value in CHAIN_WORDS | _AGAINST)

    def _is_filler(self, word: str) -> bool:
        return word in FILLERS or word in self._known

    def _capital(self, number: str, token: str, words: str, took: int) -> int:
        if self._low(-1) in _NOT_BEFORE_AMOUNT:
            raise UsageError(
                f"'{self._low(-1)} {words}' is not understood; name only what you bring, or say it with --token, "
                "--amount and --with."
            )
        self._heard.lines.append(CapitalLine(parse_amount(number), token))
        self._note(words, "capital")
        return took

    def _set_fee(self, term: Term, fee: str) -> None:
        pips = fee_of(fee)
        if pips > _MOST_BARE_FEE and _SAYS_FEE.isdisjoint({self._low(-1), self._low(1)}):
            raise UsageError(
                f"{term.text!r} is not understood; if it is the pool's fee, say '{term.text} fee' or give --fee."
            )
        self._heard.fee = _once("fee", self._heard.fee, pips)
        self._note(term.text, f"a fee of {pips} pips")

    def _set_pair(self, term: Term) -> None:
        names = term.value.split("/")
        if not (any(name.lower() in TOKENS or len(name) == 42 for name in names) or term.text.isupper()):
            self._not_understood(term.text)
        self._heard.pair = _once("pair", self._heard.pair, (names[0], names[1]))
        self._note(term.text, "the pair")

    def _word(self, term: Term) -> int:
        word, after = term.value, self._term(1)
        if word in {"long", "long-token"}:
            ahead = 1 + (self._low(1) in {"on", "the", "my"})
            if self._low(ahead) in _HORIZON:
                return ahead + 1
            if self._term(ahead).kind is Form.TOKEN:
                return self._stay_long(self._term(ahead).value, f"{term.text} {self._term(ahead).text}", ahead + 1)
            return self._set_exposure(Exposure.LONG_TOKEN, term.text, 1)
        if word in {"neutral", "neutrally"}:
            return self._set_exposure(Exposure.NEUTRAL, term.text, 1)
        if word in _AGAINST and after.kind is Form.TOKEN:
            self._against = _once("pair", self._against, after.value)
            self._note(f"{term.text} {after.text}", "the other token of the pair")
            return 2
        if word == "on" and after.kind is Form.WORD and self._low(1) not in _AFTER_ON:
            raise UsageError(
                f"No chain is called {plain_text(after.text, 40)!r}; Zuno knows {', '.join(sorted(CHAIN_WORDS))}."
            )
        if word == "risk" and self._low(1) == "profile":
            return 2
        if word in _RANGE and after.kind in _PRICES:
            return self._read_range(word, term)
        return 1 if self._is_filler(word) else self._not_understood(term.text)

    def _read_range(self, word: str, term: Term) -> int:
        """Two plain prices; anything else beside them may be an amount."""
        ahead = 2 if self._term(2).kind is Form.WORD else 1
        joiner, low, high = self._low(2) if ahead == 2 else "", self._term(1), self._term(ahead + 1)
        words = f"{term.text} {low.text} {self._term(2).text}"
        if joiner not in _RANGE[word] or high.kind not in _PRICES or not 0 < Decimal(low.value) < Decimal(high.value):
            raise UsageError(f"{words!r} is no range; say two prices, the lower first, like between 2800 and 3400.")
        self._heard.prices = _once("range", self._heard.prices, (low.value, high.value))
        self._note(f"{low.text} … {high.text}", "the range")
        return ahead + 2

    def _stay_long(self, token: str, words: str, took: int) -> int:
        self._heard.long_token = _once("token to stay long", self._heard.long_token, token)
        return self._set_exposure(Exposure.LONG_TOKEN, words, took)

    def _set_exposure(self, exposure: Exposure, words: str, took: int) -> int:
        self._heard.exposure = _once("exposure", self._heard.exposure, exposure)
        self._note(words, f"exposure {exposure}")
        return took

    def _not_understood(self, text: str) -> int:
        raise UsageError(f"{plain_text(text, 40)!r} is not understood; {_HINT}.")

    def _note(self, words: str, meant: str) -> None:
        self._heard.notes.append(f"{words!r} is {meant}")


def _is_picture(text: str) -> bool:
    """Signs and pictures say nothing; money signs and letters of other scripts may say something else."""
    return all(unicodedata.category(sign)[0] not in "LN" and unicodedata.category(sign) != "Sc" for sign in text)


def _once(what: str, before: T | None, now: T) -> T:
    if before is not None and before != now:
        raise UsageError(f"Two different answers for the {what}; say one.")
    return now


def _exposure(text: str) -> Exposure:
    try:
        return Exposure(text.strip().lower())
    except ValueError:
        raise UsageError(f"{plain_text(text, 40)!r} is no exposure; choose long-token or neutral.") from None


def _token_flag(text: str) -> str:
    if not (re.fullmatch(_ADDRESS, text.strip()) or _SYMBOL.fullmatch(text.strip())):
        raise UsageError(f"{plain_text(text, 50)!r} is not a token; give its symbol or its address.")
    return token_named(text.strip())


def _with_flags(lines: Sequence[CapitalLine], flags: Flags) -> list[CapitalLine]:
    """The capital after the flags: --token and --amount stand for the first line, --with for the second."""
    kept = list(lines)
    if flags.token is not None or flags.amount is not None:
        token = None if flags.token is None else _token_flag(flags.token)
        amount = None if flags.amount is None else parse_amount(flags.amount)
        if token is None or amount is None:
            if len(kept) > 1:
                raise UsageError("The sentence brings two tokens; give --token and --amount together.")
            first = kept[0] if kept else CapitalLine(None, None)
            token, amount = token or first.token, first.amount if amount is None else amount
        kept = [CapitalLine(amount, token)]
    if flags.with_ is not None:
        kept = [*kept[:1], _line_flag(flags.with_)]
    return kept


def _line_flag(text: str) -> CapitalLine:
    match = _LINE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f'{plain_text(text, 40)!r} is not an amount of a token; write --with "50 USDC".')
    return CapitalLine(parse_amount(match["number"]), token_named(match["token"]))


def _put_kept_first(lines: Sequence[CapitalLine], token: str) -> list[CapitalLine]:
    """The line whose token the owner wants to stay long in comes first; only a token one brings can be kept."""
    ours = [line for line in lines if line.token is not None and same_token(line.token, token)]
    named = [line.token for line in lines if line.token is not None]
    if named and not ours:
        raise UsageError(f"Staying long keeps a token you bring; you bring {' and '.join(named)}, not {token}.")
    return [*ours, *(line for line in lines if line not in ours)]


def _capital(lines: Sequence[CapitalLine], pair: tuple[str, str] | None) -> tuple[Capital, ...]:
    if not lines:
        raise UsageError("How much of which token? Say it like 0.05 ETH.")
    if len(lines) > 2:
        raise UsageError("A position takes one token or two; name no more.")
    capital = []
    for line in lines:
        if line.token is None:
            raise UsageError(f"{line.amount:f} of which token? Say it like {line.amount:f} ETH.")
        if line.amount is None:
            raise UsageError(
                f"How much {plain_text(line.token, 42)}? It has no amount; a pair is written like ETH/USDC."
            )
        capital.append(Capital(token=line.token, amount=line.amount))
    if len(capital) == 2 and capital[0].token.upper() == capital[1].token.upper():
        raise UsageError(f"{capital[0].token} is named twice; say one amount.")
    if pair is not None:
        _check_pair(pair, capital)
    return tuple(capital)


def _check_pair(pair: tuple[str, str], capital: Sequence[Capital]) -> None:
    if pair[0].upper() == pair[1].upper():
        raise UsageError(f"{pair[0]}/{pair[1]} is no pair: a pool trades two tokens.")
    for line in capital:
        if line.token.startswith("0x") or any(name.startswith("0x") for name in pair):
            continue  # addresses and symbols meet on the chain, not here
        if not any(same_token(line.token, name) for name in pair):
            raise UsageError(f"{pair[0]}/{pair[1]} does not trade {line.token}; bring one of its tokens.")

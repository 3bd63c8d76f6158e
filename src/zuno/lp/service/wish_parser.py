"""What the owner wants to open, read from a sentence and from flags: by rules a person can check, never by a model.

Words that change nothing are listed and passed over; every other word must be understood or is asked back, because a
wish that was read wrongly looks exactly like one that was read right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeVar

from zuno.kernel.arguments import parse_amount
from zuno.kernel.errors import Usage
from zuno.kernel.text import plain_text
from zuno.lp.model.ballot import Exposure, RiskProfile
from zuno.lp.model.chains import chain_named
from zuno.lp.model.debate import Capital, Wish
from zuno.lp.service.arguments import PIPS_IN, fee_of, pair_of, pips_of
from zuno.lp.service.wish_words import (
    AFTER_ON,
    CHAIN_WORDS,
    FILLERS,
    FOREIGN_MONEY,
    HORIZON,
    LONG,
    MISREAD,
    MOST_BARE_FEE,
    NEUTRAL,
    NOT_BEFORE_AMOUNT,
    ONLY_AFTER_ON,
    PERCENT_OF,
    RISK,
    RISK_BEFORE,
    RISK_BEHIND,
    SAYS_FEE,
    TARGETS,
    TOKENS,
    token_named,
)

MAX_TEXT: Final = 400

_ADDRESS = r"0x[0-9a-fA-F]{40}"
_WORD = r"[A-Za-z][A-Za-z0-9]*(?:[.'][A-Za-z0-9]+)*"
_PIECE = re.compile(
    rf"(?P<address>{_ADDRESS}(?![0-9A-Za-z]))"
    rf"|(?P<number>(?:(?<![A-Za-z0-9])[-+])?(?:[0-9][0-9.,_]*|\.[0-9]+))(?P<glued>%|[A-Za-z][A-Za-z0-9]*)?"
    rf"|(?P<word>{_WORD}(?:-{_WORD})*)"
    r"|(?P<sign>[%/@])"
    r"|(?P<other>\S)"
)
_LINE = re.compile(r"(?P<number>[-+.0-9][0-9.,_]*)\s*(?P<token>0x[0-9a-fA-F]{40}|[A-Za-z][A-Za-z0-9.]{0,15})")
_SYMBOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9.]{0,15}")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CapitalLine:
    """Capital as it was said: one half may be missing, and a flag may still bring it."""

    amount: Decimal | None
    token: str | None


@dataclass(slots=True)
class ParsedWish:
    """What a sentence says, and what was made of which words."""

    lines: list[CapitalLine] = field(default_factory=list)
    pair: tuple[str, str] | None = None
    fee: int | None = None
    chain: str | None = None
    profile: RiskProfile | None = None
    exposure: Exposure | None = None
    long_token: str | None = None
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


@dataclass(frozen=True, slots=True)
class Request:
    """A wish that is complete, with what the sentence said about where and how boldly."""

    wish: Wish
    chain: str | None
    profile: RiskProfile | None
    notes: tuple[str, ...]
    """Which words became what."""


def parse_request(text: str, flags: Flags | None = None) -> Request:
    """The whole wish; `Usage` names what is missing or cannot be read."""
    flags = flags or Flags()
    parsed = parse_wish(text)
    lines = _with_flags(parsed.lines, flags)
    exposure = parsed.exposure if flags.exposure is None else _exposure(flags.exposure)
    if exposure is Exposure.LONG_TOKEN and flags.exposure is None and parsed.long_token is not None:
        lines = _put_kept_first(lines, parsed.long_token)
    pair = parsed.pair if flags.pair is None else pair_of(flags.pair)
    wish = Wish(
        capital=_capital(lines, pair),
        pair=pair,
        fee=parsed.fee if flags.fee is None else fee_of(flags.fee),
        exposure=exposure,
    )
    return Request(wish, parsed.chain, parsed.profile, tuple(parsed.notes))


def same_token(name: str, other: str) -> bool:
    """Whether two names mean one token to a person: WETH counts as ETH."""
    same = {"WETH": "ETH"}
    first, second = (same.get(token.upper(), token.upper()) for token in (name, other))
    return first == second


def parse_wish(text: str) -> ParsedWish:
    """What the sentence says, complete or not."""
    if len(text) > MAX_TEXT:
        raise Usage(f"A wish has at most {MAX_TEXT} characters.")
    return _Reader(_pieces(text)).read()


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: str
    text: str
    glued: str = ""

    @property
    def low(self) -> str:
        return self.text.lower()


def _pieces(text: str) -> list[_Piece]:
    plain = text.replace("−", "-").replace("–", "-").replace("’", "'")
    pieces = []
    for found in _PIECE.finditer(plain):
        kind = found.lastgroup or ""
        if found["number"] is not None:
            number = found["number"]
            kept = number if found["glued"] else number.rstrip(".,")  # "50 USDC, 0.05." ends a clause, not a number
            pieces.append(_Piece("number", kept, found["glued"] or ""))
        elif kind == "other":
            _check_sign(found["other"])
        else:
            pieces.append(_Piece(kind, found[kind]))
    return pieces


def _check_sign(sign: str) -> None:
    """Punctuation and pictures say nothing; money signs and letters of other scripts may say something else."""
    kind = unicodedata.category(sign)
    if kind == "Sc":
        raise Usage(f"{sign} names no token: amounts are in tokens, such as 50 USDC.")
    if kind[0] in "LN" or sign == "-":
        raise Usage(f"{sign!r} is not understood here; use plain letters and digits.")


class _Reader:
    """One walk over the pieces, left to right."""

    def __init__(self, pieces: Sequence[_Piece]) -> None:
        self._pieces = pieces
        self._at = 0
        self._heard = ParsedWish()
        self._mentioned: list[str] = []
        """Tokens without an amount."""
        self._against: str | None = None

    def read(self) -> ParsedWish:
        while self._at < len(self._pieces):
            self._at += self._step()
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

    def _piece(self, ahead: int) -> _Piece:
        index = self._at + ahead
        return self._pieces[index] if 0 <= index < len(self._pieces) else _Piece("end", "")

    def _low(self, ahead: int) -> str:
        piece = self._piece(ahead)
        return piece.low if piece.kind == "word" else ""

    def _step(self) -> int:
        """Read what stands here; how many pieces it took."""
        piece = self._piece(0)
        match piece.kind:
            case "number":
                return self._number(piece)
            case "word":
                return self._pair_here() or self._chain_here() or self._word(piece)
            case "address":
                return self._pair_here() or self._mention(piece.text)
            case _ if piece.text == "@":
                return self._chain_here() or self._not_understood("@")
            case _:
                return self._not_understood(piece.text)

    # -- numbers

    def _number(self, piece: _Piece) -> int:
        if self._low(-1) in {"on", "chain"} and not piece.glued and chain_named(piece.text):
            return self._set_chain(piece.text, f"on {piece.text}", 1)
        if piece.glued:
            return self._read_quantity(piece.text, piece.glued, f"{piece.text}{piece.glued}", 1)
        after = self._piece(1)
        if after.kind in {"word", "address"} or after.text == "%":
            return self._read_quantity(piece.text, after.text, f"{piece.text} {after.text}", 2)
        return self._amount_alone(piece.text)

    def _read_quantity(self, number: str, unit: str, said: str, took: int) -> int:
        low = unit.lower()
        if low == "basis" and self._low(took) in {"point", "points"}:
            return self._set_fee(number, "bps", f"{said} {self._low(took)}", took + 1)
        if low in PIPS_IN or low in {"pip", "pips"}:
            if low in {"%", "percent"} and self._low(took) in PERCENT_OF:
                raise Usage(f"{said} {self._low(took)} is not understood; amounts are in tokens, such as 0.05 ETH.")
            return self._set_fee(number, low, said, took)
        if low in FOREIGN_MONEY:
            raise Usage(f"{said!r} names no token: say which, such as 50 USDC.")
        if took == 1 and (len(unit) == 1 or re.fullmatch(r"e\d*", low)):
            raise Usage(f"{said!r} is not understood; write the number out, such as 1500 USDC.")
        if low in MISREAD:
            raise Usage(f"{said!r} is not understood: {MISREAD[low]}")
        parts = unit.split("-")
        if low in TOKENS or len(unit) == 42 or (not _is_keyword(low) and len(parts) == 1 and not chain_named(low)):
            after = self._piece(took)
            if after.text == "/":  # "0.05 ETH/USDC": the token is half of a pair as well
                return self._capital(number, token_named(unit), said, took - 1)
            return self._capital(number, token_named(unit), said, took)
        if len(parts) == 2 and all(part.lower() in TOKENS for part in parts):
            return self._capital(number, token_named(parts[0]), f"{number} {parts[0]}", took - 1)
        if took == 1:
            raise Usage(f"{said!r} is not understood; an amount needs a token, such as 0.05 ETH.")
        return self._amount_alone(number)

    def _capital(self, number: str, token: str, said: str, took: int) -> int:
        if self._low(-1) in NOT_BEFORE_AMOUNT:
            raise Usage(
                f"'{self._low(-1)} {said}' is not understood; name only what you bring, or say it with --token, "
                "--amount and --with."
            )
        self._heard.lines.append(CapitalLine(parse_amount(number), token))
        self._note(said, "capital")
        return max(took, 1)

    def _amount_alone(self, number: str) -> int:
        self._heard.lines.append(CapitalLine(parse_amount(number), None))
        return 1

    def _set_fee(self, number: str, unit: str, said: str, took: int) -> int:
        pips = pips_of(number, unit)
        if pips > MOST_BARE_FEE and SAYS_FEE.isdisjoint({self._low(-1), self._low(took)}):
            raise Usage(f"{said!r} is not understood; if it is the pool's fee, say '{said} fee' or give --fee.")
        self._heard.fee = _once("fee", self._heard.fee, pips)
        self._note(said, f"a fee of {self._heard.fee} pips")
        return took

    # -- words

    def _pair_here(self) -> int:
        """A pair: `ETH/USDC`, `ETH / USDC`, `eth-usdc`."""
        first, slash, second = self._piece(0), self._piece(1), self._piece(2)
        if slash.text == "/" and second.kind in {"word", "address"}:
            names = (first.text, second.text)
            if any(name.lower() in TOKENS or len(name) == 42 for name in names) or all(n.isupper() for n in names):
                return self._set_pair(names, 3)
            return self._not_understood("/".join(names))
        parts = first.text.split("-")
        if len(parts) == 2 and any(part.lower() in TOKENS for part in parts) and not chain_named(first.text):
            return self._set_pair((parts[0], parts[1]), 1)
        return 0

    def _set_pair(self, names: tuple[str, str], took: int) -> int:
        pair = (token_named(names[0]), token_named(names[1]))
        self._heard.pair = _once("pair", self._heard.pair, pair)
        self._note("/".join(names), "the pair")
        return took

    def _chain_here(self) -> int:
        """A chain, which is obeyed: `on sepolia`, `base sepolia`, `@base`. `on` with an unknown name is asked back."""
        lead = 1 if self._low(0) == "on" or self._piece(0).text == "@" else 0
        name, after = self._low(lead), self._low(lead + 1)
        both = f"{name}-{after}"
        if name and after and chain_named(both):
            return self._set_chain(both, both, lead + 2)
        known = name in CHAIN_WORDS or (lead == 1 and name in ONLY_AFTER_ON and not self._is_pair(lead))
        if known:
            tail = 1 if after in {"one", "mainnet", "chain", "network"} else 0
            return self._set_chain(name, name, lead + 1 + tail)
        if lead and name and not self._is_pair(lead) and name not in AFTER_ON:
            raise Usage(f"No chain is called {plain_text(name, 40)!r}; Zuno knows {', '.join(sorted(CHAIN_WORDS))}.")
        return 0

    def _is_pair(self, ahead: int) -> bool:
        return self._piece(ahead + 1).text == "/" or any(p in TOKENS for p in self._low(ahead).split("-")[1:])

    def _set_chain(self, name: str, said: str, took: int) -> int:
        info = chain_named(name)
        self._heard.chain = _once("chain", self._heard.chain, info.name if info else name)
        self._note(said, f"the chain {self._heard.chain}")
        return took

    def _word(self, piece: _Piece) -> int:
        low = piece.low
        if took := self._risk_here(piece):
            return took
        if low in MISREAD:
            raise Usage(f"{piece.text!r} is not understood: {MISREAD[low]}")
        if low in LONG:
            return self._long(piece)
        if low in NEUTRAL:
            return self._set_exposure(Exposure.NEUTRAL, piece.text, 1)
        if low in {"against", "versus", "vs"} and self._low(1) in TOKENS:
            self._against = _once("pair", self._against, token_named(self._low(1)))
            self._note(f"{piece.text} {self._piece(1).text}", "the other token of the pair")
            return 2
        if low in TOKENS:
            return self._mention(token_named(low))
        if low in FILLERS or low in TARGETS or low == "on":
            return 1
        return self._not_understood(piece.text)

    def _risk_here(self, piece: _Piece) -> int:
        """How boldly: one word ("safely"), or one beside "risk" ("low risk", "risk averse", "balanced risk")."""
        low, after = piece.low, self._low(1)
        if low in RISK:
            return self._set_profile(RISK[low], piece.text, 1 + (after == "risk"))
        if low in RISK_BEFORE and after == "risk":
            return self._set_profile(RISK_BEFORE[low], f"{piece.text} {after}", 2)
        if low == "risk" and after in RISK_BEHIND and not (after == "on" and self._names_chain(2)):
            return self._set_profile(RISK_BEHIND[after], f"{piece.text} {after}", 2)
        return 2 if low == "risk" and after == "profile" else 0

    def _names_chain(self, ahead: int) -> bool:
        return self._low(ahead) in CHAIN_WORDS or self._low(ahead) in ONLY_AFTER_ON

    def _set_profile(self, profile: RiskProfile, said: str, took: int) -> int:
        self._heard.profile = _once("profile", self._heard.profile, profile)
        self._note(said, f"profile {profile}")
        return took

    def _long(self, piece: _Piece) -> int:
        ahead = 1 + (self._low(1) in {"on", "the", "my"})
        if self._low(ahead) in HORIZON:
            return ahead + 1
        if self._low(ahead) in TOKENS:
            token = token_named(self._low(ahead))
            self._heard.long_token = _once("token to stay long", self._heard.long_token, token)
            return self._set_exposure(Exposure.LONG_TOKEN, f"{piece.text} {token}", ahead + 1)
        return self._set_exposure(Exposure.LONG_TOKEN, piece.text, 1)

    def _set_exposure(self, exposure: Exposure, said: str, took: int) -> int:
        self._heard.exposure = _once("exposure", self._heard.exposure, exposure)
        self._note(said, f"exposure {exposure}")
        return took

    def _mention(self, token: str) -> int:
        self._mentioned.append(token)
        return 1

    def _not_understood(self, text: str) -> int:
        raise Usage(
            f'{plain_text(text, 40)!r} is not understood; leave it out, or say it like "0.05 ETH passively", '
            "with ETH/USDC for a pair, 5bps for a fee, on base for a chain."
        )

    def _note(self, said: str, meant: str) -> None:
        self._heard.notes.append(f"{said!r} is {meant}")


def _is_keyword(low: str) -> bool:
    """A word with a meaning of its own, which therefore is no token's name."""
    ours = (FILLERS, TARGETS, RISK, LONG, NEUTRAL, MISREAD, CHAIN_WORDS, HORIZON, PERCENT_OF)
    return low == "on" or any(low in words for words in ours)


def _once(what: str, before: T | None, now: T) -> T:
    if before is not None and before != now:
        raise Usage(f"Two different answers for the {what}; say one.")
    return now


def _exposure(text: str) -> Exposure:
    try:
        return Exposure(text.strip().lower())
    except ValueError:
        raise Usage(f"{plain_text(text, 40)!r} is no exposure; choose long-token or neutral.") from None


def _token_flag(text: str) -> str:
    if not (re.fullmatch(_ADDRESS, text.strip()) or _SYMBOL.fullmatch(text.strip())):
        raise Usage(f"{plain_text(text, 50)!r} is not a token; give its symbol or its address.")
    return token_named(text.strip())


def _with_flags(lines: Sequence[CapitalLine], flags: Flags) -> list[CapitalLine]:
    """The capital after the flags: --token and --amount stand for the first line, --with for the second."""
    kept = list(lines)
    if flags.token is not None or flags.amount is not None:
        token = None if flags.token is None else _token_flag(flags.token)
        amount = None if flags.amount is None else parse_amount(flags.amount)
        if token is None or amount is None:
            if len(kept) > 1:
                raise Usage("The sentence brings two tokens; give --token and --amount together.")
            said = kept[0] if kept else CapitalLine(None, None)
            token, amount = token or said.token, said.amount if amount is None else amount
        kept = [CapitalLine(amount, token)]
    if flags.with_ is not None:
        kept = [*kept[:1], _line_flag(flags.with_)]
    return kept


def _line_flag(text: str) -> CapitalLine:
    found = _LINE.fullmatch(text.strip())
    if found is None:
        raise Usage(f'{plain_text(text, 40)!r} is not an amount of a token; write --with "50 USDC".')
    return CapitalLine(parse_amount(found["number"]), token_named(found["token"]))


def _put_kept_first(lines: Sequence[CapitalLine], token: str) -> list[CapitalLine]:
    """The line whose token the owner wants to stay long in comes first; only a token one brings can be kept."""
    ours = [line for line in lines if line.token is not None and same_token(line.token, token)]
    named = [line.token for line in lines if line.token is not None]
    if named and not ours:
        raise Usage(f"Staying long keeps a token you bring; you bring {' and '.join(named)}, not {token}.")
    return [*ours, *(line for line in lines if line not in ours)]


def _capital(lines: Sequence[CapitalLine], pair: tuple[str, str] | None) -> tuple[Capital, ...]:
    if not lines:
        raise Usage("How much of which token? Say it like 0.05 ETH.")
    if len(lines) > 2:
        raise Usage("A position takes one token or two; name no more.")
    capital = []
    for line in lines:
        if line.token is None:
            raise Usage(f"{line.amount:f} of which token? Say it like {line.amount:f} ETH.")
        if line.amount is None:
            raise Usage(f"How much {plain_text(line.token, 42)}? It has no amount; a pair is written like ETH/USDC.")
        capital.append(Capital(token=line.token, amount=line.amount))
    if len(capital) == 2 and capital[0].token.upper() == capital[1].token.upper():
        raise Usage(f"{capital[0].token} is named twice; say one amount.")
    if pair is not None:
        _check_pair(pair, capital)
    return tuple(capital)


def _check_pair(pair: tuple[str, str], capital: Sequence[Capital]) -> None:
    if pair[0].upper() == pair[1].upper():
        raise Usage(f"{pair[0]}/{pair[1]} is no pair: a pool trades two tokens.")
    for line in capital:
        if line.token.startswith("0x") or any(name.startswith("0x") for name in pair):
            continue  # addresses and symbols meet on the chain, not here
        if not any(same_token(line.token, name) for name in pair):
            raise Usage(f"{pair[0]}/{pair[1]} does not trade {line.token}; bring one of its tokens.")

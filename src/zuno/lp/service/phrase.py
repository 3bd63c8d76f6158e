"""Split a line into words and slots such as amounts, ids and chains. The shell and create requests share it."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from zuno.kernel.arguments import DAYS, WEEKDAYS
from zuno.lp.model.chains import CHAINS, chain_named

MAX_TEXT: Final = 400
"""A longer line is asked back unread."""


class Form(StrEnum):
    """What a term is; everything but `word`, `mark`, `joint` and `odd` is a slot."""

    WORD = "word"
    NUMBER = "number"
    AMOUNT = "amount"
    MONEY = "money"
    PERCENT = "percent"
    FEE = "fee"
    SPAN = "span"
    DAY = "day"
    TIMES = "times"
    PLAN = "plan"
    REQUEST = "request"
    RUN = "run"
    ALERT = "alert"
    RULE = "rule"
    TRADE = "trade"
    ORDER = "order"
    ADDRESS = "address"
    PAIR = "pair"
    TOKEN = "token"
    CHAIN = "chain"
    PROFILE = "profile"
    ORDINAL = "ordinal"
    SHARE = "share"
    POINTER = "pointer"
    FILE = "file"
    """A path, or a name with an ending that market history has."""
    AMBIGUOUS = "ambiguous"
    """A number that can be read two ways, or none: `1,500`, `1.2.3`, an id that is too short."""
    MARK = "mark"
    JOINT = "joint"
    ODD = "odd"


@dataclass(frozen=True, slots=True)
class Term:
    kind: Form
    text: str
    """As it was typed."""
    value: str
    """In the form a command takes: digits without separators, symbols in capitals, spans such as 6h."""

    @property
    def low(self) -> str:
        return self.text.lower()


_RAW: Final = tomllib.loads((files("zuno.lp.service") / "words.toml").read_text(encoding="utf-8"))


def _words(name: str) -> frozenset[str]:
    return frozenset(_RAW[name].split())


def _meanings(name: str) -> Mapping[str, str]:
    """Each word of a table with what it means."""
    return MappingProxyType({word: meaning for meaning, words in _RAW[name].items() for word in words.split()})


_ALIASES, _ORDINALS, _NUMBER_WORDS = _meanings("tokens"), _meanings("ordinals"), _meanings("numbers")
TOKENS: Final = frozenset([*(token.symbol.lower() for chain in CHAINS for token in chain.tokens), *_ALIASES])
"""Names that mean a token wherever they stand; any other word means one only behind a number or in a pair."""
CHAIN_WORDS: Final = frozenset([*(chain.name for chain in CHAINS), "sim", "devnet"])
FILLERS: Final = _words("fillers")
RISK: Final = _meanings("profiles")
_RISK_BEFORE, _RISK_BEHIND, _SHARES = _meanings("before_risk"), _meanings("behind_risk"), _meanings("shares")
_CHAIN_LEADS, _ONE_LEADS, _POINTERS = _words("chain_leads"), _words("one_leads"), _words("pointers")
_PERIOD_LEADS, _RATE_LEADS = _words("period_leads"), _words("rate_leads")
_PERCENT_WORDS: Final = frozenset({"percent", "pct"})
_COUNT_LEADS: Final = frozenset({"last", "latest", "newest", "recent"})
"""Before a number word: so many of what follows, and no one of them."""
_UNITS: Final = {"mi": "m", "m": "m", "h": "h", "d": "d", "w": "w"}
_PERIODS: Final = {"minute": "1m", "hour": "1h", "day": "1d", "week": "1w", "month": "30d", "year": "365d"}
SPECIAL_WORDS: Final = frozenset(
    {*TOKENS, *CHAIN_WORDS, *RISK, *_RISK_BEFORE, *_NUMBER_WORDS, *_PERIODS, *WEEKDAYS, *DAYS, "risk", "op", "percent"}
)
"""Words that may be, or be part of, something else than a word."""

_DIGITS = r"(?:[0-9][0-9.,_]*[0-9]|[0-9]|\.[0-9]+)"
_NUMBER = rf"(?:(?<![0-9a-z])[-+])?{_DIGITS}"
_PIECE = re.compile(
    r"(?P<file>(?<!\S)(?:~?/|\.{1,2}/)[^\s,;?]+|(?<!\S)[\w./~-]+\.(?:csv|tsv|parquet|feather|zip)(?:\.gz)?(?![^\s,;?]))"
    r"|(?P<plan>plan_[0-9a-f]{12})(?![0-9a-z_])"
    r"|(?P<request>req_[0-9a-f]{16})(?![0-9a-z_])"
    r"|(?P<run>run_[0-9a-f]{16})(?![0-9a-z_])"
    r"|(?P<alert>alert_[0-9a-f]{12})(?![0-9a-z_])"
    r"|(?P<rule>rule_[0-9a-f]{12})(?![0-9a-z_])"
    r"|(?P<trade>trd_[0-9a-f]{12})(?![0-9a-z_])"
    r"|(?P<order>zn[0-9a-f]{30}|ord_[0-9a-f]{12})(?![0-9a-z_])"
    r"|(?P<badid>(?:plan|req|run|alert|rule|trd|ord)_[0-9a-z_]*)"
    r"|(?P<address>0x[0-9a-f]{40})(?![0-9a-z])"
    r"|(?P<hex>0x[0-9a-z]*)"
    rf"|(?P<money>[$€£]\s?{_DIGITS}k?(?![0-9a-z])|{_DIGITS}k?\s?(?:\$|€|£|usd\b|dollars?\b|bucks\b|euros?\b))"
    rf"|(?P<percent>{_NUMBER}\s?(?:%|percent\b|pct\b|per cent\b))"
    rf"|(?P<fee>{_NUMBER}\s?(?:bps?|pips?|basis points?)\b)"
    r"|(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}(?:t[0-9]{2}:[0-9]{2})?)(?![0-9a-z])"
    r"|(?P<span>[0-9]{1,6}\s?(?:minutes?|mins?|hours?|hrs?|days?|weeks?|months?|m|h|d|w)\b(?![-']))"
    rf"|(?P<times>{_DIGITS}x\b)"
    rf"|(?P<number>#?{_NUMBER})(?P<scale>k\b|\s?thousand\b)?(?P<glued>[a-z_][0-9a-z_]*)?"
    r"|(?P<option>--[a-z][a-z-]*)"
    r"|(?P<pair>(?:0x[0-9a-f]{40}|[a-z][a-z0-9.]{0,15})(?:/\s?|\s/\s)(?:0x[0-9a-f]{40}|[a-z][a-z0-9.]{0,15}))"
    r"|(?P<word>p&l|[a-z][a-z0-9]*(?:[-'.][a-z0-9]+)*)"
    r"|(?P<mark>[?])"
    r"|(?P<joint>[,;:+@&])"
    r"|(?P<dull>\s+|[!()~*…]|(?<=[0-9a-z])-|[-.](?![0-9]))"
    r"|(?P<odd>\w+|\S)",
    re.IGNORECASE,
)
_SAME = str.maketrans({"’": "'", "‘": "'", "−": "-", "–": "-", "—": "-", "“": '"', "”": '"'})


def token_named(text: str) -> str:
    """A token's name as the rest of Zuno writes it: symbols in capitals, addresses in lower case."""
    if len(text) == 42 and text[:2].lower() == "0x":
        return text.lower()
    return _ALIASES.get(text.lower(), text.upper())


def split_phrase(text: str) -> list[Term]:
    """The terms of a line, in their order."""
    plain = text.translate(_SAME)
    folded = unicodedata.normalize("NFKC", plain)
    odd = [Term(Form.ODD, "unusual characters", "")] if folded != plain else []
    return [*odd, *_join(_pieces(folded))]


def plain_number(text: str) -> str | None:
    """Digits without separators; None where a comma may mean thousands or decimals, or nothing is meant at all."""
    sign, digits = (text[0], text[1:]) if text[:1] in {"-", "+"} else ("", text)
    sign = sign.replace("+", "")
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+", digits):
        return sign + digits
    if re.fullmatch(r"[1-9][0-9]{0,2}(?:,[0-9]{3}){2,}(?:\.[0-9]+)?|[1-9][0-9]{0,2},[0-9]{3}\.[0-9]+", digits):
        return sign + digits.replace(",", "")
    if re.fullmatch(r"[0-9]+,[0-9]+", digits) and not re.fullmatch(r"[1-9][0-9]{0,2},[0-9]{3}", digits):
        return sign + digits.replace(",", ".")
    return None


def _pieces(text: str) -> list[Term]:
    terms: list[Term] = []
    for match in _PIECE.finditer(text):
        kind, piece = str(match.lastgroup), match.group()
        if match["number"] is not None:
            terms += _number_terms(match["number"], match["scale"] or "", match["glued"] or "")
            continue
        match kind:
            case "dull":
                continue
            case "badid":
                terms.append(Term(Form.AMBIGUOUS, piece, ""))
            case "money" | "percent" | "fee" | "times":
                terms.append(_quantity(Form(kind), piece))
            case "span":
                number, unit = re.split(r"(?<=[0-9])\s?(?=[a-z])", piece.lower(), maxsplit=1)
                days = unit.startswith("mo")
                span = f"{int(number) * 30}d" if days else number + (_UNITS.get(unit[:2]) or _UNITS[unit[0]])
                terms.append(Term(Form.SPAN, piece, span))
            case "pair":
                terms.append(Term(Form.PAIR, piece, "/".join(token_named(name.strip()) for name in piece.split("/"))))
            case "option" | "word":
                terms.append(Term(Form.WORD, piece, piece.lower()))
            case "file":
                terms.append(Term(Form.FILE, piece, piece))
            case "odd" | "hex":
                terms.append(Term(Form.ODD, piece, piece))
            case _:
                terms.append(Term(Form(kind), piece, piece.lower()))
    return terms


def _quantity(kind: Form, piece: str) -> Term:
    digits = re.search(_NUMBER, piece)
    number = None if digits is None else plain_number(digits.group())
    if number is None:
        return Term(Form.AMBIGUOUS, piece, "")
    if kind is Form.FEE:
        return Term(kind, piece, f"{number}{'pips' if 'pip' in piece.lower() else 'bps'}")
    scaled = re.search(r"[0-9]k", piece, re.IGNORECASE)
    return Term(kind, piece, _times_thousand(number) if scaled else number)


def _number_terms(number: str, scale: str, glued: str) -> list[Term]:
    """A number, with what is glued to it: `1.5k`, `0.05ETH`."""
    plain, piece = plain_number(number.lstrip("#")), number + scale
    if plain is not None and not glued:
        return [Term(Form.NUMBER, piece, _times_thousand(plain) if scale else plain)]
    if plain is None or (glued.lower() not in TOKENS and not (len(glued) > 2 and glued.isupper())):
        ordinal = _ORDINALS.get(f"{number}{glued}".lower())
        return [Term(Form.ORDINAL, piece + glued, ordinal)] if ordinal else [Term(Form.AMBIGUOUS, piece + glued, "")]
    value = _times_thousand(plain) if scale else plain
    return [Term(Form.AMOUNT, piece + glued, f"{value} {token_named(glued)}")]


def _times_thousand(number: str) -> str:
    return format((Decimal(number) * 1000).normalize(), "f")


def _join(pieces: Sequence[Term]) -> list[Term]:
    """Put together what belongs together, left to right."""
    terms: list[Term] = []
    at = 0
    while at < len(pieces):
        taken, term = _term_at(pieces, at, terms[-1].value if terms else "")
        terms.append(term)
        at += taken
    return terms


def _term_at(pieces: Sequence[Term], at: int, before: str) -> tuple[int, Term]:
    term = pieces[at]
    after = pieces[at + 1] if at + 1 < len(pieces) else Term(Form.WORD, "", "")
    word, behind = term.value, after.value if after.kind is Form.WORD else ""
    both = f"{term.text} {after.text}"
    if term.kind is Form.NUMBER and (behind in TOKENS or after.kind is Form.ADDRESS):
        return 2, Term(Form.AMOUNT, both, f"{word} {token_named(after.text)}")
    if term.kind is not Form.WORD:
        return 1, term
    if word in _NUMBER_WORDS and behind in _PERCENT_WORDS:
        return 2, Term(Form.PERCENT, both, _NUMBER_WORDS[word])
    if word in _NUMBER_WORDS and behind in TOKENS:
        return 2, Term(Form.AMOUNT, both, f"{_NUMBER_WORDS[word]} {token_named(behind)}")
    if behind and chain_named(f"{word}-{behind}"):
        return 2, Term(Form.CHAIN, both, f"{word}-{behind}")
    if chain := _chain_at(word, before):
        tail = behind in {"one", "mainnet"} and word not in CHAIN_WORDS - {"arbitrum"}
        return (2, Term(Form.CHAIN, both, chain)) if tail else (1, Term(Form.CHAIN, term.text, chain))
    if (profile := _profile_at(word, behind)) is not None:
        return profile[0], Term(Form.PROFILE, both if profile[0] == 2 else term.text, profile[1])
    if word in {"a", "one"} and behind in {"third", "fifth"}:
        return 2, Term(Form.AMBIGUOUS, both, "")
    if behind in _PERIODS and (word in _PERIOD_LEADS or (word in {"a", "an"} and before in _RATE_LEADS)):
        return 2, Term(Form.SPAN, both, _PERIODS[behind])
    if word in _NUMBER_WORDS and behind.rstrip("s") in _PERIODS:
        return 2, Term(Form.SPAN, both, _spell_span(_NUMBER_WORDS[word], behind.rstrip("s")))
    if word in WEEKDAYS or word in DAYS:
        return 1, Term(Form.DAY, term.text, word)
    parts = word.split("-")
    if len(parts) == 2 and any(part in TOKENS for part in parts) and all(map(str.isalnum, parts)):
        return 1, Term(Form.PAIR, term.text, "/".join(map(token_named, parts)))
    if word.endswith("usdt") and word != "usdt" and word.isalnum():
        return 1, Term(Form.TOKEN, term.text, word.removesuffix("usdt").upper())
    if word in TOKENS:
        if behind in TOKENS and behind != word:
            return 2, Term(Form.PAIR, both, f"{token_named(word)}/{token_named(behind)}")
        return 1, Term(Form.TOKEN, term.text, token_named(word))
    if word == "three" and behind == "quarters":
        return 2, Term(Form.SHARE, both, "75")
    counts = before in _COUNT_LEADS or not behind.endswith("s")
    if word in _NUMBER_WORDS and (before in _ONE_LEADS if word == "one" else counts):
        return 1, Term(Form.NUMBER, term.text, _NUMBER_WORDS[word])
    if word in _COUNT_LEADS and behind in _NUMBER_WORDS:
        return 1, term
    if word in _ORDINALS and after.kind not in {Form.SPAN, Form.NUMBER}:
        return 1, Term(Form.ORDINAL, term.text, _ORDINALS[word])
    if word in _SHARES:
        return 1, Term(Form.SHARE, term.text, _SHARES[word])
    if word in _POINTERS:
        return 1, Term(Form.POINTER, term.text, "last")
    return 1, term


def _chain_at(word: str, before: str) -> str | None:
    """Chains by name; a number is none."""
    if word in CHAIN_WORDS:
        return word
    info = chain_named(word) if before in _CHAIN_LEADS and not word.isdigit() else None
    return None if info is None else info.name


def _profile_at(word: str, behind: str) -> tuple[int, str] | None:
    """How boldly: one word ("safely"), or one beside "risk" ("low risk", "risk averse")."""
    if word in RISK:
        return 1 + (behind == "risk"), RISK[word]
    if word in _RISK_BEFORE and behind == "risk":
        return 2, _RISK_BEFORE[word]
    if word == "risk" and behind in _RISK_BEHIND:
        return 2, _RISK_BEHIND[behind]
    return None


def _spell_span(number: str, unit: str) -> str:
    period = _PERIODS[unit]
    return f"{int(number) * int(period[:-1])}{period[-1]}"

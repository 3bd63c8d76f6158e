"""What a text may not contain outside of slots: figures in digits or words, addresses, links, commands, orders."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from zuno.provenance.agreement import check_slots, hide_multiples
from zuno.provenance.facts import FactSheet
from zuno.provenance.slots import MARK, find_slots, mask_slots, render

LONGEST_TEXT: Final = 4_000
"""Characters with slots; a longer text is not checked at all."""
MOST_SLOTS: Final = 60
LONGEST_SHOWN: Final = 48
"""Of a fault that goes back into a prompt."""


class Code(StrEnum):
    NUMERAL = "numeral"
    NUMBER_WORD = "number_word"
    GLUED = "glued"
    """Letters, a sign or a unit at a slot, which prints its own."""
    LETTERS = "letters"
    ADDRESS = "address"
    LINK = "link"
    COMMAND = "command"
    ORDER = "order"
    BROKEN_SLOT = "broken_slot"
    UNKNOWN_ID = "unknown_id"
    DISAGREEMENT = "disagreement"
    """A slot at the wrong candidate, stress, sign or name, or in a comparison that does not hold."""
    LENGTH = "length"


_SAID: Final = {
    Code.NUMERAL: "a figure outside of a slot",
    Code.NUMBER_WORD: "a figure in words",
    Code.GLUED: "a slot prints its own sign and unit",
    Code.LETTERS: "a character that English prose does not need",
    Code.ADDRESS: "an address or hash",
    Code.LINK: "a link or domain",
    Code.COMMAND: "a command line",
    Code.ORDER: "an order to the reader",
    Code.BROKEN_SLOT: "no slot",
    Code.UNKNOWN_ID: "no fact of this id was given",
}


@dataclass(frozen=True, slots=True)
class Fault:
    code: Code
    text: str
    """The piece of text; for a disagreement or a length, what is wrong."""

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= LONGEST_SHOWN else f"{self.text[: LONGEST_SHOWN - 1]}…"
        return f"{shown}: {_SAID[self.code]}" if self.code in _SAID else self.text


def find_faults(
    text: str, facts: FactSheet, *, about: int | None = None, limits: tuple[int, int] = (0, LONGEST_TEXT)
) -> list[Fault]:
    """Why a text may not be used; nothing where it may. `about` is the candidate it speaks of; `limits` count printed
    characters."""
    if len(text) > LONGEST_TEXT:
        return [Fault(Code.LENGTH, f"a text of {len(text)} characters")]
    slots, broken = find_slots(text)
    if len(slots) > MOST_SLOTS:
        return [Fault(Code.LENGTH, f"a text of {len(slots)} slots")]
    faults = [Fault(Code.BROKEN_SLOT, piece) for piece in broken]
    faults += [Fault(Code.UNKNOWN_ID, slot.id) for slot in slots if slot.id not in facts]
    faults += _find_in_prose(mask_slots(text, slots), facts, [slot.id for slot in slots])
    if not faults:
        faults += [Fault(Code.DISAGREEMENT, reason) for reason in check_slots(text, slots, facts, about)]
        printed = len(render(text, facts, about))
        if not limits[0] <= printed <= limits[1]:
            faults.append(Fault(Code.LENGTH, f"{printed} printed characters, not {limits[0]} to {limits[1]}"))
    return faults


_ONES = "two|three|four|five|six|seven|eight|nine|ten"
_BIG = (
    "eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|(?:twenty|thirty|forty|fourty|fifty|"
    "sixty|seventy|eighty|ninety)(?:[- ]?(?:one|two|three|four|five|six|seven|eight|nine))?|hundreds?|thousands?|"
    "millions?|billions?|trillions?|grand|dozens?|myriads?|lakhs?|crores?|(?:twen|thir|for|fif|six|seven|eigh|nine)ties|"
    "teens|single[- ]digits?"
)
_PARTS = "thirds|quarters?|fifths|sixths|sevenths|eighths|ninths|tenths|hundredths?|thousandths?|half|halves|halfway"
_TIMES = (
    "twice|thrice|doubl(?:e|es|ed|ing|y)|tripl(?:e|es|ed|ing)|trebl(?:e|es|ed|ing)|quadrupl(?:e|es|ed|ing)|"
    r"quintupl\w+|halv(?:e|es|ed|ing)|\w+fold|zero|nil|naught|nought|couple|percents?|percentage|per ?cents?|pct|"
    "basis points?|bps|bips?|pips?"
)
_NUMBER_WORD: Final = re.compile(rf"(?i)\b(?:{_ONES}|{_BIG}|{_PARTS}|{_TIMES})(?:ish)?\b")
_ONE_OF: Final = re.compile(
    r"(?i)\bone(?:[- ](?:hours?|days?|weeks?|months?|years?|minutes?|seconds?|bars?|ticks?|points?|dollars?|cents?"
    r"|usdc?|eth|weth|btc|gwei|path|to[- ]one)\b|[- ](?:and|point|%))"
)
_NUMERAL: Final = re.compile(r"[0-9][0-9.,'_]*\w*|\w+[0-9]\w*|[%‰$€£¥₿¢]")
_ROMAN: Final = re.compile(r"\b(?=[IVXLCDM]{2,}\b)M*(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?<=\w)\b")
_NOT_ROMAN: Final = frozenset({"IV", "DI", "MM", "CD", "MD", "LI", "CC", "DM", "CM", "DC", "MC", "LL", "ML", "DD"})
_NUMBERED = (
    "candidates?|moves?|options?|ranges?|shapes?|rounds?|revisions?|pools?|tiers?|legs?|sides?|sources?|feeds?|"
    "venues?|experts?|agents?|cards?|readers?|voices?|chairs?|votes?|accepts?|revises?|vetoe?s?|verdicts?|judgments?|"
    "critiques?|reasons?|arguments?|objections?|opinions?|readings?|views?|signals?|questions?|timeframes?|charts?|"
    "indicators?|things|factors|conditions?|problems?|risks|scenarios?"
)
"""Parts of the desk, whose count claims nothing about the market."""
_UNITS = (
    "times|percent|per ?cent|percentage|basis|bps|points?|ticks?|pips?|seconds?|minutes?|hours?|days?|weeks?|months?|"
    "years?|bars?|candles?|dollars?|cents?|usdc?|usdt|eth|weth|btc|wbtc|coins?|tokens?|gwei|atrs?|[rxhdms]"
)
_PLACED = "in|out|to|by|at|for|from|across|over|on|per|against|above|below|under|near|beyond|with|is|are|was|were"
_ELSEWHERE = f"{_UNITS}|{_BIG}|{_PLACED}|and|or|as|more|less|after"
"""What a count is of, if it is not of the thing named next: "six percent across venues" counts no venues."""

# -- names with digits as the desks print them

_STRESSED = (
    "buffers?|floors?|stress|stressed|cases?|volatility|vol|exits?|p10|median|margins?|widths?|survival|ones?|leaves"
)
_FRAMED = (
    r"(?:rsi|adx|atr|mfi|[es]ma|cmf|obv)\d*|macd|bollinger|closes?|opens?|highs?|lows?|structure|trend|(?:up|down)trend|"
    r"charts?|swing|supertrend|squeeze|cvd|divergences?|break|breakout|bos|choch|candles?|timeframes?|frame|levels?|"
    r"retracements?|hidden|shape|vwap|range|bars|momentum|volume|setup|pattern|flag|wedge|support|resistance|prints?"
)
_FRAME = "(?:(?:1|3|5|15|30|45)m|(?:1|2|3|4|6|8|12|24)h|[137]d|30d|1w)"
_FRAMES = rf"{_FRAME}(?:(?:,|,? and|,? or|/|,? versus)(?: ?the)? ?{_FRAME})*"
_OF_MONEY = "of|(?:in |resting )?(?:bids?|asks?|longs|shorts|stops|liquidity|dollars?|usd[ct]?)"
_LASTING = (
    f"{_OF_MONEY}|from|later|ago|left|away|more|longer|to|before|after|until|since|that|per|payback|recovery|wait|delay"
)
"""What makes a timeframe a length of time or an amount: "the 4h from here", "a 24h wait", "the 15m bid wall"."""
_TENOR = r"\d{1,3}-(?:year|month|week|day|hour|minute|period|bar)"
_INSTRUMENT = "yields?|notes?|bonds?|moving|averages?|mean|[es]?ma|skew|funding|charts?|vol(?:atility)?|implied"
_IN_TURN = "time|(?:re)?test|touch|tap|attempt|try|push|wave|drive|bounce|rejection|failure|sweep|session|peak|trough"
_SHARE_IN_WORDS: Final = re.compile(
    r"(?i)\b(?:an?|one)[- ](?:third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)\b"
    rf"(?! (?!\w+s\b)(?:{_ONES}|{_NUMBERED}|{_FRAMED}|{_IN_TURN})\b)"
)
"""A share, and no place in a row: "a third of the volume", and not "a third retest"."""
_EXEMPT: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:(?:75|95|90|99|50|25|10|5)(?:th)?|tenth|fifth)[- ]percentiles?\b|\bp(?:5|10|25|75|90|95)\b",
        rf"\b{_FRAMES}(?= (?:{_FRAMED})\b)|\bon (?:the )?{_FRAMES}\b(?! (?:{_OF_MONEY})\b)",
        rf"(?<!within )(?<!over )(?<!during )(?<!after )(?<!for )\bthe {_FRAMES}\b(?! (?:{_LASTING})\b)",
        r"\b(?:every|per) 8h\b|\b(?:[01]?\d|2[0-3]):[0-5]\d(?= (?:utc|et|gmt|cet|prints?|release|data|open|close)\b)",
        rf"\b{_TENOR}(?:(?: and| or)(?: the)? {_TENOR})?(?= (?:{_INSTRUMENT})\b)|\b(?:[2357]|[123]0)-year"
        r"(?= (?:leads?|follows?|falls?|rises?|fell|rose|rallie[sd]|slips|slipped|is (?!at\b)|and the)\b)",
        r"\b(?:rsi|adx|atr|mfi)(?:14| ?\(14\))|\bcmf(?:20| ?\(20\))|\b[eswh]?ma[- ]?\(?[1-3]?\d{1,2}\b\)?"
        rf"(?![.,]\d|%| ?(?:k|{_UNITS})\b)",
        r"\b\d{1,3}(?:/\d{1,3})?[- ](?:period |day |week |bar )?(?:[eswh]ma|ma)s?\b",
        r"\bmacd ?\(12, ?26, ?9\)|\b(?:bollinger(?: bands?)?|keltner) ?\(20, ?2\)|\bstoch\w* ?\(14, ?3(?:, ?3)?\)",
        r"\b(?:in|since|early|late|cycle of|q[1-4]|h[12]) 20[012]\d\b(?=[.,;)]|$| (?:is|was|and)\b)",
        r"\b(?:q[1-4]|h[12]|t\+[0-3]|g7|g20|m[12]|l[123]|web3|layer[- ][12])\b|\bzero[- ](?:line|sum)\b",
        r"\b(?:the|this|last|next|first|second|third|fourth) quarter\b(?! of)|\bquarter[- ]end\b",
        r"\b(?:the|next|last) halving\b(?! (?:of|its?|the)\b)|\b(?:pre|post)-halving\b|\b24/7\b",
        r"\b(?:double|triple)[- ](?:top|bottom)s?\b|\bthree (?:white soldiers|black crows|drives)\b",
        rf"\bwaves? (?:[1-5]\b(?![.,]?\d|%)|one|two|three|four|five)\b(?! (?:{_UNITS})\b)",
        r"\b(?:two|three) (?:higher|lower|equal|rising|falling) (?:highs|lows|tops|bottoms|peaks|troughs)\b",
        r"\b(?:upper|lower|first|second|latter)[- ]half\b|\bhalf-(?:hearted|baked)\b|\btwo-(?:sided|way)\b",
        r"\bzero(?= (?:conviction|evidence|doubt|interest|patience|appetite|support|merit|reason|sign)\b)",
        r"\bdoubl(?:es|ing) up\b|\bdouble-(?:edged|count\w*)\b|\b(?:the same(?: \w+){1,2}|think) twice\b",
        r"\b(?:two|three|four)(?= (?:are (?:bullish|bearish|neutral|silent)|agree|disagree|abstain|object)\b)",
        rf"\b(?:nasdaq|russell|ftse|nikkei|s&p) (?:100|2000|225|500)\b(?! (?:{_UNITS})\b)|\b(?:2s10s|25-delta)\b",
        r"\b(?:v[234]|erc-?(?:20|721)|permit2|eip-?1559|1st|2nd|3rd|[4-9]th|10th)\b",
        r"\b(?:last|past|previous|trailing) (?:24 ?-?h(?:ours?)?|7 ?-?d(?:ays?)?|30 ?-?d(?:ays?)?)\b",
        r"\b24 ?-?h(?:ours?)?(?= (?:of )?(?:fees|lvr|net|carry|changes?|moves?|volatility|exits?|windows?|horizon)\b)",
        r"\b(?:doubled?|tripled?)(?: the)? (?:volatility|vol)\b|\b(?:doubling|tripling) of volatility\b",
        r"\bvolatility (?:doubles|triples)\b|\bof the (?:two|three|four|five)(?=[ ]?[,;.()])",
    )
)
_TIMES_STRESS = r"(?:[123](?:\.0)? ?[×x](?:/|, (?=[123])|,? and (?=[123]))?){1,4}"
_STRESS: Final = re.compile(
    rf"(?<![\d.,]){_TIMES_STRESS}(?= (?:{_STRESSED})\b| by {MARK})|(?:^|[.;] ){_TIMES_STRESS}(?=:| {MARK})"
    rf"|\b(?:at|under|fails?|clears|passes) {_TIMES_STRESS}(?! (?:of [^{MARK}]|(?:the|its|your|as) (?:fees|lvr|price|"
    r"cost|return|yield|rate|money|capital|much|many|gain|profit)\b|more|higher|larger|lvr|fees|leverage))",
    re.IGNORECASE,
)
_TIER: Final = re.compile(r" (\d+(?:\.\d+)?) ?%$")
_RETRACED: Final = re.compile(r"\.retracement_(\d+)$")
_WINDOW: Final = re.compile(r"_(\d+)([hd])(?![a-z0-9])")
_VALUED = "at near above below under over around about roughly leverage rsi adx score target stop".split()
_NO_VALUE = r"(?:(?<!\bof )|(?<=first of )|(?<=last of ))" + "".join(rf"(?<!\b{word} )" for word in _VALUED)
"""Before a count: "leverage of five risks ruin" and "RSI near 9 signals a low" count neither risks nor signals."""
_CITED: Final = re.compile(
    r"(?i)\b(candidate|option|move|round|pool)(?:s?)[- ](#?\d+(?:(?:,? (?:and|or|vs\.?|to) |, ?|/| ?& ?)#?\d+)*)"
    rf"(?! ?(?:%|(?:{_UNITS})\b))"
)
_COUNTED: Final = re.compile(
    rf"(?i)\b(?:one|{_NO_VALUE}(?:{_ONES}|[1-9]|10))(?: (?:of|or)(?: the| its| these)?(?: (?:{_ONES}|[2-9]|10))?)?"
    rf"(?: (?!(?:{_ELSEWHERE})\b)[a-z]+){{0,2}} (?:{_NUMBERED})\b(?! (?:wide|long|deep|away|apart|high|low|old))"
)
_GLUED: Final = re.compile(
    rf"[\w.]+{MARK}|(?<![{MARK}\w)])[-+−*/^]{MARK}|{MARK}(?!'?s\b)[a-z^*]\w*|{MARK}\.\w"
    rf"|{MARK}[ -](?:[kmb]|h|s|hours?|days?|weeks?|minutes?|months?|years?|usdc?|usdt|dollars?|eth|weth|btc|wbtc|gwei|"
    r"ticks?|times|bars?|seconds?)(?![\w-])",
    re.IGNORECASE,
)
_RATIO: Final = re.compile(r"(?i)\b(?:(\d+(?:\.\d+)?)(?: ?: ?|[ -]to[ -])1|1 ?: ?(\d+(?:\.\d+)?))(?![\d:]|\.\d)")

# -- what points out of the text, or at its reader

_ADDRESS: Final = re.compile(r"(?i)\b0x[0-9a-f…]*|\b[0-9a-f]{16,}\b|\b(?:bc1|[a-z]{2,}1q)[0-9a-z]{8,}\b|\.eth\b")
_LINK: Final = re.compile(
    r"(?i)://|\bwww\.|\bhxxps?\b"
    r"|(?<![a-z0-9-])[a-z0-9-]{2,63}(?:\s?[\[(]\s?(?:\.|dot)\s?[\])]\s?|\.)(?-i:[a-z]{2,}|[A-Z]{2,})\b(?!\))"
    r"|\b\w+ dot (?:com|org|net|io|xyz|eth|finance|example|app|me)\b|@\w+|\b\w+@"
)
_COMMAND: Final = re.compile(
    r"`|(?:^|\s)--?[a-z][\w-]*|\bzuno [a-z]+|&&|\|\||\$\(|(?:^|\s)(?:sudo|curl|wget|pip|npm|npx|bash|ssh|chmod|rm -|"
    r"git clone|docker|python|powershell|cmd|eval|exec)\b",
    re.IGNORECASE,
)
_ACTS: Final = (
    "accept the|act|add|allow|apply|approve(?! with caution)|ask|authori[sz]e|be sure|bridge|broadcast|browse|"
    "burn|buy|call|cancel|change|check|claim|click|come|confirm|connect|contact|copy|delegate|delete|deposit|"
    "disable|disregard|do|do not|don't|download|email|enable|enter|execute|export|follow|forget|fund|get|give|go|"
    "grant|hurry|ignore|import|increase your|install|invest|join|leave your|let|log|make sure|message|mint|"
    "move (?:your|everything|all|the)|navigate|obey|open the|override|paste|pay|press|provide|put your|read|redeem|"
    "remember|remove|repay|reply|reveal|revoke|run|scan|see|select|sell|send|set|share|sign|skip|stake|stop|submit|"
    "subscribe|swap|switch|take your|tell|transfer|trust|try|turn (?:off|on|the|it)|type|unlock|unstake|update|upgrade|"
    "use|verify|view|visit|vote|wire|withdraw|write"
)
_HANDS: Final = "sign|approve|authori[sz]e|transfer|wire|deposit|click|download|install|paste|disable|subscribe"
"""What only the reader can do."""
_OWNED: Final = "wallets?|coins|funds|limits|settings|keys?|phrase|messages?|transactions?|password|savings|switch"
_NO_VERB: Final = (
    r"\w+ing|in|with|on|for|at|from|by|to|as|if|of|and|but|when|while|since|above|below|after|before|that|now|so|then|"
    "also|because|although|though|where|like|once|until|both|all|given|under|over|is|are|than|unless|keeps|leaves"
)
_ORDER: Final = re.compile(
    rf"(?:^|[.!?;:—–\n]\s*|[\"'(]|,\s+(?:then|so|now|and|but)\s+)"
    rf"(?:(?:now|then|so|first|next|finally|just|simply|always|never|immediately|instead|and|but|also|quickly),?\s+)*"
    rf"(?:(?:{_ACTS})\b(?!\s*[:=)])|(?!(?:{_NO_VERB})\b)\w+ (?:your|(?:the|all|every|any)(?: \w+)? (?:{_OWNED}))\b)"
    rf"|,\s+(?:{_HANDS}|withdraw|send|connect|ignore|visit) (?:the|your|all|everything|it|this|every|any|some|into)\b",
    re.IGNORECASE,
)
_NO_ORDER: Final = re.compile(
    r"\b(?:(?:go|enter|stay) (?:long|short|flat|neutral)|enter (?:only )?(?:on|near|after)"
    r"|(?:buy|sell) the (?:rally|dip|news|rumour|bounce))\b"
    r"(?![^.;!?]*\b(?:your?|yours|everything|all[- ]in|now|wallet|\w*site|page|link|code|phrase)\b)"
    r"|\b(?:do not|don't) (?:read|take|mistake) (?:this|that|it|my)"
    r"(?: (?!warning|alert|error|notice|limit|message)\w+)? (?:as|for) (?:an?|any)\b"
    r"|\b(?:buy|sell|stop|swap|call|ask)[- ](?:pressure|side|walls?|orders?|volumes?|flows?|hunts?|hunting|runs?|"
    r"losses|skew|signals?|liquidity|interest|imbalance|depth|programs?|funding|spreads?|quotes?|clusters?|zones?)\b"
    r"(?!\s*(?:[.!?;]|$|(?:now|immediately|today|at once|to|for)\b))|\b(?:buy|sell|stop|call|set|run|check)-[a-z]+"
    r"|\b(?:buy|sell|stop|swap|call|ask)(?: (?!(?:all|every\w+|it|wh\w+|that|this|the|you\w*|because|since|as|if|"
    r"before|until|after|now|and|or)\b)[a-z]+){1,2} (?:is|are|was|were|has|had)\b"
    r"|\blet (?:the (?:level|market|trend|chart|tape|retest|trade)|price)\b"
    r"|\btrust (?:the )?(?:liquidity|microstructure|macro|geometry|chart|tape|book|trend|structure|numbers)\b"
    rf"|\b(?:{_ACTS})(?= (?:of|is|was|were|are|has|had|remains?|looks?)\b)|\b(?:change|trust)(?= in\b)"
    r"|\b(?:set|read) (?:against|apart|beside|together)\b|\bcall (?:it|this|that) an?\b",
    re.IGNORECASE,
)
"""A verdict ("go long"), a remark on how something is meant, and verbs that are nouns here ("sell pressure fades")."""
_ADDRESSED: Final = re.compile(
    r"\b(?:you|u|owner|user|reader)s? (?:should|must|shall|ought|have to|has to|need to|needs to|had better|"
    r"will want to|may want to|are required|are advised|can now|could now|may now)\b"
    r"|\b(?:please|kindly|we urge|i urge|i recommend you)\b|,\s+(?:owner|user|reader|trader|operator)s?\s*[.,!;:]"
    rf"|\b(?:must|should|ought to|ha(?:s|ve) to|needs? to|now|time to|sure to)(?: now| first)? (?:{_HANDS})\b",
    re.IGNORECASE,
)
_GREEK: Final = frozenset("σΣμΔδβγθ")


def _find_in_prose(prose: str, facts: FactSheet, cited: Sequence[str]) -> Iterator[Fault]:
    for char in prose:
        if char.isascii() or char == MARK or char in _GREEK:
            continue
        if unicodedata.numeric(char, None) is not None:
            yield Fault(Code.NUMERAL, char)
        elif _is_foreign(char):
            yield Fault(Code.LETTERS, char if char.isprintable() else f"U+{ord(char):04X}")
    folded = _fold(prose)
    for code, pattern, searched in (
        (Code.GLUED, _GLUED, folded),
        (Code.ADDRESS, _ADDRESS, folded),
        (Code.LINK, _LINK, folded),
        (Code.COMMAND, _COMMAND, folded),
        (Code.ORDER, _ORDER, _NO_ORDER.sub(" name", folded)),
        (Code.ORDER, _ADDRESSED, folded),
    ):
        if hit := pattern.search(searched):
            yield Fault(code, hit[0].strip().replace(MARK, "{…}"))
    left = _without_names(folded, facts, cited)
    for match in _NUMERAL.finditer(left):
        yield Fault(Code.NUMERAL, match[0])
    for pattern in (_NUMBER_WORD, _SHARE_IN_WORDS, _ONE_OF):
        for match in pattern.finditer(left):
            yield Fault(Code.NUMBER_WORD, match[0])
    for match in _ROMAN.finditer(left):
        if match[0] not in _NOT_ROMAN:
            yield Fault(Code.NUMERAL, match[0])


def _is_foreign(char: str) -> bool:
    """Foreign or look-alike letters, pictures, and invisible characters."""
    category = unicodedata.category(char)
    if category[0] == "L":
        return not (unicodedata.name(char, "").startswith("LATIN") and unicodedata.normalize("NFKD", char)[0].isascii())
    return category[0] in "CM" or category in ("Zl", "Zp", "So")


def _fold(prose: str) -> str:
    """One alphabet: no accents, one kind of dash and apostrophe."""
    spread = unicodedata.normalize("NFKD", prose.replace("’", "'").replace("\u00a0", " "))
    return "".join(char for char in spread if not unicodedata.combining(char))


def _without_names(folded: str, facts: FactSheet, cited: Sequence[str]) -> str:
    """The prose without digits and counts that claim nothing. A window may be named where a fact of it is cited, and a
    multiple where it compares two facts."""
    if all(id_ in facts for id_ in cited):
        folded = hide_multiples(folded, [facts[id_] for id_ in cited])
    for number, unit in {match.groups() for id_ in cited for match in _WINDOW.finditer(id_)}:
        length = {"h": "h(?:ours?)?", "d": "d(?:ays?)?"}[unit]
        before = "in|within|over|per|every|each|last|past|previous|as if for|next"
        named = (
            rf"(?i)\b(?:{before}) (?:the )?(?:last |past |next )?{number} ?-?{length}\b|(?<=exit ){number} ?{length}\b"
        )

        def keep_claims(match: re.Match[str], window: str = f"{number}{unit}") -> str:
            """Right behind a slot it is the window of that slot, or what the slot is compared with."""
            head = match.string[: match.start()]
            return match[0] if head.endswith(f"{MARK} ") and window not in cited[head.count(MARK) - 1] else " name "

        folded = re.sub(named, keep_claims, folded)
    for name in facts.names:
        folded = re.sub(rf"(?<!\w){re.escape(_fold(name))}(?!\w)", " name ", folded)
        if tier := _TIER.search(_fold(name)):
            folded = re.sub(rf"(?<![\w.,-]){re.escape(tier[1])} ?%(?=[ -](?:pool|tier|fee tier)\b)", "name", folded)
    for ratio in {int(match[1]) / 1000 for match in map(_RETRACED.search, facts) if match}:
        folded = re.sub(rf"(?<![\d.])(?:{ratio:g}|{100 * ratio:g} ?%)(?= retracement\b)", "name", folded)
    folded = _CITED.sub(lambda match: " name " if _exist(match[1].lower(), match[2], facts) else match[0], folded)
    own = {round(float(fact.number), 1) for fact in facts.values() if fact.id.endswith("reward_over_risk")}
    folded = _RATIO.sub(lambda match: " name " if float(match[1] or match[2]) in own else match[0], folded)
    stressed = [_STRESS] if any(fact.stress for fact in facts.values()) else []
    for pattern in (*_EXEMPT, *stressed, _COUNTED):
        folded = pattern.sub(" name ", folded)
    return folded


def _exist(what: str, numbers: str, facts: FactSheet) -> bool:
    cited = {int(number) for number in re.findall(r"\d+", numbers)}
    if what == "round":
        return all(number < facts.rounds for number in cited)
    if what == "pool":
        return all(f"p{number}" in facts.subjects for number in cited)
    return cited <= facts.candidates

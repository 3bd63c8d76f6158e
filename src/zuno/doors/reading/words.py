"""The shell's vocabulary: which words and phrases stand for which concept."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from zuno.doors.reading.intents import Intent
from zuno.lp.service.wish_words import FILLERS as WISH_FILLERS
from zuno.lp.service.wish_words import RISK

DANGEROUS_VERBS: Final[Mapping[str, Intent]] = MappingProxyType(
    {
        "approve": Intent.APPROVE,
        "apply": Intent.APPLY,
        "execute": Intent.APPLY,
        "cancel": Intent.CANCEL,
        "collect": Intent.COLLECT,
        "claim": Intent.COLLECT,
        "harvest": Intent.COLLECT,
        "close": Intent.CLOSE,
        "add": Intent.ADD,
        "remove": Intent.REMOVE,
        "withdraw": Intent.REMOVE,
    }
)

_CONCEPTS: Final = """
ACK: ack acknowledge
AGAIN: again
AGENTS: agents agent models
ALERTS: alerts alert warnings
ALL: all
ALLOWANCE: allowances allowance approvals
AND: and then
BALANCE: balances balance
CANDIDATE: candidate
CHECK: check
COND: already if when whenever unless until later tomorrow tonight after before
CREATE: create open mint deploy invest deposit provide supply opening creating put
DEBATE: debate argue discuss
DEMO: demo tour
DIFF: diff differ differs compare difference differences changed
DONE: confirmed applied done approved finished pending executed through
DOWN: down stop
DROP: drop crash dump lower sink
EARN: earn earned lost lose gain gained make made
EXIT: exit quit bye goodbye q
FEES: fees fee
HAVE: have
HELP: help commands usage
HISTORY: history
IMPORT: import
INSPECT: inspect details detail examine describe
ABOUT: about
IS: is are
JOURNAL: journal log logs entries
LIQUIDITY: liquidity
MONEY: money
MONITOR: monitor
MOVE: move push
NEG: not don't dont never no cannot can't won't nothing without neither nor doesn't isn't shouldn't wouldn't aren't
NEW: new
ONCE: once
OPTIONS: options option candidates alternatives choices
OVER: over
PEERS: peers peer mesh connected
PLAN: plan
PLANS: plans
PNL: pnl p&l profit profits earnings attribution
POOL: pool
POOLS: pools
POSITION: position nft
POSITIONS: positions lps nfts
PRICE: price
PRON: it this that these those
RAISE: raise pump lift bump
REBALANCE: rebalance rebalancing recenter
RECOMMEND: recommend recommendation recommendations suggest suggestion advise advice propose
REFRESH: refresh reload rescan
REPLAY: replay
RESET: reset
RANGE: range ranges
RISKY: risky risk danger endangered edge
ROLE: critic arbiter strategist scout
RUN: run running start launch bring alive
SAY: say said says think thinks
SIGN: sign send transfer swap buy sell bridge
SIMULATE: simulate simulation rehearse dry-run
SHOW: show list display see view print give tell get lemme pull look zoom
SNOOZE: snooze mute silence
STATUS: status progress
SWITCH: switch
TAIL: tail
TAKE: take
UP: up
UPDATE: update
USE: use change
VERIFY: verify intact
VERSION: version
VETO: veto vetoed reject rejected pick picked choose chose chosen decide decided
WALLET: wallet address
WHY: why reason reasons reasoning rationale explain explanation transcript conclusion
MAKE: build generate
"""

_PHRASES: Final = """
ALERTS: anything wrong
BALANCE: in wallet
BALANCE: what tokens
FILL: without sending
GOTO: move over to
GOTO: move to
HOLDINGS: i hold
HOLDINGS: we hold
OPTIONS: what else did you consider
OPTIONS: what else did you look at
RECOMMEND: best move
RECOMMEND: better range
SIMULATE: try it
STATUS: where are we
VERIFY: not tampered
COND: what if
DIFF: what changed
DONE: went through
DONE: go through
DONE: done yet
FILL: is it time
EXIT: leave shell
GOTO: go to
GOTO: change to
HELP: what can i say
HELP: what can i do
HELP: what can you do
HOLDINGS: what do i hold
HOLDINGS: what do we hold
HOWMUCH: how much
HOWTO: how can i
HOWTO: how can we
HOWTO: how do i
HOWTO: how do we
HOWTO: how does
HOWTO: how to
IN_RANGE: in range
IN_RANGE: inside range
IN_RANGE: within range
IN_RANGE: in-range
INSPECT: how is
INSPECT: how are
INSPECT: how's
INSPECT: what's up with
INSPECT: look at
INSPECT: zoom in
INSPECT: tell me about
OUT_OF_RANGE: aren't in range
OUT_OF_RANGE: fell out of range
OUT_OF_RANGE: isn't in range
OUT_OF_RANGE: left range
OUT_OF_RANGE: not in range
OUT_OF_RANGE: out of range
OUT_OF_RANGE: out-of-range
OUT_OF_RANGE: outside range
PNL: profit and loss
PNL: where did money go
PNL: where money went
PUT: put to work
RECOMMEND: what should i do
RECOMMEND: what should we do
RECOMMEND: what to do
RECOMMEND: what would you do
RISKY: about to leave range
RISKY: at risk
RISKY: close to edge
RISKY: close to edges
RISKY: in danger
RISKY: near edge
RISKY: near edges
SIMULATE: dry run
SIMULATE: what would plan do
STATUS: far along
STATUS: how is plan
WALLET: which wallet
WHY: how did you come
WHY: how did you decide
WHY: how was decided
"""

FILLERS: Final = frozenset(
    """a active ahead along alright also am an any anything as at be been behind being between both but by can chain
    come consider considered cool cost costs could current currently day desk did do does doing else everyone
    everything existing fall far fell fifth fine first for fourth from full gas go going good got gotta great
    had half has hello here hey hi his holding hour how i i'd i'll i'm id ids in inside into its just kindly
    know known last latest left let let's lets like line lines look lp many may me might more much my need
    network newest now number numbers of ok okay on one ones onto or other our out outside outstanding own
    perfect play please pls plz previous quarter quick quickly really right said say second seems seen shall
    shell should so some somebody something spending still style sure than thank thanks the their them there
    they third time to today token tokens under us using wanna want was way we we'd week well were what what's
    whats where which who who's whole will with within work would yeah yep yes yet yo you your zuno""".split()
)
"""Words that change nothing where nothing dangerous is said."""

NEGATIONS: Final = ("not", "don't", "dont", "aren't", "isn't", "never", "cannot", "can't", "won't")
"""An unknown word a slip away from one of these may be one: then nothing is done."""
ARTICLES: Final = frozenset("the a an my our your its their his her".split())
DEFINITE: Final = frozenset({"the"})
ORDINALS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "first": "first",
        "second": "second",
        "third": "third",
        "fourth": "fourth",
        "fifth": "fifth",
        "last": "last",
        "latest": "last",
        "newest": "last",
        "previous": "previous",
    }
)
SHARES: Final[Mapping[str, str]] = MappingProxyType({"half": "50", "quarter": "25", "everything": "100", "all": "100"})

LEADS: Final = tuple(
    tuple(phrase.split())
    for phrase in (
        "please|pls|plz|kindly|ok|okay|yes|yeah|yep|sure|alright|fine|great|good|cool|perfect|thanks|hey|hi|hello|zuno|"
        "so|well|just|now|then|lp|plan|can you|could you|go ahead|go ahead and|let's|lets|let us|"
        "i want to|i want you to|i need to|i need you to|i'd like to|i'd like you to|i would like to|we want to|"
        "we need to|i wanna|then please"
    ).split("|")
)
"""What may stand before a dangerous verb for it to be an order."""
TRAILS: Final = frozenset("please pls plz now thanks you me for of from to on in into one my the a its id".split())
"""What may stand behind it, beside what it acts on."""


def _table(text: str) -> dict[str, str]:
    table: dict[str, str] = {}
    for line in text.strip().splitlines():
        concept, _, words = line.partition(":")
        table.update(dict.fromkeys(words.split(), concept))
    return table


def _phrases(text: str) -> dict[tuple[str, ...], str]:
    lines = (line.partition(":") for line in text.strip().splitlines())
    return {tuple(words.split()): concept for concept, _, words in lines}


WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(WISH_FILLERS | FILLERS, "FILL"),
        **dict.fromkeys(RISK, "RISK"),
        **_table(_CONCEPTS),
        **{word: intent.name for word, intent in DANGEROUS_VERBS.items()},
    }
)
"""Every word the shell knows, and its concept."""
PHRASES: Final[Mapping[tuple[str, ...], str]] = MappingProxyType(_phrases(_PHRASES))
LONGEST_PHRASE: Final = max(map(len, PHRASES))
_PHRASE_WORDS: Final = {word: "FILL" for phrase in PHRASES for word in phrase if word not in WORDS}
INFLECTED: Final = frozenset(
    """approves approving approved approval applies applying applied application cancels canceled cancelled cancelling
    closes closing closed closer collects collecting collected claims claimed claiming adds adding added removes
    removing removed withdraws withdrawing withdrawn harvests harvested executes executing executed chose those lose
    loose remote and end odd ad apple""".split()
)
"""Near a dangerous verb, but words of their own: never taken for a slip of it."""
MENDABLE: Final[Mapping[str, str]] = MappingProxyType(
    {
        **_PHRASE_WORDS,
        **{word: concept for word, concept in WORDS.items() if word not in DANGEROUS_VERBS and concept != "NEG"},
    }
)
"""What a slip may be mended to. A verb that moves money and a `not` are never guessed."""
KNOWN: Final = frozenset({*WORDS, *_PHRASE_WORDS, *INFLECTED})

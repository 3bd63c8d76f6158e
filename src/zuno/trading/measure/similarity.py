"""How alike two texts are, the same on every machine: whole-number vectors, words, what age takes off, and the entities
that a text names. Vectors are int8: sums stay below 2^24 and exact in float32, in whichever order a library adds."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure import portable
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.memory import Channel

ONE: Final = 10_000
"""The similarity of two equal texts."""
LEAST_ALIKE: Final = 0.20
"""Least similarity of a result to a query in a person's words. On `tests/golden/memory_queries.json` 17 of 20 queries
about setups find one (MiniLM: 19), of 20 about anything else none."""
QUERY_CHARS: Final = 4_000
"""Of a longer query the rest is not read."""
QUERY_WORDS: Final = 64
LEAST_PHRASES: Final = 5
"""Between semicolons: a text with as many is a setup."""


@dataclass(frozen=True, slots=True)
class Decay:
    half_life_days: int
    floor: int
    """Millionths that age never takes off."""


DECAY: Final[Mapping[Channel, Decay]] = {
    Channel.SYSTEM_POST_MORTEM: Decay(90, 500_000),
    Channel.NEWS: Decay(7, 0),
    Channel.NARRATIVE: Decay(7, 0),
}
"""The desk's own trades count three quarters after 90 days and never less than half, so that an equal setup of two
years ago ranks above a different one of yesterday. News counts half after a week."""
_DAYS: Final = 3_660
"""What is older counts as if it were of that age."""
_MILLION: Final = 1_000_000
_LN2: Final = 0.6931471805599453
_WORD: Final = re.compile(r"\d+(?:[.,]\d+)+(?![^\W_])|[^\W_]+")
"""A number with its decimals or thousands, else letters and digits: `1.5`, `100,000`, `1h`."""
_STOP_WORDS: Final = frozenset(
    "a an and are as at be been by for from has have in into is it its of on or than that the this to was were which "
    "while will with".split()
)


def split_words(text: str) -> tuple[str, ...]:
    """The distinct words in order, in lower case, without stop words."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return tuple(word for word in dict.fromkeys(words) if word not in _STOP_WORDS)


def split_phrases(text: str) -> tuple[str, ...]:
    """The distinct phrases of a setup, each as one word; none of any other text."""
    phrases = ["".join(sorted(split_words(phrase))) for phrase in text.split(";")]
    distinct = tuple(dict.fromkeys(phrase for phrase in phrases if phrase))
    return distinct if len(distinct) >= LEAST_PHRASES else ()


def list_terms(text: str) -> tuple[str, ...]:
    """What a text is looked up by: its words and, of a setup, its phrases."""
    return tuple(dict.fromkeys((*split_words(text), *split_phrases(text))))


def measure_norms(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """The square of each row's length, a whole number."""
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors), dtype=np.float64)


def measure_cosines(
    vectors: NDArray[np.float32], norms: NDArray[np.float64], query: NDArray[np.float32]
) -> NDArray[np.int32]:
    """The cosine of each row with the query; 0 where it is negative, or one of both is empty."""
    products = (vectors @ query).astype(np.float64)
    lengths = np.sqrt(norms * float(query @ query))
    np.maximum(lengths, 1.0, out=lengths)
    products /= lengths
    products *= ONE
    return np.rint(np.clip(products, 0, ONE, out=products)).astype(np.int32)


def unpack_vector(packed: bytes) -> NDArray[np.float32]:
    return np.frombuffer(packed, dtype=np.int8).astype(np.float32)


def measure_all_cosines(vectors: Sequence[bytes]) -> NDArray[np.int32]:
    """Of each vector with each, a square of ten-thousandths, as `measure_cosines` gives them."""
    if not vectors:
        return np.zeros((0, 0), dtype=np.int32)
    rows = np.stack([unpack_vector(vector) for vector in vectors])
    norms = measure_norms(rows)
    lengths = np.maximum(np.sqrt(np.outer(norms, norms)), 1.0)
    shares = (rows @ rows.T).astype(np.float64) / lengths * ONE
    return np.rint(np.clip(shares, 0, ONE)).astype(np.int32)


def combine_similarity(
    cosines: NDArray[np.int32], covered: NDArray[np.int32], asked: int, thirds: int
) -> NDArray[np.int32]:
    """The cosine, and so many thirds of the share of the query's words or phrases that a text holds."""
    if asked == 0:
        return cosines
    return ((3 - thirds) * cosines + thirds * (ONE * covered // asked)) // 3


@cache
def _decay_table(decay: Decay) -> NDArray[np.int64]:
    """What is left after so many whole days, in millionths."""
    left = portable.exp(np.arange(_DAYS) * (-_LN2 / decay.half_life_days))
    return decay.floor + np.rint(left * (_MILLION - decay.floor)).astype(np.int64)


def apply_decay(similarity: NDArray[np.int32], ages: NDArray[np.int64], decay: Decay) -> NDArray[np.int32]:
    """Scores by age in milliseconds, which counts in whole days."""
    days = np.clip(ages // DAY_MS, 0, _DAYS - 1)
    return (similarity * _decay_table(decay)[days] // _MILLION).astype(np.int32)


MOST_ENTITIES: Final = 40
_PHRASE: Final = re.compile(r"[;\n]")
_NAME: Final = re.compile(r"(?:[A-Z][\w.&'’-]*|\d[\d.,]*\w*)(?: (?:[A-Z][\w.&'’-]*|\d[\d.,]*\w*))*")
"""Words with a capital or a digit, side by side."""


@dataclass(frozen=True, slots=True)
class Relation:
    source: str
    target: str
    word: str
    """What stands between them."""


@dataclass(frozen=True, slots=True)
class Entities:
    names: tuple[str, ...]
    """In small letters, without the words that say nothing."""
    relations: tuple[Relation, ...]


def find_entities(text: str) -> Entities:
    """A setup's phrases, each an entity related to its subject; or a headline's names, each related to the next."""
    phrases = [phrase for phrase in _PHRASE.split(text) if phrase.strip()]
    return _read_setup(phrases) if len(phrases) > 1 else _read_headline(text)


def _read_setup(phrases: list[str]) -> Entities:
    names: dict[str, None] = {}
    relations: dict[Relation, None] = {}
    for phrase in phrases[:MOST_ENTITIES]:
        words = split_words(phrase)
        if not words:
            continue
        subject, condition = words[0], " ".join(words)
        names[condition] = None
        if condition != subject:
            names[subject] = None
            relations[Relation(subject, condition, "state")] = None
    return Entities(tuple(names), tuple(relations))


def _read_headline(text: str) -> Entities:
    matches = [(match, " ".join(split_words(match[0]))) for match in _NAME.finditer(text)][:MOST_ENTITIES]
    named = [(match, name) for match, name in matches if name]
    relations: dict[Relation, None] = {}
    for (match, name), (following, other) in pairwise(named):
        between = split_words(text[match.end() : following.start()])
        if name != other:
            relations[Relation(name, other, between[0] if between else "with")] = None
    return Entities(tuple(dict.fromkeys(name for _, name in named)), tuple(relations))


@dataclass(frozen=True, slots=True)
class NewsText:
    id: str
    channel: str
    """Who told it; two names are two sources."""
    at: Millis
    body: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class Story:
    texts: tuple[NewsText, ...]

    @property
    def first(self) -> NewsText:
        return self.texts[0]

    @property
    def sources(self) -> int:
        """How many channels told it: who repeats themselves corroborates nothing."""
        return len({text.channel for text in self.texts})


def merge_stories(texts: Sequence[NewsText], duplicate: float) -> tuple[Story, ...]:
    """Oldest first. A text joins the first story with an earlier text of cosine `duplicate` or more."""
    ordered = sorted(texts, key=lambda text: (text.at, text.id))
    alike = measure_all_cosines([text.vector for text in ordered]) >= round(duplicate * ONE)
    story_of = np.zeros(len(ordered), dtype=np.int64)
    stories: list[list[NewsText]] = []
    for place, text in enumerate(ordered):
        earlier = story_of[:place][alike[place, :place]]
        story_of[place] = earlier.min() if len(earlier) else len(stories)
        if len(earlier):
            stories[story_of[place]].append(text)
        else:
            stories.append([text])
    return tuple(Story(tuple(story)) for story in stories)

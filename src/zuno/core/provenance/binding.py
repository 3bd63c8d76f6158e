"""What a figure is said of: the thing it is called, the stress it is under and the candidate it belongs to.

Read from the words alone and never from the facts, so that a fact more cannot turn a sound figure into an unsound one.
Where the words leave it open, it is left open: a bond is only what a reader would swear to.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from zuno.core.provenance import words as w
from zuno.core.provenance.tokens import Tokens

_FAR = 9
"""Tokens between a figure and the word that names it."""
_BREATH = 40
"""Tokens after which a sentence is no longer sure to speak of the candidate it named."""
_LIST = 8
"""Candidates named in one breath."""
_OPENING = frozenset({"", ".", ";", "!", "?", ","})
"""What a clause begins after."""


@dataclass(frozen=True, slots=True)
class Bond:
    """What the words beside one figure say of it; empty where they say nothing."""

    called: tuple[frozenset[str], ...] = ()
    """Each is a set of which the fact's name must have a word; one of them is enough."""
    stress: int = 0
    candidates: frozenset[int] = frozenset()
    leaves_open: bool = True
    """The subject the text was asked about may be meant as well."""
    here: bool = False
    """Its own sentence has named one of them before it."""
    sentence: frozenset[str] = frozenset()
    """Every word of the figure's sentence."""
    lost: bool = False
    """It is said to be lost: what is earned is not meant."""
    stated: bool = False
    """ "LVR of 12": the thing itself, and no difference of it and another."""


class _Mention(NamedTuple):
    first: int
    last: int
    numbers: frozenset[int]


class _Sentence(NamedTuple):
    first: int
    end: int
    words: frozenset[str]


class Binding:
    """A text's figures bound one by one; sentences and candidates are looked for once."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def bond(self, first: int, after: int, money: bool) -> Bond:
        """The bond of the figure whose first token is `first` and behind whose unit stands token `after`."""
        called: list[frozenset[str]] = []
        stress = self._stress_at(after)
        before = self._named_before(first)
        if before is not None:
            called.append(before[0])
            stress = stress or before[1]
        behind = self._named_behind(after)
        if behind is not None:
            called.append(behind[0])
            stress = stress or behind[1]
        verb = self._tokens.word(self._skipped_back(first - 1, w.BARELY))
        lost = money and verb in w.LOSING
        if money and not called and verb in w.EARNING | w.LOSING:
            called.append(w.LOST if lost else w.EARNED)
        sentence = self._sentence_of(first)
        candidates, is_open = self._candidates(first, after, sentence)
        named = bisect_right(self._mention_starts, first)
        here = named > 0 and self._mentions[named - 1].first >= sentence.first
        stated = before is not None and self._tokens.word(self._skipped_back(first - 1, w.HEDGES)) == "of"
        return Bond(tuple(called), stress, candidates, is_open, here, sentence.words, lost, stated)

    # ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _named_before(self, first: int) -> tuple[frozenset[str], int] | None:
        """ "the 2× buffer is 12 h", "fees of 31.7", "LVR (75 USDC)": a name, then nothing but linking words."""
        tokens, at, stress, linked, colon = self._tokens, first - 1, 0, "", False
        for _ in range(_FAR):
            multiple = self._multiple_ending(at)
            if multiple and tokens.word(at - 2) in w.STRESSED_AT:
                stress, at = multiple, at - 3
                continue
            if self._small(at) is not None and tokens.word(at - 1) in w.NUMBERED:
                at -= 2 + (tokens.word(at - 2) in {"of", "for"})  # "the buffer of candidate 2 is"
                continue
            word = tokens.word(at)
            if word in w.NAMED:
                if (word in w.NEVER_AT and linked == "at") or tokens.word(at - 1) in w.NOT_NAMING:
                    return None
                if colon and tokens.text(at - 1) not in _OPENING:
                    return None  # "Fees: 55" is a name and its figure, "fails the floor: 23 h" is not
                return self._name_at(at), stress or self._multiple_ending(at - 1)
            if not (word in w.NAMING_LINKS or tokens.text(at) in {"(", ":", "="}):
                return None
            colon = colon or tokens.is_(at, ":")
            linked, at = word, at - 1
        return None

    def _named_behind(self, after: int) -> tuple[frozenset[str], int] | None:
        """ "a 12 h buffer", "55 USDC a day of gross fees"."""
        tokens, at, stress = self._tokens, after, 0
        for _ in range(_FAR):
            word = tokens.word(at)
            if tokens.text(at) == "/" and tokens.word(at + 1) in {"day", "d"}:
                at += 2
            elif word in w.NAMING_BEHIND or tokens.is_(at, "-"):
                at += 1
            elif multiple := self._multiple_starting(at):
                stress, at = multiple, at + 2
            elif word in w.NAMED and word not in w.NEVER_BEHIND:
                return self._name_at(at), stress or self._stress_at(at + 1)
            else:
                return None
        return None

    def _name_at(self, at: int) -> frozenset[str]:
        tokens, word = self._tokens, self._tokens.word(at)
        if word in w.PRICES and tokens.word(at - 1) in w.PRICE_OF_WHAT:
            return w.NAMED[word] | w.OTHER_PRICES
        return w.NAMED[word]

    def _skipped_back(self, at: int, words: frozenset[str]) -> int:
        while self._tokens.word(at) in words:
            at -= 1
        return at

    # ── stress ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _multiple_starting(self, at: int) -> int:
        number = self._tokens.text(at)
        if number in w.MULTIPLES and self._tokens.text(at + 1) in {"×", "x", "X"}:
            return int(number)
        return 0

    def _multiple_ending(self, at: int) -> int:
        return self._multiple_starting(at - 1) if at else 0

    def _stress_at(self, at: int) -> int:
        """ "… at 2×": a list of multiples ("under 1×/2×/3×") binds none of its figures."""
        if self._tokens.word(at) not in w.STRESSED_AT:
            return 0
        behind = at + 3
        many = self._tokens.text(behind) in {"/", "–"} or (
            self._tokens.word(behind) in {"and", "or"} and self._multiple_starting(behind + 1)
        )
        return 0 if many else self._multiple_starting(at + 1)

    # ── whose ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _mentions(self) -> list[_Mention]:
        tokens, found, at = self._tokens, [], 0
        while at < len(tokens):
            if tokens.word(at) not in w.NUMBERED:
                at += 1
                continue
            first, numbers, last = at, set[int](), at
            at += 1 + tokens.is_(at + 1, "#")
            while len(numbers) < _LIST and (number := self._small(at)) is not None:
                numbers.add(number)
                last = at
                skip = at + 1
                while tokens.text(skip) in {",", "/", "&"} or tokens.word(skip) in {"and", "or"}:
                    skip += 1
                # "candidates 2, 3 and 4" goes on; "candidate 2, 45 h" does not.
                plural = tokens.word(first).endswith("s")
                if not plural or skip == at + 1 or self._small(skip) is None:
                    break
                at = skip
            at = max(at, last + 1)
            if numbers:
                found.append(_Mention(first, last, frozenset(numbers)))
        return found

    def _small(self, at: int) -> int | None:
        text = self._tokens.text(at)
        if text.isascii() and text.isdigit() and len(text) <= 2:
            return int(text)
        return w.NUMBER_WORDS.get(self._tokens.word(at))

    @cached_property
    def _sentences(self) -> list[_Sentence]:
        found, first = [], 0
        ends = [at for at, token in enumerate(self._tokens.all) if token.text in {".", ";", "!", "?"}]
        for end in (*ends, len(self._tokens)):
            words = (token.text.lower().removesuffix("'s") for token in self._tokens.all[first:end])
            found.append(_Sentence(first, end, frozenset(words)))
            first = end + 1
        return found

    def _sentence_of(self, at: int) -> _Sentence:
        return self._sentences[bisect_right(self._starts, at) - 1]

    @cached_property
    def _starts(self) -> list[int]:
        return [sentence.first for sentence in self._sentences]

    @cached_property
    def _mention_starts(self) -> list[int]:
        return [mention.first for mention in self._mentions]

    @cached_property
    def _everyone(self) -> frozenset[int]:
        return frozenset(number for mention in self._mentions for number in mention.numbers)

    def _candidates(self, first: int, after: int, sentence: _Sentence) -> tuple[frozenset[int], bool]:
        """The candidates the figure may belong to, and whether it may belong to what the text is about."""
        if not self._mentions:
            return frozenset(), True
        next_ = bisect_right(self._mention_starts, first)
        behind = self._mentions[next_] if next_ < len(self._mentions) else None
        if behind is not None and self._attached(after, behind):
            return behind.numbers, False
        if not next_ or self._mentions[next_ - 1].first < sentence.first:
            return self._everyone, True  # its sentence has named nobody yet
        nearest = self._mentions[next_ - 1]
        if len(nearest.numbers) > 1 or self._turns(nearest.last + 1, first):
            return self._everyone, True
        if self._tokens.text(nearest.last + 1) in {"(", "'"}:
            return nearest.numbers, False
        earlier = self._mentions[next_ - 2] if next_ > 1 else None
        opens = self._tokens.text(nearest.first - 2) in _OPENING  # "For candidate 2 the net carry is"
        if opens or self._tokens.word(nearest.last + 1) in w.SUBJECT_OF:
            return nearest.numbers, False
        if self._tokens.word(nearest.first - 1) in w.COMPARED_WITH:
            # "candidate 2 beats candidate 3 at 45 h": either may be meant.
            if earlier is not None and earlier.first >= sentence.first:
                return nearest.numbers | earlier.numbers, False
            return nearest.numbers, True
        return nearest.numbers, False

    def _attached(self, after: int, mention: _Mention) -> bool:
        """ "12 % for candidate 2": nothing but its unit between a figure and whose it is."""
        tokens = self._tokens
        if mention.first - after > _FAR or tokens.word(mention.first - 1) not in {"for", "of", "on"}:
            return False
        between = tokens.all[after : mention.first - 1]
        return all(token.kind != "sym" or token.text in "/×" for token in between) and not any(
            token.kind == "num" and token.text not in w.MULTIPLES for token in between
        )

    def _turns(self, first: int, end: int) -> bool:
        """Whether the sentence turns to something else in between."""
        between = self._tokens.all[first : min(end, first + _BREATH)]
        return end - first > _BREATH or any(token.text.lower() in w.TURNING for token in between)

"""How near a line is to each intent: word and character n-grams, weighed by a linear model over the examples.

The model is counted in one pass, so that a line added to the examples is all there is to teaching. A score adds the
log-odds of the line's n-grams and the likeness to the intent's mean example.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from math import log, sqrt
from typing import Final

from zuno.doors.reading.intents import load_catalogue

_WEIGHT: Final = {"w": 1.0, "b": 0.7, "c": 0.3, "p": 0.5}
"""Words, neighbours, letters, pairs anywhere in the line."""
_SMOOTH: Final = 0.02
_ODDS, _MEAN = 0.12, 2.0
_MOST_WORDS: Final = 40


@lru_cache(maxsize=8_192)
def _word_features(word: str) -> tuple[str, ...]:
    if word.startswith("{"):
        return ("w" + word,)
    marked = f"<{word}>"
    return ("w" + word, *("c" + marked[at : at + size] for size in (3, 4) for at in range(len(marked) - size + 1)))


def features(words: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words:
        for feature in _word_features(word):
            counts[feature] = counts.get(feature, 0) + 1
    for first, second in pairwise(["^", *words, "$"]):
        counts[f"b{first} {second}"] = 1
    for first, second in combinations(sorted(set(words)), 2):
        counts[f"p{first} {second}"] = 1
    return counts


class NearestIntent:
    """Counted from the examples once; `score_line` is then read off."""

    def __init__(self, examples: Sequence[tuple[str, Sequence[str]]]) -> None:
        counted = [(name, features(words)) for name, words in examples]
        seen: Counter[str] = Counter()
        for _, counts in counted:
            seen.update(counts.keys())
        whole = len(counted) + 1
        self._rare = {feature: _WEIGHT[feature[0]] * log(whole / (count + 0.5)) for feature, count in seen.items()}
        self._unseen = log(whole)
        sums: dict[str, dict[str, float]] = {name: defaultdict(float) for name, _ in counted}
        for name, counts in counted:
            ours = sums[name]
            for feature, value in self._vector(counts).items():
                ours[feature] += value
        self._weights: dict[str, list[tuple[str, float]]] = defaultdict(list)
        self._prior: dict[str, float] = {}
        self._count(sums)

    def _count(self, sums: Mapping[str, Mapping[str, float]]) -> None:
        """Log-odds of each n-gram for and against an intent, plus its share of the intent's mean example."""
        total: dict[str, float] = defaultdict(float)
        for values in sums.values():
            for feature, value in values.items():
                total[feature] += value
        whole, spread = sum(total.values()), _SMOOTH * len(total)
        for name, values in sums.items():
            ours = sum(values.values())
            self._prior[name] = _ODDS * log((whole - ours + spread) / (ours + spread))
            length = sqrt(sum(value * value for value in values.values()))
            for feature, value in values.items():
                all_of_it = total[feature] + _SMOOTH
                odds = log((value + _SMOOTH) * all_of_it / (_SMOOTH * (all_of_it - value)))
                self._weights[feature].append((name, _ODDS * odds + _MEAN * value / length))

    def _vector(self, counts: Mapping[str, int]) -> dict[str, float]:
        rare, unseen = self._rare, self._unseen
        values = {name: count * (rare.get(name) or _WEIGHT[name[0]] * unseen) for name, count in counts.items()}
        length = sqrt(sum([value * value for value in values.values()])) or 1.0
        return {feature: value / length for feature, value in values.items()}

    def score_line(self, words: Sequence[str]) -> dict[str, tuple[float, float]]:
        """By intent: the score, and how much of the line its examples know (1: every n-gram)."""
        vector = self._vector(features(words[:_MOST_WORDS]))
        mass = sum(vector.values())
        score = {name: mass * prior for name, prior in self._prior.items()}
        known = dict.fromkeys(score, 0.0)
        for feature, value in vector.items():
            for name, weight in self._weights.get(feature, ()):
                score[name] += value * weight
                known[name] += value * value
        return {name: (round(value, 6), round(known[name], 3)) for name, value in score.items()}


@lru_cache(maxsize=1)
def load_nearest() -> NearestIntent:
    intents = load_catalogue().intents
    return NearestIntent([(name, words) for name, intent in intents.items() for words in intent.examples])

"""Routes: where a ruling's trade is carried. Each of the three words of its schema names venues with shares."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from zuno.kernel.errors import UsageError
from zuno.markets.venues import DEFAULT_VENUES, Venue, parse_venue

_FUTURES, _SPOT = DEFAULT_VENUES
LEVERED: Final = "BINANCE"
"""The route of what is sold short or borrowed for."""
OWN_MONEY: Final = "UPBIT"
"""The route of what is bought with one's own money for long."""
BOTH: Final = "SPLIT"


@dataclass(frozen=True)
class Routes:
    """Shares of each route by venue; they add up to 1."""

    shares: Mapping[str, Mapping[Venue, float]] = field(
        default_factory=lambda: {LEVERED: {_FUTURES: 1.0}, OWN_MONEY: {_SPOT: 1.0}, BOTH: {_FUTURES: 0.5, _SPOT: 0.5}}
    )

    def __post_init__(self) -> None:
        if set(self.shares) != {LEVERED, OWN_MONEY, BOTH}:
            raise UsageError(f"Routes are named {LEVERED}, {OWN_MONEY} and {BOTH}.")
        for name, several in self.shares.items():
            if not several or min(several.values()) <= 0 or abs(sum(several.values()) - 1) > 1e-9:
                raise UsageError(f"The shares of the route {name} do not add up to 1.")
        if not any(venue.shorts for venue in self.shares[LEVERED]):
            raise UsageError(f"The route {LEVERED} carries shorts: it needs a venue with perpetuals.")

    @property
    def venues(self) -> tuple[Venue, ...]:
        return tuple(dict.fromkeys(venue for several in self.shares.values() for venue in several))

    def find_name(self, venues: Iterable[Venue]) -> str | None:
        """The route of exactly these venues, else the first that has them all."""
        named = set(venues)
        if not named:
            return None
        exact = (name for name, several in self.shares.items() if set(several) == named)
        wider = (name for name, several in self.shares.items() if named <= set(several))
        return next(exact, None) or next(wider, None)


DEFAULT_ROUTES: Final = Routes()


def parse_route(words: Iterable[str]) -> dict[Venue, float]:
    """`["binance", "upbit"]` in equal shares, or `["binance:0.7", "upbit:0.3"]`."""
    given: dict[Venue, float | None] = {}
    for word in words:
        name, _, share = word.partition(":")
        try:
            given[parse_venue(name)] = float(share) if share else None
        except ValueError:
            raise UsageError(f"{share!r} is no share of a route.") from None
    if any(share is None for share in given.values()):
        if any(share is not None for share in given.values()):
            raise UsageError("A route has a share for each of its venues, or for none.")
        return dict.fromkeys(given, 1 / len(given))
    return {venue: share for venue, share in given.items() if share is not None}

"""The markets that venues list, in one JSON file of the home: `venue → {readAt, markets[]}`, replaced whole."""

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Final

from pydantic.alias_generators import to_camel

from zuno.adapters.file_lock import WAIT_SECONDS, LockedFile
from zuno.kernel.errors import Broken
from zuno.kernel.units import Millis
from zuno.markets.market import Catalogue, Market
from zuno.markets.venues import VENUES, Venue

NAME: Final = "markets.json"
_KEYS: Final = {field.name: to_camel(field.name) for field in fields(Market) if field.name != "venue"}


class MarketsFile:
    """`markets.json` in a home, with `markets.lock` beside it. Without the file there are built-in rules alone."""

    def __init__(self, home: Path, patience: float = WAIT_SECONDS) -> None:
        self._path = home / NAME
        self._file = LockedFile(self._path, patience)
        self._kept: tuple[tuple[int, int, int], Catalogue] | None = None

    def read(self) -> Catalogue:
        """Parsed again only when the file has changed."""
        stamp = self._file.stamp()
        if stamp is None:
            return Catalogue()
        if self._kept is None or self._kept[0] != stamp:
            self._kept = stamp, self._parse(self._file.read())
        return self._kept[1]

    def renew(self, venue: Venue, listed: Sequence[Market], at: Millis) -> Catalogue:
        """Keep a venue's list; those of the others stay as they are."""

        def rewrite(content: bytes | None) -> tuple[bytes | None, Catalogue]:
            catalogue = self._parse(content).renew(venue, listed, at)
            return _write(catalogue), catalogue

        return self._file.change(rewrite)

    def _parse(self, content: bytes | None) -> Catalogue:
        if content is None:
            return Catalogue()
        try:
            lists = {Venue(name): each for name, each in json.loads(content).items() if name in VENUES}
            rows = [(venue, row) for venue, each in lists.items() for row in each["markets"]]
            markets = [Market(venue=venue, **{name: row[key] for name, key in _KEYS.items()}) for venue, row in rows]
            if not all(market.usable for market in markets):
                raise ValueError("a market without a tick or a lot")
            read_at = {venue: Millis(int(each["readAt"])) for venue, each in lists.items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise Broken(
                f"{self._path} is damaged; remove it, and `zuno markets --refresh` writes it again."
            ) from error
        return Catalogue(tuple(markets), read_at)


def _write(catalogue: Catalogue) -> bytes:
    lists = {
        venue: {
            "readAt": at,
            "markets": [
                {key: getattr(market, name) for name, key in _KEYS.items()} for market in catalogue.list_at(venue)
            ],
        }
        for venue, at in catalogue.read_at.items()
    }
    return json.dumps(lists, separators=(",", ":")).encode()

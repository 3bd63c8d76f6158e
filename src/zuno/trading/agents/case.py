"""Everything one cycle argues about, worked out once from its bundle."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Final, TypeVar

from zuno.trading.measure.features import Features, PriceContext, measure_features, read_price_context
from zuno.trading.measure.frames import FrameCache
from zuno.trading.model.account import FEES, FeesSlot, read_slot
from zuno.trading.model.bundle import Bundle, has_own_reason
from zuno.trading.model.known import Missing
from zuno.trading.rules.inputs import FeeRates, Fees, RulingInputs, build_ruling_inputs, read_record
from zuno.trading.rules.price_menu import PriceMenu, build_price_menu

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A bundle and what follows from it: the same bundle gives the same case. Compared by identity, as a cache key."""

    bundle: Bundle
    features: Features
    menu: PriceMenu
    inputs: RulingInputs
    context: PriceContext


NOT_USABLE: Final = "its source gave nothing that can be used"


def read_fees(bundle: Bundle) -> Fees:
    """The fees that the bundle was frozen with, else the usual ones. `Malformed` for a slot that is none."""
    slot = bundle.slot(FEES)
    if slot is None:
        return Fees()
    named = read_slot(FeesSlot, slot.content, "fees")
    return Fees({venue: FeeRates(rates.maker, rates.taker) for venue, rates in named.fees.items()})


def without_source_text(bundle: Bundle) -> Bundle:
    """The bundle for models: reasons in a source's own words are replaced, for they are a stranger's text."""
    absent = tuple(gone if has_own_reason(gone) else replace(gone, why=NOT_USABLE) for gone in bundle.absent)
    return replace(bundle, absent=absent)


def replace_bundle(case: Case, bundle: Bundle) -> Case:
    """The case with a bundle that has more slots; slots of memory change no figure."""
    return replace(case, bundle=without_source_text(bundle))


@dataclass(frozen=True, slots=True)
class MarketCase:
    features: Features
    menu: PriceMenu
    context: PriceContext


def measure_market(bundle: Bundle, cache: FrameCache | None = None) -> MarketCase:
    """`cache`: what was measured of an earlier bundle, and need not be again."""
    bundle, cache = without_source_text(bundle), cache or FrameCache()
    measured = measure_features(bundle, cache)
    return MarketCase(measured, build_price_menu(bundle, measured), read_price_context(bundle, cache))


def build_case(bundle: Bundle, cache: FrameCache | None = None, market: MarketCase | None = None) -> Case:
    """`market`: where it was measured before."""
    cache = cache or FrameCache()
    market = market or measure_market(bundle, cache)
    bundle = without_source_text(bundle)
    record = read_record(bundle)
    paper = isinstance(record, Missing) or not record.money
    inputs = build_ruling_inputs(bundle, market.features, market.menu, fees=read_fees(bundle), paper=paper, cache=cache)
    return Case(bundle, market.features, market.menu, inputs, market.context)


_MARKETS_KEPT: Final = 4


def cache_by_market(tell: Callable[[Case], T]) -> Callable[[Case], T]:
    """Cache what is told of the market alone, by the measured features. Only the last few are kept."""
    kept: dict[int, tuple[Features, T]] = {}  # the features are held, so that nothing else gets their identity

    @wraps(tell)
    def read(case: Case) -> T:
        cached = kept.get(id(case.features))
        if cached is None:
            while len(kept) >= _MARKETS_KEPT:
                kept.pop(next(iter(kept)), None)
            cached = kept[id(case.features)] = (case.features, tell(case))
        return cached[1]

    return read

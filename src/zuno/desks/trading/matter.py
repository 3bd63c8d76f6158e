"""Everything one cycle argues about, worked out once from its bundle."""

from __future__ import annotations

from dataclasses import dataclass

from zuno.core.account import Standing
from zuno.core.features import Features, features
from zuno.core.known import Known
from zuno.core.menu import Menu, menu_of
from zuno.core.signs import Signs, signs_of
from zuno.core.terms import Terms, terms_of
from zuno.messages.bundle import Bundle


@dataclass(frozen=True, slots=True)
class Matter:
    """A bundle and what follows from it. Pure: the same bundle gives the same matter."""

    bundle: Bundle
    features: Features
    menu: Menu
    terms: Terms
    standing: Known[Standing]
    signs: Signs


def matter_of(bundle: Bundle) -> Matter:
    measured = features(bundle)
    terms = terms_of(bundle, measured)
    return Matter(bundle, measured, menu_of(bundle, measured), terms, terms.standing, signs_of(bundle))

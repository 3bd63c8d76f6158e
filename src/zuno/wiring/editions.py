"""Which edition of the rules a home was written by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zuno.kernel.errors import Refused
from zuno.kernel.wire import FIRST_EDITION

if TYPE_CHECKING:
    from zuno.journal.port import Journal


async def check_editions(journal: Journal) -> None:
    """`Refused` for a home in which a newer Zuno has argued: its entries may say what this one cannot read."""
    from zuno.lp.model import ballot
    from zuno.lp.model.debate import Kind
    from zuno.trading.model import cycle

    desks = (
        ("LP", ballot.EDITION, (Kind.FLOW_START.value, Kind.FLOW_CREATE_START.value)),
        ("trading", cycle.EDITION, (cycle.STARTED,)),
    )
    for desk, edition, kinds in desks:
        for kind in kinds:
            for entry in await journal.latest(1, kind=kind):
                found = entry.payload.get("edition", FIRST_EDITION)
                if not isinstance(found, int) or found > edition:
                    raise Refused(
                        f"A newer Zuno has written in this home (edition {found} of the {desk} desk, this Zuno knows "
                        f"{edition}): update Zuno, or take another --home; nothing was written."
                    )

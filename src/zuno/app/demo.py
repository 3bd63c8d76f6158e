"""The tour: the embedded world, a price move, and where the money went."""

from __future__ import annotations

from zuno.app.views import MoveView, PnlView, PoolsView, PositionsView, View
from zuno.app.zuno import Zuno

TOUR_MOVE = "-6"


class DemoView(View):
    pools: PoolsView
    before: PositionsView
    move: MoveView
    after: PositionsView
    pnl: PnlView


async def demo(zuno: Zuno) -> DemoView:
    """Needs a home of its own: it pushes the price of the simulated world it finds there."""
    desk = zuno.lp("sim")
    pools, before = await desk.pools(), await desk.positions()
    move = await zuno.sim().move(TOUR_MOVE)
    after = await desk.positions()
    return DemoView(pools=pools, before=before, move=move, after=after, pnl=await desk.pnl(after.positions[0].id, None))

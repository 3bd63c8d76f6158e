"""A plan that costs more than it moves: fees of next to nothing, to be collected on the simulated chain."""

from typing import Any

from zuno.lp.service.execution import Consent


async def plan_dust(zuno: Any, position: str = "1") -> str:
    yes = Consent(lambda view: True, lambda view: True)
    first = (await zuno.execution().collect(position, None)).plan_id
    await zuno.execution().approve(first, yes)
    await zuno.execution().apply(first, yes, lambda line: None)
    await zuno.sim().move("0.01")
    return str((await zuno.execution().collect(position, None)).plan_id)

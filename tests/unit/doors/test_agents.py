"""Who sits at the desks, and what is said where models could speak and are not installed."""

from __future__ import annotations

import pytest

from zuno.adapters.model.registry import ModelTable
from zuno.adapters.model.vendors import VendorModel
from zuno.doors.agents import Agents, AgentsView
from zuno.llm.names import ModelId, Vendor
from zuno.llm.port import RoleModels
from zuno.settings import agent_roles


async def no_mesh() -> None:
    return None


async def seen(models: RoleModels, install: str | None) -> AgentsView:
    return await Agents(ModelTable(models), no_mesh, agent_roles(), install).status()


KEYED = RoleModels((VendorModel(ModelId(Vendor.OPENAI, "gpt-4o-mini"), None),))
UNKEYED = RoleModels((), "no key for a model")


async def test_every_agent_sits_at_its_desk() -> None:
    view = await seen(UNKEYED, None)
    assert [chair.desk for chair in view.chairs] == ["lp"] * 4 + ["trading"] * 14
    assert len({chair.role for chair in view.chairs}) == 18
    assert {chair.why for chair in view.chairs} == {"no key for a model"}


@pytest.mark.parametrize(
    ("models", "install", "speaks", "told"),
    [
        (KEYED, None, True, None),
        (KEYED, "make models", False, "make models"),
        (UNKEYED, "make models", False, None),  # without a key nothing is missing
    ],
    ids=["installed", "key without models", "no key"],
)
async def test_a_key_without_models_names_the_command(
    models: RoleModels, install: str | None, speaks: bool, told: str | None
) -> None:
    view = await seen(models, install)
    assert view.install == told
    assert all(bool(chair.models) is speaks for chair in view.chairs)
    assert speaks or all(chair.why for chair in view.chairs)

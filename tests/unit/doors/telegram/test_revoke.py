"""`/revoke` asks which mandate is meant, and its card is bound to the one that stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tests.wire.mandates import mandated_home
from zuno.adapters.account.trade_log import JournalTradeLog
from zuno.doors.telegram.access import Role
from zuno.doors.telegram.command_table import COMMANDS
from zuno.doors.telegram.commands import ChatRequest, Level
from zuno.doors.telegram.confirm import ActionCard
from zuno.doors.telegram.money_commands import CARDS
from zuno.doors.telegram.reply import Reply
from zuno.doors.telegram.terminal_words import CHAT_COMMANDS
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.settings import Settings
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.trade_events import Mandate, MandateGranted
from zuno.trading.rules.protections import hash_mandate
from zuno.wiring.application import Application

NOW = Millis(1_767_225_600_000)


def asked(*words: str) -> ChatRequest:
    nothing = cast(Any, None)
    return ChatRequest(1, 1, 1, " ".join(("/revoke", *words)), words, Role.OWNER, nothing, nothing)


def mandate(daily_loss: int) -> MandateGranted:
    fields = {"symbols": (Symbol("BTCUSDT"),), "venues": (Venue("BINANCE"),), "max_daily_loss_usd": daily_loss}
    limits = {"max_margin_per_trade_usd": 100, "max_margin_per_day_usd": 300}
    granted = Mandate.model_validate({**fields, **limits, "granted": NOW, "expires": NOW + DAY_MS})
    return MandateGranted(at=NOW, mandate=granted, hash=hash_mandate(granted))


@pytest.mark.slow
async def test_which_mandate_is_asked_and_the_card_is_of_the_one_that_stands(tmp_path: Path) -> None:
    zuno = Application(Settings(home=tmp_path))
    writer = AccountWriter(JournalTradeLog(zuno._open_journal), "demo")
    revoke = CARDS["revoke"]
    which = await revoke(asked("demo"), zuno)
    assert isinstance(which, Reply)
    assert [button.words for button in which.buttons] == ["/revoke trading demo", "/revoke lp"]
    for words in (("lp",), ("trading", "demo")):  # none of either is granted
        none = await revoke(asked(*words), zuno)
        assert isinstance(none, Reply)
        assert not none.buttons
    bound = set()
    for loss in (50, 60):
        await writer.write([mandate(loss)])
        card = await revoke(asked("trading", "demo"), zuno)
        assert isinstance(card, ActionCard)
        assert not card.real_money
        bound.add(card.digest)
    assert len(bound) == 2
    await zuno.close()


def test_a_mandate_is_revoked_by_owners_after_a_card_and_shown_to_all() -> None:
    levels = {command.name: command.level for command in COMMANDS}
    assert [levels[name] for name in ("revoke", "mandate", "sleeves")] == [Level.MONEY, Level.LOOK, Level.LOOK]


async def test_an_lp_mandate_is_paused_shown_and_revoked_by_a_card_of_the_ones_that_stand(tmp_path: Path) -> None:
    async with mandated_home(tmp_path) as home:
        first = (await home.grant(below="2800")).mandates[0].hash
        card = await CARDS["revoke"](asked("lp"), home.zuno)
        await home.grant(below="2700")
        newer = await CARDS["revoke"](asked("lp"), home.zuno)
        assert isinstance(card, ActionCard)
        assert isinstance(newer, ActionCard)
        assert card.digest != newer.digest
        assert not card.real_money
        commands: dict[str, Any] = {command.name: command.handle for command in COMMANDS}
        assert first[:16] not in str(await commands["mandate"](asked("lp"), home.zuno))
        await commands["pause"](asked("lp"), home.zuno)
        assert (await home.book()).paused
        await newer.act(asked())
        assert (await home.book()).standing == {}
    assert not any("grant" in command for command in CHAT_COMMANDS)

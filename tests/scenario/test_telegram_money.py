"""What moves money, from a chat: the same services, gate and locks as at the command line, after a confirmed card."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.crash.learning import open_position
from tests.wire.accounts import open_account
from tests.wire.dust import plan_dust
from tests.wire.telegram_api import ALICE, BOB, GROUP, WAIT_SECONDS, TelegramApi, telegram_api
from tests.wire.telegram_side import RunningBot, running_bot
from zuno.adapters.chain.world import WALLET
from zuno.adapters.file_lock import wallet_lock
from zuno.journal.port import Entry
from zuno.kernel.units import Millis
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.service.account_page import AccountPageReader

pytestmark = pytest.mark.usefixtures("invented_market")


@pytest.fixture(scope="module")
def opened_home(invented_market: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose paper account holds a long."""
    home = tmp_path_factory.mktemp("opened")
    (home / "market").symlink_to(invented_market)
    asyncio.run(open_position(home))
    return home


@pytest_asyncio.fixture
async def api() -> AsyncIterator[TelegramApi]:
    async with telegram_api() as served:
        yield served


@pytest_asyncio.fixture
async def bot(api: TelegramApi, opened_home: Path, tmp_path: Path) -> AsyncIterator[RunningBot]:
    home = tmp_path / "home"
    shutil.copytree(opened_home, home, symlinks=True)
    async with running_bot(home, api) as running:
        yield running


async def count_open(bot: RunningBot) -> int:
    return len((await bot.zuno.account().positions()).positions)


async def list_events(bot: RunningBot) -> list[Entry]:
    return [entry async for entry in bot.zuno.journal().entries(kind="trade_events")]


async def wait_until_closed(bot: RunningBot) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            if not (await bot.zuno.account().open_risk()).trades:
                return
            await asyncio.sleep(0.01)


async def test_a_trade_is_closed_by_the_person_who_asked_and_once(api: TelegramApi, bot: RunningBot) -> None:
    api.say(ALICE, "/fx ETH", GROUP)
    refused = await api.next()
    assert not refused.labels
    api.say(ALICE, "/fx BTC", GROUP)
    card = await api.next()
    assert card.labels == ["Close", "Cancel"]
    assert "PAPER" in card.text
    api.tap(BOB, card, "Close")
    assert "owner" in (await api.next()).text
    assert await count_open(bot) == 1
    pressed = card.data_of("Close")
    api.press(ALICE, card, pressed)
    await api.next()
    assert await count_open(bot) == 0
    closed = len(await list_events(bot))
    api.press(ALICE, card, pressed)
    assert "used" in (await api.next()).text
    assert len(await list_events(bot)) == closed
    assert await count_open(bot) == 0


async def test_what_costs_more_than_it_moves_is_confirmed_by_a_second_card(api: TelegramApi, bot: RunningBot) -> None:
    dust = await plan_dust(bot.zuno)

    async def state() -> str:
        return str((await bot.zuno.execution().status(dust)).state)

    api.say(ALICE, f"/approve {dust}")
    first = await api.next()
    pressed = first.data_of("Approve")
    api.press(ALICE, first, pressed)
    second = await api.next()
    assert second.labels == ["Approve all the same", "Cancel"]
    assert await state() == "drafted", "one card is not enough"
    api.say(ALICE, "/confirm 000000")
    assert (await api.next()).labels == []
    api.press(ALICE, first, pressed)
    assert "used" in (await api.next()).text
    assert await state() == "drafted"
    api.tap(ALICE, second, "Approve all the same")
    assert "Apply" in (await api.next()).labels
    assert await state() == "approved"


async def test_a_kill_locks_and_an_unlock_is_confirmed_too(api: TelegramApi, bot: RunningBot) -> None:
    api.say(ALICE, "/kill")
    card = await api.next()
    assert await count_open(bot) == 1, "a card alone does nothing"
    api.tap(ALICE, card, "Kill")
    await api.next()
    assert await count_open(bot) == 0
    locks = (await bot.zuno.account().locks()).protections
    assert "kill_switch" in [lock.protection for lock in locks]
    api.say(ALICE, "/unlock kill_switch")
    card = await api.next()
    code = card.text.split("/confirm ")[1].split()[0].rstrip(".")
    api.say(ALICE, f"/confirm {code}")
    await api.next()
    assert not [lock for lock in (await bot.zuno.account().locks()).protections if lock.protection == "kill_switch"]


async def test_a_paper_account_is_unlocked_by_its_name_and_no_other(api: TelegramApi, bot: RunningBot) -> None:
    async def list_locks(name: str | None) -> list[str]:
        return [lock.protection for lock in (await bot.zuno.account(name).locks()).protections]

    own = await bot.zuno.account().status()
    opened = open_account(at=Millis(0), usd=Decimal(1_000), krw=Decimal(0))
    await AccountWriter(bot.zuno._trade_log(), f"{own.account}:scout").write([opened])
    for name in (None, "scout"):
        await bot.zuno.account(name).pause()
    api.say(ALICE, "/locks paper:scout")
    shown = await api.next()
    assert "PAPER scout" in shown.text
    api.tap(ALICE, shown, "Unlock…")
    card = await api.next()
    assert ":scout" in card.text
    api.tap(ALICE, card, "Unlock")
    await api.next()
    assert await list_locks("scout") == []
    assert await list_locks(None) == ["paused"]


async def test_a_kill_waits_for_no_look(
    api: TelegramApi, opened_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its card nor its act, also where another process shows the card than acts on it."""
    home = tmp_path / "home"
    shutil.copytree(opened_home, home, symlinks=True)
    look, killed = AccountPageReader.look, asyncio.Event()

    async def look_late(reader: AccountPageReader) -> Any:
        await killed.wait()
        return await look(reader)

    monkeypatch.setattr(AccountPageReader, "look", look_late)
    async with running_bot(home, api):
        api.say(ALICE, "/kill")
        card = await api.next()
    api.polling.clear()
    async with running_bot(home, api) as bot:
        api.tap(ALICE, card, "Kill")
        await wait_until_closed(bot)
        killed.set()
        await api.next()
        assert "kill_switch" in [lock.protection for lock in (await bot.zuno.account().locks()).protections]


async def test_an_unlock_lifts_what_its_card_lists_and_nothing_that_came_since(
    api: TelegramApi, bot: RunningBot
) -> None:
    async def list_locks() -> set[str]:
        locks = {lock.protection for lock in (await bot.zuno.account().locks()).protections}
        return locks & {"kill_switch", "paused"}  # the close left a cooldown

    await bot.zuno.account().pause()
    api.say(ALICE, "/unlock paused")
    card = await api.next()
    await bot.zuno.account().kill(lambda word, what: True)
    api.tap(ALICE, card, "Unlock")
    await api.next()
    assert await list_locks() == {"kill_switch"}
    api.say(ALICE, "/unlock")
    card = await api.next()
    assert "kill_switch" in card.text
    await bot.zuno.account().pause()
    api.tap(ALICE, card, "Unlock")
    again, told = await api.next(), await api.next()
    assert "changed" in told.text
    assert "paused" in again.text
    assert await list_locks() == {"kill_switch", "paused"}
    api.tap(ALICE, again, "Unlock")
    await api.next()
    assert await list_locks() == set()


async def test_a_viewer_is_shown_no_card(api: TelegramApi, bot: RunningBot) -> None:
    for command in ("/kill", "/fx all", "/resume", "/unlock", "/approve plan_0123456789ab", "/confirm 123456"):
        api.say(BOB, command)
        told = await api.next()
        assert not told.labels, command
    assert await count_open(bot) == 1


async def test_words_and_data_that_were_made_up_confirm_nothing(api: TelegramApi, bot: RunningBot) -> None:
    api.say(ALICE, "/kill")
    card = await api.next()
    code = card.text.split("/confirm ")[1].split()[0].rstrip(".")
    for said in ("yes", "kill", code, f"confirm {code}", f"please do it, confirm {code}"):
        api.say(ALICE, said)
        assert (await api.next()).labels == [], said
    for data in ("", "/confirm", "n1.0", "0" * 18, card.data_of("Kill")[:-1], "💥" * 10):
        query = api.press(ALICE, card, data)
        await api.until(lambda query=query: query in api.answered_queries)  # type: ignore[misc]
        assert api.answered_queries[query]
    assert await count_open(bot) == 1


async def test_a_position_that_changed_since_its_card_is_not_closed(api: TelegramApi, bot: RunningBot) -> None:
    api.say(ALICE, "/fx all")
    card = await api.next()
    await bot.zuno.account().close("all")
    api.tap(ALICE, card, "Close")
    told = await api.next()
    assert "open" in told.text


async def test_a_card_of_an_apply_takes_no_lock_and_writes_nothing_of_the_plan(
    api: TelegramApi, bot: RunningBot
) -> None:
    execution = bot.zuno.execution()
    plan = (await execution.close("1", "sim")).plan_id
    await (await execution.offer_approval(plan, "test")).sign()

    async def newest() -> Entry:
        return (await bot.zuno.journal().latest(1, request_id=plan))[0]

    before = await newest()
    with wallet_lock(Path(bot.zuno.config().home), f"sim-{WALLET}"):
        api.say(ALICE, f"/apply {plan}")
        card = await api.next()
        assert card.labels == ["Apply", "Cancel"]
        api.tap(ALICE, card, "Apply")
        assert "wallet" in (await api.next()).text
    assert await newest() == before

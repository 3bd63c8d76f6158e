"""Commands that move money or raise risk: each shows a card, and acts when an owner confirms it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from zuno.doors.telegram.commands import ChatRequest, Command, Level, open_account, take_account
from zuno.doors.telegram.confirm import ActionCard, BuildCard
from zuno.doors.telegram.layout import text
from zuno.doors.telegram.render import render
from zuno.doors.telegram.reply import Button, Reply
from zuno.doors.zuno import Zuno
from zuno.kernel.accounts import LIVE_ACCOUNT
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import UsageError
from zuno.lp.service.execution import Consent
from zuno.lp.service.execution_view import UnsignedView
from zuno.lp.service.mandates import MandateDesk
from zuno.markets.market import parse_symbol
from zuno.trading.service.account_view import AccountView, ActionView
from zuno.trading.service.closing import OpenRisk, find_closing


async def _offer_close(asked: ChatRequest, zuno: Zuno) -> ActionCard | Reply:
    """The plan is made at once, for a plan moves nothing; what is confirmed is its approval."""
    if not 1 <= len(asked.words) <= 2:
        raise UsageError("`/close POSITION [CHAIN]` plans the close of a liquidity position; trades: `/forceexit ID`.")
    chain = asked.words[1] if len(asked.words) > 1 else None
    made = await zuno.execution().close(asked.words[0], chain)
    return await _approval_card(made.plan_id, asked, zuno)


async def _approval_card(plan: str, asked: ChatRequest, zuno: Zuno) -> ActionCard:
    offer = await zuno.execution().offer_approval(plan, _name(asked))

    async def sign(confirmed: ChatRequest) -> Reply:
        reply = render(await offer.sign())
        return replace(reply, buttons=(*reply.buttons, Button("Apply", f"/apply {plan}")))

    view = offer.view
    card = ActionCard(f"/approve {plan}", render(view), view.approval_hash, "Approve", not view.play_money, sign, True)
    if not view.cost.exceeds_moved:
        return card

    async def ask_again(confirmed: ChatRequest) -> ActionCard:
        why = Reply(text(f"{plan} {view.cost.text}: more than it moves."))
        return replace(card, shown=why, verb="Approve all the same")

    return replace(card, act=ask_again)


async def _offer_apply(asked: ChatRequest, zuno: Zuno) -> ActionCard | Reply:
    plan = _take_word(asked, "/apply PLAN")
    execution = zuno.execution()
    shown = await execution.offer_apply(plan)
    if isinstance(shown, UnsignedView):
        return render(shown)  # it waits for its signer elsewhere

    async def apply(confirmed: ChatRequest) -> Reply:
        consent = Consent.bound_to(shown.approval_hash, _name(confirmed))
        return render(await execution.apply(plan, consent, lambda line: None))

    return ActionCard(f"/apply {plan}", render(shown), shown.approval_hash, "Apply", not shown.play_money, apply)


async def _offer_exit(asked: ChatRequest, zuno: Zuno) -> ActionCard | Reply:
    words, name = take_account(asked.words)
    if len(words) != 1:
        raise UsageError(
            "Write `/forceexit ID`, `/forceexit BTCUSDT` or `/forceexit all`; `/status` lists what is open."
        )
    desk, which = zuno.account(name), _find_symbol(zuno, words[0])
    view = await desk.positions()
    wanted = find_closing(view.positions, which)
    if not wanted:
        return Reply(f"Nothing of {text(which)} is open; /status lists what is.")
    bound = [[held.id, held.exchange, held.side, repr(held.quantity)] for held in wanted]
    shown = render(view.model_copy(update={"positions": wanted}))
    return _trading_card("/forceexit", asked, shown, view, bound, "Close", lambda: desk.close(which, _agree))


async def _offer_kill(asked: ChatRequest, zuno: Zuno) -> ActionCard | Reply:
    """Bound to the account alone: no moving book and no silent exchange, market or chain puts a kill off."""
    desk = open_account(asked, zuno, "/kill [live|demo]")
    risk = await desk.open_risk()
    shown = _describe(risk, "Kill", "\n".join((f"This {risk.ends} until `/unlock`.", *risk.notes)))
    card = _trading_card("/kill", asked, shown, risk, [], "Kill", lambda: desk.kill(None, "telegram"))
    return replace(card, exact=True)


async def _offer_resume(asked: ChatRequest, zuno: Zuno) -> ActionCard | Reply:
    desk = open_account(asked, zuno, "/resume [live|demo]")
    locks = await desk.locks()
    shown = _describe(locks, "Resume", "The desk opens new trades again.")
    return _trading_card("/resume", asked, shown, locks, [], "Resume", lambda: desk.resume(_agree))


async def _offer_unlock(asked: ChatRequest, zuno: Zuno) -> ActionCard | Reply:
    words, name = take_account(asked.words)
    if len(words) > 1:
        raise UsageError("`/unlock` lifts every lock, `/unlock kill_switch` that one; `/locks` lists them.")
    desk, protection = zuno.account(name), words[0] if words else None
    locks = await desk.locks()
    meant = tuple(lock for lock in locks.protections if protection in (None, lock.protection))
    if not meant:
        return Reply("No such lock stands; /locks lists those that do.")

    async def unlock() -> ActionView:
        """What stood on the card, and nothing that came since."""
        for shown_lock in dict.fromkeys(lock.protection for lock in meant):
            done = await desk.unlock(shown_lock, _agree)
        return done

    shown = _describe(locks, "Unlock", "; ".join(f"{lock.protection}: {lock.reason}" for lock in meant))
    bound = [[lock.protection, lock.symbol] for lock in meant]
    return _trading_card("/unlock", asked, shown, locks, bound, "Unlock", unlock)


async def _offer_revoke(asked: ChatRequest, zuno: Zuno) -> ActionCard | Reply:
    """Which mandate is asked first. Allowances of tokens are no mandate and are not touched."""
    words, name = take_account(asked.words)
    if words == ("lp",):
        return await _offer_lp_revocation(zuno.mandates())
    if words != ("trading",):
        buttons = (Button("Trading", f"/revoke trading {name or ''}".rstrip()), Button("LP", "/revoke lp"))
        return Reply("Which mandate: trading or LP? Allowances are not touched.", buttons)
    desk = zuno.account(name or LIVE_ACCOUNT)
    view = await desk.mandate()
    if view.mandate is None:
        return Reply("No trading mandate is granted; /mandate shows one that is.")
    return _trading_card("/revoke", asked, render(view), view, [view.mandate.hash], "Revoke", desk.revoke_mandate)


async def _offer_lp_revocation(desk: MandateDesk) -> ActionCard | Reply:
    view = await desk.show()
    if not view.mandates:
        return Reply("No LP mandate is granted; the monitor only watches.")
    bound_to = digest(canonical([mandate.hash for mandate in view.mandates]))

    async def carry_out(confirmed: ChatRequest) -> Reply:
        return render(await desk.revoke())

    return ActionCard("/revoke lp", render(view), bound_to, "Revoke", desk.guards_money(view), carry_out)


def _trading_card(
    name: str,
    asked: ChatRequest,
    shown: Reply,
    account: AccountView | OpenRisk,
    bound: Sequence[object],
    verb: str,
    act: Callable[[], Awaitable[AccountView]],
) -> ActionCard:
    command = " ".join((name, *asked.words))
    bound_to = digest(canonical([command, account.account, account.mode, *bound]))

    async def carry_out(confirmed: ChatRequest) -> Reply:
        return render(await act())

    return ActionCard(command, shown, bound_to, verb, account.mode == "live", carry_out)


def _describe(account: AccountView | OpenRisk, title: str, what: str) -> Reply:
    return Reply(f"<b>{title}</b> · {text(account.account)} · {account.mode.upper()}\n{text(what)}")


def _find_symbol(zuno: Zuno, which: str) -> str:
    """`BTC` is BTCUSDT; an id or `all` stays as it is."""
    try:
        return parse_symbol(which, zuno.markets)
    except UsageError:
        return which


def _take_word(asked: ChatRequest, usage: str) -> str:
    if len(asked.words) != 1:
        raise UsageError(f"Write `{usage}`; `/plan` lists plans.")
    return asked.words[0]


def _agree(word: str, what: str) -> bool:
    """The owner confirmed the card."""
    return True


def _name(asked: ChatRequest) -> str:
    return f"telegram user {asked.user}"


CARDS: Final[Mapping[str, BuildCard]] = {
    "approve": lambda asked, zuno: _approval_card(_take_word(asked, "/approve PLAN"), asked, zuno),
    "apply": _offer_apply,
    "close": _offer_close,
    "forceexit": _offer_exit,
    "kill": _offer_kill,
    "resume": _offer_resume,
    "revoke": _offer_revoke,
    "unlock": _offer_unlock,
}


def _show_card(name: str, usage: str, description: str, *aliases: str) -> Command:
    return Command(
        name, usage, description, Level.MONEY, lambda asked, zuno: asked.cards.show(name, asked, zuno), aliases
    )


_CONFIRM: Final = "Confirm a card by its code."
_DISMISS: Final = "Take back the cards that wait for you."
COMMANDS: Final = (
    _show_card("approve", "PLAN", "Approve a plan."),
    _show_card("apply", "PLAN", "Apply an approved plan."),
    _show_card("close", "POSITION [CHAIN]", "Close a liquidity position by a plan."),
    _show_card("forceexit", "ID|SYMBOL|all [live|demo]", "Close trades at the market.", "fx"),
    _show_card("kill", "[live|demo]", "Cancel all orders, close all trades and lock."),
    _show_card("resume", "[live|demo]", "Open new trades again."),
    _show_card("revoke", "[trading|lp] [live|demo]", "Revoke a mandate."),
    _show_card("unlock", "[PROTECTION] [live|demo]", "Lift locks."),
    Command("confirm", "CODE", _CONFIRM, Level.MONEY, lambda asked, zuno: asked.cards.confirm(asked, zuno)),
    Command("dismiss", "", _DISMISS, Level.LOWERS_RISK, lambda asked, zuno: asked.cards.dismiss(asked, zuno)),
)

"""After the last receipt: is what the chain shows what was asked for, and did everything come home?"""

from __future__ import annotations

from collections.abc import Iterator

from zuno.core.planning.calls import Action as ChainAction
from zuno.core.planning.calls import Burn, Decrease, Execute, Increase, Mint, ModifyLiquidities
from zuno.domain.execution import Step, StepState
from zuno.domain.pool import LpPosition
from zuno.domain.tokens import NATIVE
from zuno.execution.book import Book, StepBook
from zuno.execution.drafting import currencies, least_change, said_by
from zuno.execution.hands import Hands
from zuno.messages.execution import Draft
from zuno.ports.spending import Purse


async def problems(hands: Hands, book: Book, draft: Draft) -> tuple[int | None, tuple[str, ...]]:
    """The new position where there is one, and everything that is not as it was asked: none, if all is well."""
    done = [step for step in book.steps if step.state is StepState.FINAL]
    found: list[str] = []
    new_id: int | None = None
    for step in done:
        for action in actions_of(hands, step.step):
            match action:
                case Mint():
                    new_id = _minted(step, found)
                    if new_id is not None:
                        found += await _mint_problems(hands, new_id, action)
                case Burn(token_id=token_id):
                    if await _position(hands, token_id) is not None:
                        found.append(f"position {token_id} was burned and is still there")
                case Increase(token_id=token_id, liquidity=liquidity):
                    found += await _changed(hands, draft, token_id, liquidity)
                case Decrease(token_id=token_id, liquidity=liquidity):
                    found += await _changed(hands, draft, token_id, -liquidity)
                case _:
                    pass
    purse = await hands.writer.purse(hands.wallet, currencies(draft.pool.key), ())
    found += _not_home(book, done, purse)
    return new_id, tuple(found)


def actions_of(hands: Hands, step: Step) -> Iterator[ChainAction]:
    """What a step does to positions, read from its bytes."""
    match said_by(hands, step).call:
        case ModifyLiquidities(actions):
            yield from actions
        case Execute(commands):
            for command in commands:
                if isinstance(command, ModifyLiquidities):
                    yield from command.actions
        case _:
            return


def _minted(step: StepBook, found: list[str]) -> int | None:
    ids = () if step.mined is None else step.mined.minted
    if len(ids) != 1:
        found.append(f"one position was to be opened, the receipt tells of {len(ids)}")
    return ids[0] if ids else None


async def _mint_problems(hands: Hands, token_id: int, asked: Mint) -> list[str]:
    position = await _position(hands, token_id)
    if position is None:
        return [f"position {token_id} was opened and cannot be found"]
    said = []
    if position.range != asked.range:
        said.append(
            f"position {token_id} lies in ticks {position.range.lower} to {position.range.upper}, asked for were "
            f"{asked.range.lower} to {asked.range.upper}"
        )
    if position.pool.key != asked.key:
        said.append(f"position {token_id} lies in another pool than the plan's")
    if position.owner != hands.wallet:
        said.append(f"position {token_id} belongs to {position.owner}")
    if position.liquidity != asked.liquidity:
        said.append(f"position {token_id} holds liquidity {position.liquidity}, asked for was {asked.liquidity}")
    return said


async def _changed(hands: Hands, draft: Draft, token_id: int, by: int) -> list[str]:
    position, before = await _position(hands, token_id), draft.position
    if position is None or before is None:
        return [f"position {token_id} cannot be found"]
    if position.liquidity != before.liquidity + by:
        return [f"position {token_id} holds liquidity {position.liquidity}, {before.liquidity + by} was to be expected"]
    return []


def _not_home(book: Book, done: list[StepBook], purse: Purse) -> list[str]:
    """The wallet's change against the worst that the steps themselves allow; gas apart."""
    first = next((step for step in done if step.signed and step.newest.holdings), None)
    if first is None:
        return []
    said = []
    for flow in first.newest.holdings:
        spent = gas_of(book) if flow.currency == NATIVE else 0
        change = purse.holdings.get(flow.currency, 0) - flow.amount + spent
        least = least_change([step.step for step in done], flow.currency)
        if change < least:
            said.append(
                f"the wallet's {flow.currency} changed by {change}, the steps allow {least} at worst: something is "
                f"missing, or something else was spent meanwhile"
            )
    return said


def gas_of(book: Book) -> int:
    """What the plan's transactions cost in gas, cancelled and reverted ones included."""
    return sum(step.mined.cost for step in book.steps if step.mined is not None)


async def _position(hands: Hands, token_id: int) -> LpPosition | None:
    found = await hands.chain.positions([token_id])
    return found.positions[0] if found.positions else None

"""The typed confirmation: the same word as at the terminal, for exactly what was shown."""

from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from zuno.doors.web.access import SHOWN_HEADER
from zuno.doors.web.problems import Problem
from zuno.lp.service.execution import ApprovalOffer

WHO: Final = "web"
MOST_OFFERS: Final = 100
Word = Annotated[str | None, Field(max_length=20, description="The word that the terminal would ask for.")]
ShortText = Annotated[str | None, Field(max_length=200)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, validate_by_name=True, strict=True)


class ConfirmBody(Body):
    word: Word = None


class ApprovalBody(ConfirmBody):
    approval_hash: Annotated[
        str | None, Field(max_length=100, description="Of what was shown; without it and the word, it is shown.")
    ] = None


class ApproveBody(ApprovalBody):
    second_word: Word = None


def is_word(typed: str | None, word: str) -> bool:
    return typed is not None and typed.strip().lower() == word


def confirm_by(typed: str | None) -> Callable[[str, str], bool]:
    """Consent to something of the trading desk. `Problem` says which word is missing, and what it is for."""

    def confirm(word: str, what: str) -> bool:
        if not is_word(typed, word):
            raise need_word(word, what)
        return True

    return confirm


def need_word(word: str, what: str, **more: Any) -> Problem:
    return Problem(409, f"{what} Type {word} to go on.", "confirmation", word=word, **more)


def mark_shown(answer: Response) -> Response:
    """Nothing was done: a code of the second factor that came along is good for the act itself."""
    answer.headers[SHOWN_HEADER] = "1"
    return answer


class Offers:
    """Approvals that were shown and wait for their word; they end with the process, and each is signed once."""

    def __init__(self) -> None:
        self._offers: dict[str, ApprovalOffer] = {}

    def keep(self, offer: ApprovalOffer) -> None:
        self._offers[offer.view.approval_hash] = offer
        while len(self._offers) > MOST_OFFERS:
            del self._offers[next(iter(self._offers))]

    def take(self, plan: str, approval: str) -> ApprovalOffer:
        offer = self._offers.get(approval)
        if offer is None or offer.view.plan_id != plan:
            raise Problem(409, "This approval is not the one that was shown last; look at the plan again.")
        return self._offers.pop(approval)

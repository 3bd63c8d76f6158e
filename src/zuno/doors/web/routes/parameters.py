"""What routes are asked with. Services judge the words; here only their length is bounded."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import Field, StringConstraints

ID_CHARS = 80
TEXT_CHARS = 200

Id = Annotated[str, Path(max_length=ID_CHARS)]
Chain = Annotated[str | None, Query(max_length=TEXT_CHARS, description="Chain name or id; default: the home's.")]
Wallet = Annotated[str | None, Query(max_length=TEXT_CHARS, description="Owner of the positions.")]
_ACCOUNT_WORDS = "paper (the home's own, the default), the name of another paper account, live or demo."
_AccountText = Annotated[str, StringConstraints(max_length=TEXT_CHARS)]
Account = Annotated[_AccountText | None, Query(description=_ACCOUNT_WORDS)]
AccountField = Annotated[_AccountText | None, Field(description=_ACCOUNT_WORDS)]
Symbol = Annotated[str, Query(max_length=TEXT_CHARS, description="BTCUSDT or ETHUSDT.")]
Mode = Annotated[str, Query(max_length=TEXT_CHARS, description="swing or position.")]
AsOf = Annotated[str | None, Query(max_length=TEXT_CHARS, description="A moment, as in 7d; default: now.")]
Cursor = Annotated[str | None, Query(max_length=TEXT_CHARS, description="`nextCursor` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=200, description="Items of a page.")]

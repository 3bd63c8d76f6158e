"""Amounts of a pool's two tokens, as every door writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zuno.lp.service.views import PoolKeyView


def pair_text(pool: PoolKeyView, amount0: str, amount1: str, between: str = ", ") -> str:
    return f"{amount0} {pool.currency0.display_name}{between}{amount1} {pool.currency1.display_name}"

"""Strangers' words made fit to keep: printable, in lines, and of a stated length."""

from __future__ import annotations

import unicodedata


def clean(raw: str, limit: int) -> str:
    """Lines are kept; control, format and private characters go, runs of space become one, what is too long is cut."""
    lines: list[str] = []
    for line in raw[: limit * 16].splitlines():
        kept = ("" if unicodedata.category(char)[0] == "C" and char != "\t" else char for char in line)
        words = " ".join("".join(kept).split())
        if words:
            lines.append(words)
    text = "\n".join(lines)
    return text if len(text) <= limit else text[: limit - 1] + "…"

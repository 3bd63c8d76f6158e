"""Lines that may hold a secret: they are neither remembered nor shown to a model."""

import re
from typing import Final

from zuno.doors.reading.intents import load_catalogue

_TELLING = re.compile(
    r"(?<![0-9a-zA-Z])(?:0x)?[0-9a-fA-F]{64}(?![0-9a-zA-Z])"  # a private key, or a pool's id, which is no loss
    r"|\b(?:sk|pk|rk|key|token|ghp|xox[a-z])[-_][0-9A-Za-z_-]{8,}"
    r"|\bAIza[0-9A-Za-z_-]{10,}"
    r"|\b[0-9]{6,12}:[0-9A-Za-z_-]{20,}"  # a bot's token
    r"|://[^\s/:]*:[^\s/@]*@"
    r"|\b(?:pass(?:phrase|word|wd|code)?|secret|mnemonic|seed\s?phrase|private\s?key|api\s?key|pin)\b",
    re.IGNORECASE,
)
_BLOB = re.compile(r"[0-9A-Za-z+/=_-]{24,}\S*")
_KINDS = tuple(map(re.compile, ("[0-9]", "[a-z]", "[A-Z]")))
"""All of them are in what looks like a blob of chance."""
_WORD = re.compile(r"[a-z]{3,8}")
SEED_WORDS: Final = 12


def looks_secret(line: str) -> bool:
    """Whether a line has the looks of a key, a passphrase or a wallet's seed words."""
    if _TELLING.search(line) or any(all(kind.search(match[0]) for kind in _KINDS) for match in _BLOB.finditer(line)):
        return True
    words = line.lower().split()
    if len(words) < SEED_WORDS:
        return False
    known = load_catalogue().vocabulary
    return 2 * sum(bool(_WORD.fullmatch(word)) and word not in known for word in words) >= len(words)

"""A picture in the terminal itself, where the terminal says that it can: kitty's graphics or iTerm2's inline images.

https://sw.kovidgoyal.net/kitty/graphics-protocol/ · https://iterm2.com/documentation-images.html

Inside tmux a picture is passed through to the terminal around it, which tmux must be told to allow
(`set -g allow-passthrough on`); where it is not, tmux swallows it and lines stay empty: the path is to be told all the
same.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Final, TextIO

CHUNK: Final = 4_096
"""Characters of one escape sequence, as kitty asks; a multiple of four, so that each is whole."""
MOST_IN_TMUX: Final = 1_000_000
"""Characters of one sequence that tmux carries (1 MiB less a little)."""
WIDEST: Final = 150
"""Columns a picture takes at most, however wide the terminal is."""
FIRST_KONSOLE: Final = 220_400
_CELL: Final = 0.5
"""Width of a character against its height, in most fonts."""
_ESC: Final = "\x1b"


class ImageProtocol(StrEnum):
    KITTY = "kitty"
    ITERM = "iterm2"


@dataclass(frozen=True, slots=True)
class Terminal:
    """One that shows pictures."""

    means: ImageProtocol
    tmux: bool


def terminal(environment: Mapping[str, str], stream: TextIO) -> Terminal | None:
    """The graphics protocol of a terminal, by its environment; None where it shows no images."""
    term = environment.get("TERM", "")
    if not stream.isatty() or term == "dumb" or environment.get("STY"):
        return None
    means = _means(environment, term)
    return None if means is None else Terminal(means, tmux=bool(environment.get("TMUX")))


def encode_image(png: bytes, size: tuple[int, int], seen: Terminal, columns: int) -> str:
    """What to write so that the image stands where the cursor is, which ends up under it. `size` is in pixels."""
    wide = max(1, min(columns - 1, WIDEST))
    high = max(1, ceil(wide * size[1] / size[0] * _CELL))
    sequences = list(_kitty(png, wide, high)) if seen.means is ImageProtocol.KITTY else [_iterm(png, wide, high)]
    if not seen.tmux:
        return "".join(sequences) + "\n"
    if any(len(sequence) > MOST_IN_TMUX for sequence in sequences):
        return ""
    # tmux does not know of the picture: lines are made free first, and the cursor is led past them afterwards.
    room, back, past = "\n" * high, f"{_ESC}[{high}A", f"\r{_ESC}[{high}B"
    passed = (f"{_ESC}Ptmux;{sequence.replace(_ESC, _ESC * 2)}{_ESC}\\" for sequence in sequences)
    return room + back + "".join(passed) + past


def show(png: bytes, size: tuple[int, int], environment: Mapping[str, str], stream: TextIO, columns: int) -> bool:
    """Write the image where it can be seen; False where it cannot and the path has to do."""
    seen = terminal(environment, stream)
    text = "" if seen is None else encode_image(png, size, seen, columns)
    stream.write(text)
    return bool(text)


def _means(environment: Mapping[str, str], term: str) -> ImageProtocol | None:
    """Programs hand their names down to what runs inside them, through tmux too: what is nearest is looked at first."""
    program = environment.get("TERM_PROGRAM", "")
    konsole = environment.get("KONSOLE_VERSION", "")
    if term in ("xterm-kitty", "xterm-ghostty") or program == "ghostty":
        return ImageProtocol.KITTY
    if program in ("iTerm.app", "WezTerm", "mintty") or environment.get("LC_TERMINAL") == "iTerm2":
        return ImageProtocol.ITERM
    if environment.get("KITTY_WINDOW_ID") or environment.get("GHOSTTY_RESOURCES_DIR"):
        return ImageProtocol.KITTY
    if environment.get("WEZTERM_EXECUTABLE"):
        return ImageProtocol.ITERM
    return ImageProtocol.KITTY if konsole.isdecimal() and int(konsole) >= FIRST_KONSOLE else None


def _kitty(png: bytes, wide: int, high: int) -> Iterator[str]:
    data = b64encode(png).decode("ascii")
    for place in range(0, len(data), CHUNK):
        more = int(place + CHUNK < len(data))
        # a=T: show at once; f=100: a PNG; q=2: say nothing back, for nobody would read it.
        head = f"a=T,f=100,q=2,c={wide},r={high},m={more}" if place == 0 else f"m={more}"
        yield f"{_ESC}_G{head};{data[place : place + CHUNK]}{_ESC}\\"


def _iterm(png: bytes, wide: int, high: int) -> str:
    data = b64encode(png).decode("ascii")
    head = f"size={len(png)};width={wide};height={high};preserveAspectRatio=1;inline=1"
    return f"{_ESC}]1337;File={head}:{data}\a"

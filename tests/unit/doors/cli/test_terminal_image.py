"""Pictures in a terminal: who can show them, and exactly what is written."""

from __future__ import annotations

import re
from base64 import b64decode
from io import StringIO

import pytest

from zuno.doors.cli.terminal_image import (
    CHUNK,
    MOST_IN_TMUX,
    WIDEST,
    ImageProtocol,
    Terminal,
    encode_image,
    show,
    terminal,
)

PNG = bytes(range(256)) * 40
SIZE = (1_232, 952)


class Screen(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "means"),
    [
        ({"TERM": "xterm-kitty"}, ImageProtocol.KITTY),
        ({"TERM": "xterm-ghostty"}, ImageProtocol.KITTY),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, ImageProtocol.KITTY),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, ImageProtocol.KITTY),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, ImageProtocol.ITERM),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, ImageProtocol.ITERM),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, ImageProtocol.ITERM),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "mintty"}, ImageProtocol.ITERM),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app", "KITTY_WINDOW_ID": "1"}, ImageProtocol.ITERM),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "220401"}, ImageProtocol.KITTY),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "210800"}, None),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "²"}, None),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, None),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM": "dumb", "KITTY_WINDOW_ID": "1"}, None),
        ({"TERM": "screen", "STY": "1.pts", "KITTY_WINDOW_ID": "1"}, None),
        ({}, None),
    ],
)
def test_a_terminal_is_known_by_what_it_says(environment: dict[str, str], means: ImageProtocol | None) -> None:
    expected = None if means is None else Terminal(means, tmux=False)
    assert terminal(environment, Screen()) == expected
    assert terminal(environment, StringIO()) is None


def test_tmux_hands_down_the_name_of_the_terminal_around_it() -> None:
    inside = {"TERM": "tmux-256color", "TERM_PROGRAM": "tmux", "TMUX": "/tmp/tmux-1/default,1,0"}
    assert terminal(inside | {"KITTY_WINDOW_ID": "1"}, Screen()) == Terminal(ImageProtocol.KITTY, tmux=True)
    assert terminal(inside | {"LC_TERMINAL": "iTerm2"}, Screen()) == Terminal(ImageProtocol.ITERM, tmux=True)
    assert terminal(inside | {"WEZTERM_EXECUTABLE": "/usr/bin/wezterm-gui"}, Screen()) == Terminal(
        ImageProtocol.ITERM, tmux=True
    )
    assert terminal(inside, Screen()) is None


def read_kitty(text: str) -> tuple[bytes, list[dict[str, str]]]:
    found = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", text)
    keys = [dict(pair.split("=") for pair in head.split(",")) for head, _ in found]
    return b64decode("".join(data for _, data in found)), keys


def test_kitty_gets_the_png_in_pieces() -> None:
    text = encode_image(PNG, SIZE, Terminal(ImageProtocol.KITTY, tmux=False), 100)
    data, keys = read_kitty(text)
    assert data == PNG
    assert keys[0] | {"m": "0"} == {"a": "T", "f": "100", "q": "2", "c": "99", "r": "39", "m": "0"}
    assert [one["m"] for one in keys] == ["1"] * (len(keys) - 1) + ["0"]
    assert len(keys) > 2
    assert max(len(piece) for piece in re.findall(r";([^\x1b]*)\x1b", text)) == CHUNK
    assert text.endswith("\x1b\\\n")


def test_iterm_gets_the_png_at_once() -> None:
    text = encode_image(PNG, SIZE, Terminal(ImageProtocol.ITERM, tmux=False), 1_000)
    match = re.fullmatch(r"\x1b\]1337;File=([^:]*):([^\x07]*)\x07\n", text)
    assert match is not None
    keys = dict(pair.split("=") for pair in match[1].split(";"))
    assert keys["inline"] == "1"
    assert (keys["size"], keys["width"]) == (str(len(PNG)), str(WIDEST))
    assert b64decode(match[2]) == PNG


@pytest.mark.parametrize("means", ImageProtocol)
def test_through_tmux_every_sequence_is_wrapped_and_lines_are_kept_free(means: ImageProtocol) -> None:
    plain = encode_image(PNG, SIZE, Terminal(means, tmux=False), 100)
    text = encode_image(PNG, SIZE, Terminal(means, tmux=True), 100)
    match = re.fullmatch(r"(\n+)\x1b\[(\d+)A(.*)\r\x1b\[(\d+)B", text, re.DOTALL)
    assert match is not None
    assert int(match[2]) == int(match[4]) == len(match[1]) == 39
    inside = re.findall(r"\x1bPtmux;((?:[^\x1b]|\x1b\x1b)*)\x1b\\", match[3])
    assert "".join(inside).replace("\x1b\x1b", "\x1b") + "\n" == plain
    assert "".join(f"\x1bPtmux;{one}\x1b\\" for one in inside) == match[3]


def test_what_tmux_would_not_carry_is_not_sent() -> None:
    large = bytes(MOST_IN_TMUX)
    assert encode_image(large, SIZE, Terminal(ImageProtocol.ITERM, tmux=True), 100) == ""
    assert encode_image(large, SIZE, Terminal(ImageProtocol.KITTY, tmux=True), 100) != ""
    screen = Screen()
    assert not show(large, SIZE, {"TMUX": "1", "LC_TERMINAL": "iTerm2"}, screen, 80)
    assert screen.getvalue() == ""


def test_showing_says_whether_it_was_shown() -> None:
    screen, pipe = Screen(), StringIO()
    assert show(PNG, SIZE, {"TERM": "xterm-kitty"}, screen, 80)
    assert read_kitty(screen.getvalue())[0] == PNG
    assert not show(PNG, SIZE, {"TERM": "xterm-kitty"}, pipe, 80)
    assert pipe.getvalue() == ""


@pytest.mark.parametrize("columns", [0, 1, 2, 500])
def test_any_width_of_a_terminal_will_do(columns: int) -> None:
    _, keys = read_kitty(encode_image(PNG, SIZE, Terminal(ImageProtocol.KITTY, tmux=False), columns))
    assert 1 <= int(keys[0]["c"]) <= WIDEST
    assert int(keys[0]["r"]) >= 1

"""Ctrl-C while a person is asked at a terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def end_on_interrupt() -> Iterator[None]:
    """The first Ctrl-C at a prompt ends it; an event loop would take it for itself and leave the person there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

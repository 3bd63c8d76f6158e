"""A second process that answers questions over a pipe, so that it never waits for this one. It is restarted when it
dies, and ends with this one."""

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Final

from zuno.adapters.worker_processes import make_portable
from zuno.kernel.errors import Unavailable, ZunoError

Tell = Callable[[str], None]
Handle = Callable[[Any, Tell], Awaitable[Any]]
OpenHandle = Callable[..., Awaitable[Handle]]
MOST_SENDS: Final = 2
"""A question that a process died over is sent once more."""
_RESTART_SECONDS: Final = 0.2
_END_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Question:
    asked: Any
    tell: Tell
    answer: Future[Any] = field(default_factory=Future)
    sends: int = 0


class HelperProcess:
    """`open_handle` makes what answers questions, in the new process, from what `read_arguments` gives. Questions are
    answered concurrently and may be sent twice, so what they ask for must be harmless to repeat."""

    def __init__(self, open_handle: OpenHandle, read_arguments: Callable[[], tuple[Any, ...]]) -> None:
        self._open_handle = open_handle
        self._read_arguments = read_arguments
        self._questions: dict[int, _Question] = {}
        self._numbers = count()
        self._turn = threading.Lock()
        self._pipe: Connection | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_alive, name="zuno-helper", daemon=True)
        self.process: SpawnProcess | None = None

    def start(self) -> None:
        self._thread.start()

    async def ask(self, asked: Any, tell: Tell = lambda line: None) -> Any:
        """`tell` gets lines meanwhile, in another thread."""
        question, number = _Question(asked, tell), next(self._numbers)
        question.answer.set_running_or_notify_cancel()  # whoever asks may go away; the answer comes all the same
        with self._turn:
            self._questions[number] = question
            self._send(number)
        return await asyncio.wrap_future(question.answer)

    def stop(self) -> None:
        """End the process once it has answered what it has begun."""
        self._ended.set()
        with self._turn, suppress(OSError):
            if self._pipe is not None:
                self._pipe.send(None)
        self._thread.join(_END_SECONDS)
        if self.process is not None:
            self.process.kill()

    def _keep_alive(self) -> None:
        while not self._ended.is_set():
            with suppress(EOFError, OSError):  # it died, or none can be started just now
                self._follow_process()
            self._ended.wait(_RESTART_SECONDS)

    def _follow_process(self) -> None:
        context = get_context("spawn")
        pipe, theirs = context.Pipe()
        with pipe:
            with theirs:  # the helper's copy alone stays open, so that its death is the end of the pipe
                arguments = (theirs, self._open_handle, self._read_arguments())
                process = context.Process(target=_serve, args=arguments, daemon=True)
                process.start()
            self.process = process
            try:
                with self._turn:
                    self._pipe = pipe
                    for number in list(self._questions):
                        self._send(number)
                while True:
                    self._take(*pipe.recv())
            finally:
                with self._turn:
                    self._pipe = None
                process.join(_END_SECONDS)

    def _send(self, number: int) -> None:
        question = self._questions[number]
        if question.sends == MOST_SENDS:
            del self._questions[number]
            question.answer.set_exception(Unavailable("The helper process died over it; try again."))
        elif self._pipe is not None:
            question.sends += 1
            with suppress(OSError):  # it is dead, and the next one is asked
                self._pipe.send((number, question.asked))

    def _take(self, number: int, done: bool, result: Any) -> None:
        question = self._questions[number]
        if not done:
            question.tell(result)
            return
        with self._turn:
            del self._questions[number]
        if isinstance(result, Exception):
            question.answer.set_exception(result)
        else:
            question.answer.set_result(result)


def _serve(pipe: Connection, open_handle: OpenHandle, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the parent, with which this ends
    asyncio.run(_answer_all(pipe, open_handle, arguments))


async def _answer_all(pipe: Connection, open_handle: OpenHandle, arguments: tuple[Any, ...]) -> None:
    handle = await open_handle(*arguments)

    async def answer(number: int, asked: Any) -> None:
        try:
            result: Any = await handle(asked, lambda line: pipe.send((number, False, line)))
        except ZunoError as error:
            result = make_portable(error)
        except Exception as error:
            logging.getLogger(__name__).exception("a question failed")
            result = RuntimeError(type(error).__name__)
        with suppress(OSError):  # the parent is gone
            pipe.send((number, True, result))

    def receive() -> Any:
        """The next question; None: the parent says that it ends, or was killed."""
        try:
            return pipe.recv()
        except (EOFError, OSError):
            return None

    async with asyncio.TaskGroup() as running:
        while (received := await asyncio.to_thread(receive)) is not None:
            running.create_task(answer(*received))

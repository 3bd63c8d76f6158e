"""Figures of this process for Prometheus. Labels are routes as written and statuses: no id, no word of a stranger."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from zuno.doors.web.events import EventFeed

REFUSALS: Final = frozenset({401, 403, 421, 429})
METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "POST"})
_BUCKETS: Final = (0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0)


class Metrics:
    """Counts from the start of the process on."""

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        self._stopwatch = stopwatch
        self._started = stopwatch()
        self.requests = 0
        self.refused = 0
        self._answers = Counter(
            "zuno_http_requests", "Answers by route and status.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "zuno_http_request_seconds",
            "From a request to the first byte of its answer.",
            ("route",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._sent = Counter("zuno_http_sent_bytes", "Bytes of answers.", registry=self._registry)
        self._jobs = Counter(
            "zuno_jobs", "Jobs by what was asked and how they ended.", ("what", "state"), registry=self._registry
        )
        self._streams = Gauge("zuno_event_streams", "Event streams that are open.", registry=self._registry)
        self._up = Gauge("zuno_up_seconds", "Since this process began to serve.", registry=self._registry)

    def start_timer(self) -> Callable[[], float]:
        begun = self._stopwatch()
        return lambda: self._stopwatch() - begun

    def count_answer(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests += 1
        self.refused += status in REFUSALS
        self._answers.labels(method if method in METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_bytes(self, count: int) -> None:
        self._sent.inc(count)

    def count_job(self, what: str, state: str) -> None:
        self._jobs.labels(what, state).inc()

    def write(self, feed: EventFeed) -> bytes:
        self._streams.set(feed.viewers)
        self._up.set(self._stopwatch() - self._started)
        return generate_latest(self._registry)

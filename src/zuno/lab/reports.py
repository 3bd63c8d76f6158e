"""Reports of the lab in the home: what a command found, its page, parts of unfinished ones, and every trial."""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from pydantic import Field, ValidationError

from zuno.kernel.canonical import Digest, canonical, digest
from zuno.kernel.errors import Broken, NotFound
from zuno.kernel.text import plain_text
from zuno.kernel.view import PartialView, View, write_document
from zuno.lab.report_page import NO_CHARTS, Charted, Charts, build_page
from zuno.present.document import Document, document, document_of, lines, table
from zuno.present.values import bad, id_

Part = TypeVar("Part", bound=View)
TRIALS: Final = "trials.jsonl"
_ID: Final = re.compile(r"[a-z]+(?:-[a-z]+)*-[0-9a-f]{12}")
_DOCUMENT: Final = re.compile(rf"({_ID.pattern})\.json")


class ReportRow(View):
    """A report without its body."""

    id: str
    kind: str
    title: str
    command: str
    partial: bool
    """Ctrl-C came before the end, or models left questions unanswered; `--resume` goes on from here."""


class LabReport(ReportRow):
    """What a command of the lab found. No clock in it: the same command makes the same bytes."""

    body: dict[str, Any]
    """The document that the command prints."""
    arms: dict[str, dict[str, Any]] = Field(default={}, exclude_if=lambda arms: not arms)
    """Of a backtest of trading, by arm: how its decisions were scored, for `lab calibration` and `lab vetoes`."""


class LabReportsView(View):
    folder: str
    reports: tuple[ReportRow, ...]
    damaged: tuple[str, ...] = ()
    """Files that cannot be read as a report."""

    def to_document(self) -> Document:
        return document(
            "Reports of the lab" if self.reports else "No report yet; `zuno lab lp` writes one.",
            table(
                ("report", "what", "command"),
                [
                    (id_(row.id), f"{row.title} (unfinished)" if row.partial else row.title, row.command)
                    for row in self.reports
                ],
                spare=("command",),
            )
            if self.reports
            else None,
            lines(*(bad(f"{report} is damaged; run its command again.") for report in self.damaged)),
            notes=(f"pages: {self.folder}/ID.html",) if self.reports else (),
        )


class ReportFiles(Protocol):
    """Small files of one folder by name; a name is never a path."""

    @property
    def folder(self) -> str: ...
    def names(self) -> Sequence[str]: ...
    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, content: bytes) -> None:
        """The old file or the new one, never half."""

    def add_lines(self, name: str, lines: Sequence[str]) -> None:
        """Append those that the file does not hold yet, whoever else appends at the same time."""

    def remove(self, name: str) -> None:
        """No file of that name is no error."""


ENGINE: Final = 3
"""Raised when the same decisions come to other figures: by another fill, fee or test."""


def report_id(kind: str, question: object, data: Digest, edition: int) -> str:
    """The same question about the same data has the same id. Whatever changes an answer belongs to the question."""
    asked = {"kind": kind, "question": question, "data": data, "edition": edition, "engine": ENGINE}
    return f"{kind}-{digest(canonical(asked))[:12]}"


def trial_id(kind: str, arm: str, question: object, data: Digest, edition: int) -> str:
    """Id of one arm's trial. `question` is without the list of arms: a trial is the same with other arms beside it."""
    asked = {"kind": kind, "arm": arm, "question": question, "data": data, "edition": edition, "engine": ENGINE}
    return digest(canonical(asked))


class LabReports:
    """`ID.json`, `ID.html`, `ID.part.jsonl` while the report is unfinished, and `trials.jsonl`."""

    def __init__(self, files: ReportFiles) -> None:
        self._files = files

    def save(self, report: LabReport, page: str) -> None:
        """Saving a whole report removes its parts. An unfinished report does not replace a whole one."""
        if report.partial and self._is_whole(report.id):
            return
        self._files.write(f"{report.id}.html", page.encode())
        self._files.write(f"{report.id}.json", (write_document(report) + "\n").encode())
        if not report.partial:
            self.forget_parts(report.id)

    def save_view(
        self,
        report: str,
        kind: str,
        title: str,
        command: str,
        view: View,
        *,
        charts: Charts | None = None,
        unanswered: int = 0,
        arms: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        """Save what a command prints, with its page. `charts`: in place of the view's own. `unanswered`: by models."""
        if charts is None:
            charts = view.draw_charts() if isinstance(view, Charted) else NO_CHARTS
        kept = LabReport(
            id=report,
            kind=kind,
            title=title,
            command=command,
            partial=unanswered > 0 or (isinstance(view, PartialView) and view.stopped),
            body=json.loads(write_document(view)),
            arms=dict(arms or {}),
        )
        self.save(kept, build_page(title, command, document_of(view), charts))

    def _is_whole(self, report: str) -> bool:
        try:
            return not self._load(report).partial
        except (NotFound, Broken):
            return False

    async def list(self) -> LabReportsView:
        return await asyncio.to_thread(self._list)

    def _list(self) -> LabReportsView:
        rows: list[ReportRow] = []
        damaged: list[str] = []
        for report in [match[1] for name in sorted(self._files.names()) if (match := _DOCUMENT.fullmatch(name))]:
            try:
                row = self._load(report)
            except Broken:
                damaged.append(report)
                continue
            rows.append(ReportRow(**row.model_dump(include=set(ReportRow.model_fields), by_alias=False)))
        return LabReportsView(folder=plain_text(self._files.folder, 500), reports=tuple(rows), damaged=tuple(damaged))

    async def read(self, report: str) -> LabReport:
        """`NotFound` where there is none."""
        return await asyncio.to_thread(self._load, report)

    async def read_page(self, report: str) -> str:
        return (await asyncio.to_thread(self._bytes, report, "html")).decode()

    def describe_place(self, report: str) -> str:
        """Where a person finds the page."""
        return f"{self._files.folder}/{report}.html"

    def _load(self, report: str) -> LabReport:
        try:
            return LabReport.model_validate_json(self._bytes(report, "json"))
        except ValidationError as error:
            raise Broken(f"The report {report} is damaged; run its command again.") from error

    def _bytes(self, report: str, ending: str) -> bytes:
        content = self._files.read(f"{report}.{ending}") if _ID.fullmatch(report) else None
        if content is None:
            raise NotFound(f"No report {plain_text(report, 40)!r}; `zuno lab reports` lists them.")
        return content

    def keep_part(self, report: str, part: View) -> None:
        """An arm or an episode that is done."""
        self._files.add_lines(_parts_file(report), [write_document(part)])

    def read_parts(self, report: str) -> tuple[str, ...]:
        """JSON of finished parts, oldest first; a truncated line is skipped."""
        return tuple(whole_lines(self._files.read(_parts_file(report))))

    def load_parts(self, report: str, form: type[Part], *, resume: bool = True) -> tuple[Part, ...]:
        """Finished parts as values; parts of another form are skipped. Without `resume` they are removed first."""
        if not resume:
            self.forget_parts(report)
        parts = []
        for line in self.read_parts(report):
            with suppress(ValidationError):
                parts.append(form.model_validate_json(line))
        return tuple(parts)

    def forget_parts(self, report: str) -> None:
        self._files.remove(_parts_file(report))

    def note_trials(self, kind: str, trials: Mapping[str, str]) -> None:
        """Arms by the id of their trial; each is noted once, however often it is run."""
        self._files.add_lines(
            TRIALS,
            [canonical({"arm": arm, "kind": kind, "trial": trial}).decode() for trial, arm in sorted(trials.items())],
        )

    def count_trials(self, kind: str) -> int:
        """Distinct trials of this kind that were ever noted in this home."""
        lines = map(json.loads, whole_lines(self._files.read(TRIALS)))
        return len({line.get("trial") for line in lines if isinstance(line, dict) and line.get("kind") == kind})


def _parts_file(report: str) -> str:
    return f"{report}.part.jsonl"


def whole_lines(content: bytes | None) -> Iterable[str]:
    """JSON documents of a file, one a line; a truncated line is skipped."""
    for line in (content or b"").decode("utf-8", "replace").splitlines():
        try:
            json.loads(line)
        except ValueError:
            continue
        yield line

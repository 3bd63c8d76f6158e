"""The interface asked by its own description: schemathesis sends what it allows and what it forbids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.wire.page_app import BEARER, HOST, PageApp, open_page_app
from zuno.doors.web.services import DOCUMENT_TYPE

STREAM = "/api/v1/events"
SLOW = re.compile(
    "/(doctor|home|analyze|recommend|portfolio|agents|trading/(?!runs)|trust/(?!journal|replay|mesh|costs))"
)
"""What reads a chain for long or would first have to invent a market: asked in the long run."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageApp]:
    with open_page_app(tmp_path_factory.mktemp("described")) as opened:
        yield opened


def ask_all(page: PageApp, examples: int, leave_out: re.Pattern[str] | None = None) -> list[str]:
    """Ask every route so often; the ones that were."""
    import schemathesis  # takes a second to import, which other tests need not wait for
    from schemathesis import checks

    def no_bug(ctx: Any, response: Any, case: Any) -> None:
        """A chain or an exchange that does not answer is said so, 502 and 503; a bug is 500."""
        assert response.status_code != 500, response.text

    wanted = [
        no_bug,
        checks.content_type_conformance,
        checks.response_schema_conformance,
        checks.status_code_conformance,
    ]
    asked: list[str] = []
    failed: list[str] = []
    whole = schemathesis.openapi.from_asgi("/api/v1/openapi.json", page.app, headers={**BEARER, "Host": HOST})
    found: Any
    for found in whole.get_all_operations():
        operation = found.ok()
        if operation.path == STREAM or (leave_out is not None and leave_out.search(operation.path)):
            continue
        asked.append(operation.label)

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            page.clocks.seconds += 60.0  # nobody is slowed here
            case.call_and_validate(headers={**BEARER, "Host": HOST}, checks=wanted)

        try:
            ask()
        except Exception as error:  # told at the end, with those of the other routes
            failed.append(f"{operation.label}: {''.join(format_exception(error))[-3_000:]}")
    assert not failed, "\n".join(failed)
    return asked


@pytest.mark.slow
def test_answers_are_as_they_are_described(page: PageApp) -> None:
    assert len(ask_all(page, 2, SLOW)) > 20


@pytest.mark.soak
def test_every_answer_is_as_it_is_described(tmp_path: Path, invented_market: Path) -> None:
    (tmp_path / "market").symlink_to(invented_market)
    with open_page_app(tmp_path) as page:
        assert len(ask_all(page, 40)) > 60


SOURCES = {"chain", "chains", "origin", "source", "sources"}
MOMENTS = {"asOf", "block", "chains", "lookedAt", "timestamp", "toTimestamp"}
WITHOUT = {
    *("SessionView", "ConfigView", "DoctorView", "LogsView", "JobView", "JobsView", "AgentsView"),  # this process
    *("StatusView", "WebLoginsView"),  # this home's processes and its logins
    *(
        "PlanListView",
        "ExecutionView",
        "PlanDiffView",
        "WhyView",
        "ReplayView",
        "JournalVerdictView",
        "LessonsView",
        "PostMortemView",
    ),
    *("SearchView", "LabReport", "LabReportsView"),  # of the journal or a file, by their own id
    *("HomeView", "PageView"),  # made of others
    "MarketsView",  # each of its lists has its own
    *(
        "CostsView",
        "AlertsView",
        "LpMandatesView",
        "OwnShadowsView",
        "SleevesListView",
        "WholeEntryView",
        "MeshView",
    ),  # of the journal, the monitor and the peers, and of nobody else
}


def test_every_document_of_figures_names_its_source_and_its_moment(page: PageApp) -> None:
    whole = page.app.openapi()
    for path, methods in whole["paths"].items():
        answer = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        name = answer.get("application/json", {}).get("schema", {}).get("$ref", "").rpartition("/")[2]
        if name and name not in WITHOUT:
            fields = set(whole["components"]["schemas"][name]["properties"])
            assert fields & SOURCES, path
            assert fields & MOMENTS, path


def test_every_answer_is_described_with_its_document_too(page: PageApp) -> None:
    whole = page.app.openapi()
    names = re.findall(r"#/components/schemas/(\w+)", str(whole))
    assert set(names) <= whole["components"]["schemas"].keys()
    for path, methods in whole["paths"].items():
        for status, answer in (pair for operation in methods.values() for pair in operation["responses"].items()):
            content = answer.get("content", {})
            view = content.get("application/json", {}).get("schema")
            if status.startswith("2") and view:  # else it is no view: a stream, a page of a report
                assert content[DOCUMENT_TYPE]["schema"]["properties"]["view"] == view, path


@pytest.mark.slow
def test_the_description_is_of_openapi_3_1_and_names_every_problem(page: PageApp) -> None:
    whole = page.app.openapi()
    assert whole["openapi"].startswith("3.1")
    assert "ProblemView" in whole["components"]["schemas"]
    for path, methods in whole["paths"].items():
        for method, told in methods.items():
            assert {"400", "401", "403", "404", "409", "429"} <= set(told["responses"]), (method, path)

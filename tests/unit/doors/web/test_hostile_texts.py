"""A home full of strangers' markup: the interface gives it as text in JSON, and a report's page may run nothing."""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.wire.hostile_home import IMAGE, PAGE, SPOKEN, TEXTS, HostileHome, write_hostile_home
from tests.wire.page_app import BEARER, HOST, open_page_app

API = "/api/v1"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HostileHome, TestClient]]:
    pytest.importorskip("pydantic_ai")
    home = tmp_path_factory.mktemp("hostile")
    written = asyncio.run(write_hostile_home(home))
    with (
        open_page_app(home) as page,
        TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER, raise_server_exceptions=False) as client,
    ):
        yield written, client


def read_texts(value: Any) -> Iterator[str]:
    """Every text of a document, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from read_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from read_texts(item)


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/lp/plans/{plan_id}", IMAGE),
        ("/lp/debates/{plan_id}", IMAGE),
        ("/lp/plans/{plan_id}", SPOKEN),
        ("/lp/debates/{plan_id}", SPOKEN),
        ("/lp/plans", "plan_"),
        ("/trust/memories", IMAGE),
        ("/trust/memories/{memory_id}", IMAGE),
        ("/trust/lessons", IMAGE),
        ("/trust/journal", "note"),
        ("/logs", IMAGE),
        ("/lab/reports", IMAGE),
        ("/lab/reports/{report_id}", IMAGE),
    ],
)
def test_markup_is_text_in_json(hostile: tuple[HostileHome, TestClient], path: str, found: str) -> None:
    written, client = hostile
    answer = client.get(API + path.format(**vars(written)))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.content.isascii()
    texts = list(read_texts(answer.json()))
    assert any(found in text for text in texts)
    if not path.startswith("/lab"):  # a report is the file's own bytes
        hidden = [text for text in texts if any(unicodedata.category(char) == "Cf" for char in text)]
        assert hidden == []


@pytest.mark.slow
def test_an_error_that_quotes_markup_is_text_in_json(hostile: tuple[HostileHome, TestClient]) -> None:
    _, client = hostile
    for text in TEXTS:
        for path in ("/trading/candles", "/lp/positions"):
            answer = client.get(API + path, params={"symbol": text, "chain": text})
            assert answer.status_code == 400
            assert answer.headers["content-type"] == "application/problem+json"
            assert json.loads(answer.text)["type"] == "urn:zuno:problem:usage"


@pytest.mark.slow
def test_a_reports_page_runs_nothing(hostile: tuple[HostileHome, TestClient]) -> None:
    written, client = hostile
    answer = client.get(f"{API}/lab/reports/{written.report_id}/page")
    assert answer.text == PAGE
    assert answer.headers["content-type"].startswith("text/html")
    policy = {
        name: rest
        for name, _, rest in (part.partition(" ") for part in answer.headers["content-security-policy"].split("; "))
    }
    assert policy["default-src"] == "'none'"
    assert policy["sandbox"] == ""
    assert "script-src" not in policy
    assert policy["img-src"] == "data:"
    assert answer.headers["x-frame-options"] == "DENY"


@pytest.mark.slow
@pytest.mark.parametrize(
    "report",
    [
        "none",
        "..",
        "..%2f..%2fweb-logins.json",
        "%2e%2e%2fweb",
        "lp-0123456789ab%00",
        "lp-0123456789AB",
        "trials",
        "x" * 81,
        "lp-000000000000",
    ],
)
@pytest.mark.parametrize("ending", ["", "/page"])
def test_no_id_leads_out_of_the_labs_folder(hostile: tuple[HostileHome, TestClient], report: str, ending: str) -> None:
    _, client = hostile
    answer = client.get(f"{API}/lab/reports/{report}{ending}")
    assert answer.status_code in (404, 422)
    assert re.fullmatch(r"urn:zuno:problem:(unknown|usage)", answer.json()["type"])


@pytest.mark.slow
def test_a_report_wants_the_login(hostile: tuple[HostileHome, TestClient]) -> None:
    written, client = hostile
    with TestClient(client.app, base_url=f"http://{HOST}") as stranger:
        assert stranger.get(f"{API}/lab/reports/{written.report_id}/page").status_code == 401


def list_bodies(client: TestClient) -> Iterator[tuple[str, bytes]]:
    """Every path that takes a body, with half a surrogate pair in each of its texts, and as a field's name."""
    described = client.get(f"{API}/openapi.json").json()
    for path, methods in described["paths"].items():
        if "requestBody" not in methods.get("post", {}):
            continue
        content = methods["post"]["requestBody"]["content"]["application/json"]["schema"]
        reference = json.dumps(content).partition("#/components/schemas/")[2].partition('"')[0]
        fields = described["components"]["schemas"][reference]["properties"]
        given = dict.fromkeys(fields, "x")
        for name in fields:
            yield re.sub(r"{\w+}", "plan_1", path), json.dumps({**given, name: "\ud800"}).encode()
        yield re.sub(r"{\w+}", "plan_1", path), json.dumps({**given, "\udfff": 1}).encode()


def test_half_a_surrogate_pair_is_refused_wherever_text_is_taken(hostile: tuple[HostileHome, TestClient]) -> None:
    _, client = hostile
    bodies = [*list_bodies(client), (f"{API}/login", b'{"login": "\\ud800"}')]
    assert len({path for path, _ in bodies}) > 5
    for path, body in bodies:
        answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert 400 <= answer.status_code < 500, (path, body, answer.text)
        assert json.loads(answer.content.decode())["status"] == answer.status_code
    for path in ("/trust/memories/%ED%A0%80", "/trust/search?query=%ED%A0%80", "/trading/candles?symbol=%ED%A0%80"):
        answer = client.get(API + path)
        assert 400 <= answer.status_code < 500, (path, answer.text)
        assert json.loads(answer.content.decode())["status"] == answer.status_code

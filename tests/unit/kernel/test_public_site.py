"""The public address of the page, and who the client is behind proxies that may lie."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.kernel.errors import UsageError
from zuno.kernel.public_site import parse_address, parse_proxies, parse_public_url

PROXY, INNER, CLIENT = "10.0.0.2", "10.0.0.3", "203.0.113.7"
SITE = parse_public_url("https://zuno.example", ["10.0.0.0/24"])


@pytest.mark.parametrize(
    ("url", "origin", "base"),
    [
        ("https://zuno.example", "https://zuno.example", ""),
        ("https://Zuno.Example:443/", "https://zuno.example", ""),
        ("https://zuno.example:8443/desk/one/", "https://zuno.example:8443", "/desk/one"),
        ("https://[2001:db8::1]/zuno", "https://[2001:db8::1]", "/zuno"),
        ("http://127.0.0.1:9000/zuno", "http://127.0.0.1:9000", "/zuno"),
        ("http://localhost:80", "http://localhost", ""),
    ],
)
def test_a_public_url_is_an_origin_and_a_base(url: str, origin: str, base: str) -> None:
    site = parse_public_url(url)
    assert (site.origin, site.base) == (origin, base)


@pytest.mark.parametrize(
    "url",
    [
        "http://zuno.example",
        "http://127.0.0.1.evil.example",
        "https://user:word@zuno.example",
        "https://user@zuno.example",
        "https://zuno.example?x=1",
        "https://zuno.example/#x",
        "https://zuno.example/a/../b",
        "https://zuno.example/a//b",
        "https://zuno.example:0",
        "https://zuno.example:65536",
        "ftp://zuno.example",
        "javascript://zuno.example",
        "zuno.example",
        "https://",
        "https://-x",
        "https://zuno.example\n",
        "https://zuno.example /",
        "",
    ],
)
def test_what_gives_logins_away_or_is_no_address_is_refused(url: str) -> None:
    if url == "https://zuno.example\n":
        assert parse_public_url(url).origin == "https://zuno.example", "a line of a file"
        return
    with pytest.raises(UsageError) as refused:
        parse_public_url(url)
    assert "word" not in str(refused.value), "a password is not echoed"


@pytest.mark.parametrize("proxies", [["proxy"], ["10.0.0.0/33"], ["10.0.0.1/24"], ["10.0.0"], ["::g"], [""], ["*"]])
def test_proxies_are_addresses_or_networks(proxies: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_proxies(proxies)


def test_without_proxies_this_machine_is_the_proxy() -> None:
    site = parse_public_url("https://zuno.example")
    assert [site.trusts(peer) for peer in ("127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1")] == [True] * 4
    assert [site.trusts(peer) for peer in ("10.0.0.2", "", "testclient", "::2")] == [False] * 4


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        (PROXY, CLIENT, CLIENT),
        (PROXY, "", PROXY),
        (PROXY, f"1.1.1.1, {CLIENT}", CLIENT),  # the client wrote the first one
        (PROXY, f"1.1.1.1, {CLIENT}, {INNER}", CLIENT),
        (PROXY, f"{INNER}, {PROXY}", INNER),
        (PROXY, f"{CLIENT}:4711", CLIENT),
        (PROXY, "[2001:db8::7]:4711", "2001:db8::7"),
        (PROXY, f"::ffff:{CLIENT}", CLIENT),
        (PROXY, f"{CLIENT}, unknown", PROXY),  # nothing left of what cannot be read
        (CLIENT, "1.1.1.1", CLIENT),  # no proxy of ours: its header is worth nothing
        ("", "1.1.1.1", ""),
    ],
)
def test_only_what_named_proxies_added_says_who_the_client_is(peer: str, forwarded: str, client: str) -> None:
    assert SITE.find_client(peer, forwarded) == client


@given(st.lists(st.ip_addresses().map(str) | st.text(max_size=9), max_size=5))
def test_whatever_a_client_writes_it_stays_who_it_is(lies: list[str]) -> None:
    header = ",".join([*lies, CLIENT])
    assert SITE.find_client(PROXY, header) == CLIENT
    assert SITE.find_client(CLIENT, header) == CLIENT


def test_an_address_may_have_a_port() -> None:
    assert str(parse_address("1.2.3.4:5")) == "1.2.3.4"
    assert parse_address("1.2.3.4:x") is None

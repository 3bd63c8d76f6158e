"""No test speaks TLS, and to read all certificate authorities takes every client fifty milliseconds."""

from __future__ import annotations

import ssl


def _read_nothing(context: ssl.SSLContext, *where: object, **named: object) -> None:
    """A test that did reach a server would not trust it."""


def trust_nobody() -> None:
    for name in ("load_verify_locations", "load_default_certs"):
        setattr(ssl.SSLContext, name, _read_nothing)

"""The browser, for every test of the page."""

from __future__ import annotations

from tests.wire.browser import browser, open_page

__all__ = ["browser", "open_page"]

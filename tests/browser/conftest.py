"""Fixtures of the browser tests. They skip with a reason if no browser is installed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium, start_chromium
from tests.browser.reports import CONTEXT

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)} is on the path")
    with start_chromium(program, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def open_page(tmp_path: Path, browser: Chromium) -> Callable[..., Chromium]:
    """Open HTML at a width in CSS pixels, in light colours unless `dark`."""

    def open_html(html: str, width: int = CONTEXT, *, dark: bool = False) -> Chromium:
        path = tmp_path / "report.html"
        path.write_text(html, encoding="utf-8")
        browser.open(path, width, dark=dark)
        return browser

    return open_html

"""Reports without their pictures."""

from __future__ import annotations

import pytest

from tests.report.weeks import without_pictures


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    without_pictures(monkeypatch)

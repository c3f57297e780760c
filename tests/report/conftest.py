"""Reports without their pictures."""

from __future__ import annotations

import pytest

from tests.report.weeks import stub_pictures


@pytest.fixture
def picture_stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_pictures(monkeypatch)

"""What is said at synthesis although nothing is refused for it."""

from __future__ import annotations

from typing import Any

import pytest

from infra.settings import read
from infra.settings.warnings import warnings

SOMEBODY = ["on-call@example.com"]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"mode": "observe", "tagMayRaiseTo": "observe"},
        {"mode": "heal", "pages": {"urgent": SOMEBODY}},
        {"tagMayRaiseTo": "propose", "pages": {"info": SOMEBODY}},
    ],
)
def test_what_only_watches_or_reaches_somebody_is_no_warning(settings: dict[str, Any]) -> None:
    assert list(warnings(read(settings))) == []


@pytest.mark.parametrize("key", ["mode", "tagMayRaiseTo"])
@pytest.mark.parametrize("mode", ["propose", "heal"])
def test_acting_while_pages_reach_nobody_is_one(key: str, mode: str) -> None:
    (line,) = warnings(read({key: mode}))
    assert line.startswith("nobody is subscribed: ")
    assert "pages.urgent" in line
    assert "pages.info" in line


def test_a_sender_without_recipients_is_one() -> None:
    (line,) = warnings(read({"report": {"sender": "mendq@example.com"}}))
    assert line.startswith("nobody is mailed: ")
    both = {"sender": "mendq@example.com", "recipients": ["sqs@example.com"]}
    assert list(warnings(read({"report": both}))) == []


def test_every_warning_is_a_line_of_its_own() -> None:
    lines = list(warnings(read({"mode": "heal", "report": {"sender": "mendq@example.com"}})))
    assert [line.partition(":")[0] for line in lines] == [
        "nobody is subscribed",
        "nobody is mailed",
    ]

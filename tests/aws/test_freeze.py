"""Test change calendars. Stubber answers in AWS's shape, because moto has no change calendars."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from mendq.aws.clients import Clients, explain_closed_calendars

CALENDAR = "arn:aws:ssm:us-east-1:123456789012:document/Peak"


@pytest.fixture
def clients() -> Clients:
    return Clients(boto3.Session(region_name="us-east-1"))


@pytest.mark.parametrize(
    ("state", "expected"), [("OPEN", None), ("CLOSED", "the change calendar is closed")]
)
def test_change_calendar_freezes_changes_only_while_it_is_closed(
    clients: Clients, state: str, expected: str | None
) -> None:
    answer: dict[str, Any] = {"State": state}
    with Stubber(clients.ssm) as ssm:
        ssm.add_response("get_calendar_state", answer, {"CalendarNames": [CALENDAR]})
        assert explain_closed_calendars(clients, (CALENDAR,)) == expected


def test_settings_without_a_change_calendar_freeze_nothing_and_read_none(
    clients: Clients,
) -> None:
    """The stub has no answer, so any call would raise."""
    with Stubber(clients.ssm):
        assert explain_closed_calendars(clients, ()) is None


def test_unreadable_change_calendar_freezes_changes(clients: Clients) -> None:
    with Stubber(clients.ssm) as ssm:
        ssm.add_client_error("get_calendar_state", "AccessDeniedException")
        assert "cannot be read" in str(explain_closed_calendars(clients, (CALENDAR,)))

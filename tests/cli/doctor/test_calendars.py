"""A calendar that is closed is meant so, mostly; one that cannot be read freezes for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest
from botocore.stub import Stubber

from cli.doctor.calendars import look
from cli.doctor.check import Check, Status
from tests.cli.conftest import Operator
from tests.functions.aws.conftest import ACCOUNT

OTHER = "444455556666"


def _calendar(account: str) -> str:
    return f"arn:aws:ssm:us-east-1:{account}:document/quiet-days"


def _check(operator: Operator, answer: str, owner: str = ACCOUNT) -> Check:
    """`answer` is the calendar's state, or the code of an error."""
    calendar = _calendar(owner)
    known = replace(operator.account.known, freeze_calendars=(calendar,))
    account = replace(operator.account, known=known)
    with Stubber(account.clients.ssm) as ssm:
        if answer in ("OPEN", "CLOSED"):
            expected = {"CalendarNames": [calendar]}
            ssm.add_response("get_calendar_state", {"State": answer}, expected)
        else:
            ssm.add_client_error("get_calendar_state", answer, "no: ssm:GetCalendarState")
        (check,) = look(account)
    assert check.name == "calendar quiet-days"
    return check


def test_without_calendars_there_is_nothing_to_ask(operator: Operator) -> None:
    with Stubber(operator.account.clients.ssm):
        assert list(look(operator.account)) == []


@pytest.mark.parametrize(
    ("answer", "owner", "status"),
    [
        ("OPEN", ACCOUNT, Status.OK),
        ("OPEN", OTHER, Status.OK),
        ("CLOSED", ACCOUNT, Status.WARN),
        ("InvalidDocument", ACCOUNT, Status.FAIL),
        ("InvalidDocument", OTHER, Status.FAIL),
        ("AccessDeniedException", OTHER, Status.FAIL),
        ("AccessDeniedException", ACCOUNT, Status.UNKNOWN),  # may be the operator's own rights
        ("ThrottlingException", OTHER, Status.UNKNOWN),
        ("InternalServerError", ACCOUNT, Status.UNKNOWN),
    ],
)
def test_what_cannot_be_read_is_no_closed_calendar(
    operator: Operator, answer: str, owner: str, status: Status
) -> None:
    check = _check(operator, answer, owner)
    assert check.status is status
    assert ("meant so" in check.cure) is (answer == "CLOSED")
    assert ("cannot be read" in check.says) is (status is Status.FAIL)
    if status is Status.FAIL:
        assert ("share it with account" in check.cure) is (owner == OTHER)
        assert "freezeCalendars" in check.cure

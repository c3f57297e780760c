from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from botocore.stub import ANY, Stubber

from cli.doctor.check import Check, Status
from cli.doctor.life import BEATS_WITHIN, look
from functions.aws.pulse_record import PulseRecord
from functions.healing.pulse import SEEN_WITHIN, Pulse
from tests.cli.conftest import Operator

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def _checks(operator: Operator, *beats: datetime, stack_age: timedelta) -> dict[str, Check]:
    account = replace(operator.account, made_at=NOW - stack_age)
    datapoints = [{"Timestamp": each, "SampleCount": 1.0} for each in beats]
    expected = {
        "Namespace": "Mendq",
        "MetricName": "OldestOpenCaseAgeSeconds",
        **dict.fromkeys(("StartTime", "EndTime", "Period", "Statistics"), ANY),
    }
    with Stubber(account.clients.cloudwatch) as stub:
        stub.add_response("get_metric_statistics", {"Datapoints": datapoints}, expected)
        return {each.name: each for each in look(account, NOW)}


def _pulse(operator: Operator, ago: timedelta, lost_in_a_row: int = 0) -> Check:
    sent = Pulse(NOW - ago, NOW - ago, lost_in_a_row)
    PulseRecord(operator.aws.clients.dynamodb, "ledger").note_sent(sent)
    return _checks(operator, NOW, stack_age=timedelta(days=9))["pulse"]


@pytest.mark.parametrize(
    ("last", "stack_age", "status"),
    [
        (None, timedelta(), Status.WARN),
        (None, BEATS_WITHIN - SECOND, Status.WARN),
        (None, BEATS_WITHIN, Status.FAIL),
        (BEATS_WITHIN, timedelta(days=9), Status.OK),
        (BEATS_WITHIN + MINUTE, timedelta(days=9), Status.FAIL),
    ],
)
def test_a_follow_up_that_is_silent(
    operator: Operator, last: timedelta | None, stack_age: timedelta, status: Status
) -> None:
    beats = [] if last is None else [NOW - last]
    check = _checks(operator, *beats, stack_age=stack_age)["heartbeat"]
    assert check.status is status
    assert ("log of follow_up" in check.cure) is (status is not Status.WARN)


@pytest.mark.parametrize("lost_in_a_row", [0, 2])
def test_a_pulse_that_was_lost(operator: Operator, lost_in_a_row: int) -> None:
    check = _pulse(operator, SEEN_WITHIN + SECOND, lost_in_a_row)
    assert (check.status, check.cure) == (Status.FAIL, "docs/runbooks/pulse_lost.md")
    assert f"{lost_in_a_row} before it lost" in check.says


@pytest.mark.parametrize(("lost_in_a_row", "status"), [(0, Status.OK), (1, Status.WARN)])
def test_a_pulse_that_is_on_its_way(operator: Operator, lost_in_a_row: int, status: Status) -> None:
    assert _pulse(operator, SEEN_WITHIN, lost_in_a_row).status is status


def test_no_pulse_yet(operator: Operator) -> None:
    check = _checks(operator, NOW, stack_age=timedelta(days=9))["pulse"]
    assert (check.status, check.cure) == (Status.WARN, "ask again in an hour")

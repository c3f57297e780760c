from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from botocore.stub import Stubber

from cli.doctor.check import Check, Status
from cli.doctor.life import look
from functions.aws.pulse_record import PulseRecord
from functions.healing.pulse import SEEN_WITHIN, Pulse
from tests.cli.conftest import Operator

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def _checks(operator: Operator) -> dict[str, Check]:
    with Stubber(operator.account.clients.cloudwatch) as stub:
        for _ in range(3):  # runs, errors, beats
            stub.add_response("get_metric_statistics", {"Datapoints": []})
        return {each.name: each for each in look(operator.account, NOW)}


def _pulse(operator: Operator, ago: timedelta, lost_in_a_row: int = 0) -> Check:
    sent = Pulse(NOW - ago, NOW - ago, lost_in_a_row)
    PulseRecord(operator.aws.clients.dynamodb, "ledger").note_sent(sent)
    return _checks(operator)["pulse"]


@pytest.mark.parametrize("lost_in_a_row", [0, 2])
def test_a_pulse_that_was_lost(operator: Operator, lost_in_a_row: int) -> None:
    check = _pulse(operator, SEEN_WITHIN + SECOND, lost_in_a_row)
    assert (check.status, check.cure) == (Status.FAIL, "docs/runbooks/pulse_lost.md")
    assert f"{lost_in_a_row} before it lost" in check.says


@pytest.mark.parametrize(("lost_in_a_row", "status"), [(0, Status.OK), (1, Status.WARN)])
def test_a_pulse_that_is_on_its_way(operator: Operator, lost_in_a_row: int, status: Status) -> None:
    assert _pulse(operator, SEEN_WITHIN, lost_in_a_row).status is status


def test_no_pulse_yet(operator: Operator) -> None:
    check = _checks(operator)["pulse"]
    assert (check.status, check.cure) == (Status.WARN, "ask again in an hour")

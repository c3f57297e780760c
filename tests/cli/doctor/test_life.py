"""Signs of life: heartbeat, probe, calendars, the scan's last round.

The heartbeat's own metric proves nothing: a run that ended well is AWS's to count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from botocore.stub import ANY, Stubber

from mendq.cases.context import CaseBucket
from mendq.cases.finding import Scanned, round_of
from mendq.cli.doctor.check import Check, Status
from mendq.cli.doctor.life import BEATS_WITHIN, LastRound, heartbeat, last_round, life, round_check
from mendq.probe.probe import SEEN_WITHIN, Probe
from mendq.probe.send import ProbeRecord
from mendq.scan.store import ScanStore
from tests.cli.conftest import Operator
from tests.heal.conftest import ACCOUNT

NOW = datetime(2026, 11, 16, 12, 20, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAYS = (timedelta(seconds=each) for each in (1, 60, 3_600, 777_600))
OK, WARN, FAIL, UNKNOWN = Status.OK, Status.WARN, Status.FAIL, Status.UNKNOWN
OTHER = "444455556666"
_Statistic = Literal["Sum", "SampleCount"]
# Minutes ago at which periods began.
LATELY, LONG_AGO = range(1, 20), range(30, 50)


def _beat(
    operator: Operator,
    runs: Sequence[int],
    errors: Sequence[int],
    beats: Sequence[int],
    stack_age: timedelta = DAYS,
) -> Check:
    """Minutes with one run, one error and one beat each; a run without an error counts as 0."""
    account = replace(operator.account, made_at=NOW - stack_age)
    own = {"Dimensions": [{"Name": "FunctionName", "Value": "follow_up"}]}
    ours: dict[str, Any] = {"Dimensions": []}
    asked: tuple[tuple[str, str, _Statistic, dict[str, Any], dict[int, float]], ...] = (
        ("AWS/Lambda", "Invocations", "Sum", own, dict.fromkeys(runs, 1.0)),
        ("AWS/Lambda", "Errors", "Sum", own, {n: float(n in errors) for n in runs}),
        ("Mendq", "OldestOpenCaseAgeSeconds", "SampleCount", ours, dict.fromkeys(beats, 1.0)),
    )
    with Stubber(account.clients.cloudwatch) as stub:
        for namespace, metric, statistic, dimensions, counts in asked:
            points = [
                {"Timestamp": NOW - n * MINUTE, statistic: count} for n, count in counts.items()
            ]
            expected = {"Namespace": namespace, "MetricName": metric, "Statistics": [statistic]}
            expected |= dimensions | dict.fromkeys(("StartTime", "EndTime", "Period"), ANY)
            stub.add_response("get_metric_statistics", {"Datapoints": points}, expected)
        (check,) = heartbeat(account, NOW)
    return check


@pytest.mark.parametrize(("minutes_ago", "status"), [(10, OK), (11, FAIL)])
def test_a_run_that_ended_well_and_said_its_figures_lasts_ten_minutes(
    operator: Operator, minutes_ago: int, status: Status
) -> None:
    check = _beat(operator, [minutes_ago], [], [minutes_ago])
    assert check.status is status
    remedy = "docs/runbooks/heartbeat_missing.md, and the log of follow_up"
    assert check.remedy == (remedy if status is FAIL else "")


def test_one_that_has_begun_to_fail_is_warned_of_before_it_is_silent(operator: Operator) -> None:
    check = _beat(operator, range(1, 9), range(1, 4), range(4, 9))
    assert check.status is WARN
    assert "ran well 3 min ago; since then it failed in 3 of 3 runs" in check.says
    assert _beat(operator, range(1, 9), range(2, 4), [1, *range(4, 9)]).status is OK


@pytest.mark.parametrize(
    ("runs", "errors", "beats", "says"),
    [
        ((), (), LATELY, "it was not started, and somebody else sends its metric"),
        (LATELY, LATELY, LATELY, "it failed in 19 of 19 runs"),
        (LATELY, (), (), "it ran without an error, and no metric came"),
        ((), (), (), "it was not started: is its schedule enabled"),
        (range(1, 20, 2), (), range(2, 20, 2), "it ran without an error, and no metric came"),
    ],
)
@pytest.mark.parametrize("before", [(), LONG_AGO])
def test_what_is_wrong_is_said(  # noqa: PLR0917 - each is one of the three metrics
    operator: Operator,
    runs: Sequence[int],
    errors: Sequence[int],
    beats: Sequence[int],
    says: str,
    before: Sequence[int],
) -> None:
    check = _beat(operator, [*runs, *before], errors, [*beats, *before])
    assert check.status is FAIL
    assert says in check.says
    assert ("ran well 29 min ago" in check.says) is bool(before)


@pytest.mark.parametrize(
    ("stack_age", "status"), [(BEATS_WITHIN - SECOND, WARN), (BEATS_WITHIN, FAIL)]
)
def test_a_new_stack_has_ten_minutes(
    operator: Operator, stack_age: timedelta, status: Status
) -> None:
    assert _beat(operator, [], [], [], stack_age).status is status


def _life(operator: Operator) -> dict[str, Check]:
    with Stubber(operator.account.clients.cloudwatch) as stub:
        for _ in range(3):  # runs, errors, beats
            stub.add_response("get_metric_statistics", {"Datapoints": []})
        return {each.name: each for each in life(operator.account, NOW)}


@pytest.mark.parametrize(
    ("ago", "lost_in_a_row", "status"),
    [
        (SEEN_WITHIN + SECOND, 0, FAIL),
        (SEEN_WITHIN + SECOND, 2, FAIL),
        (SEEN_WITHIN, 0, OK),
        (SEEN_WITHIN, 1, WARN),
    ],
)
def test_a_probe_that_was_not_seen(
    operator: Operator, ago: timedelta, lost_in_a_row: int, status: Status
) -> None:
    sent = Probe(NOW - ago, NOW - ago, lost_in_a_row)
    ProbeRecord(operator.aws.clients.dynamodb, "case_store").note_sent(sent)
    check = _life(operator)["probe"]
    assert (check.status, check.remedy) == (status, "docs/runbooks/probe_lost.md")
    assert f"{lost_in_a_row} before it lost" in check.says


def test_no_probe_yet(operator: Operator) -> None:
    check = _life(operator)["probe"]
    assert (check.status, check.remedy) == (WARN, "ask again in an hour")


@pytest.mark.parametrize(
    ("answer", "owner", "status"),
    [
        ("OPEN", ACCOUNT, OK),
        ("OPEN", OTHER, OK),
        ("CLOSED", ACCOUNT, WARN),
        ("InvalidDocument", ACCOUNT, FAIL),
        ("InvalidDocument", OTHER, FAIL),
        ("AccessDeniedException", OTHER, FAIL),
        ("AccessDeniedException", ACCOUNT, UNKNOWN),  # may be the operator's own rights
        ("ThrottlingException", OTHER, UNKNOWN),
        ("InternalServerError", ACCOUNT, UNKNOWN),
    ],
)
def test_what_cannot_be_read_is_no_closed_calendar(
    operator: Operator, answer: str, owner: str, status: Status
) -> None:
    """`answer` is the calendar's state, or the code of an error."""
    calendar = f"arn:aws:ssm:us-east-1:{owner}:document/quiet-days"
    known = replace(operator.account.known, freeze_calendars=(calendar,))
    account = replace(operator.account, known=known)
    with Stubber(account.clients.ssm) as ssm:
        if answer in ("OPEN", "CLOSED"):
            expected = {"CalendarNames": [calendar]}
            ssm.add_response("get_calendar_state", {"State": answer}, expected)
        else:
            ssm.add_client_error("get_calendar_state", answer, "no: ssm:GetCalendarState")
        check = _life(replace(operator, account=account))["calendar quiet-days"]
    assert check.status is status
    assert ("meant so" in check.remedy) is (answer == "CLOSED")
    assert ("cannot be read" in check.says) is (status is FAIL)
    if status is FAIL:
        assert ("share it with account" in check.remedy) is (owner == OTHER)
        assert "freezeCalendars" in check.remedy


# The scan's last round, as the case store and the case bucket know it.

ROUND = LastRound(NOW - timedelta(minutes=5), 30, 9, 5, 0, 2)


def _begin(operator: Operator, at: datetime) -> None:
    assert ScanStore(operator.aws.clients.dynamodb, "case_store", "scan").begin(at)


def _put(operator: Operator, at: datetime, **over: Any) -> None:
    document = Scanned(queues=30, suspects=9, measured=5, skipped=4).document(at) | over
    kept = {name: value for name, value in document.items() if value is not None}
    CaseBucket(operator.aws.clients.s3, "cases").put_findings(round_of(at), kept)


@pytest.mark.parametrize(
    ("over", "found"),
    [
        ({}, LastRound(NOW, 30, 9, 5, 4, 0)),
        ({"queues_scanned": "many"}, None),
        ({"gone": 1, "unseen": 2, "failed": 3}, LastRound(NOW, 30, 9, 5, 4, 0, 1, 2, 3)),
        # A version before wrote none.
        (dict.fromkeys(("gone", "unseen", "failed")), LastRound(NOW, 30, 9, 5, 4, 0)),
    ],
)
def test_a_round_is_read_as_it_was_put_down(
    operator: Operator, over: dict[str, Any], found: LastRound | None
) -> None:
    assert last_round(operator.account) is None
    _begin(operator, NOW)
    assert last_round(operator.account) is None, "its first stretch is under way"
    _put(operator, NOW - HOUR)
    before = last_round(operator.account)
    assert before is not None
    assert before.at == NOW - HOUR
    _put(operator, NOW, **over)
    assert last_round(operator.account) == (found or before)


BLIND = "nothing could be seen of any queue"
LOG = "see the log of scan"
RAISE = "raise limits.scanMetricsPerDay, and deploy"


@pytest.mark.parametrize(
    ("over", "status", "says", "remedy"),
    [
        ({}, OK, "none skipped", ""),
        ({"gone": 30}, OK, "30 queues", ""),
        ({"queues": 0, "suspects": 0, "measured": 0}, OK, "0 queues", ""),
        ({"skipped": 4}, WARN, "4 skipped for the budget", RAISE),
        ({"skipped": 4, "failed": 1}, WARN, "1 failed", LOG),
        ({"unseen": 29, "failed": 29}, WARN, "29 failed", LOG),
        ({"unseen": 30, "failed": 30}, FAIL, BLIND, LOG),
        ({"gone": 1, "unseen": 29, "failed": 29}, FAIL, BLIND, LOG),
        ({"at": NOW - 3 * HOUR}, FAIL, "3 h ago", LOG),
    ],
)
def test_what_a_round_left_out(
    operator: Operator, over: dict[str, Any], status: Status, says: str, remedy: str
) -> None:
    check = round_check(replace(ROUND, **over), operator.account, NOW)
    assert (check.status, check.remedy) == (status, remedy)
    assert says in check.says


@pytest.mark.parametrize(
    ("hours_old", "status", "remedy"), [(1, WARN, "ask again in an hour"), (100, FAIL, LOG)]
)
def test_where_no_round_was_made(
    operator: Operator, hours_old: int, status: Status, remedy: str
) -> None:
    account = replace(operator.account, made_at=NOW - hours_old * HOUR)
    check = round_check(None, account, NOW)
    assert (check.status, check.remedy) == (status, remedy)

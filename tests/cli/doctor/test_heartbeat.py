"""Its own metric proves nothing: a run that ended well is AWS's to count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from botocore.stub import ANY, Stubber

from mendq.cli.doctor.check import Check, Status
from mendq.cli.doctor.heartbeat import BEATS_WITHIN, look
from tests.cli.conftest import Operator

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECOND, MINUTE, DAYS = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=9)
_Statistic = Literal["Sum", "SampleCount"]
# Minutes ago at which periods began.
LATELY, LONG_AGO = range(1, 20), range(30, 50)


def _check(
    operator: Operator,
    runs: Sequence[int],
    errors: Sequence[int],
    beats: Sequence[int],
    stack_age: timedelta = DAYS,
) -> Check:
    """Minutes with one run, one error and one beat each; a run without an error counts as 0."""
    account = replace(operator.account, made_at=NOW - stack_age)
    own = {"Dimensions": [{"Name": "FunctionName", "Value": "follow_up"}]}
    asked: tuple[tuple[str, str, _Statistic, dict[str, Any], dict[int, float]], ...] = (
        ("AWS/Lambda", "Invocations", "Sum", own, dict.fromkeys(runs, 1.0)),
        ("AWS/Lambda", "Errors", "Sum", own, {n: float(n in errors) for n in runs}),
        (
            "Mendq",
            "OldestOpenCaseAgeSeconds",
            "SampleCount",
            {"Dimensions": []},
            dict.fromkeys(beats, 1.0),
        ),
    )
    with Stubber(account.clients.cloudwatch) as stub:
        for namespace, metric, statistic, dimensions, counts in asked:
            datapoints = [
                {"Timestamp": NOW - n * MINUTE, statistic: count} for n, count in counts.items()
            ]
            expected = {
                "Namespace": namespace,
                "MetricName": metric,
                "Statistics": [statistic],
                **dimensions,
                **dict.fromkeys(("StartTime", "EndTime", "Period"), ANY),
            }
            stub.add_response("get_metric_statistics", {"Datapoints": datapoints}, expected)
        (check,) = look(account, NOW)
    assert check.name == "heartbeat"
    return check


@pytest.mark.parametrize(("minutes_ago", "status"), [(10, Status.OK), (11, Status.FAIL)])
def test_a_run_that_ended_well_and_said_its_figures_lasts_ten_minutes(
    operator: Operator, minutes_ago: int, status: Status
) -> None:
    seen = [minutes_ago]
    check = _check(operator, seen, [], seen)
    assert check.status is status
    assert ("heartbeat_missing.md, and the log of follow_up" in check.remedy) is (
        status is Status.FAIL
    )


def test_one_that_has_begun_to_fail_is_warned_of_before_it_is_silent(operator: Operator) -> None:
    check = _check(operator, range(1, 9), range(1, 4), range(4, 9))
    assert check.status is Status.WARN
    assert "ran well 3 min ago; since then it failed in 3 of 3 runs" in check.says
    recovered = _check(operator, range(1, 9), range(2, 4), [1, *range(4, 9)])
    assert recovered.status is Status.OK


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
@pytest.mark.parametrize("was_well", [False, True])
def test_what_is_wrong_is_said(  # noqa: PLR0917 - each is one of the three metrics
    operator: Operator,
    runs: Sequence[int],
    errors: Sequence[int],
    beats: Sequence[int],
    says: str,
    was_well: bool,
) -> None:
    before = LONG_AGO if was_well else ()
    check = _check(operator, [*runs, *before], errors, [*beats, *before])
    assert check.status is Status.FAIL
    assert says in check.says
    assert ("ran well 29 min ago" in check.says) is was_well


@pytest.mark.parametrize(
    ("stack_age", "status"),
    [
        (timedelta(), Status.WARN),
        (BEATS_WITHIN - SECOND, Status.WARN),
        (BEATS_WITHIN, Status.FAIL),
    ],
)
def test_a_new_stack_has_ten_minutes(
    operator: Operator, stack_age: timedelta, status: Status
) -> None:
    assert _check(operator, [], [], [], stack_age).status is status

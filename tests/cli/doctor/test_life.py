"""Test the doctor's checks of heartbeat, probe, change calendars and the last scan."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import ANY, Stubber
from msgspec import structs
from msgspec.structs import replace as changed

from mendq.cases.case_bucket import CaseBucket
from mendq.cases.finding import ScanResult, findings_key, start_of_hour
from mendq.cli.doctor.check import Check
from mendq.cli.doctor.life import (
    MAXIMUM_HEARTBEAT_AGE,
    HourlyScan,
    check_calendars,
    check_heartbeat,
    check_mutes,
    check_probe,
    check_scan,
    read_last_complete_scan,
    read_last_scan,
)
from mendq.model.mutes import Mute, MuteUse
from mendq.probe.probe import PROBE_ARRIVAL_TIMEOUT, Probe
from mendq.probe.send import ProbeRecord
from mendq.scan.store import ScanStore
from tests.account.account import ACCOUNT
from tests.cli.builders import Operator
from tests.cli.named_rows import parametrize_rows

NOW = datetime(2026, 11, 16, 12, 20, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
KNOWN = json.loads(Path(__file__).with_name("life.json").read_text())
OWN = {
    "Namespace": "AWS/Lambda",
    "Statistics": ["Sum"],
    "Dimensions": [{"Name": "FunctionName", "Value": "follow_up"}],
}


def _parse_minutes(words: str) -> range:
    """Parse a range of minutes ago, such as `1-8`."""
    first, _, last = words.partition("-")
    return range(int(first or 1), int(last or first or 0) + 1)


def _check_heartbeat(
    operator: Operator, runs: str = "", errors: str = "", stack_age: timedelta = 200 * HOUR
) -> Check:
    """Check the heartbeat with runs and failed runs at these minutes ago."""
    account = structs.replace(operator.account, made_at=NOW - stack_age)
    failed = _parse_minutes(errors)
    with Stubber(account.clients.cloudwatch) as stub:
        for metric, counted in {"Invocations": _parse_minutes(runs), "Errors": failed}.items():
            sums = {NOW - n * MINUTE: float(n in counted) for n in _parse_minutes(runs)}
            points = [{"Timestamp": time, "Sum": run_count} for time, run_count in sums.items()]
            request = {**OWN, "MetricName": metric, "StartTime": ANY, "EndTime": ANY, "Period": ANY}
            stub.add_response("get_metric_statistics", {"Datapoints": points}, request)
        (check,) = check_heartbeat(account, NOW)
    return check


@parametrize_rows(KNOWN["heartbeats"])
def test_doctor_heartbeat_is_ok_or_warns_within_ten_minutes_of_a_run_without_error_and_then_fails(
    operator: Operator, runs: str, errors: str, status: str, says: str
) -> None:
    check = _check_heartbeat(operator, runs, errors)
    remedy = "docs/runbooks/heartbeat_missing.md, and the log of follow_up"
    assert (check.status, check.remedy) == (status, "" if status == "ok" else remedy)
    assert says in check.sentence


def test_doctor_heartbeat_of_a_new_stack_fails_only_after_ten_minutes_without_a_run(
    operator: Operator,
) -> None:
    assert _check_heartbeat(operator, stack_age=MAXIMUM_HEARTBEAT_AGE - SECOND).status == "warn"
    assert _check_heartbeat(operator, stack_age=MAXIMUM_HEARTBEAT_AGE).status == "fail"


def test_doctor_probe_check_warns_if_no_probe_was_sent_yet(operator: Operator) -> None:
    (check,) = check_probe(operator.account, NOW)
    assert (check.status, check.remedy) == ("warn", "ask again in an hour")


@pytest.mark.parametrize(
    ("ago", "lost_in_a_row", "status"),
    [
        (PROBE_ARRIVAL_TIMEOUT + SECOND, 0, "fail"),
        (PROBE_ARRIVAL_TIMEOUT + SECOND, 2, "fail"),
        (PROBE_ARRIVAL_TIMEOUT, 0, "ok"),
        (PROBE_ARRIVAL_TIMEOUT, 1, "warn"),
    ],
    ids=["overdue", "overdue after two lost", "in time", "in time after one lost"],
)
def test_doctor_probe_check_fails_for_an_overdue_probe_and_warns_of_lost_earlier_probes(
    operator: Operator, ago: timedelta, lost_in_a_row: int, status: str
) -> None:
    sent = Probe(NOW - ago, NOW - ago, lost_in_a_row)
    ProbeRecord(operator.aws.clients.dynamodb, "case_store").store_sent_probe(sent)
    (check,) = check_probe(operator.account, NOW)
    assert (check.status, check.remedy) == (status, "docs/runbooks/probe_lost.md")
    assert f"{lost_in_a_row} before it lost" in check.sentence


@parametrize_rows(KNOWN["calendars"])
def test_doctor_calendar_check_is_ok_if_open_warns_if_closed_and_else_fails_or_is_unknown(  # noqa: PLR0917 - a row of the table
    operator: Operator, answer: str, owner: str, status: str, says: str, remedy: str
) -> None:
    """`answer` is the calendar's state or an error code."""
    whose = ACCOUNT if owner == "ours" else "444455556666"
    calendar = f"arn:aws:ssm:us-east-1:{whose}:document/quiet-days"
    settings = structs.replace(operator.account.known, freeze_calendars=(calendar,))
    account = structs.replace(operator.account, known=settings)
    with Stubber(account.clients.ssm) as ssm:
        if answer in ("OPEN", "CLOSED"):
            expected = {"CalendarNames": [calendar]}
            ssm.add_response("get_calendar_state", {"State": answer}, expected)
        else:
            ssm.add_client_error("get_calendar_state", answer, "no: ssm:GetCalendarState")
        (check,) = check_calendars(account)
    assert (check.name, check.status) == ("calendar quiet-days", status)
    assert says in check.sentence
    assert check.remedy.startswith(remedy)


# The last scan in the case store and the case bucket.

LAST_SCAN = HourlyScan(NOW - timedelta(minutes=5), 30, 9, 5, 0, [{}, {}])


SKIPPED = frozenset("abcd")


def _put_scan_result(operator: Operator, at: datetime, **over: Any) -> None:
    scanned = ScanResult(
        queues_scanned=30,
        suspects=9,
        measured=5,
        skip_reason_by_arn=dict.fromkeys(SKIPPED, "spent"),
    )
    document = scanned.document(at) | over
    CaseBucket(operator.aws.clients.s3, "cases").put(findings_key(start_of_hour(at)), document)


def test_summary_of_a_scan_counts_the_queues_whose_metrics_are_not_complete() -> None:
    scan = HourlyScan(NOW, 30, 9, 5, 0, [], metric_gaps={"arn": "CloudWatch lacks counts"})
    assert "none skipped, 1 without complete metrics" in scan.summary


def test_doctor_reads_no_scan_until_the_first_scan_ended(operator: Operator) -> None:
    assert read_last_scan(operator.account) is None
    assert ScanStore(operator.aws.clients.dynamodb, "case_store", "scan").claim_stretch(NOW)
    assert read_last_scan(operator.account) is None, "its first stretch is under way"


@pytest.mark.parametrize(
    ("over", "found"),
    [
        ({}, HourlyScan(NOW, 30, 9, 5, 4, [], skipped=SKIPPED)),
        ({"queues_scanned": "many"}, None),
        ({"findings": [5]}, None),
        (
            {"gone": 1, "unseen": 2, "failed": 3},
            HourlyScan(NOW, 30, 9, 5, 4, [], 1, 2, 3, skipped=SKIPPED),
        ),
    ],
    ids=["well-formed", "malformed count", "malformed findings", "with gone, unseen and failed"],
)
def test_doctor_reads_the_last_complete_scan_and_skips_a_malformed_scan_result(
    operator: Operator, over: dict[str, Any], found: HourlyScan | None
) -> None:
    assert ScanStore(operator.aws.clients.dynamodb, "case_store", "scan").claim_stretch(NOW)
    _put_scan_result(operator, NOW - HOUR)
    before = read_last_scan(operator.account)
    assert before is not None
    assert before.at == NOW - HOUR
    _put_scan_result(operator, NOW, **over)
    assert read_last_scan(operator.account) == (found or before)


@parametrize_rows(KNOWN["rounds"])
def test_doctor_scan_check_reports_what_the_last_scan_left_out_and_fails_after_three_hours(
    operator: Operator, over: dict[str, int], status: str, says: str, remedy: str
) -> None:
    last_scan = changed(LAST_SCAN, **over)
    check = check_scan(last_scan, operator.account, NOW)
    assert (check.status, check.remedy) == (status, remedy)
    assert says in check.sentence
    assert check_scan(last_scan, operator.account, NOW + 3 * HOUR).status == "fail"


@pytest.mark.parametrize(
    ("hours_old", "found"),
    [(1, ("warn", "ask again in an hour")), (100, ("fail", "see the log of scan"))],
    ids=["new stack", "old stack"],
)
def test_doctor_scan_check_without_any_scan_warns_on_a_new_stack_and_fails_on_an_old_stack(
    operator: Operator, hours_old: int, found: tuple[str, str]
) -> None:
    account = structs.replace(operator.account, made_at=NOW - hours_old * HOUR)
    check = check_scan(None, account, NOW)
    assert (check.status, check.remedy) == found


# The mutes of the settings.

TODAY = NOW.date()
YESTERDAY = TODAY - timedelta(days=1)


def _mute(operator: Operator, *mutes: Mute) -> None:
    account = operator.account
    operator.account = structs.replace(account, known=structs.replace(account.known, mutes=mutes))


def _check_mutes(operator: Operator, *uses: MuteUse) -> list[tuple[str, str]]:
    scan = changed(LAST_SCAN, mutes=list(uses))
    checks = check_mutes(operator.account, scan, NOW)
    return [(str(check.status), check.sentence) for check in checks]


def test_doctor_says_nothing_about_mutes_if_the_settings_have_none(operator: Operator) -> None:
    assert _check_mutes(operator) == []


def test_doctor_counts_mutes_that_hold_and_are_needed(operator: Operator) -> None:
    _mute(operator, Mute("a", "dlq_missing", "why", TODAY), Mute("b", "dlq_missing", "why", TODAY))
    uses = [
        MuteUse("a", "dlq_missing", TODAY, findings=1),
        MuteUse("b", "dlq_missing", TODAY, checked=3, unchecked=1),
    ]
    assert _check_mutes(operator, *uses) == [("ok", "2 mutes in the settings")]


@pytest.mark.parametrize(
    ("until", "use", "sentence"),
    [
        pytest.param(YESTERDAY, {"findings": 1}, "ended on 2026-11-15: fix", id="ended"),
        pytest.param(TODAY, {"checked": 2}, "names 2 checked queues, and none", id="not needed"),
        pytest.param(TODAY, {}, "no managed queue has the name orders-*", id="names no queue"),
    ],
)
def test_doctor_warns_of_a_mute_that_has_ended_or_is_not_needed(
    operator: Operator, until: date, use: dict[str, int], sentence: str
) -> None:
    _mute(operator, Mute("orders-*", "dlq_missing", "why", until))
    ((status, text),) = _check_mutes(operator, MuteUse("orders-*", "dlq_missing", until, **use))
    assert (status, sentence in text) == ("warn", True), text


def test_doctor_names_an_ended_mute_without_any_scan_and_calls_none_stale(
    operator: Operator,
) -> None:
    _mute(operator, Mute("a", "dlq_missing", "w", YESTERDAY), Mute("b", "dlq_missing", "w", TODAY))
    checks = list(check_mutes(operator.account, None, NOW))
    assert [check.status for check in checks] == ["warn"]


def test_doctor_says_how_many_findings_are_muted_and_which_of_them_lose_messages(
    operator: Operator,
) -> None:
    muted = [{"class": "losing"}, {"class": "losing"}, {"class": "hygiene"}, {}]
    sentence = check_scan(changed(LAST_SCAN, muted=muted), operator.account, NOW).sentence
    assert sentence.endswith("2 findings, 4 muted (2 muted findings lose or duplicate messages)")


def test_doctor_judges_mutes_by_the_last_complete_scan(operator: Operator) -> None:
    store = ScanStore(operator.aws.clients.dynamodb, "case_store", "scan")
    assert read_last_complete_scan(operator.account) is None
    assert store.claim_stretch(NOW)
    _put_scan_result(operator, NOW - HOUR)
    _put_scan_result(operator, NOW)
    scan = read_last_complete_scan(operator.account)
    assert scan is not None
    assert scan.at == NOW - HOUR, "the newest is not done"

"""The scan, follow_up and probe Lambdas, invoked as their schedules invoke them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest
from msgspec import structs

from functions import follow_up, heal, probe, scan
from mendq.cases.pins import Pins
from mendq.model.mutes import Mute
from mendq.model.queue import RedriveAllowPolicy
from mendq.probe.probe import PROBE_QUEUE_NAME, Probe
from mendq.probe.send import ProbeRecord
from tests.account.account import Account
from tests.account.calm_metrics import CalmMetrics
from tests.functions.builders import LAMBDA_CONTEXT, Deploy, LambdaContext, sum_metrics
from tests.heal.operators import OWNERS
from tests.scan.scanner import Scanner, open_scanner

AGE = "OldestOpenCaseAgeSeconds"
MINUTE_SECONDS = 60
HOUR = timedelta(hours=1)
ORDERS = "arn:aws:sqs:us-east-1:123456789012:orders"
Printed = pytest.CaptureFixture[str]


def _make_schedule_event(moment: datetime) -> dict[str, str]:
    return {"time": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}


@pytest.fixture
def scanner(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scanner]:
    monkeypatch.setattr(LambdaContext, "get_remaining_time_in_millis", lambda _: 900_000)
    with open_scanner() as scanner:
        deploy(scan.handler, scanner.account, **structs.asdict(scanner.settings()))
        deploy(heal.handler, scanner.account)
        yield scanner


def make_dlq_with_short_retention(scanner: Scanner) -> str:
    """Make a queue with a DLQ that keeps messages for a day. Return the ARN of the DLQ."""
    scanner.account.later(hours=-1)
    dlq_arn = scanner.account.queue("orders-dlq", MessageRetentionPeriod="86400")
    policy = json.dumps({"deadLetterTargetArn": dlq_arn, "maxReceiveCount": 5})
    source = scanner.account.queue("orders", tag=None, RedrivePolicy=policy)
    scanner.account.set(dlq_arn, RedriveAllowPolicy=RedriveAllowPolicy("byQueue", (source,)).text)
    Pins(scanner.account.clients.dynamodb, "case_store").approve_source(dlq_arn, source)
    return dlq_arn


def test_scan_logs_each_finding_and_its_totals_and_without_errors_sends_no_metric(
    scanner: Scanner, caplog: pytest.LogCaptureFixture, capsys: Printed
) -> None:
    """CloudWatch charges for each metric that is sent."""
    make_dlq_with_short_retention(scanner)
    answer = scan.handler({}, LAMBDA_CONTEXT)
    assert (answer["queues"], answer["errors"]) == (1, 0)
    assert sum_metrics(capsys.readouterr().out) == {}
    logged = [vars(record) for record in caplog.records]
    assert [line["totals"] for line in logged if "totals" in line] == [answer]
    assert len([line for line in logged if "finding" in line]) == answer["findings"] >= 1


def test_scan_warns_each_hour_in_its_log_of_what_muted_findings_do_to_messages(
    scanner: Scanner, deploy: Deploy, caplog: pytest.LogCaptureFixture
) -> None:
    dlq_arn = make_dlq_with_short_retention(scanner)
    mute = Mute("orders-*", "dlq_retention_too_short", "why", date(2999, 12, 31))
    settings = structs.replace(scanner.settings(), mutes=(mute,))
    deploy(scan.handler, scanner.account, **structs.asdict(settings))
    answer = scan.handler({}, LAMBDA_CONTEXT)
    assert answer["muted"] == 1
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["1 muted finding will lose messages"]
    muted = [vars(record) for record in caplog.records if "mute hides" in record.getMessage()]
    assert [(line["finding"]["queue_arn"], line["finding"]["muted_because"]) for line in muted] == [
        (dlq_arn, "why")
    ]


def test_second_scan_in_the_same_hour_checks_no_queue_again(
    scanner: Scanner, capsys: Printed
) -> None:
    make_dlq_with_short_retention(scanner)
    assert scan.handler({}, LAMBDA_CONTEXT)["queues"] == 1
    assert set(scan.handler({}, LAMBDA_CONTEXT).values()) == {0}
    assert sum_metrics(capsys.readouterr().out) == {}


def test_heal_fixes_a_dlq_with_short_retention_that_a_scan_reported(
    scanner: Scanner, capsys: Printed
) -> None:
    dlq_arn = make_dlq_with_short_retention(scanner)
    scan.handler({}, LAMBDA_CONTEXT)
    requests = [
        request
        for request in scanner.heal_requests
        if "dlq_retention_too_short" in json.dumps(request)
    ]
    assert heal.handler(requests[0], LAMBDA_CONTEXT) == {"batchItemFailures": []}
    assert scanner.account.attributes(dlq_arn)["MessageRetentionPeriod"] == "1209600"
    assert sum_metrics(capsys.readouterr().out)["AutoFixes"] >= 1


@pytest.mark.parametrize(
    "findings",
    [
        [None, 1, "x", [], {}, {"queue_arn": 1, "symptom": "dlq_retention_too_short"}],
        [{"queue_arn": "orders", "symptom": "dlq_retention_too_short"}],
        [{"queue_arn": ORDERS, "symptom": "invalid_request"}],
        [{"queue_arn": ORDERS.replace("1234", "4321"), "symptom": "dlq_retention_too_short"}],
    ],
)
def test_heal_ignores_a_scan_finding_that_names_no_queue_or_symptom_of_this_account(
    scanner: Scanner, findings: object
) -> None:
    assert heal.handler({"found": findings}, LAMBDA_CONTEXT) == {"batchItemFailures": []}
    assert scanner.account.transitions() == []


@pytest.fixture
def probe_account(account: Account, deploy: Deploy) -> Account:
    url = account.url(account.queue(PROBE_QUEUE_NAME, tag=None))
    deploy(probe.handler, account, probe_queue_url=url)
    return account


def _read_probe_record(account: Account) -> Probe:
    record = ProbeRecord(account.clients.dynamodb, "case_store").read()
    assert record is not None
    return record


@pytest.mark.parametrize("time", ["2099-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_probe_invoked_with_a_future_time_still_counts_the_next_lost_probe(
    probe_account: Account, time: str
) -> None:
    probe.handler({"time": time}, LAMBDA_CONTEXT)
    record = _read_probe_record(probe_account)
    assert record.scheduled_at <= datetime.now(UTC)
    next_record = record.next_probe(record.scheduled_at + HOUR, record.sent_at + HOUR)
    assert next_record.lost_in_a_row == 1


def test_probe_records_its_scheduled_time_and_counts_lost_probes_in_a_row(
    probe_account: Account, capsys: Printed
) -> None:
    for lost, hours_ago in enumerate((3, 2, 1)):
        scheduled_at = datetime.now(UTC).replace(microsecond=0) - hours_ago * HOUR
        probe.handler(_make_schedule_event(scheduled_at), LAMBDA_CONTEXT)
        assert _read_probe_record(probe_account).scheduled_at == scheduled_at
        assert sum_metrics(capsys.readouterr().out) == {"ProbesLostInARow": lost}


@pytest.fixture
def account_with_case(account: Account, deploy: Deploy, capsys: Printed) -> Account:
    """An account with a proposed case, whose event was already published.

    As in the local account, the event of follow_up may name a time up to 15 days ahead.
    """
    deploy(follow_up.handler, account, owners=OWNERS, most_days_ahead=15)
    queue = account.queue(tag="propose", VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "a", "b", "c"))
    follow_up.handler(_make_schedule_event(account.now), LAMBDA_CONTEXT)
    capsys.readouterr()
    return account


def _make_answer(open_cases: int, moved: int = 0, errors: int = 0) -> dict[str, int]:
    return {"open": open_cases, "moved": moved, "called": 0, "errors": errors}


def test_follow_up_sends_the_number_of_proposed_cases_and_the_age_of_the_oldest(
    account_with_case: Account, capsys: Printed
) -> None:
    assert follow_up.handler(
        _make_schedule_event(account_with_case.now + 2 * HOUR), LAMBDA_CONTEXT
    ) == _make_answer(1)
    sent = sum_metrics(capsys.readouterr().out)
    assert (sent["ProposedCasesOpen"], sent[AGE]) == (1, 2 * 3_600)


@pytest.mark.parametrize("days", [-400, 0.1, 2, 400])
def test_follow_up_in_a_deployed_stack_ignores_a_past_or_future_time_in_its_event(
    account_with_case: Account,
    deploy: Deploy,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Printed,
    days: float,
) -> None:
    """Every caller who may invoke follow_up can put a time into the event."""
    monkeypatch.delenv("MENDQ_MOST_DAYS_AHEAD")
    deploy(follow_up.handler, account_with_case, owners=OWNERS)
    before = account_with_case.case_store_items()
    assert follow_up.handler(
        _make_schedule_event(account_with_case.now + timedelta(days=days)), LAMBDA_CONTEXT
    ) == _make_answer(1)
    assert sum_metrics(capsys.readouterr().out)[AGE] < HOUR.total_seconds()
    assert account_with_case.case_store_items() == before


def test_follow_up_sends_the_seconds_from_failure_to_verification_when_a_fix_is_verified(
    account_with_case: Account, capsys: Printed
) -> None:
    CalmMetrics(account_with_case.clients, delete_count=7)
    queue = account_with_case.queue("invoices", VisibilityTimeout="30")
    account_with_case.heal(account_with_case.late_deletes(queue, "a", "b", "c"))
    capsys.readouterr()
    assert (
        follow_up.handler(_make_schedule_event(account_with_case.now + HOUR / 2), LAMBDA_CONTEXT)[
            "moved"
        ]
        == 1
    )
    assert sum_metrics(capsys.readouterr().out)["TimeToHeal"] == 30 * MINUTE_SECONDS

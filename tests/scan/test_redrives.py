"""Test that a scan reads a DLQ's redrives and deletes only if messages may go round."""

from __future__ import annotations

from dataclasses import replace as replace_fields
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.examples import case
from mendq.model.facts import Need
from mendq.model.limits import Limits
from mendq.model.queue import RedrivePolicy
from mendq.model.state import State
from mendq.model.steps import RedriveMessages
from tests.scan.scanner import Scanner

LOOP = SYMPTOM_BY_NAME["redrive_loop"]
ARRIVING = SYMPTOM_BY_NAME["dlq_messages_arriving"]
ROUNDS = (300, 200, 100)
MESSAGES = 20


@pytest.fixture
def read_dlq_metrics(scanner: Scanner) -> list[str]:
    """The metrics of the DLQ that GetMetricData was asked for."""
    names = list[str]()

    def note(params: Any, **_: Any) -> None:
        for query in params["MetricDataQueries"]:
            metric = query["MetricStat"]["Metric"]
            if metric["Dimensions"] == [{"Name": "QueueName", "Value": "orders-dlq"}]:
                names.append(metric["MetricName"])

    events = scanner.account.clients.cloudwatch.meta.events
    events.register("before-parameter-build.cloudwatch.GetMetricData", note)
    return names


def make_queue_whose_messages_come_back(
    scanner: Scanner, *, resent: bool, is_dlq_scanned: bool = False
) -> tuple[str, str]:
    """Make orders and orders-dlq, with three rounds of messages; return both ARNs.

    If `resent`, a job sends the messages back; otherwise SQS moves them.
    """
    account = scanner.account
    dlq_arn = account.queue("orders-dlq")
    policy = RedrivePolicy(dlq_arn, 3).text
    queue_arn = account.queue("orders", RedrivePolicy=policy, ReceiveMessageWaitTimeSeconds="20")
    if not is_dlq_scanned:
        account.tag(dlq_arn, mendq="off")
    for _ in range(MESSAGES):
        account.clients.sqs.send_message(QueueUrl=account.url(dlq_arn), MessageBody="poison")
    account.later(hours=7)
    sound = {"sent": 1, "received": 1, "deleted": 1, "visible": 0}
    times = [account.now - timedelta(minutes=minutes) for minutes in range(4, 361, 4)]
    scanner.put_metric_series(queue_arn, dict.fromkeys(times, sound))
    for minutes in ROUNDS:
        at = account.now - timedelta(minutes=minutes)
        scanner.put_metrics(queue_arn, at, received=3 * MESSAGES)
        if resent:
            scanner.put_metrics(queue_arn, at, sent=MESSAGES)
            scanner.put_metrics(dlq_arn, at, deleted=MESSAGES)
    return queue_arn, dlq_arn


def list_move_tasks(scanner: Scanner) -> list[dict[str, Any]]:
    """Return an ended move task for each round."""
    return [
        {
            "Status": "COMPLETED",
            "StartedTimestamp": int(
                (scanner.account.now - timedelta(minutes=minutes)).timestamp() * 1_000
            ),
            "ApproximateNumberOfMessagesMoved": MESSAGES,
        }
        for minutes in ROUNDS
    ]


def test_scan_finds_move_tasks_that_send_messages_back_without_a_metric_of_the_dlq(
    scanner: Scanner, read_dlq_metrics: list[str]
) -> None:
    queue_arn, dlq_arn = make_queue_whose_messages_come_back(scanner, resent=False)
    scanner.move_tasks[dlq_arn] = list_move_tasks(scanner)
    done = scanner.run_due_scan((LOOP,))
    assert [(finding.queue_arn, finding.symptom) for finding in done.findings] == [
        (queue_arn, "redrive_loop")
    ]
    assert read_dlq_metrics == []


def test_scan_finds_a_job_that_sends_messages_back_by_one_metric_of_the_dlq(
    scanner: Scanner, read_dlq_metrics: list[str]
) -> None:
    queue_arn, _ = make_queue_whose_messages_come_back(scanner, resent=True)
    done = scanner.run_due_scan((LOOP,))
    assert [finding.queue_arn for finding in done.findings] == [queue_arn]
    assert read_dlq_metrics == ["NumberOfMessagesDeleted"]
    assert done.metrics == 7 + 1


def test_scan_finds_nothing_without_move_tasks_and_resent_messages(
    scanner: Scanner, read_dlq_metrics: list[str]
) -> None:
    make_queue_whose_messages_come_back(scanner, resent=False)
    done = scanner.run_due_scan((LOOP,))
    assert (done.findings, done.error_by_target) == ((), {})
    assert read_dlq_metrics == []


def test_faked_rounds_do_not_silence_the_page_about_messages_that_arrive_in_the_dlq(
    scanner: Scanner,
) -> None:
    """Somebody deletes messages from the DLQ and sends as many to its source."""
    queue_arn, dlq_arn = make_queue_whose_messages_come_back(
        scanner, resent=True, is_dlq_scanned=True
    )
    values_by_time = {
        scanner.account.now - timedelta(minutes=minutes): {
            "visible": MESSAGES - minutes * MESSAGES // 360,
            "sent": 0,
            "received": 0,
            "in_flight": 0,
        }
        for minutes in range(360, 3, -1)
    }
    scanner.put_metric_series(dlq_arn, values_by_time)
    done = scanner.run_due_scan()
    findings = {(finding.queue_arn, finding.symptom): finding for finding in done.findings}
    assert findings[queue_arn, LOOP.name].should_page is False
    assert (dlq_arn, ARRIVING.name) in scanner.list_announced_faults()
    scanner.heal()
    (page,) = scanner.account.pages("urgent")
    assert "orders shows redrive_loop" in str(page)


def test_move_tasks_to_another_queue_are_no_loop(scanner: Scanner) -> None:
    _, dlq_arn = make_queue_whose_messages_come_back(scanner, resent=False)
    scanner.move_tasks[dlq_arn] = [
        {**task, "DestinationArn": f"{dlq_arn}-archive"} for task in list_move_tasks(scanner)
    ]
    assert scanner.run_due_scan((LOOP,)).findings == ()


def test_job_is_not_judged_if_the_metrics_of_the_day_are_spent_before_the_deletes_of_the_dlq(
    scanner: Scanner, read_dlq_metrics: list[str]
) -> None:
    scanner.account.now = (scanner.account.now + timedelta(days=1)).replace(hour=17)
    queue_arn, _ = make_queue_whose_messages_come_back(scanner, resent=True)
    # It is the first hour of a day, in which seven metrics may be read: eight are too many.
    limits = Limits(scan_metrics_per_day=12 * 7)
    scanner.account.settings = replace(scanner.account.settings, limits=limits)
    done = scanner.run_due_scan((LOOP,))
    assert done.findings == ()
    assert "the metrics that may be read are spent" in str(done.error_by_target.get(queue_arn))
    assert read_dlq_metrics == []


@pytest.mark.parametrize(
    ("state", "hours_ago", "is_left_out"),
    [
        pytest.param(State.APPLIED, 30, True, id="it runs"),
        pytest.param(State.CLOSED, 6, True, id="it ended in the measured time"),
        pytest.param(State.CLOSED, 7, False, id="it ended before"),
    ],
)
def test_redrive_by_mendq_is_no_loop(
    scanner: Scanner, state: State, hours_ago: int, is_left_out: bool
) -> None:
    queue_arn, dlq_arn = make_queue_whose_messages_come_back(scanner, resent=True)
    redrive_case = replace_fields(
        case("dlq_messages_waiting", state, queue_arn=dlq_arn),
        steps=({"attribute": RedriveMessages.attribute, "after": queue_arn},),
        at=scanner.account.now - timedelta(hours=hours_ago),
    )
    reader = replace(
        scanner.context().make_reader(scanner.account.now, ()),
        list_newest_cases=lambda queue_arns: (redrive_case,) if dlq_arn in queue_arns else (),
    )
    needs = {Need.QUEUE, Need.DLQ, Need.MEASUREMENTS, Need.REDRIVES}
    facts = reader.with_needed_facts(reader.read_queue(queue_arn, {}, needs), needs)
    assert (facts.redrives is None) is is_left_out

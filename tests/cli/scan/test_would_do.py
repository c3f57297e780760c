"""Test that `mendq scan --dry-run` applies heal's guardrails."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mendq.cases import items
from mendq.heal.batch import heal_findings
from tests.cli.builders import Operator
from tests.cli.scan.builders import (
    RETENTION,
    make_source_and_dlq,
    read_account_state,
    select_finding,
)
from tests.scan.scanner import Scanner

SYMPTOM = "dlq_retention_too_short"


def _dry_run(operator: Operator, queue_arn: str, symptom: str = SYMPTOM) -> tuple[str, str]:
    """Return the expected action and its reason. Check that nothing changed."""
    before = read_account_state(operator)
    document = operator.run_json("scan", "--dry-run")
    assert read_account_state(operator) == before
    finding = select_finding(document["findings"], queue_arn, symptom)
    assert finding["steps"] == []
    return finding["would"], finding["why"]


def _heal(operator: Operator, queue_arn: str, symptom: str = SYMPTOM) -> None:
    request = {"found": [{"queue_arn": queue_arn, "symptom": symptom}]}
    assert heal_findings(request, operator.aws.run()).error_by_message_id == {}


def _make_failing_queues(operator: Operator, *names: str) -> list[str]:
    """Make queues whose consumers delete a quarter of the messages, as CloudWatch counts them."""
    now = datetime.now(UTC)
    aws = operator.aws
    aws.later(hours=-8)
    arns = [aws.queue(name, "heal", ReceiveMessageWaitTimeSeconds="20") for name in names]
    aws.later(hours=8)
    for arn in arns:
        aws.clients.sqs.send_message(QueueUrl=aws.url(arn), MessageBody="x")
        for minutes in (300, 60, 10):
            calls = 200 if minutes == 60 else 0
            at = now - timedelta(minutes=minutes)
            counts = {"sent": calls, "received": 10 * calls, "deleted": calls // 4}
            Scanner(aws).put_metrics(arn, at, **counts, visible=5 if minutes == 300 else 155)
    return arns


def test_dry_run_says_that_heal_would_refuse_to_change_a_value_that_a_person_set_back(
    operator: Operator,
) -> None:
    operator.aws.later(hours=-2)
    dead = make_source_and_dlq(operator, "heal")
    operator.aws.later(minutes=5)
    _heal(operator, dead)
    case_key = items.case_key(dead, SYMPTOM)
    operator.aws.clients.dynamodb.delete_item(TableName="case_store", Key=case_key)
    url = operator.aws.url(dead)
    before = {"MessageRetentionPeriod": RETENTION}
    operator.aws.clients.sqs.set_queue_attributes(QueueUrl=url, Attributes=before)  # type: ignore[arg-type]
    operator.aws.now = datetime.now(UTC)
    would, why = _dry_run(operator, dead)
    assert would == "would be refused: overridden"
    assert "Mendq stays away" in why


def test_dry_run_says_that_heal_would_refuse_a_symptom_that_many_queues_show(
    operator: Operator,
) -> None:
    (failing,) = _make_failing_queues(operator, "orders")
    assert _dry_run(operator, failing, "consumer_failing")[0] == "pages"
    others = [operator.aws.queue(f"other-{n}", "heal") for n in range(3)]
    operator.aws.run().case_store.note_spread(others, "consumer_failing", datetime.now(UTC))
    would, why = _dry_run(operator, failing, "consumer_failing")
    assert would == "would be refused: mass_symptom"
    assert why.startswith("4 of 4 managed queues")


@pytest.fixture
def metric_counts(operator: Operator) -> list[int]:
    """How many metrics each call to CloudWatch asks for."""
    counts: list[int] = []

    def note(params: Any, **_: Any) -> None:
        counts.append(len(params["MetricDataQueries"]))

    events: Any = operator.account.session.events
    events.register("provide-client-params.cloudwatch.GetMetricData", note)
    return counts


def test_dry_run_reports_that_heal_asks_for_no_metric_again_if_it_writes_nothing(
    operator: Operator, metric_counts: list[int]
) -> None:
    _make_failing_queues(operator, "a", "b")
    report = operator.run_json("scan", "--dry-run")
    assert report["metrics_asked"] == sum(metric_counts) == 18
    assert report["metrics_an_hour"] == 18, "heal uses what the scan has read"


def test_dry_run_reads_no_metric_if_max_metrics_is_below_what_it_needs(
    operator: Operator, metric_counts: list[int]
) -> None:
    _make_failing_queues(operator, "a", "b")
    capped = operator.run_json("scan", "--dry-run", "--max-metrics", "5")
    assert (capped["metrics_asked"], metric_counts) == (0, [])
    assert capped["skipped_for_budget"] == 2

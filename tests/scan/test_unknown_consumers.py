"""Scans of queues whose Lambda consumers cannot be read: only what needs them is not judged."""

from __future__ import annotations

import pytest
from botocore.exceptions import EndpointConnectionError

from mendq.aws.errors import ConsumersUnknown
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.model.facts import Need
from mendq.scan.scan_only import merge_consumer_errors
from tests.scan.scanner import (
    Scanner,
    attach_lambda_consumer,
    deny_operation,
    make_failing_queue,
    make_short_retention_dlq,
    start_sums_hour,
)

LAMBDA_AWAY = EndpointConnectionError(endpoint_url="lambda")


@pytest.fixture
def failing_queue(scanner: Scanner) -> str:
    """A queue whose messages are received and never deleted, and whose DLQ expires too early."""
    make_short_retention_dlq(scanner, tag="observe")
    return make_failing_queue(scanner)


def test_scan_without_lambda_judges_what_needs_no_consumers_and_names_each_queue(
    scanner: Scanner, failing_queue: str
) -> None:
    let_through = deny_operation(
        scanner.account.clients.functions, "ListEventSourceMappings", unreachable=LAMBDA_AWAY
    )
    result = scanner.run_due_scan()
    assert not result.is_blind
    found = {(finding.queue_arn, finding.symptom) for finding in result.findings}
    assert any(symptom == "dlq_retention_too_short" for _, symptom in found)
    for _, symptom in found:
        detection = SYMPTOM_BY_NAME[symptom].detection
        assert detection is not None
        assert Need.LAMBDA_CONSUMERS not in detection.needs
    error = result.error_by_target[failing_queue]
    assert str(error).startswith("consumers not judged: Lambda consumers of the account")
    assert result.configuration_by_arn == {}, "a queue that was judged in part is no baseline"
    not_looked_at = scanner.read_findings()["not_looked_at"]
    assert not_looked_at[failing_queue].startswith("consumers not judged: ")

    let_through()
    start_sums_hour(scanner)
    result = scanner.run_due_scan()
    assert (failing_queue, "consumer_failing") in {
        (finding.queue_arn, finding.symptom) for finding in result.findings
    }


def test_unreadable_function_leaves_its_queues_configuration_and_other_queues_checked(
    scanner: Scanner, failing_queue: str
) -> None:
    read_queue = scanner.account.queue("read-by-lambda", tag="observe")
    attach_lambda_consumer(scanner, read_queue)
    deny_operation(
        scanner.account.clients.functions, "GetFunctionConfiguration", unreachable=LAMBDA_AWAY
    )
    result = scanner.run_due_scan()
    assert set(result.error_by_target) == {read_queue}
    found = {(finding.queue_arn, finding.symptom) for finding in result.findings}
    assert {(read_queue, "alarm_missing"), (failing_queue, "consumer_failing")} <= found


def test_merged_consumer_errors_keep_a_queue_with_a_reason_of_its_own() -> None:
    errors = {
        "a": ConsumersUnknown("away"),
        "b": ConsumersUnknown("away"),
        "c": ConsumersUnknown("denied"),
        "d": ValueError("away"),
    }
    assert merge_consumer_errors(errors).keys() == {"c", "d", "Lambda consumers"}

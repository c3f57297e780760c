"""The Lambda of a scan-only stack, invoked as its schedule invokes it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from functions import scan_only
from tests.functions.builders import LAMBDA_CONTEXT, Deploy, LambdaContext, sum_metrics
from tests.scan.scanner import Scanner, open_scanner


@pytest.fixture
def scanner(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scanner]:
    monkeypatch.setattr(LambdaContext, "get_remaining_time_in_millis", lambda _: 900_000)
    with open_scanner() as scanner:
        deploy(scan_only.handler, scanner.account)
        yield scanner


def _make_faulty_dlq(scanner: Scanner) -> None:
    scanner.account.later(hours=-1)
    dlq_arn = scanner.account.queue("orders-dlq", MessageRetentionPeriod="86400")
    policy = json.dumps({"deadLetterTargetArn": dlq_arn, "maxReceiveCount": 5})
    scanner.account.queue("orders", tag=None, RedrivePolicy=policy)


def test_scan_only_reports_logs_its_totals_and_sends_no_metric(
    scanner: Scanner, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """CloudWatch charges for each metric that is sent."""
    _make_faulty_dlq(scanner)
    answer = scan_only.handler({}, LAMBDA_CONTEXT)
    assert (answer["queues"], answer["errors"]) == (1, 0)
    assert answer["findings"] >= 1
    assert len(scanner.account.pages("urgent")) == 1
    assert sum_metrics(capsys.readouterr().out) == {}
    logged = [vars(record) for record in caplog.records]
    assert [line["totals"] for line in logged if "totals" in line] == [answer]


def test_second_scan_only_run_in_the_same_hour_scans_no_queue_again_and_notifies_nobody(
    scanner: Scanner,
) -> None:
    _make_faulty_dlq(scanner)
    scan_only.handler({}, LAMBDA_CONTEXT)
    assert set(scan_only.handler({}, LAMBDA_CONTEXT).values()) == {0}
    assert len(scanner.account.pages("urgent")) == 1

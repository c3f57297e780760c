"""Each urgency has a share of the metrics, so that one of them cannot use up the budget."""

from __future__ import annotations

from datetime import timedelta

from msgspec import structs

from mendq.model.limits import Limits
from mendq.model.queue import RedrivePolicy
from mendq.model.traffic import SumsShare, Urgency
from mendq.scan.metric_share import MetricShare, divide_by_urgency
from tests.scan.scanner import Scanner, make_slow_symptom


def test_queues_that_name_a_full_dlq_do_not_keep_a_failing_queue_from_being_measured(
    scanner: Scanner,
) -> None:
    account = scanner.account
    dlq_arn = account.queue("full-dlq", tag=None)
    account.clients.sqs.send_message(QueueUrl=account.url(dlq_arn), MessageBody="dead")
    polling = {"ReceiveMessageWaitTimeSeconds": "20"}
    sources = [
        account.queue(f"named-{n:02}", RedrivePolicy=RedrivePolicy(dlq_arn, 5).text, **polling)
        for n in range(30)
    ]
    failing = account.queue("zz-failing", **polling)
    # The first hour of a day asks for sums, and may read a twelfth of the day's metrics.
    account.now = (account.now + timedelta(days=1)).replace(hour=0, minute=5)
    at = account.now - timedelta(minutes=30)
    for queue_arn in sources:
        scanner.put_metrics(queue_arn, at, sent=1, received=1, deleted=1)
    scanner.put_metrics(failing, at, sent=9, received=90, deleted=0)
    limits = Limits(scan_metrics_per_day=12 * 160, mass_symptom_share=1)
    account.settings = structs.replace(account.settings, limits=limits)
    result = scanner.run_due_scan([make_slow_symptom()])
    assert failing in result.levels_by_arn
    assert result.measured == 11
    assert len(result.skip_reason_by_arn) == 20
    assert all("its DLQ holds 1 message" in text for text in result.skip_reason_by_arn.values())


def test_metric_budget_is_divided_by_weight_among_urgencies_that_have_queues() -> None:
    shares = divide_by_urgency(1_000, [Urgency.MESSAGES_WAIT, Urgency.MESSAGES_LEAVE] * 9)
    assert shares == {Urgency.MESSAGES_LEAVE: 800, Urgency.MESSAGES_WAIT: 200}
    assert [*shares] == [Urgency.MESSAGES_LEAVE, Urgency.MESSAGES_WAIT], "the worst is first"
    assert divide_by_urgency(1_000, []) == {}


def test_share_is_not_exceeded_except_for_metrics_of_a_measured_queue() -> None:
    share = MetricShare(lambda _count: True, 10)
    assert [share.spend(6), share.spend(6), share.spend(4)] == [True, False, True]
    assert share.spend_beyond_share(2)
    assert share.left == -2


def test_runs_of_a_round_divide_the_sums_by_the_queues_that_they_scan() -> None:
    share = SumsShare(500, 83)
    parts = [share.take_part(part) for part in (0.5, 0.25, 0.25)]
    assert sum(part.in_use for part in parts) == share.in_use
    assert sum(part.unused for part in parts) <= share.unused
    assert share.take_part(1.0) == share

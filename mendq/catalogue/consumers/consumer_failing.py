"""Page people if consumers receive messages and do not finish them, so that more and more wait."""

from __future__ import annotations

from shlex import quote
from typing import Any

from mendq.catalogue.dlq.attach import EXPLAINED_BY, failing_in
from mendq.catalogue.examples import FAILING, as_dlq, standard, vary, with_dlq
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    Detection,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.catalogue.visibility.needed_timeout import failing_consumer
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.notifications.commands import aws_command, metric_command


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page with the numbers; no attribute fixes a consumer."""
    retained = (
        f"after {facts.max_receive_count:,} receives a message goes to {facts.dlq_arn}"
        if facts.max_receive_count
        else "there is no DLQ, so a message that fails comes back until it expires. Attach a DLQ "
        "only when the consumers work: before that it would take every message"
    )
    reason = (
        f"{facts.found}. Its consumers fail, or give the messages back: look at their errors. A "
        f"longer visibility timeout would only slow the retries. Now {retained}"
    )
    return Escalate("consumer_failing", reason, _where_it_shows(facts))


def _where_it_shows(facts: Facts) -> str:
    """Where the errors of a Lambda consumer are, else how the receives went."""
    failing = failing_consumer(facts)
    if failing is None:
        return metric_command(facts.queue_arn, "NumberOfMessagesReceived", "Sum", facts.measurement)
    log_group = quote(f"/aws/lambda/{failing.name}")
    options = f"--log-group-name {log_group} --filter-pattern '?ERROR ?Exception' --limit 20"
    return aws_command("logs filter-log-events", facts.queue_arn, options)


def _queue(sent: int = 1_000, received: int = 3_000, deleted: int = 400, **over: Any) -> Facts:
    """Build an example queue whose consumers do not finish most messages. `over` replaces facts."""
    counted = {"sent": sent, "received": received, "deleted": deleted}
    return standard(ApproximateNumberOfMessagesNotVisible=5, **counted, **over)


_BY_LAMBDA = _queue(12, 60, 2, backlog_now=10, lambda_consumers=(FAILING,))
_STANDS_STILL = {"oldest_age_seconds_now": 21_600, "groups_in_flight_now": 1}
_NONE = _queue(60, 1_200, 0, backlog_now=60)
_GIVEN_BACK = _queue(420, 840, 420)
_FEW_BAD = _queue(140, 500, 137, backlog_now=3)
_DIED = with_dlq(ApproximateNumberOfMessages=3, sent=900, received=4_500, deleted=90)
_ALL_WAITS = {"backlog_before": 1_000, "backlog_now": 1_000}
_ONE_GROUP = _queue(300, 720, 0, backlog_now=300, in_flight_now=1, **_STANDS_STILL)

CONSUMER_FAILING = NotifiedSymptom(
    name="consumer_failing",
    sentence="Consumers receive messages and do not finish them, so more and more wait.",
    plan_in_words="Page with the numbers; a longer visibility timeout would only slow the retries.",
    aws_page=f"{SQS_GUIDE}/sqs-available-cloudwatch-metrics.html",
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    gives_way_to=EXPLAINED_BY,
    detection=Detection(
        failing_in,
        frozenset({Need.MEASUREMENTS, Need.MOVE_TASKS, Need.DLQ_SOURCES, Need.OPEN_CASES}),
        # What fails leaves messages behind, waiting or in flight.
        lambda facts: facts.visible + facts.in_flight > 0,
    ),
    examples=lambda: (
        QueueExample("most messages are not finished", _queue(backlog_now=600), "consumer_failing"),
        QueueExample("few messages, none finished", _NONE, "consumer_failing"),
        QueueExample("most moved to the DLQ", _DIED, "consumer_failing"),
        QueueExample("a Lambda function fails, on a quiet queue", _BY_LAMBDA, "consumer_failing"),
        QueueNearMiss("half are given back twice, all are finished", _GIVEN_BACK),
        QueueNearMiss("the same by Lambda", vary(_GIVEN_BACK, lambda_consumers=(FAILING,))),
        QueueNearMiss("every message takes three tries", _queue(deleted=1_000)),
        QueueNearMiss("what waits does not grow", _queue(500, 4_000, 500, **_ALL_WAITS)),
        QueueNearMiss("three bad messages, the others are finished", _FEW_BAD),
        QueueNearMiss("more deletes than messages, some of them late", _queue(deleted=1_400)),
        QueueNearMiss("one message holds up its group", _ONE_GROUP),
        QueueNearMiss(
            "people look at DLQ messages",
            as_dlq(_queue(0, 3_000, 0, backlog_before=500, backlog_now=500)),
        ),
        QueueNearMiss(
            "late calls have opened a case already",
            _queue(backlog_now=600, open_symptoms=EXPLAINED_BY),
        ),
        QueueNearMiss(
            "DLQ messages are being moved back", _queue(backlog_now=600, move_task_running=True)
        ),
    ),
)

"""Consumers receive messages and do not finish them: most receives come to nothing.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from dataclasses import replace
from shlex import quote

from mendq.catalogue import examples
from mendq.catalogue._attach_dlq import EXPLAINED_BY, failing_in
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.facts import Facts, LambdaConsumer, Need, SourceQueue
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.model.queue import parts_of
from mendq.notifications.commands import metric_command


def detect(facts: Facts) -> Found | None:
    """Received at least twice as often as deleted, and no delete too many."""
    because = failing_in(facts)
    return None if because is None else Found(because)


def is_suspect(facts: Facts) -> bool:
    """What fails leaves messages behind, waiting or in flight."""
    return facts.visible + facts.in_flight > 0


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page with the numbers; no attribute fixes a consumer."""
    retained = (
        f"after {facts.max_receive_count} receives a message goes to {facts.dlq_arn}"
        if facts.max_receive_count
        else "no DLQ takes what fails, so it is tried until it expires"
    )
    reason = (
        f"{facts.found}. Its consumers fail, or give the messages back: a longer visibility "
        "timeout would only "
        f"slow the retries. Now {retained}"
    )
    return Escalate("consumer_failing", reason, next_command=_look(facts))


def _look(facts: Facts) -> str:
    """Where the errors of a Lambda consumer are, else how the receives went."""
    failing = next((each for each in facts.lambda_consumers if each.fails_fast), None)
    if failing is None:
        return metric_command(facts.queue_arn, "NumberOfMessagesReceived", "Sum", facts.measured)
    log_group = f"/aws/lambda/{failing.name}"
    return (
        f"aws logs filter-log-events --region {parts_of(facts.queue_arn).region} "
        f"--log-group-name {quote(log_group)} --filter-pattern '?ERROR ?Exception' --limit 20"
    )


_FAILING = LambdaConsumer(
    "arn:aws:lambda:us-east-1:123456789012:function:bill", 30, 0, 0.4, error_share=0.9
)
_SOURCE = SourceQueue("arn:aws:sqs:us-east-1:123456789012:orders", {})


def _queue(lambdas: tuple[LambdaConsumer, ...] = (), **counted: int) -> Facts:
    facts = examples.queue(
        queue_arn=examples.STANDARD_ARN, ApproximateNumberOfMessagesNotVisible="5"
    )
    return replace(
        facts,
        lambda_consumers=lambdas,
        dlq_sources=(),
        measured=examples.measured(**counted),
    )


_EVERY_THIRD = _queue(sent=1_000, received=3_000, deleted=1_000)

CONSUMER_FAILING = Symptom(
    name="consumer_failing",
    sentence="Consumers receive messages and do not finish them: most receives come to nothing.",
    plan_in_words="Page with the numbers; a longer visibility timeout would only slow the retries.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-available-cloudwatch-metrics.html",
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    gives_way_to=EXPLAINED_BY,
    detection=Detection(
        detect,
        frozenset({Need.MEASUREMENTS, Need.MOVE_TASKS, Need.DLQ_SOURCES, Need.OPEN_CASES}),
        is_suspect,
    ),
    detected=(
        Detected("every message takes three tries", _EVERY_THIRD, code="consumer_failing"),
        Detected(
            "all fail, and go to the DLQ",
            _queue(sent=400, received=2_000, deleted=0, backlog_before=0, backlog_now=0),
            code="consumer_failing",
        ),
        Detected(
            "a Lambda function that fails, on a quiet queue",
            _queue((_FAILING,), sent=12, received=60, deleted=2, backlog_now=10),
            code="consumer_failing",
        ),
    ),
    near_misses=(
        NearMiss(
            "25 messages that are given back until it is their turn",
            NOT_FOUND,
            facts=_queue(sent=25, received=2_000, deleted=25),
        ),
        NearMiss(
            "slow work: what was received is still in flight",
            NOT_FOUND,
            facts=_queue(sent=900, received=900, backlog_now=900, in_flight_now=900),
        ),
        NearMiss(
            "more deletes than messages: the visibility timeout ends too early",
            NOT_FOUND,
            facts=_queue(sent=1_000, received=3_000, deleted=1_400),
        ),
        NearMiss(
            "one message holds up its group",
            NOT_FOUND,
            facts=_queue(
                sent=300,
                received=720,
                backlog_now=300,
                in_flight_now=1,
                oldest_age_seconds_now=21_600,
                groups_in_flight_now=1,
            ),
        ),
        NearMiss(
            "people look at DLQ messages and leave them",
            NOT_FOUND,
            facts=replace(_EVERY_THIRD, dlq_sources=(_SOURCE,)),
        ),
        NearMiss(
            "late calls have opened a case already",
            NOT_FOUND,
            facts=replace(_EVERY_THIRD, open_symptoms=EXPLAINED_BY),
        ),
        NearMiss(
            "DLQ messages are being moved back",
            NOT_FOUND,
            facts=replace(_EVERY_THIRD, move_task_running=True),
        ),
    ),
)

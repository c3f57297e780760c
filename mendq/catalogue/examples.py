"""Builders for the examples of the catalogue: failed calls and queues in the shapes of real
ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mendq.model.case import Case, State, opened
from mendq.model.evidence import Evidence, Sighting, granted_by
from mendq.model.facts import Facts, LambdaConsumer, SoleSource, SourceQueue
from mendq.model.failed_call import FailedCall, canonical
from mendq.model.limits import Mode, Timing
from mendq.model.metrics import Gauges, Measured
from mendq.model.queue import DEFAULTS, Redrive
from mendq.model.steps import SetMessageRetention

QUEUE_ARN = "arn:aws:sqs:us-east-1:123456789012:orders.fifo"
STANDARD_ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
DLQ_ARN = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


def failed_call(
    event_name: str, error_code: str, error_message: str = "", queue_arn: str = QUEUE_ARN
) -> FailedCall:
    """A failed call on an example queue."""
    return FailedCall(
        event_id="5f3b9f5e-1d0e-4c2f-9a60-000000000001",
        event_time=AT,
        event_name=event_name,
        error_code=canonical(error_code),
        raw_error_code=error_code,
        error_message=error_message,
        queue_arn=queue_arn,
        account="123456789012",
        region="us-east-1",
        principal_arn="arn:aws:iam::123456789012:role/orders-worker",
        session_created_at=None,
        request_id="4b7c6f0e-0000-5000-8000-000000000001",
        source_ip="10.0.0.7",
    )


def queue(
    tags: Mapping[str, str] | None = None, queue_arn: str = QUEUE_ARN, **attributes: str
) -> Facts:
    """An example queue with SQS's defaults; `attributes` over them."""
    shown = ("VisibilityTimeout", "MessageRetentionPeriod")
    defaults = {name: str(DEFAULTS[name]) for name in shown}
    return Facts(queue_arn, {**defaults, **attributes}, dict(tags or {}))


def case(
    symptom: str, *states: State, reason: str = "it stayed away", queue_arn: str = STANDARD_ARN
) -> Case:
    """A case about an example queue that went through `states`, the last of them at AT."""
    first, *later = states
    found = opened(
        first,
        queue_arn=queue_arn,
        symptom=symptom,
        reason="made up",
        evidence=Evidence((Sighting.of_measurement(AT),)),
        steps=(),
        now=AT,
        actor="heal",
    )
    for each in later:
        found = found.moved(each, reason, AT)
    return found


def measured(**counted: int) -> Measured:
    """Six hours of a queue on which nothing went on; `counted` over that."""
    nothing = Measured(AT - timedelta(hours=6), AT, 0, 0, 0, 0, Gauges(), Gauges(), 0)
    return recounted(nothing, **counted)


def recounted(known: Measured, **counted: int) -> Measured:
    """`counted` over what is known; `visible_now`, `backlog_before` are gauges at either end."""
    ends: dict[str, dict[str, int]] = {"before": {}, "now": {}, "": {}}
    for name, number in counted.items():
        gauge, _, end = name.rpartition("_")
        ends[end if gauge and end in ends else ""][gauge if end in ends else name] = number
    before, now = replace(known.before, **ends["before"]), replace(known.now, **ends["now"])
    return replace(known, before=before, now=now, **ends[""])  # type: ignore[arg-type]


A_DAY = 86_400
LATER = AT + timedelta(hours=3)
HANDLER = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:messages", 30, 0)

VISIBILITY = case(
    "visibility_timeout_too_short",
    State.APPLIED,
    State.VERIFIED,
    State.WATCHING,
    reason="it did not show again",
)

KMS = case("kms_throttled", State.WATCHING, State.CLOSED)

BY_A_PERSON = case(
    "consumer_failing", State.ESCALATED, State.CLOSED, reason="rolled the release back"
)

FOR_ONE_NETWORK = json.dumps(
    {
        "Statement": {
            "Effect": "Deny",
            "Principal": "*",
            "Action": granted_by(("SendMessage",)),
            "Resource": STANDARD_ARN,
            "Condition": {"StringNotEquals": {"aws:SourceVpc": "vpc-0abc"}},
        }
    }
)

SOLE = SoleSource(
    STANDARD_ARN,
    {},
    Mode.HEAL,
    deletes_per_second=20,
    soak_factor=Timing.soak_factor,
)

MEASURED = measured(backlog_now=200, visible_now=200, oldest_age_seconds_now=7_200)


def source(messages_arn: str = DLQ_ARN, **attributes: str) -> SourceQueue:
    """The queue that they died in; `attributes` over its own."""
    defaults = {
        "RedrivePolicy": Redrive(messages_arn, 5).text,
        "VisibilityTimeout": "60",
        "MessageRetentionPeriod": str(DEFAULTS["MessageRetentionPeriod"]),
    }
    return SourceQueue(STANDARD_ARN, {**defaults, **attributes})


def messages(*cases: Case, **attributes: str) -> Facts:
    """Their queue, where the cases about the source are these, else the visibility timeout that is
    fixed.
    """
    given = {
        "ApproximateNumberOfMessages": "200",
        "MessageRetentionPeriod": str(SetMessageRetention.maximum),
        **attributes,
    }
    return replace(
        queue(None, DLQ_ARN, **given),
        dlq_sources=(source(),),
        measured=MEASURED,
        source_cases=cases or (VISIBILITY,),
        sole_source=SOLE,
    )

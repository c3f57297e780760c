"""Builders for the examples of the catalogue: failed calls and queues in the shapes of real
ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from mendq.model.case import Case, State, start_case
from mendq.model.evidence import Evidence, Sighting, actions_allowing
from mendq.model.facts import Facts, LambdaConsumer, QueueFacts, SoleSource
from mendq.model.failed_call import FailedCall, canonical_code
from mendq.model.limits import Mode, Timing
from mendq.model.metrics import Gauges, Measurement
from mendq.model.queue import DEFAULTS, MAX_RECEIVE_COUNT, Redrive
from mendq.model.steps import SetMessageRetention

QUEUE_ARN = "arn:aws:sqs:us-east-1:123456789012:orders.fifo"
STANDARD_ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
DLQ_ARN = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROLE = "arn:aws:iam::123456789012:role/orders-worker"
AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
A_DAY = 86_400
LATER = AT + timedelta(hours=3)
FUNCTION = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:bill", 30, 5)
FAILING = replace(FUNCTION, duration_p99_seconds=0.4, error_share=0.9)


def failed_call(
    event_name: str, error_code: str, error_message: str = "", queue_arn: str = QUEUE_ARN
) -> FailedCall:
    """A failed call on an example queue."""
    return FailedCall(
        event_id="5f3b9f5e-1d0e-4c2f-9a60-000000000001",
        event_time=AT,
        event_name=event_name,
        error_code=canonical_code(error_code),
        raw_error_code=error_code,
        error_message=error_message,
        queue_arn=queue_arn,
        account="123456789012",
        region="us-east-1",
        principal_arn=ROLE,
        session_created_at=None,
        request_id="4b7c6f0e-0000-5000-8000-000000000001",
        source_ip="10.0.0.7",
    )


def refused_value(event_name: str, parameter: str, reason: str, value: str = "AQEB") -> FailedCall:
    """A failed call whose parameter SQS does not take, in SQS's own sentence."""
    said = f"Value {value} for parameter {parameter} is invalid. Reason: {reason}"
    return failed_call(event_name, "InvalidParameterValue", said)


def queue(tags: Mapping[str, str] | None = None, queue_arn: str = QUEUE_ARN, **over: Any) -> Facts:
    """An example queue with SQS's defaults; `over` as `vary` takes it."""
    shown = ("VisibilityTimeout", "MessageRetentionPeriod")
    defaults = {name: str(DEFAULTS[name]) for name in shown}
    return vary(Facts(queue_arn, defaults, dict(tags or {})), **over)


def standard(**over: Any) -> Facts:
    """An example standard queue that takes nobody's DLQ messages."""
    return queue(**{"queue_arn": STANDARD_ARN, "dlq_sources": (), **over})


def with_dlq(receives: int = MAX_RECEIVE_COUNT, *, dlq_arn: str = DLQ_ARN, **over: Any) -> Facts:
    """The same, whose messages go to a DLQ after so many receives."""
    return standard(RedrivePolicy=Redrive(dlq_arn, receives).text, **over)


def with_policy(**statement: object) -> Facts:
    """The same with a policy, of whose statement `policy` says what is there already."""
    return standard(Policy=policy(**statement))


def dlq(**over: Any) -> Facts:
    """The DLQ of the example standard queue."""
    return queue(queue_arn=DLQ_ARN, **{"dlq_sources": sources(STANDARD_ARN), **over})


def sources(*queue_arns: str, **attributes: str) -> tuple[QueueFacts, ...]:
    """Queues that name a DLQ."""
    return tuple(QueueFacts(queue_arn, attributes) for queue_arn in queue_arns)


def as_dlq(facts: Facts) -> Facts:
    """The same queue, to which nobody sends and another's DLQ messages come."""
    return vary(facts, sent=0, dlq_sources=sources(STANDARD_ARN))


def not_taken(parameter: str, value: str) -> FailedCall:
    """A send whose `parameter` holds what SQS does not take there, such as a space."""
    only = f"{parameter} can only include alphanumeric and punctuation characters."
    return refused_value("SendMessage", parameter, f"{only} 1 to 128 in length.", value)


_FACTS = frozenset(field.name for field in fields(Facts))
_ENDS = ("before", "now")
_GAUGES = {f"{gauge.name}_{end}": (end, gauge.name) for gauge in fields(Gauges) for end in _ENDS}
_COUNTS = frozenset(field.name for field in fields(Measurement)) | _GAUGES.keys()


def vary(facts: Facts, **over: Any) -> Facts:
    """The same queue with other facts, counts of its measurement or attributes, each by name."""
    own = {name: value for name, value in over.items() if name in _FACTS}
    counts = {name: value for name, value in over.items() if name in _COUNTS}
    attributes = {name: str(over[name]) for name in over.keys() - _FACTS - _COUNTS}
    facts = replace(facts, attributes={**facts.attributes, **attributes})
    if counts:
        facts = replace(facts, measurement=measurement(facts.measurement or _NOTHING, **counts))
    return replace(facts, **own)


def case(
    symptom: str, *states: State, reason: str = "it stayed away", queue_arn: str = STANDARD_ARN
) -> Case:
    """A case about an example queue that went through `states`, the last of them at AT."""
    first, *later = states
    made = start_case(
        first,
        queue_arn=queue_arn,
        symptom=symptom,
        reason="made up",
        evidence=Evidence((Sighting.of_measurement(AT),)),
        steps=(),
        now=AT,
        actor="heal",
    )
    for state in later:
        made = made.moved(state, reason, AT)
    return made


_NOTHING = Measurement(AT - timedelta(hours=6), AT, 0, 0, 0, 0, Gauges(), Gauges(), 0)


def measurement(known: Measurement = _NOTHING, /, **counted: Any) -> Measurement:
    """`counted` over what is known, which is six hours on which nothing went on where not said.

    `visible_now`, `backlog_before` are gauges at either end.
    """
    ends: dict[str, Any] = {"before": known.before, "now": known.now}
    for name in counted.keys() & _GAUGES.keys():
        end, gauge = _GAUGES[name]
        ends[end] = replace(ends[end], **{gauge: counted[name]})
    rest = {name: number for name, number in counted.items() if name not in _GAUGES}
    return replace(known, **ends, **rest)


VISIBILITY = case(
    "visibility_timeout_too_short",
    *(State.APPLIED, State.VERIFIED, State.WATCHING),
    reason="it did not show again",
)
KMS = case("kms_throttled", State.WATCHING, State.CLOSED)


def policy(**statement: object) -> str:
    """A queue policy; `statement` over one that lets everybody send to the standard queue."""
    allow = {"Effect": "Allow", "Principal": "*", "Action": actions_allowing(("SendMessage",))}
    statements = [{**allow, "Resource": STANDARD_ARN, **statement}]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


FOR_ONE_NETWORK = policy(
    Effect="Deny", Condition={"StringNotEquals": {"aws:SourceVpc": "vpc-0abc"}}
)
SOLE = SoleSource(
    STANDARD_ARN, {}, Mode.HEAL, deletes_per_second=20, soak_factor=Timing.soak_factor
)
MEASURED = measurement(backlog_now=200, visible_now=200, oldest_age_seconds_now=7_200)


def source(messages_arn: str = DLQ_ARN, **attributes: str) -> QueueFacts:
    """The queue that they died in; `attributes` over its own."""
    defaults = {
        "RedrivePolicy": Redrive(messages_arn, 5).text,
        "VisibilityTimeout": "60",
        "MessageRetentionPeriod": str(DEFAULTS["MessageRetentionPeriod"]),
    }
    return QueueFacts(STANDARD_ARN, {**defaults, **attributes})


def messages(*cases: Case, **over: Any) -> Facts:
    """Their queue, where the cases about the source are these, else the visibility timeout that is
    fixed.
    """
    given: dict[str, Any] = {
        "ApproximateNumberOfMessages": 200,
        "MessageRetentionPeriod": SetMessageRetention.maximum,
        "dlq_sources": (source(),),
        "measurement": MEASURED,
        "source_cases": cases or (VISIBILITY,),
        "sole_source": SOLE,
    }
    return vary(queue(queue_arn=DLQ_ARN, **given), **over)

"""Builders for the examples of the catalogue: failed calls, queues, cases and policies.

They look as AWS returns them. A builder has defaults for everything, so an example names only the
values that matter for it: `standard_queue(VisibilityTimeout=5)` is a standard queue with SQS's
defaults and a short visibility timeout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from mendq.model.case import Case, start_case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts, LambdaConsumer, QueueFacts, RedriveSource
from mendq.model.failed_call import FailedCall, make_canonical_error_code
from mendq.model.limits import Timing
from mendq.model.message_calls import list_actions_allowing
from mendq.model.metrics import HALF_HOUR, Gauges, Measurement, RecentCounts
from mendq.model.mode import Mode
from mendq.model.queue import DEFAULT_MAX_RECEIVE_COUNT, DEFAULT_NUMBER_BY_ATTRIBUTE, RedrivePolicy
from mendq.model.state import State
from mendq.model.steps import SetMessageRetention

QUEUE_ARN = "arn:aws:sqs:us-east-1:123456789012:orders.fifo"
STANDARD_ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
DLQ_ARN = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROLE_ARN = "arn:aws:iam::123456789012:role/orders-worker"
EXAMPLE_TIME = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
# A day in seconds.
DAY_SECONDS = 86_400
LATER_EXAMPLE_TIME = EXAMPLE_TIME + timedelta(hours=3)
# A Lambda function with a timeout of 30 s and a batching window of 5 s.
LAMBDA_FUNCTION = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:bill", 30, 5)
# The same function, but 90 % of its runs fail after a short time.
FAILING_FUNCTION = replace(LAMBDA_FUNCTION, duration_p99_seconds=0.4, error_share=0.9)


def failed_call(
    event_name: str, error_code: str, error_message: str = "", queue_arn: str = QUEUE_ARN
) -> FailedCall:
    """Return a failed call on the example FIFO queue, or on the queue with `queue_arn`."""
    return FailedCall(
        event_id="5f3b9f5e-1d0e-4c2f-9a60-000000000001",
        event_time=EXAMPLE_TIME,
        event_name=event_name,
        error_code=make_canonical_error_code(error_code),
        raw_error_code=error_code,
        error_message=error_message,
        queue_arn=queue_arn,
        account="123456789012",
        region="us-east-1",
        principal_arn=ROLE_ARN,
        session_created_at=None,
        request_id="4b7c6f0e-0000-5000-8000-000000000001",
        source_ip="10.0.0.7",
    )


def make_call_with_refused_value(
    event_name: str, parameter: str, reason: str, value: str = "AQEB"
) -> FailedCall:
    """Return a call that SQS refused because of a parameter's value, with SQS's own sentence."""
    error_message = f"Value {value} for parameter {parameter} is invalid. Reason: {reason}"
    return failed_call(event_name, "InvalidParameterValue", error_message)


def queue(
    tags: Mapping[str, str] | None = None, queue_arn: str = QUEUE_ARN, **overrides: Any
) -> Facts:
    """Return a queue, by default a FIFO queue, with SQS's default timeout and retention.

    `overrides` has other values. `replace_values` says which names it may have.
    """
    default_attribute_names = ("VisibilityTimeout", "MessageRetentionPeriod")
    default_attributes = {
        name: str(DEFAULT_NUMBER_BY_ATTRIBUTE[name]) for name in default_attribute_names
    }
    return replace_values(Facts(queue_arn, default_attributes, dict(tags or {})), **overrides)


def standard_queue(**overrides: Any) -> Facts:
    """Return the example standard queue, which is not a DLQ.

    `overrides` has other values. `replace_values` says which names it may have.
    """
    return queue(**{"queue_arn": STANDARD_ARN, "dlq_sources": (), **overrides})


def queue_with_dlq(
    receives: int = DEFAULT_MAX_RECEIVE_COUNT, *, dlq_arn: str = DLQ_ARN, **overrides: Any
) -> Facts:
    """Return a queue whose messages move to `dlq_arn` after `receives` receives."""
    return standard_queue(RedrivePolicy=RedrivePolicy(dlq_arn, receives).text, **overrides)


def queue_with_policy(**statement: object) -> Facts:
    """Return a standard queue with a policy of one statement, as `policy` builds it."""
    return standard_queue(Policy=policy(**statement))


def dlq(**overrides: Any) -> Facts:
    """Return the DLQ of the example standard queue, which is its only source."""
    return queue(queue_arn=DLQ_ARN, **{"dlq_sources": sources(STANDARD_ARN), **overrides})


def sources(*queue_arns: str, **attributes: str) -> tuple[QueueFacts, ...]:
    """Return queues with these ARNs and attributes, as the sources of a DLQ."""
    return tuple(QueueFacts(queue_arn, attributes) for queue_arn in queue_arns)


def as_dlq(facts: Facts) -> Facts:
    """Return the queue as a DLQ: no producer sends to it, and STANDARD_ARN is its source."""
    return replace_values(facts, sent=0, dlq_sources=sources(STANDARD_ARN))


def make_send_with_refused_attribute(parameter: str, value: str) -> FailedCall:
    """Return a failed SendMessage: `value` has a character that SQS refuses in `parameter`."""
    rule_sentence = f"{parameter} can only include alphanumeric and punctuation characters."
    return make_call_with_refused_value(
        "SendMessage", parameter, f"{rule_sentence} 1 to 128 in length.", value
    )


_FACT_FIELD_NAMES = frozenset(field.name for field in fields(Facts))
# A gauge is a metric with one value at a moment. Examples give it for the start (`before`) and for
# the end (`now`) of the measured time, such as `backlog_before` and `visible_now`.
_GAUGE_TIMES = ("before", "now")
_TIME_AND_GAUGE_BY_PARAMETER_NAME = {
    f"{gauge.name}_{gauge_time}": (gauge_time, gauge.name)
    for gauge in fields(Gauges)
    for gauge_time in _GAUGE_TIMES
}
_COUNT_NAMES = (
    frozenset(field.name for field in fields(Measurement))
    | _TIME_AND_GAUGE_BY_PARAMETER_NAME.keys()
)


def replace_values(facts: Facts, **overrides: Any) -> Facts:
    """Return the queue with other values.

    Args:
        facts: The queue.
        overrides: New values by name. A name is a field of `Facts`, a count as `measurement` takes
            it, or otherwise a queue attribute, which begins with a capital letter.

    Raises TypeError if a name is none of these: a mistyped name would leave the example as it was.
    """
    unknown_names = [
        name
        for name in overrides
        if name not in _FACT_FIELD_NAMES and name not in _COUNT_NAMES and not name[0].isupper()
    ]
    if unknown_names:
        raise TypeError(f"no fact, count or queue attribute: {', '.join(unknown_names)}")
    new_facts = {name: value for name, value in overrides.items() if name in _FACT_FIELD_NAMES}
    new_counts = {name: value for name, value in overrides.items() if name in _COUNT_NAMES}
    new_attributes = {
        name: str(overrides[name]) for name in overrides.keys() - _FACT_FIELD_NAMES - _COUNT_NAMES
    }
    facts = replace(facts, attributes={**facts.attributes, **new_attributes})
    if new_counts:
        facts = replace(
            facts,
            measurement=measurement(
                facts.measurement or _MEASUREMENT_WITHOUT_TRAFFIC, **new_counts
            ),
        )
    return replace(facts, **new_facts)


def case(
    symptom: str, *states: State, reason: str = "it stayed away", queue_arn: str = STANDARD_ARN
) -> Case:
    """Return a case that went through `states`, all at the time EXAMPLE_TIME.

    Args:
        symptom: The symptom's name.
        states: The states; the first one opens the case.
        reason: The reason of every state after the first.
        queue_arn: The queue that the case is about.
    """
    first_state, *later_states = states
    example_case = start_case(
        first_state,
        queue_arn=queue_arn,
        symptom=symptom,
        reason="made up",
        evidence=Evidence((Sighting.from_scan(EXAMPLE_TIME),)),
        steps=(),
        now=EXAMPLE_TIME,
        actor="heal",
    )
    for state in later_states:
        example_case = example_case.move_to(state, reason, EXAMPLE_TIME)
    return example_case


# Six hours in which nothing was sent, received or deleted.
_MEASUREMENT_WITHOUT_TRAFFIC = Measurement(
    EXAMPLE_TIME - timedelta(hours=6), EXAMPLE_TIME, 0, 0, 0, 0, Gauges(), Gauges(), 0
)


def measurement(
    base_measurement: Measurement = _MEASUREMENT_WITHOUT_TRAFFIC, /, **counts: Any
) -> Measurement:
    """Return `base_measurement` with other counts.

    Args:
        base_measurement: The measurement to change; by default six hours without any traffic.
        counts: New values by name: fields of `Measurement`, such as `sent`, and gauges at the start
            or at the end of the measured time, such as `backlog_before` and `visible_now`.
    """
    gauges_by_time: dict[str, Any] = {
        "before": base_measurement.before,
        "now": base_measurement.now,
    }
    for name in counts.keys() & _TIME_AND_GAUGE_BY_PARAMETER_NAME.keys():
        gauge_time, gauge_name = _TIME_AND_GAUGE_BY_PARAMETER_NAME[name]
        gauges_by_time[gauge_time] = replace(
            gauges_by_time[gauge_time], **{gauge_name: counts[name]}
        )
    other_counts = {
        name: count
        for name, count in counts.items()
        if name not in _TIME_AND_GAUGE_BY_PARAMETER_NAME
    }
    return replace(base_measurement, **gauges_by_time, **other_counts)


def make_last_hour(
    sent: int, deleted: int, backlog_before: int = 0, backlog_now: int = 0, **recent_values: Any
) -> RecentCounts:
    """Return the counts of a last hour in which everything happened in the second half hour.

    Args:
        sent: The sends. Each message was received once, unless `recent_values` has `received`.
        deleted: The deletes.
        backlog_before: The backlog an hour ago.
        backlog_now: The backlog at the end.
        recent_values: Other fields of `RecentCounts`.
    """
    half_hour_ago = EXAMPLE_TIME - HALF_HOUR
    first_half_hour = measurement(
        since=half_hour_ago - HALF_HOUR,
        until=half_hour_ago,
        backlog_before=backlog_before,
        backlog_now=backlog_before,
    )
    second_half_hour = measurement(
        since=half_hour_ago,
        until=EXAMPLE_TIME,
        sent=sent,
        received=sent,
        deleted=deleted,
        backlog_before=backlog_before,
        backlog_now=backlog_now,
    )
    return RecentCounts(
        **{
            "received": sent,
            "half_hours": (first_half_hour, second_half_hour),
            **recent_values,
        }
    )


def make_half_hours(*counts_by_half_hour: Mapping[str, int]) -> RecentCounts:
    """Return half hours with these counts, oldest first, by the names that `measurement` takes."""
    half_hours = [measurement(**counts) for counts in counts_by_half_hour]
    return RecentCounts(half_hours=tuple(half_hours))


# A case about the source of the example DLQ whose fix is proven.
WATCHED_VISIBILITY_CASE = case(
    "visibility_timeout_too_short",
    *(State.APPLIED, State.VERIFIED, State.WATCHING),
    reason="it did not show again",
)
# Another such case, which is closed.
CLOSED_KMS_CASE = case("kms_throttled", State.WATCHING, State.CLOSED)


def policy(**statement: object) -> str:
    """Return a queue policy of one statement.

    By default it lets everybody send to the example standard queue. `statement` has elements that
    replace the default ones or are added, such as `Principal`.
    """
    allow_elements = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": list_actions_allowing(("SendMessage",)),
    }
    statements = [{**allow_elements, "Resource": STANDARD_ARN, **statement}]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


# A policy that denies sending from outside one VPC.
ONE_NETWORK_POLICY = policy(
    Effect="Deny", Condition={"StringNotEquals": {"aws:SourceVpc": "vpc-0abc"}}
)
# The source of the example DLQ; Mendq may move its messages.
REDRIVE_SOURCE = RedriveSource(
    STANDARD_ARN, {}, Mode.HEAL, deletes_per_second=20, soak_factor=Timing.soak_factor
)
# The metrics of the example DLQ: 200 messages, the oldest one there for two hours.
DLQ_MEASUREMENT = measurement(backlog_now=200, visible_now=200, oldest_age_seconds_now=7_200)


def source(dlq_arn: str = DLQ_ARN, **attributes: str) -> QueueFacts:
    """Return the source of the example DLQ: the queue in which the DLQ's messages failed.

    Args:
        dlq_arn: The ARN that its RedrivePolicy names.
        attributes: Other queue attributes.
    """
    default_attributes = {
        "RedrivePolicy": RedrivePolicy(dlq_arn, 5).text,
        "VisibilityTimeout": "60",
        "MessageRetentionPeriod": str(DEFAULT_NUMBER_BY_ATTRIBUTE["MessageRetentionPeriod"]),
    }
    return QueueFacts(STANDARD_ARN, {**default_attributes, **attributes})


def dlq_with_messages(*cases: Case, **overrides: Any) -> Facts:
    """Return a DLQ with 200 messages.

    Args:
        cases: The cases about its source. By default there is one case: the visibility timeout was
            too short, and the fix was verified and is watched.
        overrides: Other values, as `replace_values` takes them.
    """
    default_values: dict[str, Any] = {
        "ApproximateNumberOfMessages": 200,
        "MessageRetentionPeriod": SetMessageRetention.maximum,
        "dlq_sources": (source(),),
        "measurement": DLQ_MEASUREMENT,
        "source_cases": cases or (WATCHED_VISIBILITY_CASE,),
        "redrive_sources": (REDRIVE_SOURCE,),
    }
    return replace_values(queue(queue_arn=DLQ_ARN, **default_values), **overrides)

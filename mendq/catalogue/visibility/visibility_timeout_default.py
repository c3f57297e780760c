"""Symptom `visibility_timeout_default`: the timeout is SQS's default, and work takes nearly as
long.

The fault: nobody chose the visibility timeout. It is SQS's default of 30 s, and the slowest runs of
the queue's Lambda function take more than 20 s. With a little more work per message, messages are
handled twice.

How it shows: in the queue's attributes and in the function's p99 duration of the last hour.

What Mendq changes: it proposes the timeout that AWS advises for the function, or that a tag names.
It never makes this change alone, because nothing has gone wrong yet and a person may know other
readers.

Why that is safe: a longer timeout only delays the retry after a crash. The bounds are those of
`needed_timeout.py`. If messages are handled twice already, or if the function fails, other symptoms
report that better, and this one gives way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mendq.catalogue.dlq.attach import FIXED_FIRST
from mendq.catalogue.examples import AT, FUNCTION, standard, vary
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.catalogue.visibility.needed_timeout import (
    MAX_VISIBILITY_TAG,
    failing_consumer,
    find_slowest_function,
    plan_advised_timeout,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import DEFAULT_ATTRIBUTES
from mendq.model.steps import SetVisibilityTimeout
from mendq.model.tags import MAX_PROCESSING, MAX_VISIBILITY

DEFAULT_SECONDS = int(DEFAULT_ATTRIBUTES[SetVisibilityTimeout.attribute])
# Runs of more than this many seconds are too close to the default of 30 s.
NEARLY_SECONDS = 20


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue with the default timeout and runs that take more than two thirds of it."""
    p99_seconds, name = find_slowest_function(facts)
    if p99_seconds <= NEARLY_SECONDS or not is_suspect(facts) or failing_consumer(facts):
        return None
    if FIXED_FIRST & facts.open_symptoms:
        return None
    unchanged = ""
    if facts.modified_at is not None and facts.modified_at == facts.created_at:
        unchanged = ", and the queue was never changed"
    return DetectedFault(
        f"the visibility timeout is SQS's default of {DEFAULT_SECONDS} s"
        f"{unchanged}; in the last hour 1 of 100 runs of "
        f"{name} took {p99_seconds:.1f} s or more"
    )


def is_suspect(facts: Facts) -> bool:
    """Return True if the timeout is the default, and a function may run for nearly as long."""
    timeouts = [consumer.timeout_seconds for consumer in facts.lambda_consumers]
    may_take = max(timeouts, default=0)
    return facts.visibility_seconds == DEFAULT_SECONDS and may_take > NEARLY_SECONDS


def plan(facts: Facts, limits: Limits) -> Plan | Refusal:
    """Plan the timeout that AWS advises or a tag names, if the timeout is still the default."""
    return plan_advised_timeout(facts, limits, SetVisibilityTimeout, has_symptom=is_suspect(facts))


def _queue(seconds: float | None = 24.0, error_share: float = 0, **over: Any) -> Facts:
    """Return a queue with the default timeout and a function whose p99 duration is `seconds`."""
    consumer = replace(FUNCTION, duration_p99_seconds=seconds, error_share=error_share)
    return standard(lambda_consumers=(consumer,), sent=1, **over)


_NEVER_CHANGED: Any = dict.fromkeys(
    ("CreatedTimestamp", "LastModifiedTimestamp"), f"{AT.timestamp():.0f}"
)
_TO_185 = (SetVisibilityTimeout(DEFAULT_SECONDS, 185),)

VISIBILITY_TIMEOUT_DEFAULT = FixedSymptom(
    name="visibility_timeout_default",
    sentence="The visibility timeout is SQS's default of 30 s, and work takes nearly as long.",
    plan_in_words="Raise VisibilityTimeout to what AWS advises or its tag names; never by itself.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html",
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    steps=(SetVisibilityTimeout,),
    plan=plan,
    gives_way_to=FIXED_FIRST,
    detection=Detection(detect, frozenset({Need.MEASUREMENTS, Need.OPEN_CASES}), is_suspect),
    tags=(MAX_PROCESSING, MAX_VISIBILITY),
    examples=lambda: (
        QueueExample("runs of 24 s", _queue(), _TO_185),
        QueueExample("since it was made", _queue(**_NEVER_CHANGED), _TO_185),
        QueueNearMiss("somebody chose 31 s", _queue(VisibilityTimeout=31)),
        QueueNearMiss("runs of 20 s", _queue(20.0)),
        QueueNearMiss("nobody knows how long runs take", _queue(None)),
        QueueNearMiss("its function fails", _queue(24.0, 0.5)),
        RefusalExample(
            "the ceiling", vary(_queue(), tags={MAX_VISIBILITY_TAG: "184"}), "over_ceiling"
        ),
        RefusalExample(
            "somebody has chosen since", _queue(VisibilityTimeout=60), "need_already_met"
        ),
        RefusalExample("a tag", vary(_queue(), tags={MAX_VISIBILITY_TAG: "?"}), "tag_unreadable"),
    ),
)

"""Symptom `visibility_timeout_default`: the timeout is SQS's default, and that is nearly too short.

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

from mendq.catalogue.dlq.attach import SYMPTOMS_TO_FIX_FIRST
from mendq.catalogue.examples import EXAMPLE_TIME, LAMBDA_FUNCTION, replace_values, standard_queue
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    EvidenceKind,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.catalogue.visibility.needed_timeout import (
    MAX_VISIBILITY_TAG,
    find_slowest_function,
    plan_advised_timeout,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import DEFAULT_NUMBER_BY_ATTRIBUTE
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import SetVisibilityTimeout
from mendq.model.tags import MAX_PROCESSING, MAX_VISIBILITY

DEFAULT_TIMEOUT_SECONDS = int(DEFAULT_NUMBER_BY_ATTRIBUTE[SetVisibilityTimeout.attribute])
# Runs of more than this many seconds are too close to the default of 30 s.
LONGEST_SAFE_RUN_SECONDS = 20


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue with the default timeout and a function whose p99 is over 20 s.

    None if 1 of 100 runs failed, because the longest may be failed ones. None also if a case of
    SYMPTOMS_TO_FIX_FIRST is open.
    """
    p99_run_seconds, function_name = find_slowest_function(facts)
    if (
        p99_run_seconds <= LONGEST_SAFE_RUN_SECONDS
        or not is_possible(facts)
        or not all(consumer.are_durations_of_finished_runs for consumer in facts.lambda_consumers)
    ):
        return None
    if SYMPTOMS_TO_FIX_FIRST & facts.open_symptoms:
        return None
    unchanged_queue_text = ""
    if facts.modified_at is not None and facts.modified_at == facts.created_at:
        unchanged_queue_text = ", and the queue was never changed"
    return DetectedFault(
        f"the visibility timeout is SQS's default of {DEFAULT_TIMEOUT_SECONDS} s"
        f"{unchanged_queue_text}; in the last hour 1 of 100 runs of "
        f"{function_name} took {p99_run_seconds:.1f} s or more"
    )


def is_possible(facts: Facts) -> bool:
    """Return True if the timeout is the default, and a function may run for nearly as long."""
    function_timeouts_seconds = [consumer.timeout_seconds for consumer in facts.lambda_consumers]
    longest_run_seconds = max(function_timeouts_seconds, default=0)
    return (
        facts.visibility_seconds == DEFAULT_TIMEOUT_SECONDS
        and longest_run_seconds > LONGEST_SAFE_RUN_SECONDS
    )


def plan(facts: Facts, limits: Limits) -> Plan | Refusal:
    """Plan the timeout that AWS advises or a tag names, if the timeout is still the default."""
    return plan_advised_timeout(facts, limits, SetVisibilityTimeout, has_symptom=is_possible(facts))


def _make_example_queue(
    p99_run_seconds: float | None = 24.0, error_share: float = 0, **overrides: Any
) -> Facts:
    """Return a queue with the default timeout and a function with this p99 duration."""
    consumer = replace(
        LAMBDA_FUNCTION, duration_p99_seconds=p99_run_seconds, error_share=error_share
    )
    return standard_queue(lambda_consumers=(consumer,), sent=1, **overrides)


_TIMESTAMPS_OF_UNCHANGED_QUEUE: Any = dict.fromkeys(
    ("CreatedTimestamp", "LastModifiedTimestamp"), f"{EXAMPLE_TIME.timestamp():.0f}"
)
_RAISE_TO_185_SECONDS_STEPS = (SetVisibilityTimeout(DEFAULT_TIMEOUT_SECONDS, 185),)

VISIBILITY_TIMEOUT_DEFAULT = FixedSymptom(
    name="visibility_timeout_default",
    sentence="The visibility timeout is SQS's default of 30 s, and work takes nearly as long.",
    plan_in_words="Raise VisibilityTimeout to what AWS advises or its tag names; never by itself.",
    first_step="Set the visibility timeout to what the work needs.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html",
    evidence_kinds=(EvidenceKind(SeverityClass.MAY_LOSE),),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    steps=(SetVisibilityTimeout,),
    plan=plan,
    gives_way_to=SYMPTOMS_TO_FIX_FIRST,
    detection=Detection(
        detect,
        frozenset({Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS, Need.OPEN_CASES}),
        is_possible,
        is_hidden_in_traffic=True,
    ),
    tags=(MAX_PROCESSING, MAX_VISIBILITY),
    examples=lambda: (
        QueueExample("runs of 24 s", _make_example_queue(), _RAISE_TO_185_SECONDS_STEPS),
        QueueExample(
            "since it was made",
            _make_example_queue(**_TIMESTAMPS_OF_UNCHANGED_QUEUE),
            _RAISE_TO_185_SECONDS_STEPS,
        ),
        QueueNearMiss("somebody chose 31 s", _make_example_queue(VisibilityTimeout=31)),
        QueueNearMiss("runs of 20 s", _make_example_queue(20.0)),
        QueueNearMiss("nobody knows how long runs take", _make_example_queue(None)),
        QueueNearMiss("its function fails", _make_example_queue(24.0, 0.5)),
        RefusalExample(
            "the ceiling",
            replace_values(_make_example_queue(), tags={MAX_VISIBILITY_TAG: "184"}),
            "over_ceiling",
        ),
        RefusalExample(
            "somebody has chosen since",
            _make_example_queue(VisibilityTimeout=60),
            "need_already_met",
        ),
        RefusalExample(
            "a tag",
            replace_values(_make_example_queue(), tags={MAX_VISIBILITY_TAG: "?"}),
            "tag_unreadable",
        ),
    ),
)

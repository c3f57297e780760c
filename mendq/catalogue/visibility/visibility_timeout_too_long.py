"""Symptom `visibility_timeout_too_long`: a failed message waits for hours before the next try.

The fault: the visibility timeout is far longer than the work. If a run crashes, its messages stay
hidden until the timeout ends, so the retry comes hours late.

How it shows: the timeout is more than 20 times the p99 duration of the queue's Lambda functions,
more than twice what AWS advises or a tag needs, and more than 15 minutes. And crashes happen: some
receives led to no delete, and runs fail, or a message is older than the timeout although at times
no message waited.

What Mendq changes: it proposes the timeout that AWS advises, or that a tag names. It never makes
this change alone.

Why a person decides: a shorter timeout can have messages handled twice if another reader needs
longer, and only a person knows all readers. If the timeout is too short for a consumer, or if
consumers fail, other symptoms report that, and this symptom is not reported.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from mendq.catalogue.dlq.attach import SYMPTOMS_TO_FIX_FIRST
from mendq.catalogue.examples import LAMBDA_FUNCTION, as_dlq, replace_values, standard_queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.catalogue.visibility.needed_timeout import (
    MAX_PROCESSING_TAG,
    choose_goal_seconds,
    find_slowest_function,
    list_readable_needs,
    plan_advised_timeout,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import LowerVisibilityTimeout, SetVisibilityTimeout
from mendq.model.tags import MAX_PROCESSING, MAX_VISIBILITY
from mendq.notifications.text import format_count

# The timeout is reported only above all three: this many seconds, this many times the p99 duration
# of the slowest function, and this many times the advised timeout.
REPORTED_ABOVE_SECONDS = 15 * 60
REPORTED_ABOVE_P99_FACTOR = 20
REPORTED_ABOVE_ADVICE_FACTOR = 2


def detect(facts: Facts) -> DetectedFault | None:
    """Find a timeout far above the p99 duration, on a queue whose consumers crashed at times.

    A crash leaves receives without a delete. Such receives count as crashes in two cases:

    - Some runs of a function failed in the last hour.
    - A message is older than the timeout now, but at some moment of the measured time no message
      waited. So that message was received before and not finished.
    """
    measurement = facts.measurement
    visibility_seconds = facts.visibility_seconds
    p99_run_seconds, function_name = find_slowest_function(facts)
    if (
        measurement is None
        or not p99_run_seconds
        or visibility_seconds <= REPORTED_ABOVE_P99_FACTOR * p99_run_seconds
    ):
        return None
    if (
        facts.receives_only_dlq_messages
        or SYMPTOMS_TO_FIX_FIRST & facts.open_symptoms
        or measurement.has_consumer_race
    ):
        return None
    largest_error_share = max(consumer.error_share or 0 for consumer in facts.lambda_consumers)
    oldest_age_seconds = measurement.now.oldest_age_seconds
    was_oldest_received = (
        oldest_age_seconds > visibility_seconds and not measurement.fewest_visible_messages
    )
    has_crashes = measurement.fruitless_receives and (largest_error_share or was_oldest_received)
    if not has_crashes or not is_possible(facts):
        return None
    return DetectedFault(
        f"the visibility timeout of {visibility_seconds:,} s is "
        f"{visibility_seconds / p99_run_seconds:,.0f} times what 99 of 100 runs of {function_name} "
        f"stay within ({p99_run_seconds:.1f} s). "
        f"{format_count(measurement.fruitless_receives, 'receive')} ended in no delete; "
        f"{100 * largest_error_share:.1f} % of the last hour's runs failed, and the oldest message "
        f"is {oldest_age_seconds:,} s old: what crashes waits {visibility_seconds:,} s before "
        "anybody gets it again"
    )


def is_possible(facts: Facts) -> bool:
    """Return True if a function reads the queue and the timeout is far above the advised one.

    False if a tag cannot be read.
    """
    advised_timeout_seconds = choose_goal_seconds(facts, list_readable_needs(facts))
    tolerated_timeout_seconds = max(
        REPORTED_ABOVE_SECONDS, REPORTED_ABOVE_ADVICE_FACTOR * advised_timeout_seconds
    )
    is_advice_known = bool(advised_timeout_seconds and facts.lambda_consumers)
    return is_advice_known and facts.visibility_seconds > tolerated_timeout_seconds


def plan(facts: Facts, limits: Limits) -> Plan | Refusal:
    """Plan the timeout that AWS advises or a tag names, if the timeout is still far above it."""
    return plan_advised_timeout(
        facts, limits, LowerVisibilityTimeout, has_symptom=is_possible(facts)
    )


# Returns LAMBDA_FUNCTION with other fields; its p99 duration is 4 s.
_make_function = partial(replace, LAMBDA_FUNCTION, duration_p99_seconds=4.0)


def _make_example_queue(
    visibility_seconds: int = 14_400, *, error_share: float = 0.01, **overrides: Any
) -> Facts:
    """Return a queue with this timeout, and a function that may run 30 s and sometimes fails."""
    metric_values = {
        "received": 920,
        "deleted": 900,
        "lambda_consumers": (_make_function(error_share=error_share),),
    }
    return standard_queue(
        VisibilityTimeout=visibility_seconds, sent=900, **{**metric_values, **overrides}
    )


_OLD_MESSAGE_COUNTS = {"error_share": 0, "oldest_age_seconds_now": 20_000}
_LOWER_TO_185_SECONDS_STEPS = (LowerVisibilityTimeout(14_400, 185),)

VISIBILITY_TIMEOUT_TOO_LONG = FixedSymptom(
    name="visibility_timeout_too_long",
    sentence="The visibility timeout is far over what work takes, so what crashed waits for hours.",
    plan_in_words="Lower VisibilityTimeout to what AWS advises or its tag names; never by itself.",
    first_step="Lower the visibility timeout to what the work needs.",
    aws_page=f"{SQS_GUIDE}/sqs-visibility-timeout.html",
    evidence_kinds=(EvidenceKind(SeverityClass.FAILING_IN_PART),),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    steps=(SetVisibilityTimeout,),
    plan=plan,
    gives_way_to=SYMPTOMS_TO_FIX_FIRST,
    detection=Detection(
        detect,
        frozenset({Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS, Need.DLQ_SOURCES, Need.OPEN_CASES}),
        is_possible,
    ),
    tags=(MAX_PROCESSING, MAX_VISIBILITY),
    examples=lambda: (
        QueueExample(
            "runs fail, and each is tried again after four hours",
            _make_example_queue(),
            _LOWER_TO_185_SECONDS_STEPS,
        ),
        QueueExample(
            "an instance died with what it had received",
            _make_example_queue(**_OLD_MESSAGE_COUNTS),
            _LOWER_TO_185_SECONDS_STEPS,
        ),
        QueueNearMiss("nobody crashes", _make_example_queue(received=900)),
        QueueNearMiss("what was received is still at work", _make_example_queue(in_flight_now=20)),
        QueueNearMiss(
            "old messages of a backlog",
            _make_example_queue(**_OLD_MESSAGE_COUNTS, fewest_visible_messages=3),
        ),
        QueueNearMiss(
            "the oldest is not through its timeout yet",
            _make_example_queue(20_000, **_OLD_MESSAGE_COUNTS),
        ),
        QueueNearMiss(
            "runs are long",
            _make_example_queue(lambda_consumers=(_make_function(duration_p99_seconds=720.0),)),
        ),
        QueueNearMiss(
            "nobody knows how long they are",
            _make_example_queue(lambda_consumers=(LAMBDA_FUNCTION,)),
        ),
        QueueNearMiss("15 minutes", _make_example_queue(900)),
        QueueNearMiss(
            "runs may be long",
            _make_example_queue(10_800, lambda_consumers=(_make_function(timeout_seconds=900),)),
        ),
        QueueNearMiss(
            "a tag names half of it",
            replace_values(_make_example_queue(7_200), tags={MAX_PROCESSING_TAG: "2400"}),
        ),
        QueueNearMiss(
            "messages are handled twice", _make_example_queue(received=1_300, deleted=1_250)
        ),
        QueueNearMiss("people look at DLQ messages", as_dlq(_make_example_queue())),
        RefusalExample("somebody has lowered it", _make_example_queue(370), "need_already_met"),
    ),
)

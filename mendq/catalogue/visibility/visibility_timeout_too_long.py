"""Symptom `visibility_timeout_too_long`: a failed message waits for hours before the next try.

The fault: the visibility timeout is far longer than the work. If a run crashes, its messages stay
hidden until the timeout ends, so the retry comes hours late.

How it shows: the timeout is more than 20 times the p99 duration of the queue's Lambda functions,
more than twice what AWS advises, and more than 15 minutes. And crashes happen: runs fail, or a
message is older than the timeout although the queue was empty at times.

What Mendq changes: it proposes the timeout that AWS advises, or that a tag names. It never makes
this change alone.

Why a person decides: a shorter timeout can have messages handled twice if another reader needs
longer, and only a person knows all readers. While the timeout is too short for a consumer, or
consumers fail, this symptom gives way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from mendq.catalogue.dlq.attach import FIXED_FIRST
from mendq.catalogue.examples import FUNCTION, as_dlq, standard, vary
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.catalogue.visibility.needed_timeout import (
    MAX_PROCESSING_TAG,
    find_slowest_function,
    goal_seconds,
    list_readable_needs,
    plan_advised_timeout,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.steps import LowerVisibilityTimeout, SetVisibilityTimeout
from mendq.model.tags import MAX_PROCESSING, MAX_VISIBILITY
from mendq.notifications.text import format_count

# The timeout is reported only above all three: this many seconds, this many times the p99 duration
# of the slowest function, and this many times the advised timeout.
LONG_SECONDS = 15 * 60
TIMES_P99 = 20
TIMES_ADVISED = 2


def detect(facts: Facts) -> DetectedFault | None:
    """Find a timeout far above the p99 duration, on a queue whose consumers crashed at times.

    A crash leaves receives without a delete. They count as crashes if runs of a function failed.
    They also count if no message waited at some moment, and one is older than the timeout now: that
    message was received before that moment and was not finished.
    """
    measured = facts.measurement
    seconds = facts.visibility_seconds
    p99_seconds, name = find_slowest_function(facts)
    if measured is None or not p99_seconds or seconds <= TIMES_P99 * p99_seconds:
        return None
    if facts.receives_only_dlq_messages or FIXED_FIRST & facts.open_symptoms or measured.has_race:
        return None
    most_fail = max(consumer.error_share or 0 for consumer in facts.lambda_consumers)
    oldest_seconds = measured.now.oldest_age_seconds
    had_been_received = oldest_seconds > seconds and not measured.least_visible
    crashed = measured.fruitless_receives and (most_fail or had_been_received)
    if not crashed or not is_suspect(facts):
        return None
    return DetectedFault(
        f"the visibility timeout of {seconds:,} s is {seconds / p99_seconds:,.0f} times what 99 of "
        f"100 runs of {name} stay within ({p99_seconds:.1f} s). "
        f"{format_count(measured.fruitless_receives, 'receive')} ended in no delete; "
        f"{100 * most_fail:.1f} % of the last hour's runs failed, and the oldest message is "
        f"{oldest_seconds:,} s old: what crashes waits {seconds:,} s before anybody gets it again"
    )


def is_suspect(facts: Facts) -> bool:
    """Return True if the timeout is far above the advised one; False if a tag cannot be read."""
    advised_seconds = goal_seconds(facts, list_readable_needs(facts))
    enough_seconds = max(LONG_SECONDS, TIMES_ADVISED * advised_seconds)
    is_known = bool(advised_seconds and facts.lambda_consumers)
    return is_known and facts.visibility_seconds > enough_seconds


def plan(facts: Facts, limits: Limits) -> Plan | Refusal:
    """Plan the timeout that AWS advises or a tag names, if the timeout is still far above it."""
    return plan_advised_timeout(
        facts, limits, LowerVisibilityTimeout, has_symptom=is_suspect(facts)
    )


# Returns FUNCTION with other fields; its p99 duration is 4 s.
_function = partial(replace, FUNCTION, duration_p99_seconds=4.0)


def _queue(seconds: int = 14_400, *, fails: float = 0.01, **over: Any) -> Facts:
    """Return a queue with this timeout, and a function that may run 30 s and sometimes fails."""
    counts = {"received": 920, "deleted": 900, "lambda_consumers": (_function(error_share=fails),)}
    return standard(VisibilityTimeout=seconds, sent=900, **{**counts, **over})


_OLD_MESSAGE = {"fails": 0, "oldest_age_seconds_now": 20_000}
_TO_185 = (LowerVisibilityTimeout(14_400, 185),)

VISIBILITY_TIMEOUT_TOO_LONG = FixedSymptom(
    name="visibility_timeout_too_long",
    sentence="The visibility timeout is far over what work takes, so what crashed waits for hours.",
    plan_in_words="Lower VisibilityTimeout to what AWS advises or its tag names; never by itself.",
    aws_page=f"{SQS_GUIDE}/sqs-visibility-timeout.html",
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    steps=(SetVisibilityTimeout,),
    plan=plan,
    gives_way_to=FIXED_FIRST,
    detection=Detection(
        detect, frozenset({Need.MEASUREMENTS, Need.DLQ_SOURCES, Need.OPEN_CASES}), is_suspect
    ),
    tags=(MAX_PROCESSING, MAX_VISIBILITY),
    examples=lambda: (
        QueueExample("runs fail, and each is tried again after four hours", _queue(), _TO_185),
        QueueExample("an instance died with what it had received", _queue(**_OLD_MESSAGE), _TO_185),
        QueueNearMiss("nobody crashes", _queue(received=900)),
        QueueNearMiss("what was received is still at work", _queue(in_flight_now=20)),
        QueueNearMiss("old messages of a backlog", _queue(**_OLD_MESSAGE, least_visible=3)),
        QueueNearMiss("the oldest is not through its timeout yet", _queue(20_000, **_OLD_MESSAGE)),
        QueueNearMiss(
            "runs are long", _queue(lambda_consumers=(_function(duration_p99_seconds=720.0),))
        ),
        QueueNearMiss("nobody knows how long they are", _queue(lambda_consumers=(FUNCTION,))),
        QueueNearMiss("15 minutes", _queue(900)),
        QueueNearMiss(
            "runs may be long", _queue(10_800, lambda_consumers=(_function(timeout_seconds=900),))
        ),
        QueueNearMiss(
            "a tag names half of it", vary(_queue(7_200), tags={MAX_PROCESSING_TAG: "2400"})
        ),
        QueueNearMiss("messages are handled twice", _queue(received=1_300, deleted=1_250)),
        QueueNearMiss("people look at DLQ messages", as_dlq(_queue())),
        RefusalExample("somebody has lowered it", _queue(370), "need_already_met"),
    ),
)

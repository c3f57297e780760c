"""Letters that wait in a dead-letter queue: what explains them, and when the first expires.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from functions.healing.case import Case
from functions.healing.causes import Explained, explained_by
from functions.healing.facts import Facts, SourceQueue
from functions.healing.measuring import PERIOD
from functions.healing.queue_defaults import number_in
from functions.healing.retention_clock import TimeLeft, left_by_age

_BEGAN_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def explained(facts: Facts) -> Explained:
    """What explains the letters that wait; where nobody knows since when they do, whatever may."""
    measured = facts.measured
    if measured is None:
        return explained_by(facts.source_cases, _always(facts.source_cases))
    if not age_is_known(facts):
        longest = timedelta(seconds=facts.retention_seconds)
        return explained_by(facts.source_cases, measured.until - longest)
    # The last minute's value was measured within it.
    began_at = measured.until - PERIOD - timedelta(seconds=measured.oldest_age_seconds_now)
    if measured.least_visible and not measured.deleted:
        # What was there all the while is no younger, whatever the metric leaves out.
        began_at = min(began_at, measured.since)
    return explained_by(facts.source_cases, began_at)


def time_left(facts: Facts) -> TimeLeft:
    """Until the first letter expires."""
    kept_seconds = facts.retention_seconds
    if facts.measured is None or not age_is_known(facts):
        return TimeLeft(timedelta(0), timedelta(seconds=kept_seconds))
    longest = max(map(_kept_seconds, facts.dead_letter_sources or ()), default=0)
    age_seconds = facts.measured.oldest_age_seconds_now
    return left_by_age(age_seconds, kept_seconds, longest, is_fifo=facts.is_fifo)


def age_is_known(facts: Facts) -> bool:
    """What lies there has an age; SQS leaves out of it what was received too often."""
    return facts.measured is not None and facts.measured.oldest_age_seconds_now > 0


def _always(cases: Iterable[Case]) -> datetime:
    """Before all of them."""
    return min((each.at for each in cases), default=_BEGAN_LONG_AGO)


def _kept_seconds(source: SourceQueue) -> int:
    return number_in(source.attributes, "MessageRetentionPeriod")

"""Symptom `consumer_stopped`: the queue's consumer no longer receives, and messages wait.

The fault: every event source mapping that reads the queue is disabled or names a function that was
deleted, or a consumer that is no Lambda function has ended. Nobody reads the messages, and they are
lost when the retention period is over.

How it shows: messages wait, and CloudWatch counts no receive for a while. Lambda lists only
disabled mappings, or mappings to deleted functions. Without a mapping, the last four days tell a
consumer that stopped from a queue that is read once a day, only if there is work, or never: the
pause is far longer than any pause before.

Without a measurement, these facts prove the fault: all mappings are disabled or name a deleted
function, messages wait, and none is in flight. Messages in flight would mean that another consumer
reads the queue while its old mapping stays disabled. A mapping that was disabled less than half an
hour ago does not count yet; a deleted function counts at once.

What Mendq does: it notifies people, with the number and age of the messages and a command that
shows the mapping. It does not enable the mapping. A person may have disabled it on purpose, and
Lambda itself disables a mapping if the function or its permissions were deleted.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from mendq.catalogue.examples import (
    EXAMPLE_TIME,
    LAMBDA_FUNCTION,
    as_dlq,
    make_half_hours,
    replace_values,
    standard_queue,
)
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    EvidenceKind,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.model.facts import Facts, Need, function_name
from mendq.model.limits import Limits
from mendq.model.metrics import HALF_HOUR, DaysOfTraffic, Measurement
from mendq.model.plan import Escalate, Refusal
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import list_consumers_command, show_metric_command
from mendq.notifications.text import format_count, format_duration

# Fewer messages may be waiting by chance at the moment of the scan.
LEAST_WAITING_MESSAGES = 4
# Without a mapping, a consumer has stopped if the pause is at least this long, and longer than
# PAUSE_FACTOR times the longest pause of four days, plus an hour because hours are counted.
SHORTEST_PAUSE = timedelta(hours=2)
PAUSE_FACTOR = 1.5
# In fewer hours with receives and deletes than this, nobody knows when the queue is usually read.
LEAST_HOURS_WITH_TRAFFIC = 2
# An open case of these symptoms explains why nothing is received.
EXPLAINING_SYMPTOMS = frozenset({"kms_key_unusable"})


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue on which messages wait because its consumer has stopped.

    A DLQ is not reported: its mapping is often disabled until somebody wants the messages.
    """
    measurement = facts.measurement
    if measurement is None or _is_explained(facts):
        return None
    waiting_text = (
        f"{format_count(measurement.now.visible, 'message')} waiting, the oldest for "
        f"{measurement.now.oldest_age_seconds:,} s, and none was received in "
        f"{format_duration(measurement.pause_since_receive or measurement.duration)}"
    )
    if _has_only_stopped_mappings(facts):
        if not _waits_unread(measurement, HALF_HOUR):
            return None
        return DetectedFault(f"{waiting_text}: {_describe_stopped_functions(facts)}")
    if facts.lambda_consumers or not _waits_unread(measurement, SHORTEST_PAUSE):
        return None
    if measurement.now.visible < LEAST_WAITING_MESSAGES or not _has_consumer_ended(facts):
        return None
    return DetectedFault(
        f"{waiting_text}: its consumer has stopped{_describe_pauses(facts, measurement)}"
    )


def detect_fact(facts: Facts, now: datetime) -> DetectedFault | None:
    """Find an unmeasured queue of which the mappings show that no consumer reads it."""
    if _is_explained(facts) or not _has_only_stopped_mappings(facts):
        return None
    if facts.visible < LEAST_WAITING_MESSAGES or facts.in_flight:
        return None
    for disabled_at in facts.mappings_disabled_at:
        if disabled_at is None or now - disabled_at < HALF_HOUR:
            return None
    return DetectedFault(
        f"{format_count(facts.visible, 'message')} waiting, and none is in flight: "
        f"{_describe_stopped_functions(facts)}"
    )


def _is_explained(facts: Facts) -> bool:
    """Return True if the queue is a DLQ, or if an open case explains why nothing is received."""
    return facts.receives_only_dlq_messages or bool(EXPLAINING_SYMPTOMS & facts.open_symptoms)


def _has_only_stopped_mappings(facts: Facts) -> bool:
    """Return True if Lambda functions read the queue only through mappings that do not work."""
    return bool(facts.stopped_consumers) and not facts.lambda_consumers


def _waits_unread(measurement: Measurement, shortest_pause: timedelta) -> bool:
    """Return True if messages waited for `shortest_pause` and none was received.

    Messages must have waited in every minute. If nothing was received in the whole measured time,
    it is enough that they waited in every minute of the last `shortest_pause`.
    """
    half_hours = measurement.recent.half_hours[-(shortest_pause // HALF_HOUR) :]
    has_waited_lately = bool(half_hours) and all(
        half_hour.fewest_visible_messages > 0 for half_hour in half_hours
    )
    if measurement.received == 0:
        is_time_known = len(half_hours) >= shortest_pause // HALF_HOUR
        return measurement.duration >= shortest_pause and (
            measurement.fewest_visible_messages > 0 or (is_time_known and has_waited_lately)
        )
    if measurement.pause_since_receive is None or measurement.pause_since_receive < shortest_pause:
        return False
    return has_waited_lately


def _has_consumer_ended(facts: Facts) -> bool:
    """Return True if a consumer read the queue in the last four days, and is silent for too long.

    True too before these days are read: they can only explain the finding away. A queue without
    deletes has no consumer: people look at its messages, or nobody does.
    """
    days_of_traffic = facts.days_of_traffic
    measurement = facts.measurement
    if days_of_traffic is None or measurement is None:
        return True
    hours_of_work = min(
        len(days_of_traffic.hours_with_receives), len(days_of_traffic.hours_with_deletes)
    )
    pause = days_of_traffic.measure_pause_at(measurement.until)
    if pause is None or hours_of_work < LEAST_HOURS_WITH_TRAFFIC:
        return False
    longest_usual_pause = PAUSE_FACTOR * days_of_traffic.longest_pause + timedelta(hours=1)
    return pause >= max(SHORTEST_PAUSE, longest_usual_pause)


def _describe_pauses(facts: Facts, measurement: Measurement) -> str:
    """Return the end of a sentence: the present pause and the longest one before, if known."""
    days_of_traffic = facts.days_of_traffic
    if days_of_traffic is None:
        return ""
    pause = days_of_traffic.measure_pause_at(measurement.until)
    if pause is None:
        return ""
    longest_pause = max(days_of_traffic.longest_pause, timedelta(hours=1))
    return (
        f". It last received about {format_duration(pause)} ago; in the four days before, it never "
        f"paused for longer than {format_duration(longest_pause)}"
    )


def _describe_stopped_functions(facts: Facts) -> str:
    """Return which functions no longer read the queue. The rest of a sentence."""
    names_text = function_name(facts.stopped_consumers[0])
    other_function_count = len(facts.stopped_consumers) - 1
    if other_function_count:
        names_text += f" and {other_function_count} more"
    return f"the event source mapping of {names_text} is disabled, or the function was deleted"


def is_possible(facts: Facts) -> bool:
    """Return True if no Lambda function reads the queue now."""
    return not facts.lambda_consumers


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: it is not known why the consumer stopped."""
    retention_text = (
        f"Messages are kept for {facts.retention_seconds:,} s from when they were sent, and lost "
        "after that"
    )
    if not facts.stopped_consumers:
        reason = (
            f"{facts.found}. Start it, unless it is off on purpose: look at its service, its "
            f"scaling and its last deployment. {retention_text}"
        )
        command = show_metric_command(
            facts.queue_arn, "NumberOfMessagesReceived", "Sum", facts.measurement
        )
        return Escalate("consumer_ended", reason, command)
    reason = (
        f"{facts.found}. Whoever disabled it may have had a reason; Lambda itself does it where "
        f"the function or its permissions are gone. {retention_text}"
    )
    query_option = (
        '--query "EventSourceMappings[].[UUID, FunctionArn, State, StateTransitionReason]"'
    )
    return Escalate(
        "consumer_stopped", reason, f"{list_consumers_command(facts.queue_arn)} {query_option}"
    )


def _make_days(*hours_ago: int) -> DaysOfTraffic:
    """Return days in which the queue was read in the hours that began so many hours ago."""
    hours = tuple(EXAMPLE_TIME - timedelta(hours=hour) for hour in sorted(hours_ago, reverse=True))
    return DaysOfTraffic(hours, hours)


_QUEUE_WITH_STOPPED_FUNCTION = standard_queue(
    ApproximateNumberOfMessages=340,
    stopped_consumers=(LAMBDA_FUNCTION.function_arn,),
    sent=300,
    visible_now=340,
    fewest_visible_messages=40,
    oldest_age_seconds_now=25_200,
)

# A consumer that is no Lambda function read all day, and has not received for six hours.
_QUEUE_WITH_ENDED_CONSUMER = replace_values(
    _QUEUE_WITH_STOPPED_FUNCTION,
    stopped_consumers=(),
    ApproximateNumberOfMessages=4_650,
    sent=4_104,
    visible_now=4_650,
    fewest_visible_messages=546,
    days_of_traffic=_make_days(*range(8, 97)),
)

CONSUMER_STOPPED = NotifiedSymptom(
    name="consumer_stopped",
    sentence="The consumer that reads the queue has stopped or is switched off, and messages wait.",
    plan_in_words="Page with what waits, and how to see the event source mapping or the receives.",
    first_step="Start the consumer, or enable its event source mapping.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html",
    evidence_kinds=(EvidenceKind(SeverityClass.STANDING_STILL),),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    gives_way_to=EXPLAINING_SYMPTOMS,
    detection=Detection(
        detect,
        frozenset(
            {
                Need.LAMBDA_CONSUMERS,
                Need.MEASUREMENTS,
                Need.DLQ_SOURCES,
                Need.MOVE_TASKS,
                Need.DAYS_OF_TRAFFIC,
                Need.OPEN_CASES,
            }
        ),
        is_possible,
        detect_fact=detect_fact,
    ),
    examples=lambda: (
        QueueExample(
            "its only mapping is disabled", _QUEUE_WITH_STOPPED_FUNCTION, "consumer_stopped"
        ),
        QueueExample(
            "its only mapping is disabled, and the first messages came an hour ago",
            replace_values(
                _QUEUE_WITH_STOPPED_FUNCTION,
                fewest_visible_messages=0,
                recent=make_half_hours(
                    {"fewest_visible_messages": 0}, {"fewest_visible_messages": 40}
                ),
            ),
            "consumer_stopped",
        ),
        QueueExample(
            "nobody sends any more either",
            replace_values(_QUEUE_WITH_STOPPED_FUNCTION, sent=0),
            "consumer_stopped",
        ),
        QueueExample(
            "a consumer that is no Lambda function ended",
            _QUEUE_WITH_ENDED_CONSUMER,
            "consumer_ended",
        ),
        QueueExample(
            "a daily job did not run twice",
            replace_values(_QUEUE_WITH_ENDED_CONSUMER, days_of_traffic=_make_days(46, 70, 94)),
            "consumer_ended",
        ),
        QueueNearMiss(
            "a daily job, which runs again tonight",
            replace_values(_QUEUE_WITH_ENDED_CONSUMER, days_of_traffic=_make_days(23, 47, 71, 95)),
        ),
        QueueNearMiss(
            "a consumer that scales to zero for half a day",
            replace_values(
                _QUEUE_WITH_ENDED_CONSUMER, days_of_traffic=_make_days(12, 25, 26, 38, 50, 51)
            ),
        ),
        QueueNearMiss(
            "people look at an archive",
            replace_values(
                _QUEUE_WITH_ENDED_CONSUMER,
                days_of_traffic=DaysOfTraffic(_make_days(10, 11, 12, 13).hours_with_receives, ()),
            ),
        ),
        QueueNearMiss(
            "a job that runs once a week, in two hours",
            replace_values(
                _QUEUE_WITH_ENDED_CONSUMER,
                days_of_traffic=replace(
                    _make_days(30, 31), reported_since=EXAMPLE_TIME - timedelta(hours=96)
                ),
            ),
        ),
        QueueExample(
            "the consumer of a new queue ended after two hours",
            replace_values(
                _QUEUE_WITH_ENDED_CONSUMER,
                days_of_traffic=replace(
                    _make_days(8, 9), reported_since=EXAMPLE_TIME - timedelta(hours=9)
                ),
            ),
            "consumer_ended",
        ),
        QueueNearMiss(
            "read in a single hour of four days",
            replace_values(_QUEUE_WITH_ENDED_CONSUMER, days_of_traffic=_make_days(50)),
        ),
        QueueNearMiss(
            "three messages wait",
            replace_values(_QUEUE_WITH_ENDED_CONSUMER, visible_now=3, fewest_visible_messages=1),
        ),
        QueueNearMiss(
            "another function reads it",
            replace_values(_QUEUE_WITH_STOPPED_FUNCTION, lambda_consumers=(LAMBDA_FUNCTION,)),
        ),
        QueueNearMiss(
            "somebody else receives", replace_values(_QUEUE_WITH_STOPPED_FUNCTION, received=1)
        ),
        QueueNearMiss(
            "nothing waited all the while",
            replace_values(_QUEUE_WITH_STOPPED_FUNCTION, fewest_visible_messages=0),
        ),
        QueueNearMiss(
            "the messages of the last half hour came in it",
            replace_values(
                _QUEUE_WITH_STOPPED_FUNCTION,
                fewest_visible_messages=0,
                recent=make_half_hours(
                    {"fewest_visible_messages": 40}, {"fewest_visible_messages": 0}
                ),
            ),
        ),
        QueueNearMiss(
            "the messages of a container came lately",
            replace_values(
                _QUEUE_WITH_ENDED_CONSUMER,
                fewest_visible_messages=0,
                recent=make_half_hours({"fewest_visible_messages": 40}),
            ),
        ),
        QueueNearMiss(
            "an archive, which nobody ever read",
            replace_values(
                _QUEUE_WITH_STOPPED_FUNCTION, stopped_consumers=(), days_of_traffic=DaysOfTraffic()
            ),
        ),
        QueueNearMiss(
            "DLQ messages, read when somebody wants to", as_dlq(_QUEUE_WITH_STOPPED_FUNCTION)
        ),
    ),
)

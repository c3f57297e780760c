"""Consumers hold messages longer than the visibility timeout, so others receive them again."""

from __future__ import annotations

from typing import Any

from mendq.catalogue.configuration.invalid_request import (
    AFTER_OWN_DELETE,
    EXPIRED,
    LATE_DELETE,
)
from mendq.catalogue.examples import (
    DLQ_ARN,
    FUNCTION,
    STANDARD_ARN,
    as_dlq,
    failed_call,
    queue,
)
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    CallExample,
    CallNearMiss,
    DetectedFault,
    Detection,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
    SeenAs,
    seen_as_labelled,
)
from mendq.catalogue.visibility import needed_timeout as visibility
from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.failed_call import refusal_reason
from mendq.model.limits import Mode
from mendq.model.metrics import Measurement
from mendq.model.queue import Redrive
from mendq.model.steps import SetVisibilityTimeout
from mendq.model.tags import MAX_PROCESSING, MAX_VISIBILITY
from mendq.notifications.text import format_count, span

_BY_HANDLE = frozenset({"DeleteMessage", "ChangeMessageVisibility"})


def handle_has_expired(error_message: str) -> bool:
    return refusal_reason(error_message, "ReceiptHandle") == EXPIRED


def detect(facts: Facts) -> DetectedFault | None:
    """Messages that were handled twice, or died for want of time; a visibility timeout that is
    short and harms nobody yet is not told of.

    DLQ messages arrive without being counted as sent, as do messages that are moved back; what a
    consumer gives up is received again without a race.
    """
    measured = facts.measurement
    if measured is None or facts.move_task_running or facts.receives_only_dlq_messages:
        return None
    if visibility.failing_consumer(facts):
        return None
    if not measured.has_race:
        return _dead_for_want_of_time(facts, measured)
    surplus = measured.surplus_deletes
    came, dead = measured.deleted - surplus, _in_its_dlq(facts)
    often = f" after {measured.received / came:.1f} receives each" if dead and came else ""
    return DetectedFault(
        f"in {span(measured.duration)} {format_count(came, 'message')} left{often} and "
        f"{format_count(measured.deleted, 'delete')} came, about {surplus:,} too many: messages "
        f"were handled twice{dead}"
    )


def _dead_for_want_of_time(facts: Facts, measured: Measurement) -> DetectedFault | None:
    """Nobody deletes late, and messages die of receives that ended too soon.

    They die of errors just so: what tells the two apart is work that is known to take longer, by
    what Lambda measured rather than by a tag, which may be old, or by what consumers publish.
    """
    died, dead = measured.count_dead_messages(facts.max_receive_count or 0), _in_its_dlq(facts)
    needs = visibility.readable(facts)
    unmet = visibility.unmet(facts, [each for each in needs if each.is_measured] or needs)
    known = [*unmet, *visibility.published(facts, needs)]
    longest = max(known, key=lambda need: need.takes_seconds, default=None)
    if not died or not dead or longest is None or longest.takes_seconds <= facts.visibility_seconds:
        return None
    return DetectedFault(
        f"in {span(measured.duration)} {format_count(died, 'message')} left without a "
        f"delete after {measured.fruitless_receives / died:.1f} receives each, while "
        f"{longest.because}{dead}"
    )


def _in_its_dlq(facts: Facts) -> str:
    """What a sentence ends with where messages wait in its DLQ."""
    dlq, receives = facts.dlq, facts.max_receive_count
    if dlq is None or not dlq.visible or receives is None:
        return ""
    return (
        f". Its DLQ {dlq.name} holds {dlq.visible:,}: a message goes there after "
        f"{format_count(receives, 'receive')} (maxReceiveCount) of {facts.visibility_seconds:,} s "
        "each (VisibilityTimeout)"
    )


def is_suspect(facts: Facts) -> bool:
    """Work that could race, messages that died, or a need that is not covered."""
    has_dead = facts.dlq is not None and facts.dlq.visible > 0
    if has_dead or facts.visible + facts.in_flight > 0:
        return True
    return bool(visibility.unmet(facts, visibility.readable(facts)))


def _queue(seconds: int, tagged: int | None = None, **over: Any) -> Facts:
    """A queue with that visibility timeout, and maybe a tag that says how long work takes."""
    tags = {} if tagged is None else {MAX_PROCESSING_TAG: str(tagged)}
    return queue(tags, VisibilityTimeout=seconds, **over)


def _counted(tagged: int | None = 40, **over: Any) -> Facts:
    """A standard queue with a surplus of 200 deletes; `over` that."""
    race = {"sent": 1_000, "received": 1_250, "deleted": 1_200, "dlq_sources": ()}
    work = {"queue_arn": STANDARD_ARN, "ApproximateNumberOfMessagesNotVisible": 12}
    return _queue(30, tagged, **{**race, **work, **over})


def _dead(tagged: int | None = 40, **over: Any) -> Facts:
    """A standard queue, empty now, of whose messages 300 died after three receives; `over` that."""
    died = {"sent": 1_000, "received": 1_600, "deleted": 700}
    dlq = QueueFacts(DLQ_ARN, {"ApproximateNumberOfMessages": "300"})
    format_count = {"ApproximateNumberOfMessagesNotVisible": 0, "RedrivePolicy": _THREE, "dlq": dlq}
    return _counted(tagged, **{**died, **format_count, **over})


def _to(before: int, after: int) -> tuple[SetVisibilityTimeout]:
    return (SetVisibilityTimeout(before, after),)


_THREE = Redrive(DLQ_ARN, 3).text
_FED = _queue(30, lambda_consumers=(FUNCTION,))
_PUBLISHED = {"processing_p99_seconds": 80.0}
_TRIED_THRICE = {"received": 3_000, "deleted": 2_000}
_LATE_EXTENSION = failed_call("ChangeMessageVisibility", "MessageNotInflight")

VISIBILITY_TIMEOUT_TOO_SHORT = FixedSymptom(
    name="visibility_timeout_too_short",
    sentence="Consumers need longer than the visibility timeout, so messages are handled twice.",
    plan_in_words="Raise VisibilityTimeout to six times what a Lambda consumer may run, or one and "
    "a half times what a tag names, else by half; never over the ceiling, never in part.",
    habit="keeps outrunning its visibility timeout",
    aws_page=f"{SQS_GUIDE}/sqs-visibility-timeout.html",
    seen_as=(
        *seen_as_labelled("visibility_timeout_too_short"),
        SeenAs(_BY_HANDLE, "InvalidParameterValue", handle_has_expired),
    ),
    is_evidence=lambda call: not call.may_be_a_race,
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    steps=(SetVisibilityTimeout,),
    plan=visibility.plan_needed_timeout,
    autonomy=Mode.HEAL,
    detection=Detection(
        detect,
        frozenset({Need.MEASUREMENTS, Need.MOVE_TASKS, Need.DLQ_SOURCES, Need.DLQ}),
        is_suspect,
    ),
    tags=(MAX_PROCESSING, MAX_VISIBILITY),
    examples=lambda: (
        CallExample("a guess where nothing names the need", LATE_DELETE, _queue(30), _to(30, 45)),
        CallExample(
            "half as much again as the tag says", _LATE_EXTENSION, _queue(2, 20), _to(2, 30)
        ),
        CallExample("a Lambda consumer's timeout and window", _LATE_EXTENSION, _FED, _to(30, 185)),
        QueueExample("late deletes answer 200, and a tag says why", _counted(), _to(30, 60)),
        QueueExample("nothing names the need", _counted(None), "race_without_named_need"),
        QueueExample(
            "consumers publish what they need", _counted(None, **_PUBLISHED), _to(30, 120)
        ),
        QueueExample("a race, or retries", _counted(None, **_TRIED_THRICE), "race_or_retries"),
        QueueExample("all died of late deletes", _dead(received=3_000, deleted=3_000), _to(30, 60)),
        QueueExample("messages died undeleted, and the tag names more time", _dead(), _to(30, 60)),
        QueueExample("what is named is covered", _counted(20), "race_without_named_need"),
        QueueNearMiss("a surplus that inexact counters explain", _counted(deleted=1_050)),
        QueueNearMiss("one handle deleted twice", _counted(received=1_000)),
        QueueNearMiss("DLQ messages arrive here, which nobody sent", as_dlq(_counted())),
        QueueNearMiss("messages died, and nothing names more time", _dead(None)),
        CallNearMiss("an extension after the consumer's own delete", AFTER_OWN_DELETE),
        RefusalExample(
            "a need over the ceiling is not met in part", _queue(30, 601), "over_ceiling"
        ),
    ),
)

"""Symptom `visibility_timeout_too_short`: consumers need longer than the visibility timeout.

The fault: SQS hides a received message for the visibility timeout. If the work takes longer, SQS
returns the message to another consumer, and it is handled twice. With a DLQ, a good message can
also use up its receives and end up there.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html

How it shows: on a FIFO queue, a late DeleteMessage or ChangeMessageVisibility fails, and CloudTrail
records it. On a standard queue a late delete succeeds (HTTP 200), so only metrics show the fault:
there are more deletes than there are messages that left the queue, or messages reach the DLQ
although work is known to take longer than the timeout.

A batch: a consumer that receives ten messages and works on them one after the other holds the last
one for ten times the work. The tag names the time for one message. If that fits the timeout and
messages are late all the same, the batch is the likely reason (`find_batch_need`).

What Mendq changes: it raises `VisibilityTimeout` to what `needed_timeout.py` plans: AWS's advice
for a Lambda function, or one and a half times what a tag or the consumers name, for one message or
for a batch of ten, or a guess.

Why that is safe: a longer timeout loses nothing; it only delays the retry after a crash. The plan
stays below a ceiling, below the retention period, and below the limit on messages in flight. If
the consumer fails, the timeout is not raised. If the needed time is known only from what consumers
publish, or only from a tag while messages merely reached the DLQ, a person approves the change.
"""

from __future__ import annotations

from typing import Any

from mendq.catalogue.configuration.invalid_request import (
    EXTENSION_CALL_AFTER_DELETE,
    LATE_DELETE_CALL,
)
from mendq.catalogue.examples import (
    DLQ_ARN,
    LAMBDA_FUNCTION,
    STANDARD_ARN,
    as_dlq,
    failed_call,
    queue,
    replace_values,
    standard_queue,
)
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    CallExample,
    CallNearMiss,
    DetectedFault,
    Detection,
    EvidenceKind,
    FailedCallPattern,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
    make_code_patterns,
)
from mendq.catalogue.visibility import needed_timeout as visibility
from mendq.catalogue.visibility.heartbeat_ends_early import does_heartbeat_end_early
from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.failed_call import is_expired_handle_message
from mendq.model.frameworks import CONSUMER_TAG
from mendq.model.metrics import Measurement, RecentCounts
from mendq.model.mode import Mode
from mendq.model.queue import RedrivePolicy
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import SetVisibilityTimeout
from mendq.model.tags import MAX_PROCESSING, MAX_VISIBILITY
from mendq.notifications.text import format_count, format_duration

# Calls that name a message by its receipt handle, which expires with the visibility timeout.
_CALLS_WITH_RECEIPT_HANDLE = frozenset({"DeleteMessage", "ChangeMessageVisibility"})
_DUPLICATES = EvidenceKind(
    SeverityClass.LOSING, "messages are handled twice, or reach the DLQ because of the timeout"
)
# A timeout that has done no harm yet, as lint finds it. Lambda compares the two timeouts when a
# mapping is created or changed.
REFUSED_BY_LAMBDA = EvidenceKind(
    SeverityClass.STANDING_STILL,
    "in a template: the timeout is below the function's own, so Lambda refuses the mapping",
    is_of_template=True,
)
BELOW_NEED = EvidenceKind(
    SeverityClass.WILL_LOSE,
    "in a template: the timeout is below what a tag asks, or what a pipe's functions may run",
    is_of_template=True,
)
BELOW_ADVICE = EvidenceKind(
    SeverityClass.MAY_LOSE,
    "in a template: the timeout is below six times the function's, which AWS advises",
    is_of_template=True,
)


def detect(facts: Facts) -> DetectedFault | None:
    """Find messages that were handled twice, or that reached the DLQ because work takes longer.

    A timeout that is short and has done no harm yet is not reported. The result is also None if
    the counts are misleading:

    - on a DLQ and while a message movement task runs, because SQS does not count the messages that
      it moves as sent;
    - if a Lambda function fails, because it receives its own messages again.

    Consumers whose heartbeat ends early are reported by `heartbeat_ends_early`.
    """
    measurement = facts.measurement
    if measurement is None or facts.move_task_running or facts.receives_only_dlq_messages:
        return None
    if visibility.find_failing_function(facts) or does_heartbeat_end_early(facts):
        return None
    if not measurement.has_consumer_race:
        return _detect_early_deaths(facts, measurement)
    surplus_delete_count = measurement.surplus_deletes
    finished_message_count = measurement.deleted - surplus_delete_count
    dlq_sentence = _describe_dlq(facts)
    mean_receives_text = ""
    if dlq_sentence and finished_message_count:
        mean_receives_text = (
            f" after {measurement.received / finished_message_count:.1f} receives each"
        )
    return DetectedFault(
        f"in {format_duration(measurement.duration)} "
        f"{format_count(finished_message_count, 'message')} "
        f"left{mean_receives_text} and {format_count(measurement.deleted, 'delete')} came, about "
        f"{surplus_delete_count:,} too many: messages were handled twice{dlq_sentence}"
    )


def _detect_early_deaths(facts: Facts, measurement: Measurement) -> DetectedFault | None:
    """Find messages that reached the DLQ because the visibility timeout ended before the work did.

    Messages that reach a DLQ because of errors cause the same counts. So the result is a fault only
    if work is known to take longer than the timeout. A tag, which may be old, counts only if Lambda
    has measured no duration. Durations that consumers publish count too.
    """
    dead_message_count = measurement.count_dead_messages(facts.max_receive_count or 0)
    dlq_sentence = _describe_dlq(facts)
    needs = visibility.list_readable_needs(facts)
    measured_needs = [need for need in needs if need.is_measured]
    candidate_needs = [
        *visibility.list_unmet_needs(facts, measured_needs or needs),
        *visibility.list_published_needs(facts, needs),
    ]
    need_with_longest_work_seconds = max(
        candidate_needs, key=lambda need: need.work_seconds, default=None
    )
    if not dead_message_count or not dlq_sentence or need_with_longest_work_seconds is None:
        return None
    if need_with_longest_work_seconds.work_seconds <= facts.visibility_seconds:
        return None
    return DetectedFault(
        f"in {format_duration(measurement.duration)} {format_count(dead_message_count, 'message')} "
        f"left without a delete after {measurement.fruitless_receives / dead_message_count:.1f} "
        f"receives each, while {need_with_longest_work_seconds.source_text}{dlq_sentence}"
    )


def _describe_dlq(facts: Facts) -> str:
    """Return the end of a sentence about the messages in the queue's DLQ; empty if it has none."""
    dlq = facts.dlq
    max_receive_count = facts.max_receive_count
    if dlq is None or not dlq.visible or max_receive_count is None:
        return ""
    return (
        f". Its DLQ {dlq.name} holds {dlq.visible:,}: a message goes there after "
        f"{format_count(max_receive_count, 'receive')} (maxReceiveCount) of "
        f"{facts.visibility_seconds:,} s "
        "each (VisibilityTimeout)"
    )


def _make_example_queue(
    visibility_seconds: int, max_processing_seconds: int | None = None, **overrides: Any
) -> Facts:
    """Return a FIFO queue with this visibility timeout.

    `max_processing_seconds` is the value of the tag that says how long work takes; None for no tag.
    """
    tags = (
        {} if max_processing_seconds is None else {MAX_PROCESSING_TAG: str(max_processing_seconds)}
    )
    return queue(tags, VisibilityTimeout=visibility_seconds, **overrides)


def _make_queue_with_double_handling(
    max_processing_seconds: int | None = 40, **overrides: Any
) -> Facts:
    """Return a standard queue with 200 more deletes than messages. `overrides` has other values."""
    traffic_counts = {"sent": 1_000, "received": 1_250, "deleted": 1_200, "dlq_sources": ()}
    queue_values = {"queue_arn": STANDARD_ARN, "ApproximateNumberOfMessagesNotVisible": 12}
    return _make_example_queue(
        30, max_processing_seconds, **{**traffic_counts, **queue_values, **overrides}
    )


def _make_queue_with_few_double_deletes(*surpluses: int, has_receives: bool = True) -> Facts:
    """Return a standard queue with these surplus deletes, one number for each half of the time."""
    halves = list[Measurement]()
    for surplus in surpluses:
        received = 50 + surplus * has_receives
        facts = standard_queue(sent=50, received=received, deleted=50 + surplus)
        assert facts.measurement is not None  # noqa: S101 - the counts above make one
        halves.append(facts.measurement)
    total = sum(surpluses)
    return _make_queue_with_double_handling(
        sent=100,
        received=100 + total * has_receives,
        deleted=100 + total,
        recent=RecentCounts(halves=tuple(halves)),
    )


def _make_queue_with_dead_messages(
    max_processing_seconds: int | None = 40, **overrides: Any
) -> Facts:
    """Return an empty standard queue that lost 300 messages to its DLQ after three receives."""
    traffic_counts = {"sent": 1_000, "received": 1_600, "deleted": 700}
    dlq = QueueFacts(DLQ_ARN, {"ApproximateNumberOfMessages": "300"})
    queue_values = {
        "ApproximateNumberOfMessagesNotVisible": 0,
        "RedrivePolicy": _THREE_RECEIVES_POLICY,
        "dlq": dlq,
    }
    return _make_queue_with_double_handling(
        max_processing_seconds, **{**traffic_counts, **queue_values, **overrides}
    )


def _make_timeout_steps(
    timeout_seconds_before: int, timeout_seconds_after: int
) -> tuple[SetVisibilityTimeout]:
    return (SetVisibilityTimeout(timeout_seconds_before, timeout_seconds_after),)


_THREE_RECEIVES_POLICY = RedrivePolicy(DLQ_ARN, 3).text
_QUEUE_READ_BY_LAMBDA = _make_example_queue(30, lambda_consumers=(LAMBDA_FUNCTION,))
_PUBLISHED_PROCESSING_TIME = {"processing_p99_seconds": 80.0}
_COUNTS_OF_THREE_RECEIVES_PER_TWO_DELETES = {"received": 3_000, "deleted": 2_000}
_LATE_EXTENSION_CALL = failed_call("ChangeMessageVisibility", "MessageNotInflight")

VISIBILITY_TIMEOUT_TOO_SHORT = FixedSymptom(
    name="visibility_timeout_too_short",
    sentence="Consumers need longer than the visibility timeout, so messages are handled twice.",
    plan_in_words="Raise VisibilityTimeout to six times what a Lambda consumer may run, or one and "
    "a half times what a tag names, else by half; never over "
    "limits.visibilityCeilingSeconds, never in part.",
    habit="keeps outrunning its visibility timeout",
    first_step="Raise the visibility timeout above the longest processing time.",
    aws_page=f"{SQS_GUIDE}/sqs-visibility-timeout.html",
    evidence_kinds=(_DUPLICATES, REFUSED_BY_LAMBDA, BELOW_NEED, BELOW_ADVICE),
    seen_as=(
        *make_code_patterns("visibility_timeout_too_short"),
        FailedCallPattern(
            _CALLS_WITH_RECEIPT_HANDLE, "InvalidParameterValue", is_expired_handle_message
        ),
    ),
    is_evidence=lambda call: not call.may_be_a_race,
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    steps=(SetVisibilityTimeout,),
    plan=visibility.plan_needed_timeout,
    autonomy=Mode.HEAL,
    detection=Detection(
        detect,
        frozenset(
            {Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS, Need.MOVE_TASKS, Need.DLQ_SOURCES, Need.DLQ}
        ),
    ),
    tags=(MAX_PROCESSING, MAX_VISIBILITY, CONSUMER_TAG),
    examples=lambda: (
        CallExample(
            "a guess where nothing names the need",
            LATE_DELETE_CALL,
            _make_example_queue(30),
            _make_timeout_steps(30, 45),
        ),
        CallExample(
            "half as much again as the tag says",
            _LATE_EXTENSION_CALL,
            _make_example_queue(2, 20),
            _make_timeout_steps(2, 30),
        ),
        CallExample(
            "late deletes of a batch",
            LATE_DELETE_CALL,
            _make_example_queue(30, 5, delete_interval_seconds=5.0),
            _make_timeout_steps(30, 75),
        ),
        CallExample(
            "a Lambda consumer's timeout and window",
            _LATE_EXTENSION_CALL,
            _QUEUE_READ_BY_LAMBDA,
            _make_timeout_steps(30, 185),
        ),
        QueueExample(
            "late deletes answer 200, and a tag says why",
            _make_queue_with_double_handling(),
            _make_timeout_steps(30, 60),
        ),
        QueueExample(
            "a few messages, in both halves of the time",
            _make_queue_with_few_double_deletes(6, 6),
            _make_timeout_steps(30, 60),
        ),
        QueueExample(
            "nothing names the need",
            _make_queue_with_double_handling(None),
            "race_without_named_need",
        ),
        QueueExample(
            "consumers publish what they need",
            _make_queue_with_double_handling(None, **_PUBLISHED_PROCESSING_TIME),
            _make_timeout_steps(30, 120),
        ),
        QueueExample(
            "a race, or retries",
            _make_queue_with_double_handling(None, **_COUNTS_OF_THREE_RECEIVES_PER_TWO_DELETES),
            "race_or_retries",
        ),
        QueueExample(
            "a batch worked one by one, or retries",
            _make_queue_with_double_handling(10, **_COUNTS_OF_THREE_RECEIVES_PER_TWO_DELETES),
            "race_or_retries",
        ),
        QueueExample(
            "all died of late deletes",
            _make_queue_with_dead_messages(received=3_000, deleted=3_000),
            _make_timeout_steps(30, 60),
        ),
        QueueExample(
            "messages died undeleted, and the tag names more time",
            _make_queue_with_dead_messages(),
            _make_timeout_steps(30, 60),
        ),
        QueueExample(
            "one message fits, and a batch worked one by one does not",
            _make_queue_with_double_handling(20),
            _make_timeout_steps(30, 300),
        ),
        QueueExample(
            "a batch does not fit below the ceiling",
            replace_values(_make_queue_with_double_handling(61), VisibilityTimeout=92),
            "batch_too_long",
        ),
        QueueExample(
            "a batch fits too",
            _make_queue_with_double_handling(3),
            "race_despite_named_need",
        ),
        QueueNearMiss(
            "a surplus that inexact counters explain",
            _make_queue_with_double_handling(deleted=1_050),
        ),
        QueueNearMiss(
            "a few messages, in one half of the time only",
            _make_queue_with_few_double_deletes(12, 0),
        ),
        QueueNearMiss(
            "a few messages, and one handle deleted twice",
            _make_queue_with_few_double_deletes(6, 6, has_receives=False),
        ),
        QueueNearMiss(
            "consumers extend the timeout or set their own, and it ends too early",
            _make_queue_with_double_handling(in_flight_seconds=216_000.0),
        ),
        QueueNearMiss("one handle deleted twice", _make_queue_with_double_handling(received=1_000)),
        QueueNearMiss(
            "DLQ messages arrive here, which nobody sent",
            as_dlq(_make_queue_with_double_handling()),
        ),
        QueueNearMiss(
            "messages died, and nothing names more time", _make_queue_with_dead_messages(None)
        ),
        CallNearMiss("an extension after the consumer's own delete", EXTENSION_CALL_AFTER_DELETE),
        RefusalExample(
            "late deletes as far apart as one message at a time makes them",
            _make_example_queue(30, 5, delete_interval_seconds=30.0),
            "need_already_met",
        ),
        RefusalExample(
            "a need over the ceiling is not met in part",
            _make_example_queue(30, 601),
            "over_ceiling",
        ),
    ),
)

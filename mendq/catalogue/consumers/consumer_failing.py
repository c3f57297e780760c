"""Symptom `consumer_failing`: consumers receive messages and do not finish them.

The fault: the consumers' code fails, or gives messages back. Each message is received again and
again, and more and more wait. With a DLQ, good messages end up there after `maxReceiveCount`
receives.

How it shows: most receives are not followed by a delete, and consumers delete fewer messages than
arrive. Or only a part of the messages fails: the DLQ takes them, or they add to a growing backlog.
Messages that are given back and finished later are no failure. If nothing was deleted, hourly sums
of four days tell whether consumers usually wait for so long.
`find_failing_consumers` in `mendq/catalogue/dlq/attach.py` has the rules and the limits.

On a FIFO queue, consumers that hold messages longer than the visibility timeout cause the same
counts, because a late delete fails there. CloudTrail's records of these calls tell both apart:
while they explain the counts, this symptom gives way to `visibility_timeout_too_short`. If Lambda
throttles the function, its code may be sound: then `consumer_throttled` is reported alone.

What Mendq does: it notifies people, with the numbers and the place of the errors. If the DLQ takes
at most a fifth of the messages, it records a case without a page. It changes nothing, because no
attribute of a queue fixes a consumer. A longer visibility timeout would only slow the retries of a
consumer that fails, and a new DLQ would take every message.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from mendq.catalogue.consumers.consumer_throttled import do_throttles_explain_receives
from mendq.catalogue.dlq.attach import (
    EXPLAINING_SYMPTOMS,
    NOTHING_FINISHED,
    SOME_FAIL,
    do_consumers_fail_in_small_part,
    find_failing_consumers,
)
from mendq.catalogue.examples import (
    DLQ_ARN,
    EXAMPLE_TIME,
    FAILING_FUNCTION,
    LAMBDA_FUNCTION,
    QUEUE_ARN,
    as_dlq,
    measurement,
    queue_with_dlq,
    replace_values,
    standard_queue,
)
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.catalogue.visibility.needed_timeout import find_failing_function
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.limits import Limits
from mendq.model.metrics import DaysOfTraffic, RecentCounts
from mendq.model.plan import Escalate, Refusal, Refuse
from mendq.model.queue import RedrivePolicy
from mendq.notifications.commands import function_log_command, show_metric_command


def detect(facts: Facts) -> DetectedFault | None:
    """Find consumers that do not finish messages.

    Return None if Lambda does not run them, or if nothing was deleted and these days show that
    consumers often give messages back for so long and finish them then.
    """
    if do_throttles_explain_receives(facts) or _is_wait_usual(facts):
        return None
    return find_failing_consumers(facts)


def _is_wait_usual(facts: Facts) -> bool:
    """Return True if the consumers often go as long as this without a delete.

    Return False if the traffic of the last four days was not read. Return False also if the queue
    has a DLQ, because messages that consumers give back that long move there.
    """
    measurement = facts.measurement
    return (
        measurement is not None
        and measurement.deleted == 0
        and facts.dlq_arn is None
        and facts.days_of_traffic is not None
        and facts.days_of_traffic.is_wait_usual
    )


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: no attribute of the queue fixes a consumer.

    It pages, except if the DLQ takes a small part of the messages and consumers finish the others.
    """
    consequence_text = (
        f"after {facts.max_receive_count:,} receives a message goes to {facts.dlq_arn}"
        if facts.max_receive_count
        else "there is no DLQ, so a message that fails comes back until it expires. Attach a DLQ "
        "only when the consumers work: before that it would take every message"
    )
    reason = f"{facts.found}. {_describe_causes(facts)}. Now {consequence_text}"
    if do_consumers_fail_in_small_part(facts):
        return Refuse("consumer_failing", reason, _make_errors_command(facts))
    return Escalate("consumer_failing", reason, _make_errors_command(facts))


def _describe_causes(facts: Facts) -> str:
    """Return what the counts can mean, and if a longer visibility timeout can help."""
    if facts.is_fifo and find_failing_function(facts) is None:
        return (
            "Its consumers fail, give the messages back, or hold them longer than the visibility "
            f"timeout of {facts.visibility_seconds:,} s: on a FIFO queue a late delete fails, so "
            "all three look alike here. If their errors say that a receipt handle has expired, "
            "raise the timeout or receive fewer messages at a time. Otherwise a longer timeout "
            "would only slow the retries"
        )
    return (
        "Its consumers fail, or give the messages back: look at their errors. A longer visibility "
        "timeout would only slow the retries"
    )


def _make_errors_command(facts: Facts) -> str:
    """Return the command that shows the log of a failing Lambda function.

    Without such a function, return the command that shows the number of receives.
    """
    failing_function = find_failing_function(facts)
    if failing_function is None:
        return show_metric_command(
            facts.queue_arn, "NumberOfMessagesReceived", "Sum", facts.measurement
        )
    return function_log_command(facts.queue_arn, failing_function.name, facts.measurement)


def _make_example_queue(
    sent: int = 1_000, received: int = 3_000, deleted: int = 400, **overrides: Any
) -> Facts:
    """Return a queue whose consumers do not finish most messages, unless other counts are given.

    `overrides` has further values for `standard_queue`.
    """
    traffic_counts = {"sent": sent, "received": received, "deleted": deleted}
    return standard_queue(ApproximateNumberOfMessagesNotVisible=5, **traffic_counts, **overrides)


_QUEUE_OF_FAILING_FUNCTION = _make_example_queue(
    12, 60, 2, backlog_now=10, lambda_consumers=(FAILING_FUNCTION,)
)
_UNCHANGED_OLDEST_MESSAGE_COUNTS = {"oldest_age_seconds_now": 21_600, "groups_in_flight_now": 1}
_QUEUE_WITHOUT_DELETES = _make_example_queue(60, 1_200, 0, backlog_now=60)
_QUEUE_WITH_RETRIES = _make_example_queue(420, 840, 420)
_QUEUE_WITH_THREE_BAD_MESSAGES = _make_example_queue(140, 500, 137, backlog_now=3)
_QUEUE_LOSING_MESSAGES_TO_DLQ = queue_with_dlq(
    ApproximateNumberOfMessages=3, sent=900, received=4_500, deleted=90
)
_UNCHANGED_BACKLOG_COUNTS = {"backlog_before": 1_000, "backlog_now": 1_000}
_QUEUE_WITH_BLOCKED_GROUP = _make_example_queue(
    300,
    720,
    0,
    queue_arn=QUEUE_ARN,
    backlog_now=300,
    in_flight_now=1,
    **_UNCHANGED_OLDEST_MESSAGE_COUNTS,
)
# The DLQ takes what fails at once, so the queue is empty in most minutes.
_EMPTY_QUEUE_OF_FAILING_CONSUMER = queue_with_dlq(
    dlq=QueueFacts(DLQ_ARN, {"ApproximateNumberOfMessages": "1867"}),
    sent=1_867,
    received=9_335,
    deleted=0,
)
_QUEUE_OF_CONSUMER_FAILING_IN_PART = queue_with_dlq(
    3,
    dlq=_EMPTY_QUEUE_OF_FAILING_CONSUMER.dlq,
    sent=4_962,
    received=7_902,
    deleted=3_475,
    in_flight_now=4,
    backlog_now=4,
)
_QUEUE_WITH_SIX_FAILED_MESSAGES = queue_with_dlq(
    3, dlq=_EMPTY_QUEUE_OF_FAILING_CONSUMER.dlq, sent=100, received=112, deleted=94
)
# Consumers fail at 6,242 of 33,160 receives, and more messages arrive than they can handle.
_QUEUE_WITH_FAILURES_AND_GROWING_BACKLOG = _make_example_queue(
    73_852, 33_160, 26_918, backlog_now=46_924, usual_in_flight=10
)
_QUEUE_WITH_BURST_OF_MESSAGES_GIVEN_BACK = _make_example_queue(
    4_842,
    18_603,
    4_146,
    backlog_now=696,
    recent=RecentCounts(half_hours=(measurement(fewest_messages=0),) * 2),
)


def _make_days(*waits: tuple[int, int]) -> DaysOfTraffic:
    """Return days with waits, each as the hours since its first receive and its length in hours.

    A delete ends each wait. The last six hours have receives and no delete.
    """
    hours_of_receives = [*range(6)]
    hours_of_deletes = [96]
    for first, length in waits:
        hours_of_receives += range(first - length + 1, first + 1)
        hours_of_deletes.append(first - length)
    return DaysOfTraffic(
        tuple(EXAMPLE_TIME - timedelta(hours=hour) for hour in sorted(hours_of_receives)[::-1]),
        tuple(EXAMPLE_TIME - timedelta(hours=hour) for hour in sorted(hours_of_deletes)[::-1]),
    )


def _make_throttled_queue(throttled_share: float | None, **values: Any) -> Facts:
    """Return a queue whose messages are not finished, and whose function Lambda throttles."""
    function = replace(LAMBDA_FUNCTION, throttled_share=throttled_share, **values)
    return replace_values(_make_example_queue(backlog_now=600), lambda_consumers=(function,))


CONSUMER_FAILING = NotifiedSymptom(
    name="consumer_failing",
    sentence="Consumers receive messages and do not finish them, so more and more wait.",
    plan_in_words="Page with the numbers, and what to look for in the consumers' errors; without a "
    "page if a DLQ takes at most a fifth.",
    first_step="Read the consumer's errors, and fix them.",
    aws_page=f"{SQS_GUIDE}/sqs-available-cloudwatch-metrics.html",
    evidence_kinds=(NOTHING_FINISHED, SOME_FAIL),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    gives_way_to=EXPLAINING_SYMPTOMS,
    detection=Detection(
        detect,
        frozenset(
            {
                Need.LAMBDA_CONSUMERS,
                Need.MEASUREMENTS,
                Need.MOVE_TASKS,
                Need.DLQ_SOURCES,
                Need.OPEN_CASES,
                Need.DAYS_OF_TRAFFIC,
            }
        ),
    ),
    examples=lambda: (
        QueueExample(
            "most messages are not finished",
            _make_example_queue(backlog_now=600),
            "consumer_failing",
        ),
        QueueExample(
            "the same on a FIFO queue, and no late call explains it",
            _make_example_queue(queue_arn=QUEUE_ARN, backlog_now=600),
            "consumer_failing",
        ),
        QueueExample("few messages, none finished", _QUEUE_WITHOUT_DELETES, "consumer_failing"),
        QueueExample("most moved to the DLQ", _QUEUE_LOSING_MESSAGES_TO_DLQ, "consumer_failing"),
        QueueExample(
            "nothing is finished, and the DLQ leaves the queue empty",
            _EMPTY_QUEUE_OF_FAILING_CONSUMER,
            "consumer_failing",
        ),
        QueueExample(
            "none of five messages is finished, and the DLQ takes them",
            replace_values(_EMPTY_QUEUE_OF_FAILING_CONSUMER, sent=5, received=25),
            "consumer_failing",
        ),
        QueueExample(
            "the DLQ takes a third of the messages",
            _QUEUE_OF_CONSUMER_FAILING_IN_PART,
            "consumer_failing",
        ),
        QueueExample(
            "the DLQ takes a third of the messages at their first failure",
            replace_values(
                _QUEUE_OF_CONSUMER_FAILING_IN_PART,
                RedrivePolicy=RedrivePolicy(DLQ_ARN, 1).text,
                received=4_962,
            ),
            "consumer_failing",
        ),
        QueueExample(
            "the DLQ takes 21 of 61 messages",
            replace_values(
                _QUEUE_OF_CONSUMER_FAILING_IN_PART,
                sent=61,
                received=103,
                deleted=40,
                in_flight_now=0,
                backlog_now=0,
            ),
            "consumer_failing",
        ),
        QueueExample(
            "a part fails while the backlog grows",
            _QUEUE_WITH_FAILURES_AND_GROWING_BACKLOG,
            "consumer_failing",
        ),
        QueueExample(
            "a Lambda function fails, on a quiet queue",
            _QUEUE_OF_FAILING_FUNCTION,
            "consumer_failing",
        ),
        RefusalExample(
            "the DLQ takes 6 of 100 messages: no page",
            replace(
                _QUEUE_WITH_SIX_FAILED_MESSAGES,
                found="in 6 h consumers failed at about 6 messages, which moved to the DLQ",
            ),
            "consumer_failing",
        ),
        QueueExample(
            "most fail, and a tenth of the runs is throttled",
            _make_throttled_queue(0.1),
            "consumer_failing",
        ),
        QueueExample(
            "nothing is finished, and a consumer once failed for longer",
            replace(_QUEUE_WITHOUT_DELETES, days_of_traffic=_make_days((30, 9))),
            "consumer_failing",
        ),
        QueueExample(
            "nothing is finished, for longer than usual",
            replace(_QUEUE_WITHOUT_DELETES, days_of_traffic=_make_days((80, 3), (55, 3), (30, 9))),
            "consumer_failing",
        ),
        QueueNearMiss(
            "given back for ten hours each night",
            replace(_QUEUE_WITHOUT_DELETES, days_of_traffic=_make_days((80, 9), (55, 9), (30, 9))),
        ),
        QueueNearMiss("most runs are throttled", _make_throttled_queue(0.8)),
        QueueNearMiss(
            "the function's reserved concurrency is 0",
            _make_throttled_queue(None, reserved_concurrency=0),
        ),
        QueueNearMiss(
            "given back four times each, and all finished within seconds",
            _make_example_queue(4_142, 18_603, 4_146, highest_oldest_age_seconds=21),
        ),
        QueueNearMiss(
            "a burst that is still given back and finished",
            _QUEUE_WITH_BURST_OF_MESSAGES_GIVEN_BACK,
        ),
        QueueNearMiss(
            "a part is given back at once while the backlog grows",
            replace_values(_QUEUE_WITH_FAILURES_AND_GROWING_BACKLOG, usual_in_flight=4),
        ),
        QueueNearMiss(
            "the DLQ takes one message in a hundred",
            replace_values(_QUEUE_OF_CONSUMER_FAILING_IN_PART, received=5_060, deleted=4_908),
        ),
        QueueNearMiss(
            "the DLQ takes 3 of 60 messages, which SQS counts too inexactly",
            replace_values(
                _QUEUE_OF_CONSUMER_FAILING_IN_PART,
                sent=60,
                received=66,
                deleted=57,
                in_flight_now=0,
                backlog_now=0,
            ),
        ),
        QueueNearMiss(
            "one message went to the DLQ, and no other came",
            replace_values(_EMPTY_QUEUE_OF_FAILING_CONSUMER, sent=1, received=5),
        ),
        QueueNearMiss(
            "a person looks at some messages of a queue without a consumer",
            _make_example_queue(
                432, 150, 0, backlog_now=432, minutes_with_receives=15, fewest_messages=1
            ),
        ),
        QueueNearMiss("half are given back twice, all are finished", _QUEUE_WITH_RETRIES),
        QueueNearMiss(
            "the same by Lambda",
            replace_values(_QUEUE_WITH_RETRIES, lambda_consumers=(FAILING_FUNCTION,)),
        ),
        QueueNearMiss("every message takes three tries", _make_example_queue(deleted=1_000)),
        QueueNearMiss(
            "what waits does not grow",
            _make_example_queue(500, 4_000, 500, **_UNCHANGED_BACKLOG_COUNTS),
        ),
        QueueNearMiss(
            "three bad messages, the others are finished", _QUEUE_WITH_THREE_BAD_MESSAGES
        ),
        QueueNearMiss(
            "more deletes than messages, some of them late", _make_example_queue(deleted=1_400)
        ),
        QueueNearMiss("one message holds up its group", _QUEUE_WITH_BLOCKED_GROUP),
        QueueNearMiss(
            "people look at DLQ messages",
            as_dlq(_make_example_queue(0, 3_000, 0, backlog_before=500, backlog_now=500)),
        ),
        QueueNearMiss(
            "late calls have opened a case already",
            _make_example_queue(backlog_now=600, open_symptoms=EXPLAINING_SYMPTOMS),
        ),
        QueueNearMiss(
            "late calls on a FIFO queue had a case that Mendq refused",
            _make_example_queue(
                queue_arn=QUEUE_ARN, backlog_now=600, refused_symptoms=EXPLAINING_SYMPTOMS
            ),
        ),
        QueueNearMiss(
            "DLQ messages are being moved back",
            _make_example_queue(backlog_now=600, move_task_running=True),
        ),
    ),
)

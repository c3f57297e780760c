"""Symptom `dlq_missing`: no DLQ takes the messages that consumers cannot handle.

The fault: without a DLQ, a message that always fails is received again and again until it expires.
It costs receives, delays others, and is lost at the end without anybody having seen it. The same
happens if RedrivePolicy names a queue that was deleted.

How it shows: in the configuration, if RedrivePolicy names a missing queue, or if a Lambda function
reads a queue without a DLQ. In a template, an EventBridge pipe counts as well. For other consumers
only CloudWatch shows it: a few messages stay in the queue and are received once per visibility
timeout.

What Mendq changes: it makes the queue that RedrivePolicy names, or makes a DLQ and attaches it with
a `maxReceiveCount` that good messages do not reach. `attach.py` has the rules.

Why that is safe: a message in a DLQ is kept for 14 days and can be sent back. No DLQ is made while
consumers fail or the visibility timeout is too short, because it would take good messages. In a
FIFO queue a person approves it in every mode, because the order changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from math import exp, sqrt
from statistics import median

from mendq.catalogue.dlq.attach import (
    SYMPTOMS_TO_FIX_FIRST,
    find_missing_dlq,
    has_no_dlq,
    plan_named_dlq,
    plan_new_dlq,
)
from mendq.catalogue.dlq.moved_along import describe_possible_loss, require_approval
from mendq.catalogue.examples import (
    DLQ_ARN,
    FAILING_FUNCTION,
    LAMBDA_FUNCTION,
    STANDARD_ARN,
    as_dlq,
    make_half_hours,
    queue_with_dlq,
    replace_values,
    standard_queue,
)
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.dlq import arn_of_quarantine, make_dlq_attributes
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.frameworks import CONSUMER_TAG
from mendq.model.limits import Limits
from mendq.model.metrics import DATAPOINT_PERIOD, HALF_HOUR, Measurement
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import (
    DEFAULT_MAX_RECEIVE_COUNT,
    DLQ_SUFFIX,
    FIFO_SUFFIX,
    MOST_RECEIVES_BEFORE_DLQ,
    RedrivePolicy,
)
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.text import format_count, format_duration

# Messages come back often if there are more than this many receives for each delete. If consumers
# fail by chance, the queue is still empty at times. That it was never empty counts only if such
# chance explains it less often than in this share of the scans.
MAXIMUM_NORMAL_RECEIVES_PER_DELETE = 3
MAXIMUM_CHANCE_OF_FULL_QUEUE = 0.001
# A receive "in vain" is one that no delete follows. A message that never finishes is received in
# vain once in each visibility timeout ("try"). Look for such messages only if the measured time
# covers at least LEAST_TIMEOUTS_MEASURED timeouts. Report them only if there are at least
# MINIMUM_ESTIMATED_BAD_MESSAGES times as many receives in vain as one such message would cause.
LEAST_TIMEOUTS_MEASURED = 10
MINIMUM_ESTIMATED_BAD_MESSAGES = 0.5
# The receives in vain divided by the tries estimate the number of bad messages. The least number of
# messages in the queue must be between MINIMUM_MESSAGES_PER_BAD_MESSAGE and
# MAXIMUM_MESSAGES_PER_BAD_MESSAGE times this estimate. The estimate is too low if consumers set a
# longer visibility timeout for a message. With at most MAXIMUM_BAD_MESSAGES_CALLED_FEW bad
# messages, changes of the backlog are compared with chance only if the least number of messages is
# larger than the estimate explains.
MINIMUM_MESSAGES_PER_BAD_MESSAGE = 0.8
MAXIMUM_MESSAGES_PER_BAD_MESSAGE = 10
MAXIMUM_BAD_MESSAGES_CALLED_FEW = 10
# The half of the time with fewer receives in vain must have at least this share of the receives in
# vain of the other half. Otherwise the failures were short-lived.
MINIMUM_RATIO_BETWEEN_HALVES_OF_TIME = 0.4
# A stretch is half an hour. These are the stretches of the last hour, and the least number of
# stretches that must be known of a busy queue.
STRETCH_COUNT_OF_LAST_HOUR = 2
MINIMUM_STRETCHES_OF_BUSY_QUEUE = 8
# On a busy queue, at most this share of the receives is in vain, and consumers finish the backlog
# within this many minutes.
MAXIMUM_SHARE_OF_RECEIVES_IN_VAIN_ON_BUSY_QUEUE = 0.1
MAXIMUM_MINUTES_TO_FINISH_BACKLOG = 5
# If nothing is deleted, and there were receives in at most this many minutes, people looked at the
# messages and no consumer reads the queue.
MAXIMUM_MINUTES_OF_LOOKS = 8
# An open case of these symptoms reports the same fault more exactly.
EXPLAINING_SYMPTOMS = frozenset({"fifo_group_blocked"})
_DETECTION_NEEDS = frozenset(
    {
        Need.QUEUE,
        Need.LAMBDA_CONSUMERS,
        Need.MEASUREMENTS,
        Need.MOVE_TASKS,
        Need.DLQ,
        Need.DLQ_SOURCES,
        Need.DLQ_NAMESAKE,
        Need.OPEN_CASES,
    }
)


def detect(facts: Facts) -> DetectedFault | None:
    """Report a DLQ that RedrivePolicy names and that is missing, or a queue that needs a DLQ."""
    dlq_arn = find_missing_dlq(facts)
    if dlq_arn is not None:
        return DetectedFault(
            f"its RedrivePolicy names {dlq_arn}, and that queue does not exist: a message that "
            "consumers cannot handle is received again and again until it expires",
            missing_queue_arn=dlq_arn,
        )
    need_sentence = _describe_need(facts)
    return DetectedFault(need_sentence) if need_sentence else None


def is_possible(facts: Facts) -> bool:
    """Return True if the queue's metrics must show whether it needs a DLQ.

    Such a queue has no DLQ, is not known to be a DLQ, and is not read by a Lambda function.
    """
    may_need_dlq = has_no_dlq(replace(facts, dlq_sources=facts.dlq_sources or ()))
    return may_need_dlq and not facts.lambda_consumers


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan the DLQ that RedrivePolicy names, or a new DLQ. A person must approve a FIFO DLQ."""
    fault = detect(facts)
    first_sentence = facts.found or (fault.because if fault else "it has no DLQ")
    if facts.is_fifo:
        return require_approval(
            _plan_dlq(facts, f"{first_sentence}. {describe_possible_loss(facts)}")
        )
    return _plan_dlq(facts, first_sentence)


def _plan_dlq(facts: Facts, first_sentence: str) -> Plan | Refusal:
    """Plan to create the DLQ that RedrivePolicy names if it does not exist; otherwise a new DLQ."""
    dlq_arn = find_missing_dlq(facts)
    if dlq_arn is not None:
        return plan_named_dlq(facts, dlq_arn, first_sentence)
    return plan_new_dlq(facts, first_sentence)


def _describe_need(facts: Facts) -> str | None:
    """Return a sentence that says why the queue needs a DLQ; None if no need is shown.

    No need is shown in these cases:

    - The queue has a DLQ or is one, or it has the name of a DLQ (its sources may be deleted).
    - A case of a symptom in EXPLAINING_SYMPTOMS is open for it, which explains the fault.
    - No Lambda function and no pipe of a template reads it, and it was not measured, a message
      movement task runs, or no messages come back.
    """
    has_dlq_name = facts.queue_arn.removesuffix(FIFO_SUFFIX).endswith(DLQ_SUFFIX)
    if not has_no_dlq(facts) or has_dlq_name or EXPLAINING_SYMPTOMS & facts.open_symptoms:
        return None
    if facts.lambda_consumers:
        function_arn = facts.lambda_consumers[0].function_arn
        return (
            f"it has no DLQ, and messages that {function_arn} cannot handle come back until they "
            "expire"
        )
    if facts.pipes:
        return (
            f"it has no DLQ, and messages that the pipe {facts.pipes[0]} cannot handle come back "
            "until they expire"
        )
    measurement = facts.measurement
    if (
        measurement is None
        or facts.move_task_running
        or not _has_returning_messages(facts, measurement)
    ):
        return None
    received_message_count_text = format_count(measurement.messages, "message")
    backlog_message_count = measurement.now.backlog
    return (
        f"it has no DLQ, and messages come back: in {format_duration(measurement.duration)} "
        f"consumers received {received_message_count_text} "
        f"{format_count(measurement.received, 'time')} and deleted {measurement.deleted:,}; "
        f"{format_count(backlog_message_count, 'message')} "
        f"{'is' if backlog_message_count == 1 else 'are'} left"
    )


def _has_returning_messages(facts: Facts, measurement: Measurement) -> bool:
    """Return True if some messages stay in the queue and are received again and again.

    If the queue was empty at some moment, consumers had finished every message before that moment.
    """
    if measurement.now.backlog == 0 or _is_only_looked_at(facts, measurement):
        return False
    half_hours = measurement.recent.half_hours
    # If the first receives are in the last stretch, the empty queue before says nothing.
    has_only_new_receives = not any(stretch.received for stretch in half_hours[:-1])
    is_received_often = (
        measurement.received > MAXIMUM_NORMAL_RECEIVES_PER_DELETE * measurement.deleted
    )
    is_received_often = is_received_often and measurement.received > measurement.messages
    if is_received_often and (has_only_new_receives or not _may_chance_fill_queue(measurement)):
        return True
    if not half_hours:
        return _may_bad_messages_explain_backlog(facts, measurement)
    return _is_backlog_mostly_bad_messages(facts, measurement) or _do_bad_messages_hide_in_traffic(
        facts, half_hours
    )


def _may_chance_fill_queue(measurement: Measurement) -> bool:
    """Return True if the queue was empty, or if failures by chance explain that it never was.

    Suppose that each receive fails with the same chance, independently of the others, and that all
    messages are finished in the end. Then the backlog of any moment has a Poisson distribution, and
    two moments are independent if they are further apart than a message stays. By Little's law, a
    message stays for the mean backlog divided by the deletes per minute. So the chance that no
    such moment of the measured time has fewer messages than `fewest_messages` can be computed.
    Messages that never finish make it very small, because they are there at each moment.

    The result is False if nothing was deleted, or if the backlogs are not known.
    """
    if measurement.fewest_messages == 0:
        return True
    usual_messages = measurement.usual_messages
    if measurement.fewest_messages is None or not usual_messages or not measurement.deleted:
        return False
    minute_count = measurement.duration / DATAPOINT_PERIOD
    minutes_of_stay = max(1.0, usual_messages * minute_count / measurement.deleted)
    chance_of_fewer = _compute_poisson_below(measurement.fewest_messages, usual_messages)
    chance_of_full_queue: float = (1 - chance_of_fewer) ** (minute_count / minutes_of_stay)
    return chance_of_full_queue >= MAXIMUM_CHANCE_OF_FULL_QUEUE


def _compute_poisson_below(limit: int, mean: float) -> float:
    """Return the chance that a Poisson distributed number is below `limit`."""
    chance_of_number = exp(-mean)
    chance_below = 0.0
    for number in range(limit):
        chance_below += chance_of_number
        chance_of_number *= mean / (number + 1)
    return min(1.0, chance_below)


def _is_only_looked_at(facts: Facts, measurement: Measurement) -> bool:
    """Return True if nobody finishes messages, and all receives were in a few minutes.

    People who look at messages in the console receive in this way. A consumer receives a message
    that it cannot handle once in each visibility timeout. If only a few timeouts fit into the
    measured time, a consumer too receives in a few minutes, so the result is False.
    """
    would_consumer_receive_more = (
        _count_timeouts(facts, measurement.duration) > MAXIMUM_MINUTES_OF_LOOKS
    )
    return (
        would_consumer_receive_more
        and measurement.deleted == 0
        and 0 < measurement.minutes_with_receives <= MAXIMUM_MINUTES_OF_LOOKS
    )


def _count_timeouts(facts: Facts, measured_duration: timedelta) -> float:
    """Return how many visibility timeouts fit into `measured_duration`.

    A message that never finishes is received once in each visibility timeout.
    """
    return measured_duration.total_seconds() / max(facts.visibility_seconds, 1)


def _may_bad_messages_explain_backlog(facts: Facts, measurement: Measurement) -> bool:
    """Return True if messages that never finish may explain the whole backlog.

    The number of such messages is estimated from the counts of the whole measured time. Use this
    function only if the counts of the single half hours are not known.
    """
    bad_message_count = measurement.fruitless_receives / max(
        _count_timeouts(facts, measurement.duration), 1
    )
    return (
        bad_message_count >= MINIMUM_ESTIMATED_BAD_MESSAGES
        and measurement.now.backlog <= MAXIMUM_MESSAGES_PER_BAD_MESSAGE * bad_message_count + 1
    )


def _is_backlog_mostly_bad_messages(facts: Facts, measurement: Measurement) -> bool:
    """Return True if the queue held hardly anything but messages that never finish.

    Only the last hour counts, or the whole measured time if the visibility timeout is long.
    """
    half_hours = measurement.recent.half_hours
    if _count_timeouts(facts, STRETCH_COUNT_OF_LAST_HOUR * HALF_HOUR) >= LEAST_TIMEOUTS_MEASURED:
        half_hours = half_hours[-STRETCH_COUNT_OF_LAST_HOUR:]
    staying_messages = _StayingMessages.from_stretches(facts, half_hours)
    return (
        staying_messages is not None
        and staying_messages.timeout_count >= LEAST_TIMEOUTS_MEASURED
        and staying_messages.are_receives_in_vain_steady
        and staying_messages.bad_messages >= MINIMUM_ESTIMATED_BAD_MESSAGES
        and MINIMUM_MESSAGES_PER_BAD_MESSAGE * staying_messages.bad_messages
        <= staying_messages.fewest_messages
        <= MAXIMUM_MESSAGES_PER_BAD_MESSAGE * staying_messages.bad_messages + 1
        and staying_messages.usual_messages <= 2 * staying_messages.fewest_messages + 2
        and not staying_messages.are_failures_random
    )


def _do_bad_messages_hide_in_traffic(facts: Facts, half_hours: Sequence[Measurement]) -> bool:
    """Return True if a few messages that never finish hide in the traffic of a busy queue.

    On such a queue few receives lead to no delete, and the first half of the time has about as many
    such receives as the second half. A busy queue always holds good messages too. So the backlog
    may be larger than the bad messages explain. But consumers must be able to finish the backlog
    within MAXIMUM_MINUTES_TO_FINISH_BACKLOG, and it must not grow.
    """
    staying_messages = _StayingMessages.from_stretches(facts, half_hours)
    return (
        staying_messages is not None
        and len(half_hours) >= MINIMUM_STRETCHES_OF_BUSY_QUEUE
        and staying_messages.timeout_count >= LEAST_TIMEOUTS_MEASURED
        and staying_messages.are_receives_in_vain_steady
        and staying_messages.bad_messages >= MINIMUM_ESTIMATED_BAD_MESSAGES
        and staying_messages.fewest_messages >= staying_messages.bad_messages
        and staying_messages.receives_in_vain
        <= MAXIMUM_SHARE_OF_RECEIVES_IN_VAIN_ON_BUSY_QUEUE * staying_messages.receive_count
        and staying_messages.usual_messages
        <= staying_messages.deletes_per_minute * MAXIMUM_MINUTES_TO_FINISH_BACKLOG
        and not staying_messages.is_backlog_growing
    )


@dataclass(frozen=True)
class _StayingMessages:
    """Evidence about messages that never finish, from some half hours of the measured time.

    Attributes:
        timeout_count: The number of visibility timeouts in that time.
        receive_count: The number of receives.
        receives_in_vain: The number of receives that no delete followed.
        bad_messages: The number of messages that explain `receives_in_vain`, if each is received
            once per timeout.
        fewest_messages: The least number of messages in the queue.
        usual_messages: The median number of messages in the queue.
        deletes_per_minute: The mean number of deletes per minute.
        are_receives_in_vain_steady: True if both halves of the time have about as many of them.
        is_backlog_growing: True if the backlog is clearly larger at the end than at the start.
    """

    timeout_count: float
    receive_count: int
    receives_in_vain: int
    bad_messages: float
    fewest_messages: int
    usual_messages: float
    deletes_per_minute: float
    are_receives_in_vain_steady: bool
    is_backlog_growing: bool

    @property
    def are_failures_random(self) -> bool:
        """True if many messages fail at random and are finished later.

        The number of messages that fail at random varies by its square root or more. The number of
        messages that never finish does not vary. If `bad_messages` is at most
        MAXIMUM_BAD_MESSAGES_CALLED_FEW, the result is True only if `fewest_messages` is also above
        `2 * bad_messages + 1`: such a backlog cannot come from bad messages alone.
        """
        if self.bad_messages > MAXIMUM_BAD_MESSAGES_CALLED_FEW:
            return self.usual_messages - self.fewest_messages > sqrt(self.bad_messages)
        is_backlog_unexplained = self.fewest_messages > 2 * self.bad_messages + 1
        return is_backlog_unexplained and self.usual_messages - self.fewest_messages > sqrt(
            self.usual_messages
        )

    @classmethod
    def from_stretches(
        cls, facts: Facts, half_hours: Sequence[Measurement]
    ) -> _StayingMessages | None:
        """Return the evidence from these half hours, oldest first.

        None if the queue was empty at some moment, or if the number of messages is not known.
        """
        backlogs = [
            stretch.usual_messages for stretch in half_hours if stretch.usual_messages is not None
        ]
        fewest_messages = min((stretch.fewest_messages or 0 for stretch in half_hours), default=0)
        if not fewest_messages or len(backlogs) < len(half_hours):
            return None
        measured_duration = half_hours[-1].until - half_hours[0].since
        timeout_count = max(_count_timeouts(facts, measured_duration), 1)
        stretches_per_half = len(half_hours) // 2
        stretches_by_half = (
            (half_hours[:stretches_per_half], half_hours[stretches_per_half:])
            if stretches_per_half
            else (half_hours,)
        )
        receives_in_vain_by_half = [
            _count_receives_in_vain(stretches_of_half) for stretches_of_half in stretches_by_half
        ]
        # A message that is still in flight was not received in vain yet.
        in_flight_increase = half_hours[-1].now.in_flight - half_hours[0].before.in_flight
        receives_in_vain = max(0, sum(receives_in_vain_by_half) - max(0, in_flight_increase))
        delete_count = sum(stretch.deleted for stretch in half_hours)
        return cls(
            timeout_count=timeout_count,
            receive_count=sum(stretch.received for stretch in half_hours),
            receives_in_vain=receives_in_vain,
            bad_messages=receives_in_vain / timeout_count,
            fewest_messages=fewest_messages,
            usual_messages=median(backlogs),
            deletes_per_minute=delete_count / (measured_duration / DATAPOINT_PERIOD),
            are_receives_in_vain_steady=min(receives_in_vain_by_half)
            >= MINIMUM_RATIO_BETWEEN_HALVES_OF_TIME * max(receives_in_vain_by_half),
            is_backlog_growing=backlogs[-1] > 1.5 * backlogs[0] + 10,
        )


def _count_receives_in_vain(half_hours: Sequence[Measurement]) -> int:
    """Return the number of receives that no delete followed."""
    return max(0, sum(stretch.received - stretch.deleted for stretch in half_hours))


def _make_attach_steps(receive_limit: int) -> tuple[CreateDlq, AttachDlq]:
    """Return an example's steps: create DLQ_ARN and attach it with this `maxReceiveCount`."""
    return (CreateDlq("", DLQ_ARN), AttachDlq("", RedrivePolicy(DLQ_ARN, receive_limit).text))


_ATTACH_STEPS = _make_attach_steps(DEFAULT_MAX_RECEIVE_COUNT)
_QUEUE_WITHOUT_DLQ = standard_queue(
    ApproximateNumberOfMessages=1, dlq_namesake=QueueFacts(DLQ_ARN, {})
)
_QUEUE_READ_BY_LAMBDA = replace_values(
    _QUEUE_WITHOUT_DLQ, lambda_consumers=(LAMBDA_FUNCTION,), sent=60, received=60, deleted=60
)
_QUEUE_WITH_RETURNING_MESSAGE = replace_values(
    _QUEUE_WITHOUT_DLQ, sent=3, received=60, deleted=2, backlog_now=1, visible_now=1
)
_QUEUE_WITH_FEW_BAD_MESSAGES = replace_values(
    _QUEUE_WITHOUT_DLQ,
    ApproximateNumberOfMessages=3,
    sent=140,
    received=500,
    deleted=137,
    backlog_now=3,
    visible_now=3,
)
# The function receives a few bad messages so often that it fails in most of its runs.
_QUEUE_WITH_FUNCTION_FAILING_AT_FEW_MESSAGES = replace_values(
    _QUEUE_WITH_FEW_BAD_MESSAGES, lambda_consumers=(FAILING_FUNCTION,)
)
_BUSY_QUEUE_WITH_FEW_BAD_MESSAGES = replace_values(
    _QUEUE_WITH_FEW_BAD_MESSAGES, sent=9_000, received=11_000, deleted=8_997
)
_QUEUE_WITH_MESSAGES_GIVEN_BACK = replace_values(
    _QUEUE_WITHOUT_DLQ,
    ApproximateNumberOfMessages=8,
    sent=90,
    received=1_080,
    deleted=82,
    backlog_now=8,
    visible_now=8,
)
_QUEUE_WITH_ONE_BAD_MESSAGE = replace_values(
    _QUEUE_WITHOUT_DLQ, sent=0, received=720, deleted=0, backlog_before=1, backlog_now=1
)
_QUEUE_RECEIVED_VERY_OFTEN = replace_values(_QUEUE_WITH_RETURNING_MESSAGE, received=720)
_QUEUE_WITHOUT_DELETES = replace_values(
    _QUEUE_WITHOUT_DLQ,
    ApproximateNumberOfMessages=60,
    sent=60,
    received=1_200,
    deleted=0,
    backlog_now=60,
    visible_now=60,
)
_QUEUE_WITH_TWO_UNFINISHED_MESSAGES = replace_values(
    _QUEUE_WITHOUT_DELETES, ApproximateNumberOfMessages=2, sent=2, backlog_now=2, visible_now=2
)
# Three of four receives fail by chance. On average six messages wait, and never fewer than one.
_QUEUE_FAILING_BY_CHANCE = replace_values(
    _QUEUE_WITHOUT_DLQ,
    VisibilityTimeout=60,
    sent=5_260,
    received=23_145,
    deleted=5_248,
    backlog_before=5,
    backlog_now=5,
    fewest_messages=1,
    usual_messages=6,
    recent=make_half_hours(
        *(
            {
                "sent": 438,
                "received": 1_929,
                "deleted": 437,
                "fewest_messages": 1,
                "usual_messages": 6,
            },
        )
        * 12
    ),
)
_QUEUE_WITH_ALL_MESSAGES_FINISHED = replace_values(
    _QUEUE_WITHOUT_DLQ, sent=420, received=840, deleted=420
)
_QUEUE_OF_SLOW_CONSUMERS = replace_values(
    _QUEUE_WITHOUT_DLQ, sent=1_000, received=600, deleted=580, backlog_now=420, in_flight_now=20
)
_EXISTING_DLQ = QueueFacts(DLQ_ARN, {"MessageRetentionPeriod": "345600"})
_QUARANTINE_ARN = arn_of_quarantine(STANDARD_ARN)


def _make_queue_naming_dlq(dlq_arn: str) -> Facts:
    """Return a queue whose RedrivePolicy names `dlq_arn`, a queue that does not exist."""
    return queue_with_dlq(dlq=QueueFacts(dlq_arn, {}))


DLQ_MISSING = FixedSymptom(
    name="dlq_missing",
    sentence="No DLQ takes messages that cannot be handled: they come back until they expire.",
    plan_in_words="Make the queue that RedrivePolicy names, under that name; if none is named, "
    "make one and attach it after 5 receives. If messages are received more than once, a person "
    "approves a limit of at least three times the mean. Never while consumers finish nothing or "
    "are too slow, and never without measurements.",
    first_step="Attach a DLQ, with maxReceiveCount of at least 5.",
    aws_page=DLQ_GUIDE,
    evidence_kinds=(EvidenceKind(SeverityClass.WILL_LOSE),),
    steps=(CreateDlq, AttachDlq),
    plan=plan,
    gives_way_to=SYMPTOMS_TO_FIX_FIRST | EXPLAINING_SYMPTOMS,
    shown_attributes=(AttachDlq.attribute,),
    shared_attribute=AttachDlq.attribute,
    # The fault is in the configuration. The measurement only shows that it matters now.
    tags=(CONSUMER_TAG,),
    detection=Detection(detect, _DETECTION_NEEDS, is_possible, is_of_configuration=True),
    examples=lambda: (
        QueueExample(
            "the queue that is named is gone",
            _make_queue_naming_dlq(DLQ_ARN),
            (CreateDlq("", DLQ_ARN),),
        ),
        QueueExample("a Lambda function reads it", _QUEUE_READ_BY_LAMBDA, _ATTACH_STEPS),
        QueueExample(
            "a message comes back again and again",
            _QUEUE_WITH_RETURNING_MESSAGE,
            _make_attach_steps(100),
        ),
        QueueExample(
            "a few of many come back", _QUEUE_WITH_FEW_BAD_MESSAGES, _make_attach_steps(20)
        ),
        QueueExample(
            "a function fails at a few of many",
            _QUEUE_WITH_FUNCTION_FAILING_AT_FEW_MESSAGES,
            _make_attach_steps(20),
        ),
        QueueExample(
            "six bad messages cause 853 of 2,166 receives",
            replace_values(
                _QUEUE_WITH_FEW_BAD_MESSAGES,
                sent=1_319,
                received=2_166,
                deleted=1_313,
                VisibilityTimeout=120,
                backlog_now=6,
            ),
            _ATTACH_STEPS,
        ),
        QueueExample(
            "three bad messages come back each hour, as their timeout ends",
            replace_values(
                _QUEUE_WITHOUT_DLQ,
                received=18,
                backlog_before=3,
                backlog_now=3,
                fewest_messages=3,
                minutes_with_receives=6,
                VisibilityTimeout=3_600,
            ),
            _make_attach_steps(MOST_RECEIVES_BEFORE_DLQ),
        ),
        QueueExample(
            "a few of very many come back", _BUSY_QUEUE_WITH_FEW_BAD_MESSAGES, _ATTACH_STEPS
        ),
        QueueExample(
            "receives fail by chance, and four messages always",
            replace_values(_QUEUE_FAILING_BY_CHANCE, fewest_messages=4),
            _make_attach_steps(20),
        ),
        QueueExample(
            "good ones are given back ten times",
            _QUEUE_WITH_MESSAGES_GIVEN_BACK,
            _make_attach_steps(50),
        ),
        QueueExample(
            "one message, nothing known of earlier",
            _QUEUE_WITH_ONE_BAD_MESSAGE,
            _make_attach_steps(100),
        ),
        QueueExample(
            "somebody's queue has the name",
            replace_values(_QUEUE_READ_BY_LAMBDA, dlq_namesake=_EXISTING_DLQ),
            "name_taken",
        ),
        QueueExample(
            "somebody's queue is like a new DLQ",
            replace_values(
                _QUEUE_READ_BY_LAMBDA,
                dlq_namesake=QueueFacts(
                    DLQ_ARN, make_dlq_attributes(_QUEUE_READ_BY_LAMBDA, DLQ_ARN)
                ),
                dlq_namesake_objection="nothing records that Mendq made it",
            ),
            "receiver_unconfirmed",
        ),
        RefusalExample("no limit is known to be safe", _QUEUE_RECEIVED_VERY_OFTEN, "no_safe_limit"),
        RefusalExample("nothing is finished", _QUEUE_WITHOUT_DELETES, "cause_first"),
        RefusalExample(
            "two came and none is finished", _QUEUE_WITH_TWO_UNFINISHED_MESSAGES, "nothing_finished"
        ),
        RefusalExample(
            "it names a quarantine that is gone",
            _make_queue_naming_dlq(_QUARANTINE_ARN),
            "names_a_quarantine",
        ),
        QueueNearMiss(
            "a person looks at three old messages, and no consumer reads the queue",
            replace_values(
                _QUEUE_WITHOUT_DLQ,
                received=6,
                backlog_before=3,
                backlog_now=3,
                fewest_messages=3,
                minutes_with_receives=2,
            ),
        ),
        QueueNearMiss(
            "receives fail by chance, and the queue was never empty", _QUEUE_FAILING_BY_CHANCE
        ),
        QueueNearMiss("it has one", queue_with_dlq(dlq=_EXISTING_DLQ)),
        QueueNearMiss("given back, and all are finished", _QUEUE_WITH_ALL_MESSAGES_FINISHED),
        QueueNearMiss("slow consumers, a growing backlog", _QUEUE_OF_SLOW_CONSUMERS),
        QueueNearMiss("it takes DLQ messages itself", as_dlq(_QUEUE_READ_BY_LAMBDA)),
        QueueNearMiss(
            "it is called a DLQ", replace_values(_QUEUE_READ_BY_LAMBDA, queue_arn=DLQ_ARN)
        ),
    ),
)

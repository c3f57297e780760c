"""Plan a DLQ for a queue that has none, or say why it must not get one now.

A DLQ takes every message that was received `maxReceiveCount` times and not deleted. That is right
for a few messages that always fail. It is harmful if the consumers fail: then good messages go
there too, and the whole backlog at once. The rules:

1. No DLQ while a cause is known: consumers fail, the visibility timeout is too short, or fewer than
   half of the messages are finished (unless one message blocks its FIFO group). Without
   measurements there is no plan either, unless the queue is idle.
2. `maxReceiveCount` must not catch good messages. It is at least three times the mean number of
   receives per finished message. If every value that Mendq may set is too low, a person chooses.
3. The new queue has a name that Mendq knows to be free. An existing queue is used only if it has
   the attributes that Mendq would set and no policy, and if Mendq made it or a person confirmed it:
   anyone in the account could have created it to read the messages.
4. A person approves, unless consumers finished every message at its first receive, or the queue is
   idle and its RedrivePolicy names the DLQ already.

Messages that wait already keep their receive counts, so a new DLQ may take some of them at once.
The plan says how many messages wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mendq.catalogue.dlq.unconfirmed_receiver import refuse_unconfirmed_receiver
from mendq.catalogue.fifo.stuck_group import does_one_group_block, is_oldest_message_stuck
from mendq.catalogue.symptom import DetectedFault, EvidenceKind
from mendq.catalogue.visibility.needed_timeout import find_failing_function
from mendq.catalogue.visibility.timeout_not_in_force import find_consumer
from mendq.model.dlq import make_dlq_attributes
from mendq.model.facts import Facts, QueueFacts
from mendq.model.metrics import DATAPOINT_PERIOD, Measurement
from mendq.model.mode import Mode
from mendq.model.plan import Escalate, Ignore, Plan, Refusal, Refuse
from mendq.model.queue import (
    DEFAULT_MAX_RECEIVE_COUNT,
    MOST_RECEIVES_BEFORE_DLQ,
    RedrivePolicy,
    arn_of_dlq,
    is_quarantine,
    parse_queue_arn,
    parse_redrive_allow_policy,
    why_unfit_as_dlq,
)
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.commands import get_attributes_command, show_metric_command
from mendq.notifications.text import format_count, format_duration

# Numbers for the page about failing consumers: there are at least this many messages, and more than
# this share of them is not finished. A few messages that consumers give back again and again cause
# many receives too. A DLQ is refused for fewer messages already (`_refuse_if_nothing_finished`).
MINIMUM_MESSAGES_TO_PAGE = 100
MINIMUM_UNFINISHED_MESSAGE_SHARE = 0.2
# Consumers that fail at a small part of the messages, which the DLQ takes: reported without a page
# from this share on. Below it, a few bad messages are reported on the DLQ alone.
MINIMUM_REPORTED_DEAD_MESSAGE_SHARE = 0.015
# A message that never finishes is received once in each visibility timeout. If the messages that
# are left were received less often than this share of that, they are not a few bad messages. They
# wait for consumers that fail.
MINIMUM_SHARE_OF_EXPECTED_RECEIVES = 0.25
# If no message at all is finished, this many messages are enough for the page. Without a DLQ, fewer
# than ten may be a few bad messages (`dlq_missing`). With one, the DLQ takes all that arrive.
MINIMUM_MESSAGES_IF_NONE_FINISHED = 10
MINIMUM_MESSAGES_IF_ALL_MOVED_TO_DLQ = 4
# Consumers that fail in part and cannot keep up: at least this share of the receives fails. With
# fewer, the consumers are mostly too slow (`backlog_grows`). A message that fails stays in flight
# until the visibility timeout ends. If fewer messages are in flight than this share of what that
# explains, consumers give messages back.
MINIMUM_FAILED_SHARE_OF_RECEIVES = 0.1
MINIMUM_SHARE_OF_EXPECTED_IN_FLIGHT = 0.5
# If nothing was deleted, a consumer receives each message, or receives in at least this share of
# the minutes. Otherwise people look at messages in the console.
MINIMUM_SHARE_OF_MINUTES_WITH_RECEIVES = 0.1
# At least this many receives for each message, and at most this share of the messages finished:
# consumers receive the same backlog again and again and do not finish it.
FREQUENT_RECEIVES_PER_MESSAGE = 2
HARDLY_FINISHED_MESSAGE_SHARE = 0.05
NOTHING_FINISHED = EvidenceKind(
    SeverityClass.STANDING_STILL, "consumers finish nothing, or at most 1 of 20 messages"
)
SOME_FAIL = EvidenceKind(SeverityClass.FAILING_IN_PART, "a part of the messages fails")
# An open case of these symptoms explains why messages are received again.
EXPLAINING_SYMPTOMS = frozenset(
    {
        "visibility_timeout_too_short",
        "function_errors",
        "function_times_out",
        "in_flight_limit",
        "redrive_loop",
    }
)


def find_failing_consumers(facts: Facts) -> DetectedFault | None:
    """Report consumers that receive messages and do not finish them; None if there is no fault.

    The fault: most receives end in no delete, and deletes do not keep up with sends. Or a part of
    the messages fails: the DLQ takes more than a fifth of them, or they add to a growing backlog.
    If the DLQ takes a smaller part, the fault is recorded without a page: nothing is lost, and
    `dlq_messages_arriving` pages. Messages that consumers give back and finish later are no fault,
    however often they are received. Nor are receives by a person who looks at messages in the
    console.
    """
    measurement = facts.measurement
    if measurement is None or _has_other_explanation_for_receives(facts, measurement):
        return None
    if not _is_read_by_consumer(facts, measurement):
        return None
    if do_consumers_fail_in_small_part(facts):
        failed_message_count = _count_failed_messages(facts, measurement)
        return DetectedFault(
            f"in {format_duration(measurement.duration)} consumers failed at about "
            f"{format_count(failed_message_count, 'message')}, which moved to the DLQ: "
            f"{measurement.sent:,} arrived, and consumers deleted {measurement.deleted:,}",
            should_page=False,
            evidence_kind=SOME_FAIL,
        )
    if not _must_page_for_failures(facts, measurement):
        return None
    fruitless_receives = measurement.fruitless_receives
    delete_count = measurement.deleted
    in_flight_count = measurement.now.in_flight
    in_flight_text = f", {in_flight_count:,} are still held" if in_flight_count else ""
    is_hardly_anything_finished = (
        delete_count <= HARDLY_FINISHED_MESSAGE_SHARE * measurement.messages
    )
    if delete_count == 0 and measurement.sent:
        return DetectedFault(
            f"No message was finished in the last {format_duration(measurement.duration)}: "
            f"consumers received {format_count(measurement.messages, 'message')} "
            f"{measurement.received:,} times and deleted none{in_flight_text}",
            evidence_kind=NOTHING_FINISHED,
        )
    return DetectedFault(
        f"{fruitless_receives:,} of {measurement.received:,} receives in "
        f"{format_duration(measurement.duration)} "
        f"were not followed by a delete{in_flight_text}: "
        f"{format_count(measurement.sent, 'message')} "
        f"arrived, and consumers deleted {delete_count:,}",
        evidence_kind=NOTHING_FINISHED if is_hardly_anything_finished else SOME_FAIL,
    )


def do_consumers_fail_in_small_part(facts: Facts) -> bool:
    """Return True if consumers fail only at a small part of the messages, and the DLQ takes it.

    Each of these messages was received, so they did not expire unread.
    """
    measurement = facts.measurement
    if measurement is None or _must_page_for_failures(facts, measurement):
        return False
    failed_message_count = _count_failed_messages(facts, measurement)
    left_message_count = failed_message_count + measurement.deleted
    if measurement.fruitless_receives < failed_message_count:
        return False
    return failed_message_count > MINIMUM_REPORTED_DEAD_MESSAGE_SHARE * left_message_count


def _count_failed_messages(facts: Facts, measurement: Measurement) -> int:
    """Return how many messages moved to the DLQ; 0 if inexact counters can explain the number."""
    return measurement.count_dead_messages(
        facts.max_receive_count or 0, measurement.balance_tolerance
    )


def _must_page_for_failures(facts: Facts, measurement: Measurement) -> bool:
    """Return True if so many messages are not finished that people must know now."""
    return (
        _do_most_receives_fail(facts, measurement)
        or _does_dlq_take_large_part(facts, measurement)
        or _do_failures_add_to_backlog(facts, measurement)
    )


def _has_other_explanation_for_receives(facts: Facts, measurement: Measurement) -> bool:
    """Return True if another symptom explains the receives without a delete.

    The explanation is a visibility timeout that is too short (a case of it is open, or failed calls
    on a FIFO queue opened it lately and Mendq could not fix it), one message that blocks its FIFO
    group, a running message movement task, or a DLQ in which people look at messages.
    """
    return (
        measurement.has_surplus_deletes
        or _is_group_blocked(facts, measurement)
        or facts.move_task_running
        or facts.receives_only_dlq_messages
        or bool(EXPLAINING_SYMPTOMS & (facts.open_symptoms | facts.refused_symptoms))
    )


def _is_group_blocked(facts: Facts, measurement: Measurement) -> bool:
    """Return True if one message at the head of a FIFO group explains the unfinished messages."""
    return facts.is_fifo and (
        does_one_group_block(measurement)
        or is_oldest_message_stuck(measurement, facts.visibility_seconds)
    )


def _is_read_by_consumer(facts: Facts, measurement: Measurement) -> bool:
    """Return True if a consumer receives, and not a person who looks at messages.

    A consumer deletes messages, receives each of them, or receives in many minutes. Lambda
    functions are consumers.
    """
    minute_count = measurement.duration / DATAPOINT_PERIOD
    return (
        bool(facts.lambda_consumers)
        or measurement.deleted > 0
        or measurement.received >= measurement.messages
        or measurement.minutes_with_receives
        >= MINIMUM_SHARE_OF_MINUTES_WITH_RECEIVES * minute_count
    )


def _do_most_receives_fail(facts: Facts, measurement: Measurement) -> bool:
    """Return True if at least half of the receives are in vain and many messages are left."""
    if _does_dlq_take_everything(facts, measurement):
        return True
    return measurement.fruitless_receives >= max(
        measurement.deleted, measurement.counter_tolerance
    ) and _leaves_many_messages(facts, measurement)


def _does_dlq_take_everything(facts: Facts, measurement: Measurement) -> bool:
    """Return True if no message was finished and the DLQ takes what arrives.

    Each message is received at least once before that, and none is left for an hour.
    """
    return (
        facts.dlq_arn is not None
        and measurement.deleted == 0
        and measurement.unfinished_messages >= MINIMUM_MESSAGES_IF_ALL_MOVED_TO_DLQ
        and measurement.fruitless_receives >= measurement.unfinished_messages
    )


def _does_dlq_take_large_part(facts: Facts, measurement: Measurement) -> bool:
    """Return True if consumers fail at more than a fifth of the messages, and the DLQ takes them.

    Consumers finish the other messages, so fewer than half of the receives may be in vain. The
    count is 0 up to `Measurement.counter_tolerance`, because SQS's counters are inexact: fewer
    messages page nobody here (`do_consumers_fail_in_small_part`).
    """
    dead_message_count = measurement.count_dead_messages(facts.max_receive_count or 0)
    return dead_message_count > MINIMUM_UNFINISHED_MESSAGE_SHARE * (
        dead_message_count + measurement.deleted
    )


def _do_failures_add_to_backlog(facts: Facts, measurement: Measurement) -> bool:
    """Return True if consumers fail at a part of the messages while their backlog grows.

    The messages in flight show that these are failures: what is given back is visible again at
    once, and what fails stays in flight until the visibility timeout ends. On a FIFO queue one
    message can cause all failed receives and hold back a growing group.
    """
    fruitless_receives = measurement.fruitless_receives
    if (
        facts.is_fifo
        or measurement.usual_in_flight is None
        or measurement.unfinished_messages <= measurement.counter_tolerance
        or fruitless_receives <= measurement.counter_tolerance
        or fruitless_receives < MINIMUM_FAILED_SHARE_OF_RECEIVES * measurement.received
        or _are_bad_messages_few(facts, measurement)
    ):
        return False
    failures_per_second = fruitless_receives / measurement.duration.total_seconds()
    expected_in_flight = failures_per_second * facts.visibility_seconds
    return measurement.usual_in_flight >= MINIMUM_SHARE_OF_EXPECTED_IN_FLIGHT * expected_in_flight


def _leaves_many_messages(facts: Facts, measurement: Measurement) -> bool:
    """Return True if more messages are left unfinished than a few bad ones explain."""
    has_many_messages = measurement.messages >= MINIMUM_MESSAGES_TO_PAGE
    if measurement.deleted == 0 and measurement.sent:
        has_many_messages = measurement.messages >= MINIMUM_MESSAGES_IF_NONE_FINISHED
    if not has_many_messages and find_failing_function(facts) is None:
        return False
    if measurement.sent <= measurement.deleted / 2:
        # Few messages arrive. Consumers receive the waiting messages again and again.
        are_receives_frequent = (
            measurement.received >= FREQUENT_RECEIVES_PER_MESSAGE * measurement.messages
        )
        is_hardly_finished = (
            measurement.deleted <= HARDLY_FINISHED_MESSAGE_SHARE * measurement.messages
        )
        return measurement.now.backlog > 0 and are_receives_frequent and is_hardly_finished
    if measurement.unfinished_messages > MINIMUM_UNFINISHED_MESSAGE_SHARE * measurement.sent:
        return True
    return (
        measurement.unfinished_messages > measurement.counter_tolerance
        and not _are_bad_messages_few(facts, measurement)
    )


def _are_bad_messages_few(facts: Facts, measurement: Measurement) -> bool:
    """Return True if the messages that are left look like a few that never finish.

    Such messages are received once in each visibility timeout. On average they were there for half
    of the measured time. False if the queue has a DLQ, because the DLQ would have taken them.
    """
    timeouts_in_measurement = measurement.duration.total_seconds() / max(
        facts.visibility_seconds, 1
    )
    expected_receives = measurement.unfinished_messages * timeouts_in_measurement / 2
    are_messages_tried_often = (
        measurement.fruitless_receives >= MINIMUM_SHARE_OF_EXPECTED_RECEIVES * expected_receives
    )
    return facts.dlq_arn is None and are_messages_tried_often


# While a case of these symptoms is open, a DLQ would take good messages that could not be finished.
SYMPTOMS_TO_FIX_FIRST = EXPLAINING_SYMPTOMS | {"consumer_failing"}
POLICY_ATTRIBUTE_NAMES = ("Policy", AttachDlq.attribute)
# The values of `maxReceiveCount` that Mendq sets. There are only a few, so that a plan stays the
# same while its numbers change a little between the proposal and its approval.
OFFERED_MAX_RECEIVE_COUNTS = (DEFAULT_MAX_RECEIVE_COUNT, 10, 20, 30, 50, MOST_RECEIVES_BEFORE_DLQ)
# `maxReceiveCount` is at least this many times the mean number of receives. A limit at the mean
# would move every message that needs more than the mean.
MAX_RECEIVE_COUNT_PER_MEAN_RECEIVES = 3
# If the last hour's mean is this many times the mean of all measured hours, it counts instead:
# consumers need more receives now.
LAST_HOUR_MEAN_FACTOR = 2


def plan_new_dlq(facts: Facts, first_sentence: str) -> Plan | Refusal:
    """Plan a new DLQ for a queue that has none.

    A person must approve it, except if consumers finished every message at its first receive.
    """
    dlq_arn = arn_of_dlq(facts.queue_arn)
    if not has_no_dlq(facts):
        return Ignore("need_already_met", "it has a DLQ by now, or takes DLQ messages itself")
    refusal = _refuse_before_cause_is_fixed(facts) or _refuse_taken_dlq_name(facts, dlq_arn)
    if refusal is not None:
        return refusal
    receive_limit = _choose_limit_for_consumer(facts)
    if receive_limit is None:
        return _refuse_without_safe_limit(facts, first_sentence)
    reason = (
        f"{first_sentence}. A message that was received {receive_limit} times and not deleted "
        f"would move to {dlq_arn} and be kept there for 14 days"
        f"{_describe_message_order(facts)}{_describe_unknown_consequences(facts, receive_limit)}"
    )
    steps = (CreateDlq("", dlq_arn), AttachDlq("", RedrivePolicy(dlq_arn, receive_limit).text))
    return Plan(steps, reason, highest_mode=_choose_highest_mode(facts))


def plan_named_dlq(facts: Facts, dlq_arn: str, first_sentence: str) -> Plan | Refusal:
    """Plan to create the missing DLQ that the queue's RedrivePolicy names.

    The queue itself is not changed. If the name is that of a quarantine, nothing is planned: Mendq
    creates quarantines only for messages that failed after a redrive.
    """
    if is_quarantine(parse_queue_arn(dlq_arn).name):
        reason = (
            f"its RedrivePolicy names {dlq_arn}, which was deleted. Its name is that "
            "of a quarantine: Mendq keeps messages there that failed after a redrive, so it is not "
            "a DLQ"
        )
        command = get_attributes_command(facts.queue_arn, AttachDlq.attribute)
        return Escalate("names_a_quarantine", reason, command)
    refusal = _refuse_before_cause_is_fixed(facts)
    if refusal is not None:
        return refusal
    # A person chose this maxReceiveCount. If the queue is idle, the new DLQ takes no message.
    if _is_queue_idle(facts) or _choose_highest_mode(facts) is Mode.HEAL:
        return Plan((CreateDlq("", dlq_arn),), first_sentence + _describe_message_order(facts))
    reason = (
        first_sentence
        + _describe_message_order(facts)
        + _describe_unknown_consequences(facts, facts.max_receive_count or 0)
    )
    return Plan((CreateDlq("", dlq_arn),), reason, highest_mode=Mode.PROPOSE)


def _choose_highest_mode(facts: Facts) -> Mode:
    """Return HEAL if messages were finished, each at its first receive. Otherwise return PROPOSE.

    The result is also PROPOSE if the backlog became smaller, or if messages arrived and none was
    finished since the last delete. One message that was received twice is enough to ask a person. A
    detection may ignore small numbers, but a write must not.
    """
    measurement = facts.measurement
    if measurement is None or measurement.deleted == 0:
        return Mode.PROPOSE
    # Receives before the measured time are not counted for messages that waited at its start.
    are_receives_complete = measurement.before.backlog <= measurement.now.backlog
    are_messages_handled_once = (
        measurement.fruitless_receives == 0 and measurement.surplus_deletes <= 0
    )
    if (
        measurement.has_stopped_finishing
        or not are_receives_complete
        or not are_messages_handled_once
    ):
        return Mode.PROPOSE
    return Mode.HEAL


def _choose_measurement_for_mean(facts: Facts, measurement: Measurement) -> Measurement:
    """Return the measured sums that show best how often finished messages were received.

    If a FIFO group is blocked, return the sums since it blocked, in which other groups' messages
    were finished. If messages needed many more receives in the last hour, return the sums of the
    last hour, so that `maxReceiveCount` does not catch these messages. Otherwise return
    `measurement` itself.
    """
    measurement_of_standstill = measurement.recent.standstill
    has_stuck_oldest_message = facts.is_fifo and is_oldest_message_stuck(
        measurement, facts.visibility_seconds
    )
    if (
        has_stuck_oldest_message
        and measurement_of_standstill is not None
        and measurement_of_standstill.deleted
    ):
        return measurement_of_standstill
    last_hour_measurement = _sum_last_hour(measurement)
    mean_receives = measurement.receives_per_finished(is_fifo=facts.is_fifo)
    mean_receives_of_last_hour = (
        last_hour_measurement.receives_per_finished(is_fifo=facts.is_fifo)
        if last_hour_measurement
        else None
    )
    if (
        mean_receives is None
        or mean_receives_of_last_hour is None
        or mean_receives_of_last_hour < LAST_HOUR_MEAN_FACTOR * mean_receives
    ):
        return measurement
    return last_hour_measurement or measurement


def _sum_last_hour(measurement: Measurement) -> Measurement | None:
    """Return the sums of the last hour; None if CloudWatch has no data of its minutes."""
    stretches_of_last_hour = measurement.recent.half_hours[-2:]
    if not stretches_of_last_hour:
        return None
    return replace(
        measurement,
        since=stretches_of_last_hour[0].since,
        before=stretches_of_last_hour[0].before,
        sent=sum(stretch.sent for stretch in stretches_of_last_hour),
        received=sum(stretch.received for stretch in stretches_of_last_hour),
        deleted=sum(stretch.deleted for stretch in stretches_of_last_hour),
    )


def _choose_limit_for_consumer(facts: Facts) -> int | None:
    """Return the maxReceiveCount to set, above the tries of a framework that counts them itself.

    Return None if every value that Mendq may set is too low.
    """
    receive_limit = _choose_receive_limit(facts)
    consumer = find_consumer(facts)
    own_most_tries = consumer.framework.own_most_tries if consumer else None
    if receive_limit is None or own_most_tries is None or receive_limit > own_most_tries:
        return receive_limit
    return next(limit for limit in OFFERED_MAX_RECEIVE_COUNTS if limit > own_most_tries)


def _choose_receive_limit(facts: Facts) -> int | None:
    """Return the maxReceiveCount to set, or None if every value that Mendq may set is too low.

    A good message must not reach the DLQ. The result is DEFAULT_MAX_RECEIVE_COUNT if every
    receive led to a delete, or if the queue was not measured. If no message was finished, Mendq
    cannot know how often a good message is received, so it uses the highest value. But if the
    reason is a blocked FIFO group, it uses the default: only the group's first messages were
    received, and their receives say nothing about other messages.
    """
    measurement = facts.measurement
    if measurement is None or measurement.fruitless_receives == 0:
        return DEFAULT_MAX_RECEIVE_COUNT
    mean_receives = _choose_measurement_for_mean(facts, measurement).receives_per_finished(
        is_fifo=facts.is_fifo
    )
    if mean_receives is None:
        return (
            DEFAULT_MAX_RECEIVE_COUNT
            if _is_group_blocked(facts, measurement)
            else MOST_RECEIVES_BEFORE_DLQ
        )
    safe_receive_limits = (
        receive_limit
        for receive_limit in OFFERED_MAX_RECEIVE_COUNTS
        if receive_limit >= MAX_RECEIVE_COUNT_PER_MEAN_RECEIVES * mean_receives
    )
    return next(safe_receive_limits, None)


def _refuse_without_safe_limit(facts: Facts, first_sentence: str) -> Refusal:
    """Return the refusal for a queue for which no maxReceiveCount is safe.

    A person who knows the consumer must choose one.
    """
    reason = (
        f"{first_sentence}. A DLQ would stop that, but Mendq cannot tell which maxReceiveCount "
        f"keeps good messages out of it: {_describe_mean_receives(facts)}. Three times that is "
        f"more than {MOST_RECEIVES_BEFORE_DLQ}, the highest value that Mendq sets. Find in the "
        "consumer's log how often it receives a message before it finishes it. Then attach a DLQ "
        "with a higher maxReceiveCount yourself; the runbook has the command"
    )
    return Refuse("no_safe_limit", reason, get_attributes_command(facts.queue_arn))


def _describe_mean_receives(facts: Facts) -> str:
    """Return a text: the mean number of receives per finished message, and why it is inexact."""
    measurement = facts.measurement
    assert measurement is not None  # noqa: S101 - else there is no mean
    measurement_for_mean = _choose_measurement_for_mean(facts, measurement)
    mean_receives = measurement_for_mean.receives_per_finished(is_fifo=facts.is_fifo) or 0
    return (
        f"for each finished message CloudWatch counted {mean_receives:,.1f} receives on average in "
        f"{format_duration(measurement_for_mean.duration)}. The mean also counts receives of "
        "messages that never finish, because CloudWatch reports only sums"
    )


def _describe_unknown_consequences(facts: Facts, receive_limit: int) -> str:
    """Return sentences for the person who approves.

    Empty if nobody must approve, or if the queue was not measured. The sentences say what the
    measurements do not show, and how many messages wait now.
    """
    measurement = facts.measurement
    if measurement is None or _choose_highest_mode(facts) is Mode.HEAL:
        return ""
    sentences_about_unknowns = []
    if measurement.deleted == 0:
        sentences_about_unknowns.append(
            f"No message was finished in the last {format_duration(measurement.duration)}, so "
            "Mendq cannot tell whether all messages fail or only these. Look at the consumers' "
            "log before you approve, and decline if they finish nothing"
        )
        if receive_limit == MOST_RECEIVES_BEFORE_DLQ:
            sentences_about_unknowns.append(
                f"It is also unknown how often a good message is received, so maxReceiveCount is "
                f"{receive_limit}, the highest value that Mendq sets"
            )
    elif measurement.has_stopped_finishing:
        arrived_messages_text = format_count(measurement.sent_since_delete, "message")
        sentences_about_unknowns.append(
            f"{arrived_messages_text} arrived since the last delete, and none was finished: look "
            "at the consumers' log before you approve"
        )
    elif measurement.fruitless_receives:
        sentences_about_unknowns.append(
            f"F{_describe_mean_receives(facts)[1:]}. If consumers give messages back on purpose, "
            "approve only if no good message needs more than "
            f"{format_count(receive_limit, 'receive')}"
        )
    if measurement.surplus_deletes > 0:
        sentences_about_unknowns.append(
            f"Consumers made {format_count(measurement.surplus_deletes, 'delete')} more than "
            "messages left the queue: some messages may have been handled twice, because the "
            "visibility timeout is too short"
        )
    if waiting_message_count := facts.visible + facts.in_flight:
        sentences_about_unknowns.append(
            f"{format_count(waiting_message_count, 'message')} "
            f"{'waits' if waiting_message_count == 1 else 'wait'} now; a message that was already "
            f"received {format_count(receive_limit, 'time')} moves to the DLQ at its next receive"
        )
    return "".join(f". {sentence}" for sentence in sentences_about_unknowns)


def _describe_message_order(facts: Facts) -> str:
    """Return a sentence about what a DLQ does to the order of messages in a FIFO queue.

    The text is empty for a standard queue. AWS advises against a DLQ if the order must be kept.
    """
    if not facts.is_fifo:
        return ""
    return ". Consumers then handle the messages behind it in its group, in order, without it"


def find_missing_dlq(facts: Facts) -> str | None:
    """Return the ARN of the missing DLQ that RedrivePolicy names.

    None if no DLQ is missing, or if a queue of that name could not be the DLQ.
    """
    named_queue = facts.dlq
    if (
        named_queue is None
        or named_queue.exists
        or why_unfit_as_dlq(facts.queue_arn, named_queue.queue_arn)
    ):
        return None
    return named_queue.queue_arn


def has_no_dlq(facts: Facts) -> bool:
    """Return True if the queue has no DLQ and takes more than the messages of a DLQ itself.

    Return False if the queue's sources were not read.
    """
    return not facts.attributes.get(AttachDlq.attribute) and not facts.receives_only_dlq_messages


def _is_queue_idle(facts: Facts) -> bool:
    """Return True if no Lambda function reads the queue and no message is in it."""
    return not facts.lambda_consumers and facts.visible + facts.in_flight == 0


def _refuse_before_cause_is_fixed(facts: Facts) -> Refusal | None:
    """Return a refusal if consumers fail or are too slow; None if a DLQ may be attached.

    A DLQ would take the whole backlog of such consumers at once. The current measurements decide,
    also if a person closed an earlier case about the consumers. Without measurements, and while a
    message movement task runs, the result is a refusal, except if the queue is idle.
    """
    cause_text = _find_cause(facts)
    if cause_text is not None:
        reason = f"{cause_text}. Fix that first: a DLQ would take the whole backlog"
        return Ignore("cause_first", reason)
    measurement = facts.measurement
    if measurement is None or facts.move_task_running:
        if _is_queue_idle(facts):
            return None
        reason = "no measurement shows whether its consumers finish the messages that they receive"
        return Ignore("not_measured", reason)
    if _is_group_blocked(facts, measurement):
        return None
    return _refuse_if_nothing_finished(facts, measurement)


def _refuse_if_nothing_finished(facts: Facts, measurement: Measurement) -> Refusal | None:
    """Return a refusal if consumers finish too few messages; None otherwise.

    The refusal is also returned if too few messages arrive for a notification about the consumers.
    """
    last_hour_counts = _FinishingCounts.of_last_hour(measurement)
    if measurement.has_stopped_finishing:
        arrived_message_count = (
            measurement.sent_since_delete if measurement.deleted else measurement.sent
        )
        period_text = (
            "since the last delete"
            if measurement.deleted
            else f"in {format_duration(measurement.duration)}"
        )
        unfinished_messages_text = (
            f"{format_count(arrived_message_count, 'message')} arrived {period_text}, and none "
            "was finished"
        )
    elif _FinishingCounts.of_measurement(measurement).is_failing:
        unfinished_messages_text = (
            f"of {format_count(measurement.sent, 'message')} that arrived in "
            f"{format_duration(measurement.duration)}, consumers finished {measurement.deleted:,}"
        )
    elif last_hour_counts.is_failing:
        arrived_messages_text = format_count(last_hour_counts.sent_count, "message")
        unfinished_messages_text = (
            f"of {arrived_messages_text} that arrived in the last hour, consumers finished "
            f"{last_hour_counts.delete_count:,}"
        )
    else:
        return None
    waiting_messages_text = format_count(facts.visible + facts.in_flight, "message")
    reason = (
        f"{unfinished_messages_text}: its consumers may fail, and a DLQ would take the waiting "
        f"messages ({waiting_messages_text}) and the next ones. Look at the consumers' log. Mendq "
        "checks again at the next scan"
    )
    return Refuse("nothing_finished", reason, _make_receives_command(facts))


@dataclass(frozen=True)
class _FinishingCounts:
    """Counts that show whether consumers finish most of the messages that arrive.

    `receive_count` leaves out the messages that are in flight now. Consumers finish most messages
    if `delete_count` is at least half of `sent_count`. `receive_count` does not count for this,
    because one bad message can be received thousands of times.
    """

    sent_count: int
    delete_count: int
    receive_count: int

    @classmethod
    def of_measurement(cls, measurement: Measurement) -> _FinishingCounts:
        """Return the counts of the whole measured time."""
        return cls(
            measurement.sent, measurement.deleted, measurement.received - measurement.now.in_flight
        )

    @classmethod
    def of_last_hour(cls, measurement: Measurement) -> _FinishingCounts:
        """Return the counts of the last hour; all are 0 if its minutes are not known."""
        last_stretches = measurement.recent.half_hours[-2:]
        return cls(
            sum(stretch.sent for stretch in last_stretches),
            sum(stretch.deleted for stretch in last_stretches),
            sum(stretch.received for stretch in last_stretches)
            - measurement.now.in_flight * bool(last_stretches),
        )

    @property
    def is_finishing_most(self) -> bool:
        """True if at least half of the messages were finished, or at most one arrived."""
        return self.sent_count <= 1 or 2 * self.delete_count >= self.sent_count

    @property
    def is_failing(self) -> bool:
        """True if fewer than half were finished, and at least half of the receives were in vain."""
        return (
            not self.is_finishing_most
            and self.receive_count >= 2 * self.delete_count
            and self.receive_count > 0
        )


def _make_receives_command(facts: Facts) -> str:
    """Return the command that shows the number of receives in CloudWatch."""
    return show_metric_command(
        facts.queue_arn, "NumberOfMessagesReceived", "Sum", facts.measurement
    )


def _are_other_messages_finished(measurement: Measurement) -> bool:
    """Return True if consumers finish most messages, although some receives lead to no delete.

    Consumers must finish most messages in the last hour too, and must have deleted more messages
    than are left.
    """
    return (
        measurement.deleted > measurement.now.backlog
        and measurement.fruitless_receives > 0
        and not measurement.has_stopped_finishing
        and _FinishingCounts.of_measurement(measurement).is_finishing_most
        and _FinishingCounts.of_last_hour(measurement).is_finishing_most
    )


def _find_cause(facts: Facts) -> str | None:
    """Return why consumers do not finish messages now, in words for people; None if not known."""
    open_symptoms = sorted(SYMPTOMS_TO_FIX_FIRST & facts.open_symptoms)
    if open_symptoms:
        return f"a case of {open_symptoms[0]} is open for this queue"
    measurement = facts.measurement
    failing_function = find_failing_function(facts)
    # A function that fails at the same message again and again fails in most of its runs. So check
    # whether it finishes the other messages.
    finishes_other_messages = measurement is not None and _are_other_messages_finished(measurement)
    if failing_function is not None and not finishes_other_messages:
        return f"{failing_function.function_arn} fails in most of its runs"
    # A FIFO queue refuses a late delete, so more deletes than messages say nothing there.
    if measurement is not None and measurement.has_consumer_race and not facts.is_fifo:
        return "its messages are handled twice, so its visibility timeout is too short"
    consumer_fault = find_failing_consumers(facts)
    return consumer_fault.because if consumer_fault else None


def _refuse_taken_dlq_name(facts: Facts, dlq_arn: str) -> Refusal | None:
    """Return a refusal if a queue has the DLQ's name already, or if that was not checked.

    None if the name is free. None also if the existing queue has the attributes that Mendq would
    set (see `_has_planned_attributes`), and the case store records that Mendq made it, that a
    person confirmed it, or that a run of Mendq was about to make it a short time ago.
    """
    existing_queue = facts.dlq_namesake
    if existing_queue is None or existing_queue.queue_arn != dlq_arn:
        return Ignore("name_not_known", f"it was not checked whether {dlq_arn} exists")
    if not existing_queue.exists:
        return None
    if _has_planned_attributes(facts, existing_queue):
        objection = facts.dlq_namesake_objection
        return refuse_unconfirmed_receiver(dlq_arn, objection) if objection else None
    reason = (
        f"a queue {dlq_arn} exists already, and its settings do not fit this queue's messages. "
        "Ask its owner whether to attach it or another queue"
    )
    return Escalate("name_taken", reason, get_attributes_command(dlq_arn))


def _has_planned_attributes(facts: Facts, existing_queue: QueueFacts) -> bool:
    """Return True if the existing queue has the attributes that Mendq would set.

    Attributes that Mendq would not set are not compared, except Policy and RedrivePolicy, which
    must be empty.
    """
    existing_attributes = existing_queue.attributes
    planned_attributes = make_dlq_attributes(facts, existing_queue.queue_arn)
    planned_allow_policy = planned_attributes.pop("RedriveAllowPolicy")
    return (
        not any(existing_attributes.get(name) for name in POLICY_ATTRIBUTE_NAMES)
        and parse_redrive_allow_policy(existing_attributes.get("RedriveAllowPolicy", ""))
        == parse_redrive_allow_policy(planned_allow_policy)
        and all(
            existing_attributes.get(name) == value for name, value in planned_attributes.items()
        )
    )

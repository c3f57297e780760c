"""Plan a DLQ for a queue that has none, or say why it must not get one now.

A DLQ takes every message that was received `maxReceiveCount` times and not deleted. That is right
for a few messages that always fail. It is harmful if the consumers fail: then good messages go
there too, and the whole backlog at once. The rules:

1. No DLQ while a cause is known: consumers fail, the visibility timeout is too short, or fewer than
   half of the messages are finished. Without measurements there is no plan either, unless the queue
   is idle.
2. `maxReceiveCount` must not catch good messages. It is at least three times the mean number of
   receives per finished message. If every value that Mendq may set is too low, a person chooses.
3. The new queue has a name that Mendq knows to be free, or exactly the attributes that Mendq would
   set.
4. A person approves, unless consumers finished every message at its first receive, or the queue is
   idle and its RedrivePolicy names the DLQ already.

Messages that wait already keep their receive counts, so a new DLQ may take some of them at once.
The plan says how many messages wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mendq.catalogue.fifo.stuck_group import head_is_stuck, one_group_blocks
from mendq.catalogue.symptom import DetectedFault
from mendq.catalogue.visibility.needed_timeout import failing_consumer
from mendq.model.dlq import attributes_of_dlq
from mendq.model.facts import Facts, QueueFacts
from mendq.model.metrics import Measurement
from mendq.model.mode import Mode
from mendq.model.plan import Escalate, Ignore, Plan, Refusal, Refuse
from mendq.model.queue import (
    DEFAULT_MAX_RECEIVE_COUNT,
    MOST_RECEIVES_BEFORE_DLQ,
    Redrive,
    arn_of_dlq,
    is_quarantine,
    parse_redrive_allow_policy,
    parts_of,
    why_unfit_as_dlq,
)
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.commands import get_attributes_command, metric_command
from mendq.notifications.text import format_count, format_duration

# People are paged about failing consumers only if there are at least this many messages, and at
# least this share of them is not finished. A few messages that consumers give back again and again
# cause many receives too. These numbers decide only about the page, not about attaching a DLQ.
FEWEST_MESSAGES = 100
UNFINISHED_SHARE = 0.2
# A message that never finishes is received once in each visibility timeout. If the messages that
# are left were received less often than this share of that, they are not a few bad messages. They
# wait for consumers that fail.
TRIED_SHARE_OF_BAD = 0.25
# If no message at all is finished, this many messages are enough for the page.
FEWEST_OF_NONE = 10
# At least this many receives for each message, and at most this share of the messages finished:
# consumers receive the same backlog again and again and do not finish it.
RECEIVED_OFTEN = 2
HARDLY_ANY = 0.05
# An open case of these symptoms explains why messages are received again.
EXPLAINED_BY = frozenset({"visibility_timeout_too_short"})


def find_failing_consumers(facts: Facts) -> DetectedFault | None:
    """Find messages that consumers receive and do not finish.

    Most receives end in no delete, and deletes do not keep up with sends. Messages that are given
    back and finished later are no failure, however often they are received.
    """
    measured = facts.measurement
    if measured is None or _is_explained_otherwise(facts, measured):
        return None
    fruitless = measured.fruitless_receives
    deleted = measured.deleted
    if fruitless < max(deleted, measured.counter_tolerance) or not _leaves_messages(
        facts, measured
    ):
        return None
    held = measured.now.in_flight
    still_held = f", {held:,} are still held" if held else ""
    if deleted == 0 and measured.sent:
        return DetectedFault(
            f"No message was finished in the last {format_duration(measured.duration)}: consumers "
            f"received {format_count(measured.messages, 'message')} {measured.received:,} times "
            f"and deleted none{still_held}"
        )
    return DetectedFault(
        f"{fruitless:,} of {measured.received:,} receives in {format_duration(measured.duration)} "
        f"were not followed by a delete{still_held}: {format_count(measured.sent, 'message')} "
        f"arrived, and consumers deleted {deleted:,}"
    )


def _is_explained_otherwise(facts: Facts, measured: Measurement) -> bool:
    """Return True if another symptom explains the receives without a delete.

    That is a visibility timeout that is too short, one message that blocks its FIFO group, a
    running message move task, or a DLQ in which people look at messages.
    """
    return (
        measured.has_surplus
        or _group_is_blocked(facts, measured)
        or facts.move_task_running
        or facts.receives_only_dlq_messages
        or bool(EXPLAINED_BY & facts.open_symptoms)
    )


def _group_is_blocked(facts: Facts, measured: Measurement) -> bool:
    """Return True if one message at the head of a FIFO group explains the unfinished messages."""
    is_stuck = facts.is_fifo and head_is_stuck(measured, facts.visibility_seconds)
    return one_group_blocks(measured) or is_stuck


def _leaves_messages(facts: Facts, measured: Measurement) -> bool:
    """Return True if more messages are left unfinished than a few bad ones explain."""
    is_many = measured.messages >= FEWEST_MESSAGES
    if measured.deleted == 0 and measured.sent:
        is_many = measured.messages >= FEWEST_OF_NONE
    if not is_many and failing_consumer(facts) is None:
        return False
    if measured.sent <= measured.deleted / 2:
        # Few messages arrive. Consumers receive the waiting messages again and again.
        is_received_often = measured.received >= RECEIVED_OFTEN * measured.messages
        is_hardly_finished = measured.deleted <= HARDLY_ANY * measured.messages
        return measured.now.backlog > 0 and is_received_often and is_hardly_finished
    if measured.sent_minus_deleted > UNFINISHED_SHARE * measured.sent:
        return True
    return measured.sent_minus_deleted > measured.counter_tolerance and not _are_few_bad_messages(
        facts, measured
    )


def _are_few_bad_messages(facts: Facts, measured: Measurement) -> bool:
    """Return True if the messages that are left look like a few that never finish.

    Such messages are received once in each visibility timeout. On average they were there for half
    of the measured time. With a DLQ they would have left the queue.
    """
    timeouts = measured.duration.total_seconds() / max(facts.visibility_seconds, 1)
    expected = measured.sent_minus_deleted * timeouts / 2
    is_tried = measured.fruitless_receives >= TRIED_SHARE_OF_BAD * expected
    return facts.dlq_arn is None and is_tried


# While a case of these symptoms is open, a DLQ would take good messages that could not be finished.
FIXED_FIRST = frozenset({"visibility_timeout_too_short", "consumer_failing"})
POLICIES = ("Policy", AttachDlq.attribute)
# The values of `maxReceiveCount` that Mendq sets. There are only a few, so that a plan stays the
# same while its numbers change a little between the proposal and its approval.
RECEIVE_LIMITS = (DEFAULT_MAX_RECEIVE_COUNT, 10, 20, 30, 50, MOST_RECEIVES_BEFORE_DLQ)
# `maxReceiveCount` is at least this many times the mean number of receives. A limit at the mean
# would move every message that needs more than the mean.
TIMES_THE_MEAN = 3
# If the last hour's mean is this many times the mean of all measured hours, it counts instead:
# consumers need more receives now.
MANY_TIMES_MORE = 2


def plan_new_dlq(facts: Facts, because: str) -> Plan | Refusal:
    """Plan a new DLQ for a queue that has none.

    A person must approve it, except if consumers finished every message at its first receive.
    """
    dlq_arn = arn_of_dlq(facts.queue_arn)
    if not has_no_dlq(facts):
        return Ignore("need_already_met", "it has a DLQ by now, or takes DLQ messages itself")
    refusal = _refuse_before_cause_is_fixed(facts) or _refuse_taken_name(facts, dlq_arn)
    if refusal is not None:
        return refusal
    receives = _choose_receive_limit(facts)
    if receives is None:
        return _refuse_without_safe_limit(facts, because)
    reason = (
        f"{because}. A message that was received {receives} times and not deleted would move to "
        f"{dlq_arn} and be kept there for 14 days"
        f"{_describe_order(facts)}{_list_unknowns(facts, receives)}"
    )
    steps = (CreateDlq("", dlq_arn), AttachDlq("", Redrive(dlq_arn, receives).text))
    return Plan(steps, reason, at_most=_find_highest_mode(facts))


def plan_named_dlq(facts: Facts, dlq_arn: str, because: str) -> Plan | Refusal:
    """Plan to create the missing DLQ that the queue's RedrivePolicy names.

    The queue itself is not changed. If the name is that of a quarantine, nothing is planned: Mendq
    creates quarantines only for messages that failed after a redrive.
    """
    if is_quarantine(parts_of(dlq_arn).name):
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
    if _is_idle(facts) or _find_highest_mode(facts) is Mode.HEAL:
        return Plan((CreateDlq("", dlq_arn),), because + _describe_order(facts))
    reason = because + _describe_order(facts) + _list_unknowns(facts, facts.max_receive_count or 0)
    return Plan((CreateDlq("", dlq_arn),), reason, at_most=Mode.PROPOSE)


def _find_highest_mode(facts: Facts) -> Mode:
    """Return HEAL only if messages were finished, each at its first receive. Else return PROPOSE.

    One exception is enough to ask a person. A detection may ignore small numbers, a write may not.
    """
    measured = facts.measurement
    if measured is None or measured.deleted == 0:
        return Mode.PROPOSE
    # Receives before the measured time are not counted for messages that waited at its start.
    is_certain = measured.before.backlog <= measured.now.backlog
    is_handled_once = measured.fruitless_receives == 0 and measured.surplus_deletes <= 0
    if measured.has_stopped_finishing or not is_certain or not is_handled_once:
        return Mode.PROPOSE
    return Mode.HEAL


def _choose_sums(facts: Facts, measured: Measurement) -> Measurement:
    """Return the sums that show best how often finished messages were received.

    If a FIFO group is blocked, return the sums since then: they cover the messages of other groups.
    If messages needed many more receives in the last hour, return the sums of the last hour, so
    that `maxReceiveCount` does not catch these messages. Otherwise return `measured` itself.
    """
    still = measured.recent.standstill
    is_stuck = facts.is_fifo and head_is_stuck(measured, facts.visibility_seconds)
    if is_stuck and still is not None and still.deleted:
        return still
    lately = _sum_last_hour(measured)
    mean = measured.receives_per_finished(is_fifo=facts.is_fifo)
    mean_lately = lately.receives_per_finished(is_fifo=facts.is_fifo) if lately else None
    if mean is None or mean_lately is None or mean_lately < MANY_TIMES_MORE * mean:
        return measured
    return lately or measured


def _sum_last_hour(measured: Measurement) -> Measurement | None:
    """Return the sums of the last hour; None if CloudWatch has no data of its minutes."""
    last = measured.recent.stretches[-2:]
    if not last:
        return None
    return replace(
        measured,
        since=last[0].since,
        before=last[0].before,
        sent=sum(stretch.sent for stretch in last),
        received=sum(stretch.received for stretch in last),
        deleted=sum(stretch.deleted for stretch in last),
    )


def _choose_receive_limit(facts: Facts) -> int | None:
    """Return the maxReceiveCount to set, or None if every value that Mendq may set is too low.

    A good message must not reach the DLQ. If no message was finished, Mendq cannot know how often a
    good message is received, so it takes the highest value. In a blocked FIFO group only the first
    messages are received, so their receives say nothing about the others: then the default is used.
    """
    measured = facts.measurement
    if measured is None or measured.fruitless_receives == 0:
        return DEFAULT_MAX_RECEIVE_COUNT
    mean = _choose_sums(facts, measured).receives_per_finished(is_fifo=facts.is_fifo)
    if mean is None:
        return (
            DEFAULT_MAX_RECEIVE_COUNT
            if _group_is_blocked(facts, measured)
            else MOST_RECEIVES_BEFORE_DLQ
        )
    enough = (limit for limit in RECEIVE_LIMITS if limit >= TIMES_THE_MEAN * mean)
    return next(enough, None)


def _refuse_without_safe_limit(facts: Facts, because: str) -> Refusal:
    """Return the refusal to choose maxReceiveCount: a person who knows the consumer must do it."""
    reason = (
        f"{because}. A DLQ would stop that, but Mendq cannot tell which maxReceiveCount keeps good "
        f"messages out of it: {_describe_mean(facts)}. Three times that is more than "
        f"{MOST_RECEIVES_BEFORE_DLQ}, the highest value that Mendq sets. Find in the consumer's "
        "log how often it receives a message before it finishes it. Then attach a DLQ with a "
        "higher "
        "maxReceiveCount yourself; the runbook has the command"
    )
    return Refuse("no_safe_limit", reason, get_attributes_command(facts.queue_arn))


def _describe_mean(facts: Facts) -> str:
    """Return a text with the mean number of receives per finished message, and its limits."""
    measured = facts.measurement
    assert measured is not None  # noqa: S101 - else there is no mean
    sums = _choose_sums(facts, measured)
    mean = sums.receives_per_finished(is_fifo=facts.is_fifo) or 0
    return (
        f"for each finished message CloudWatch counted {mean:,.1f} receives on average in "
        f"{format_duration(sums.duration)}. The mean also counts receives of messages that never "
        "finish, because CloudWatch reports only sums"
    )


def _list_unknowns(facts: Facts, receives: int) -> str:
    """Return sentences for the person who approves; empty if no person has to.

    They say what the measurements leave open, and how many messages wait now.
    """
    measured = facts.measurement
    if measured is None or _find_highest_mode(facts) is Mode.HEAL:
        return ""
    sentences = []
    if measured.deleted == 0:
        sentences.append(
            f"No message was finished in the last {format_duration(measured.duration)}, so Mendq "
            "cannot tell whether all messages fail or only these. Look at the consumers' log "
            "before you approve, and decline if they finish nothing"
        )
        if receives == MOST_RECEIVES_BEFORE_DLQ:
            sentences.append(
                f"It is also unknown how often a good message is received, so maxReceiveCount is "
                f"{receives}, the highest value that Mendq sets"
            )
    elif measured.has_stopped_finishing:
        arrived = format_count(measured.sent_since_delete, "message")
        sentences.append(
            f"{arrived} arrived since the last delete, and none was finished: look at the "
            "consumers' log before you approve"
        )
    elif measured.fruitless_receives:
        sentences.append(
            f"F{_describe_mean(facts)[1:]}. If consumers give messages back on purpose, approve "
            f"only if no good message needs more than {format_count(receives, 'receive')}"
        )
    if measured.surplus_deletes > 0:
        sentences.append(
            f"Consumers made {format_count(measured.surplus_deletes, 'delete')} more than messages "
            "left the queue: some messages may have been handled twice, because the visibility "
            "timeout is too short"
        )
    if waiting := facts.visible + facts.in_flight:
        sentences.append(
            f"{format_count(waiting, 'message')} {'waits' if waiting == 1 else 'wait'} now; a "
            f"message that was already received {format_count(receives, 'time')} moves to the DLQ "
            "at its next receive"
        )
    return "".join(f". {sentence}" for sentence in sentences)


def _describe_order(facts: Facts) -> str:
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
    named = facts.dlq
    if named is None or named.exists or why_unfit_as_dlq(facts.queue_arn, named.queue_arn):
        return None
    return named.queue_arn


def has_no_dlq(facts: Facts) -> bool:
    """Return True if the queue has no DLQ and is not a DLQ itself."""
    return not facts.attributes.get(AttachDlq.attribute) and not facts.receives_only_dlq_messages


def _is_idle(facts: Facts) -> bool:
    """Return True if no Lambda function reads the queue and no message is in it."""
    return not facts.lambda_consumers and facts.visible + facts.in_flight == 0


def _refuse_before_cause_is_fixed(facts: Facts) -> Refusal | None:
    """Return a refusal if consumers fail or are too slow; None if a DLQ may be attached.

    A DLQ would take the whole backlog of such consumers at once. The current measurements decide,
    also if a person closed an earlier case about the consumers. Without measurements the result is
    a refusal, except if nothing reads the queue and nothing waits.
    """
    cause = _find_cause(facts)
    if cause is not None:
        reason = f"{cause}. Fix that first: a DLQ would take the whole backlog"
        return Ignore("cause_first", reason)
    measured = facts.measurement
    if measured is None or facts.move_task_running:
        if _is_idle(facts):
            return None
        reason = "no measurement shows whether its consumers finish the messages that they receive"
        return Ignore("not_measured", reason)
    if _group_is_blocked(facts, measured):
        return None
    return _refuse_if_nothing_finished(facts, measured)


def _refuse_if_nothing_finished(facts: Facts, measured: Measurement) -> Refusal | None:
    """Return a refusal if consumers finish too few messages; None otherwise.

    This holds even if too few messages arrive for a notification about the consumers.
    """
    lately = _Counts.lately(measured)
    if measured.has_stopped_finishing:
        messages = measured.sent_since_delete if measured.deleted else measured.sent
        since = (
            "since the last delete"
            if measured.deleted
            else f"in {format_duration(measured.duration)}"
        )
        finished = f"{format_count(messages, 'message')} arrived {since}, and none was finished"
    elif _Counts.of(measured).fails:
        finished = (
            f"of {format_count(measured.sent, 'message')} that arrived in "
            f"{format_duration(measured.duration)}, consumers finished {measured.deleted:,}"
        )
    elif lately.fails:
        arrived = format_count(lately.sent, "message")
        finished = (
            f"of {arrived} that arrived in the last hour, consumers finished {lately.deleted:,}"
        )
    else:
        return None
    waiting = format_count(facts.visible + facts.in_flight, "message")
    reason = (
        f"{finished}: its consumers may fail, and a DLQ would take the waiting messages "
        f"({waiting}) and the next ones. Look at the consumers' log. Mendq checks again at the "
        "next scan"
    )
    return Refuse("nothing_finished", reason, _receives_command(facts))


@dataclass(frozen=True)
class _Counts:
    """Counts that show whether consumers finish most of the messages that arrive.

    `sent` and `deleted` count messages. `received` counts receives, minus the messages that are in
    flight now. Consumers finish most messages if `deleted` is at least half of `sent`. `received`
    does not count for this, because one bad message can be received thousands of times.
    """

    sent: int
    deleted: int
    received: int

    @classmethod
    def of(cls, measured: Measurement) -> _Counts:
        return cls(measured.sent, measured.deleted, measured.received - measured.now.in_flight)

    @classmethod
    def lately(cls, measured: Measurement) -> _Counts:
        """Return the counts of the last hour; all are 0 if its minutes are not known."""
        last = measured.recent.stretches[-2:]
        return cls(
            sum(stretch.sent for stretch in last),
            sum(stretch.deleted for stretch in last),
            sum(stretch.received for stretch in last) - measured.now.in_flight * bool(last),
        )

    @property
    def finishes_most(self) -> bool:
        """Return True if at least half of the messages were finished, or at most one arrived."""
        return self.sent <= 1 or 2 * self.deleted >= self.sent

    @property
    def fails(self) -> bool:
        """Return True if fewer than half were finished, and most receives led to no delete."""
        return not self.finishes_most and self.received >= 2 * self.deleted and self.received > 0


def _receives_command(facts: Facts) -> str:
    """Return the command that shows the number of receives in CloudWatch."""
    return metric_command(facts.queue_arn, "NumberOfMessagesReceived", "Sum", facts.measurement)


def _are_others_finished(measured: Measurement) -> bool:
    """Return True if consumers finish most messages, although some receives lead to no delete.

    This must hold for the last hour too, and more messages were deleted than are left.
    """
    return (
        measured.deleted > measured.now.backlog
        and measured.fruitless_receives > 0
        and not measured.has_stopped_finishing
        and _Counts.of(measured).finishes_most
        and _Counts.lately(measured).finishes_most
    )


def _find_cause(facts: Facts) -> str | None:
    """Return why consumers do not finish messages now, in words for people; None if not known."""
    open_symptoms = sorted(FIXED_FIRST & facts.open_symptoms)
    if open_symptoms:
        return f"a case of {open_symptoms[0]} is open for this queue"
    measured = facts.measurement
    failing = failing_consumer(facts)
    # A function that fails at the same message again and again fails in most of its runs. So check
    # whether it finishes the other messages.
    is_finishing = measured is not None and _are_others_finished(measured)
    if failing is not None and not is_finishing:
        return f"{failing.function_arn} fails in most of its runs"
    # A FIFO queue refuses a late delete, so more deletes than messages say nothing there.
    if measured is not None and measured.has_race and not facts.is_fifo:
        return "its messages are handled twice, so its visibility timeout is too short"
    found = find_failing_consumers(facts)
    return found.because if found else None


def _refuse_taken_name(facts: Facts, dlq_arn: str) -> Refusal | None:
    """Return a refusal if a queue has the DLQ's name, or if that was not checked.

    None if the name is free, or if that queue has exactly the attributes that Mendq would set.
    """
    namesake = facts.dlq_namesake
    if namesake is None or namesake.queue_arn != dlq_arn:
        return Ignore("name_not_known", f"it was not checked whether {dlq_arn} exists")
    if not namesake.exists or _fits_exactly(facts, namesake):
        return None
    reason = (
        f"a queue {dlq_arn} exists already, and its settings do not fit this queue's messages. "
        "Ask its owner whether to attach it or another queue"
    )
    return Escalate("name_taken", reason, get_attributes_command(dlq_arn))


def _fits_exactly(facts: Facts, namesake: QueueFacts) -> bool:
    """Return True if the existing queue has exactly the attributes that Mendq would set."""
    attributes = namesake.attributes
    wanted = attributes_of_dlq(facts, namesake.queue_arn)
    allowed = wanted.pop("RedriveAllowPolicy")
    return (
        not any(attributes.get(name) for name in POLICIES)
        and parse_redrive_allow_policy(attributes.get("RedriveAllowPolicy", ""))
        == parse_redrive_allow_policy(allowed)
        and all(attributes.get(name) == value for name, value in wanted.items())
    )

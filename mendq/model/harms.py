"""The harm that each kind of step can do, and the sign that verification watches for it.

A fix is a change, and a change can cause the next fault. The table `HARM_BY_STEP_CLASS` is used in
three ways:

1. Mendq finds a fault. If Mendq recently made a change that can cause this fault, the notification
   names that change's case first and offers its rollback (`find_causing_change`).
2. A fix is being verified or watched. Its sign is a measurement that shows harm by this kind of
   step. If the measurement shows harm, the case is not verified: people are notified and decide
   (`describe_measured_harm`). If CloudWatch has too little data to show harm, the case is not
   verified either, and waits (`HarmMeasurements.lacks_data`).
3. A test checks that every step has a row, and that a row without a symptom or without a sign gives
   the reason.

Rules:

- Mendq suspects a change only during the watch time (`timing.watchHours`) after its write.
- Mendq suspects a change only while the queue may still have the value that Mendq wrote, and not
  after a rollback or a person's change of the value.
- A case is never suspected of its own symptom. If the symptom comes back, the fix did not help, and
  the case's own timeline says so.
- Mendq never rolls a change back because of harm, because a fault after a change may have another
  cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.limits import Timing
from mendq.model.metrics import Measurement, Window
from mendq.model.own_change import OwnChange
from mendq.model.queue import parse_queue_arn, parse_redrive_policy
from mendq.model.state import STATES_WITH_FIX_IN_PLACE, State
from mendq.model.steps import (
    AllowRedriveFrom,
    AttachDlq,
    AttributeStep,
    CreateDlq,
    DeduplicateByContent,
    DeduplicateByGroup,
    LimitThroughputByGroup,
    LowerVisibilityTimeout,
    RedriveMessages,
    RestorePolicy,
    SetKmsDataKeyReusePeriod,
    SetMaximumMessageSize,
    SetMessageRetention,
    SetReceiveWaitTime,
    SetVisibilityTimeout,
    find_step_class,
)

# SQS returns no more messages at about 120,000 in flight. Half of that is reported as harm.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
HARMFUL_IN_FLIGHT_MESSAGES = 60_000
# The number of messages in flight may double and rise by this number before the rise counts as
# harm.
TOLERATED_RISE_OF_IN_FLIGHT_MESSAGES = 10
# A growth of the oldest message's age by this may be harm, even if it is less than the visibility
# timeout.
HARMFUL_AGE_GROWTH_SECONDS = 3_600
# This number of receives without any delete is a sign of harm, even on a queue with little traffic.
HARMFUL_FRUITLESS_RECEIVES = 5

# The code of a refusal, or of an escalated case, that names Mendq's change as a possible cause.
OWN_CHANGE_CODE = "own_change"


class HarmSign(Enum):
    """The measurement that shows if a change does harm."""

    DLQ_ARRIVALS = "messages arrive in the DLQ"
    HELD_LONGER = "more messages are in flight, and the oldest message grows older"
    HANDLED_TWICE = "messages are deleted twice"
    NOTHING_FINISHED = "messages are received and none is deleted"
    SENDS_DROPPED = "SQS drops sends as duplicates"


ROLLBACK_INTRODUCTION = "To take the change back"
MANUAL_UNDO_INTRODUCTION = (
    "Mendq does not take this back automatically; to see how to do it by hand"
)
STOP_REDRIVE_INTRODUCTION = "To stop it (messages that were sent back stay there)"


@dataclass(frozen=True)
class Harm:
    """The harm that one kind of step can do to queues.

    Attributes:
        change_text: The change in words, with placeholders such as `{queue}` and `{after}`
            (`make_own_change` fills them).
        effect: The effect of the change in words, with the same placeholders.
        symptoms_on_changed_queue: The symptoms that the change can cause on the changed queue.
        symptoms_at_dlq: The symptoms that the change can cause on the DLQ of the changed queue.
        symptoms_at_redrive_target: The symptoms that a redrive can cause on the queue that gets the
            messages back.
        sign: The measurement that shows harm; None if no measurement shows it.
        why_no_symptom: The reason why the change can cause no symptom; empty if it can cause one.
        why_no_sign: The reason why no measurement shows harm; empty if there is a `sign`.
        rollback_introduction: Text before the command `mendq rollback`.
    """

    change_text: str
    effect: str
    symptoms_on_changed_queue: frozenset[str] = frozenset()
    symptoms_at_dlq: frozenset[str] = frozenset()
    symptoms_at_redrive_target: frozenset[str] = frozenset()
    sign: HarmSign | None = None
    why_no_symptom: str = ""
    why_no_sign: str = ""
    rollback_introduction: str = ROLLBACK_INTRODUCTION

    @property
    def symptoms(self) -> frozenset[str]:
        """All symptoms that the step can cause, on any queue."""
        return (
            self.symptoms_on_changed_queue | self.symptoms_at_dlq | self.symptoms_at_redrive_target
        )


_DLQ_MESSAGES_ARRIVING = frozenset({"dlq_messages_arriving"})
_SYMPTOMS_OF_FAILING_CONSUMERS = frozenset(
    {"consumer_failing", "function_errors", "function_times_out"}
)

HARM_BY_STEP_CLASS: Mapping[type[AttributeStep], Harm] = {
    SetVisibilityTimeout: Harm(
        change_text="raised VisibilityTimeout of {queue} from {before} s to {after} s",
        effect="a message that is not finished stays in flight longer before it comes again",
        symptoms_on_changed_queue=frozenset(
            {
                "visibility_timeout_too_long",
                "in_flight_limit",
                "messages_about_to_expire",
                "fifo_group_blocked",
                "dedup_interval_outlasted",
            }
        ),
        sign=HarmSign.HELD_LONGER,
    ),
    LowerVisibilityTimeout: Harm(
        change_text="lowered VisibilityTimeout of {queue} from {before} s to {after} s",
        effect="SQS delivers a message a second time if its work takes longer than that",
        symptoms_on_changed_queue=frozenset(
            {"visibility_timeout_too_short", "batch_outlasts_timeout"}
        ),
        symptoms_at_dlq=_DLQ_MESSAGES_ARRIVING,
        sign=HarmSign.HANDLED_TWICE,
    ),
    SetKmsDataKeyReusePeriod: Harm(
        change_text="raised KmsDataKeyReusePeriodSeconds of {queue} from {before} s to {after} s",
        effect="SQS goes on using a data key for that long after its KMS key was revoked",
        why_no_symptom="SQS only asks KMS less often: a revoked key fails later, never earlier",
        why_no_sign="no metric counts how long a data key is used",
    ),
    SetMaximumMessageSize: Harm(
        change_text="raised MaximumMessageSize of {queue} from {before} to {after} bytes",
        effect="consumers receive longer messages than before",
        symptoms_on_changed_queue=_SYMPTOMS_OF_FAILING_CONSUMERS,
        symptoms_at_dlq=_DLQ_MESSAGES_ARRIVING,
        sign=HarmSign.NOTHING_FINISHED,
    ),
    SetMessageRetention: Harm(
        change_text="raised MessageRetentionPeriod of {queue} from {before} s to {after} s",
        effect="a message can be older than its DLQ's retention when it moves there, and expire",
        symptoms_at_dlq=frozenset({"dlq_retention_too_short"}),
        why_no_sign="messages are only kept longer, and the hourly scan compares queue and DLQ",
        rollback_introduction=MANUAL_UNDO_INTRODUCTION,
    ),
    SetReceiveWaitTime: Harm(
        change_text="raised ReceiveMessageWaitTimeSeconds of {queue} from {before} s to {after} s",
        effect="a consumer that stops waiting earlier loses the messages that SQS returns to it",
        symptoms_on_changed_queue=_SYMPTOMS_OF_FAILING_CONSUMERS,
        symptoms_at_dlq=_DLQ_MESSAGES_ARRIVING,
        sign=HarmSign.NOTHING_FINISHED,
    ),
    DeduplicateByContent: Harm(
        change_text="turned ContentBasedDeduplication of {queue} on",
        effect="SQS drops a send whose body equals one of the last five minutes",
        why_no_symptom="a dropped send answers 200, so no failed call and no backlog shows it",
        sign=HarmSign.SENDS_DROPPED,
    ),
    DeduplicateByGroup: Harm(
        change_text="set DeduplicationScope of {queue} to {after}",
        effect="a message that is sent again in another group is not dropped any more",
        why_no_symptom="SQS counts a repeated send as any other, so no symptom can tell it apart",
        why_no_sign="no metric tells a repeated send in another group from a new message",
    ),
    LimitThroughputByGroup: Harm(
        change_text="set FifoThroughputLimit of {queue} to {after}",
        effect="more messages a second reach its consumers",
        symptoms_on_changed_queue=frozenset({"consumer_throttled", "kms_throttled"}),
        why_no_sign="the hourly scan measures its consumers, and failed calls show a throttled KMS",
    ),
    CreateDlq: Harm(
        change_text="made {dlq}, the DLQ that {queue} names,",
        effect="messages that consumers received too often move there",
        symptoms_at_dlq=_DLQ_MESSAGES_ARRIVING,
        sign=HarmSign.DLQ_ARRIVALS,
        rollback_introduction=MANUAL_UNDO_INTRODUCTION,
    ),
    AttachDlq: Harm(
        change_text="attached the DLQ {dlq} to {queue}",
        effect="messages that had been received {receives} times move there",
        symptoms_on_changed_queue=frozenset({"max_receive_count_too_low"}),
        symptoms_at_dlq=_DLQ_MESSAGES_ARRIVING,
        sign=HarmSign.DLQ_ARRIVALS,
    ),
    AllowRedriveFrom: Harm(
        change_text="let more source queues into {queue}",
        effect="messages of these sources that consumers received too often move there",
        symptoms_on_changed_queue=_DLQ_MESSAGES_ARRIVING,
        sign=HarmSign.DLQ_ARRIVALS,
    ),
    RestorePolicy: Harm(
        change_text="put the pinned policy of {queue} back",
        effect="callers that only the old policy allowed are refused, and others may call again",
        symptoms_on_changed_queue=frozenset({"policy_is_public", "tls_not_enforced"}),
        why_no_sign="failed calls verify it, and AWS's access check runs after the write",
        rollback_introduction=MANUAL_UNDO_INTRODUCTION,
    ),
    RedriveMessages: Harm(
        change_text="is sending messages of the DLQ {queue} back",
        effect="they can fail a second time",
        symptoms_on_changed_queue=_DLQ_MESSAGES_ARRIVING,
        symptoms_at_redrive_target=frozenset(
            {
                *_SYMPTOMS_OF_FAILING_CONSUMERS,
                "consumer_throttled",
                "fifo_group_blocked",
                "fifo_throttled",
                "in_flight_limit",
                "kms_throttled",
            }
        ),
        why_no_sign="the redrive itself counts what comes back, and halts",
        rollback_introduction=STOP_REDRIVE_INTRODUCTION,
    ),
}

CAUSABLE_SYMPTOMS: frozenset[str] = frozenset().union(
    *(harm.symptoms for harm in HARM_BY_STEP_CLASS.values())
)


def list_causing_attributes(symptom: str) -> frozenset[str] | None:
    """Return the attributes of a queue whose change can cause the symptom on the same queue.

    Return None if a change of another queue can also cause the symptom. For example, a change of a
    source queue can cause a symptom of its DLQ. It is then not enough to look at one queue.
    """
    harm_by_step_class = {
        step_class: harm
        for step_class, harm in HARM_BY_STEP_CLASS.items()
        if symptom in harm.symptoms
    }
    if any(
        symptom in harm.symptoms_at_dlq | harm.symptoms_at_redrive_target
        for harm in harm_by_step_class.values()
    ):
        return None
    return frozenset(step_class.attribute for step_class in harm_by_step_class)


StepDocument = Mapping[str, str]


def find_harm(step: StepDocument) -> Harm | None:
    """Return the row of HARM_BY_STEP_CLASS for a stored step; None if the step is unknown.

    A step that lowered the visibility timeout has its own row.
    """
    step_class = find_step_class(step["attribute"])
    if step_class is SetVisibilityTimeout and _lowers_value(step):
        step_class = LowerVisibilityTimeout
    return HARM_BY_STEP_CLASS.get(step_class) if step_class is not None else None


def _lowers_value(step: StepDocument) -> bool:
    before, after = step["before"], step["after"]
    return before.isdigit() and after.isdigit() and int(after) < int(before)


def find_step_with_harm_sign(case: Case) -> StepDocument | None:
    """Return the case's last step whose harm a measurement can show; None if there is none."""
    for step in reversed(case.steps):
        harm = find_harm(step)
        if harm is not None and harm.sign is not None:
            return step
    return None


def find_harm_sign(case: Case) -> HarmSign | None:
    """Return the measurement that shows harm by the case's steps; None if there is none."""
    step = find_step_with_harm_sign(case)
    harm = find_harm(step) if step is not None else None
    return harm.sign if harm is not None else None


def find_dlq_arn(steps: Iterable[StepDocument]) -> str:
    """Return the ARN of the DLQ that the steps created or attached; empty if they did neither."""
    for step in steps:
        if step["attribute"] == CreateDlq.attribute:
            return step["after"]
        redrive_policy = (
            parse_redrive_policy(step["after"])
            if step["attribute"] == AttachDlq.attribute
            else None
        )
        if redrive_policy is not None:
            return redrive_policy.dlq_arn
    return ""


# The states in which the queue may still have the value that Mendq wrote.
_STATES_WITH_VALUE_IN_PLACE = frozenset({*STATES_WITH_FIX_IN_PLACE, State.ESCALATED, State.CLOSED})
_STATES_OF_UNDONE_CASES = frozenset({State.ROLLED_BACK, State.OVERRIDDEN})


def may_case_have_caused_symptom(case: Case, symptom: str, facts: Facts) -> bool:
    """Return True if a step that the case wrote may cause the symptom on the queue of `facts`.

    Return False for a case of this symptom on this queue, and for a case in a state in which the
    queue does not have the value that Mendq wrote.

    Args:
        case: The newest transition of a case about the queue, its DLQ or one of its sources.
        symptom: The name of the symptom.
        facts: The queue with the symptom, and its DLQ sources if they were read.
    """
    is_case_of_symptom = case.symptom == symptom and case.queue_arn == facts.queue_arn
    if is_case_of_symptom or case.state not in _STATES_WITH_VALUE_IN_PLACE:
        return False
    return any(_can_step_cause_symptom(case, step, symptom, facts) for step in case.steps)


def _can_step_cause_symptom(case: Case, step: StepDocument, symptom: str, facts: Facts) -> bool:
    harm = find_harm(step)
    if harm is None:
        return False
    if case.queue_arn == facts.queue_arn:
        return symptom in harm.symptoms_on_changed_queue
    if step["attribute"] == RedriveMessages.attribute:
        return symptom in harm.symptoms_at_redrive_target and step["after"] == facts.queue_arn
    if case.queue_arn not in facts.source_arns:
        return False
    return symptom in harm.symptoms_at_dlq and find_dlq_arn([step]) in ("", facts.queue_arn)


def find_causing_change(
    symptom: str,
    facts: Facts,
    case_histories: Iterable[Sequence[Case]],
    now: datetime,
    timing: Timing,
) -> OwnChange | None:
    """Return Mendq's newest change that may have caused a symptom; None if there is no such change.

    Args:
        symptom: The name of the symptom.
        facts: The queue with the symptom, and its DLQ sources if they were read.
        case_histories: The transitions of cases about the queue, its DLQ and its sources, each in
            order.
        now: The present time.
        timing: The account's waiting times. A change that is older than `watch_hours` is ignored.
    """
    causing_changes: list[OwnChange] = []
    for case_history in case_histories:
        last_write = _find_last_write(case_history)
        if last_write is None or not _is_recent_write(last_write, now, timing):
            continue
        if not may_case_have_caused_symptom(case_history[-1], symptom, facts):
            continue
        if not all(_may_value_be_in_place(last_write, step, facts) for step in last_write.steps):
            continue
        causing_steps = [
            step
            for step in last_write.steps
            if _can_step_cause_symptom(last_write, step, symptom, facts)
        ]
        if causing_steps:
            # Use the last step: Mendq makes a DLQ first and then attaches it, which says more.
            causing_changes.append(make_own_change(last_write, causing_steps[-1], case_history[-1]))
    return max(causing_changes, key=_get_written_at, default=None)


def _get_written_at(change: OwnChange) -> datetime:
    return change.written_at


def _find_last_write(case_history: Sequence[Case]) -> Case | None:
    """Return the transition that wrote the case's last change.

    Return None if the case wrote nothing, or if the change was rolled back or overridden since.
    """
    last_write: Case | None = None
    for case in case_history:
        if case.state is State.APPLIED:
            last_write = case
        elif case.state in _STATES_OF_UNDONE_CASES:
            last_write = None
    return last_write


def _is_recent_write(write_transition: Case, now: datetime, timing: Timing) -> bool:
    return timedelta(0) <= now - write_transition.at <= timedelta(hours=timing.watch_hours)


def _may_value_be_in_place(write_transition: Case, step: StepDocument, facts: Facts) -> bool:
    """Return True if the changed queue may still have the value that the step wrote.

    Return False if `facts` show another value, or that the queue was created again since, or if the
    step is unknown.
    """
    step_class = find_step_class(step["attribute"])
    if step_class is None:
        return False
    if step_class is CreateDlq:
        return facts.queue_arn != step["after"] or not facts.is_created_after(write_transition.at)
    if not step_class.has_value_in_queue:
        return True
    for queue in (facts, *(facts.dlq_sources or ())):
        if queue.queue_arn == write_transition.queue_arn and queue.exists:
            is_same_queue = not queue.is_created_after(write_transition.at)
            return is_same_queue and step_class.value_in(queue.attributes) == step["after"]
    return True


def make_own_change(
    write_transition: Case, step: StepDocument, newest_transition: Case
) -> OwnChange:
    """Return one written step of a case as an OwnChange, the possible cause of a fault.

    Args:
        write_transition: The transition that wrote the step.
        step: The step.
        newest_transition: The case's newest transition. It shows if people were already notified
            that the change may do harm.

    Raises:
        KeyError: HARM_BY_STEP_CLASS has no row for the step.
    """
    harm = find_harm(step)
    if harm is None:
        raise KeyError(step["attribute"])
    redrive_policy = (
        parse_redrive_policy(step["after"]) if step["attribute"] == AttachDlq.attribute else None
    )
    dlq_arn = find_dlq_arn([step])
    value_by_placeholder = {
        "queue": parse_queue_arn(write_transition.queue_arn).name,
        "dlq": parse_queue_arn(dlq_arn).name if dlq_arn else "",
        "receives": redrive_policy.max_receive_count if redrive_policy else 0,
        "before": step["before"][:_MAXIMUM_VALUE_LENGTH],
        "after": step["after"][:_MAXIMUM_VALUE_LENGTH],
    }
    return OwnChange(
        case_id=write_transition.case_id,
        queue_arn=write_transition.queue_arn,
        written_at=write_transition.at,
        change_text=harm.change_text.format(**value_by_placeholder),
        effect=harm.effect.format(**value_by_placeholder),
        rollback_introduction=harm.rollback_introduction,
        is_reported=newest_transition.state is State.ESCALATED
        and newest_transition.code == OWN_CHANGE_CODE,
    )


_MAXIMUM_VALUE_LENGTH = 60


@dataclass(frozen=True)
class HarmMeasurements:
    """Measurements since a change, for the changed queue and for its DLQ.

    Attributes:
        queue: The measurement of the changed queue; None if it has no data or was not measured.
        dlq: The measurement of the DLQ; None in the same cases.
        dlq_message_count: The number of messages in the DLQ now; 0 if it was not read. All of them
            count as arrivals if the change created the DLQ and no producer sends to it.
        window: The time since the change that had to be measured; None if it is too short.
    """

    queue: Measurement | None = None
    dlq: Measurement | None = None
    dlq_message_count: int = 0
    window: Window | None = None

    @property
    def lacks_data(self) -> bool:
        """True if CloudWatch has too little data to show harm.

        Then the absence of a sign does not show that the change does no harm. An empty DLQ does not
        either, because messages may have arrived and left again.
        """
        measurement = self.queue or self.dlq
        if measurement is None or self.window is None:
            return True
        return not measurement.is_sufficient_for(self.window)


def describe_measured_harm(case: Case, signs: HarmMeasurements) -> str:
    """Return the measured sign that the case's change does harm, as text; empty if there is none.

    The text is the end of a sentence that begins with "Since then".
    """
    step, sign = find_step_with_harm_sign(case), find_harm_sign(case)
    return _describe_sign(sign, case, step, signs) if step is not None and sign is not None else ""


def _describe_sign(sign: HarmSign, case: Case, step: StepDocument, signs: HarmMeasurements) -> str:
    if sign is HarmSign.DLQ_ARRIVALS:
        return _describe_dlq_arrivals(case, signs)
    return "" if signs.queue is None else _describe_queue_sign(sign, step, signs.queue)


def _describe_queue_sign(sign: HarmSign, step: StepDocument, measurement: Measurement) -> str:
    """Return the sign on the changed queue as text with its numbers; empty if it shows no harm."""
    sign_text = ""
    if sign is HarmSign.HELD_LONGER:
        sign_text = _describe_longer_time_in_flight(measurement, step)
    elif sign is HarmSign.HANDLED_TWICE and measurement.has_consumer_race:
        sign_text = f"there were about {measurement.surplus_deletes:,} more deletes than messages"
    elif sign is HarmSign.NOTHING_FINISHED and _was_nothing_deleted(measurement):
        sign_text = f"there were {measurement.received:,} receives, and no message was deleted"
    elif sign is HarmSign.SENDS_DROPPED and measurement.recent.deduplicated:
        dropped_send_count = measurement.recent.deduplicated
        sign_text = f"SQS dropped {dropped_send_count:,} sends of the last hour as duplicates"
    return sign_text


def _describe_dlq_arrivals(case: Case, signs: HarmMeasurements) -> str:
    """Return a text with the number of messages that SQS moved to the DLQ; empty for 0.

    The number is computed from the DLQ's backlog, sends and deletes, because the metric
    NumberOfMessagesSent does not count moved messages. If producers also send to the DLQ, a small
    number is ignored, because SQS's counters are not exact.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    """
    measurement = signs.dlq
    dlq_arn = find_dlq_arn(case.steps) or case.queue_arn
    has_sends = measurement is not None and measurement.sent > 0
    was_dlq_created = any(step["attribute"] == CreateDlq.attribute for step in case.steps)
    arrived_messages = 0
    if measurement is not None and measurement.messages_arrived_without_send > (
        measurement.counter_tolerance if has_sends else 0
    ):
        arrived_messages = measurement.messages_arrived_without_send
    if was_dlq_created and not has_sends:
        arrived_messages = max(arrived_messages, signs.dlq_message_count)
    if arrived_messages < 1:
        return ""
    messages_text = "1 message" if arrived_messages == 1 else f"{arrived_messages:,} messages"
    return f"{messages_text} moved to the DLQ {parse_queue_arn(dlq_arn).name}"


def _describe_longer_time_in_flight(measurement: Measurement, step: StepDocument) -> str:
    gauges_now, gauges_before = measurement.now, measurement.before
    age_growth_seconds = gauges_now.oldest_age_seconds - gauges_before.oldest_age_seconds
    timeout_seconds = int(step["after"]) if step["after"].isdigit() else 0
    is_oldest_message_older = age_growth_seconds > min(timeout_seconds, HARMFUL_AGE_GROWTH_SECONDS)
    are_more_in_flight = (
        gauges_now.in_flight > 2 * gauges_before.in_flight + TOLERATED_RISE_OF_IN_FLIGHT_MESSAGES
    )
    if gauges_now.in_flight >= HARMFUL_IN_FLIGHT_MESSAGES or (
        are_more_in_flight and is_oldest_message_older
    ):
        in_flight_text = f"{gauges_before.in_flight:,} to {gauges_now.in_flight:,}"
        age_text = f"{gauges_before.oldest_age_seconds:,} s to {gauges_now.oldest_age_seconds:,} s"
        return (
            f"messages in flight went from {in_flight_text}, and the age of the oldest from "
            f"{age_text}"
        )
    return ""


def _was_nothing_deleted(measurement: Measurement) -> bool:
    return measurement.received >= HARMFUL_FRUITLESS_RECEIVES and not measurement.deleted

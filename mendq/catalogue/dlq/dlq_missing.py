"""Symptom `dlq_missing`: no DLQ takes the messages that consumers cannot handle.

The fault: without a DLQ, a message that always fails is received again and again until it expires.
It costs receives, delays others, and is lost at the end without anybody having seen it. The same
happens if RedrivePolicy names a queue that was deleted.

How it shows: in the configuration, if RedrivePolicy names a missing queue, or if a Lambda function
reads a queue without a DLQ. For other consumers only CloudWatch shows it: a few messages stay in
the queue and are received once per visibility timeout.

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
from math import sqrt
from statistics import median

from mendq.catalogue.dlq.attach import (
    FIXED_FIRST,
    find_missing_dlq,
    has_no_dlq,
    plan_named_dlq,
    plan_new_dlq,
)
from mendq.catalogue.dlq.moved_along import ask_first, describe_taken_along
from mendq.catalogue.examples import (
    DLQ_ARN,
    FAILING,
    FUNCTION,
    STANDARD_ARN,
    as_dlq,
    standard,
    vary,
    with_dlq,
)
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.dlq import arn_of_quarantine
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.limits import Limits
from mendq.model.metrics import DATAPOINT_PERIOD, STRETCH_DURATION, Measurement
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import DEFAULT_MAX_RECEIVE_COUNT, DLQ_SUFFIX, FIFO, Redrive
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.text import format_count, format_duration

# Messages come back often if there are more than this many receives for each delete.
RECEIVES_PER_DELETE = 3
# A receive "in vain" is one that no delete follows. A message that never finishes is received in
# vain once in each visibility timeout ("try"). Look for such messages only if the measured time
# covers at least ENOUGH_TRIES timeouts. Report them only if there are at least LEAST_BAD times as
# many receives in vain as one such message would cause.
ENOUGH_TRIES = 10
LEAST_BAD = 0.5
# The receives in vain divided by the tries estimate the number of bad messages. The least number of
# messages in the queue must be between SHARE_THAT_STAYS and MOST_TIMES_BAD times this estimate. The
# estimate is too low if consumers set a longer visibility timeout for a message. With at most
# FEW_BAD bad messages, changes of the backlog are compared with chance only if the least number is
# larger than the estimate explains.
SHARE_THAT_STAYS = 0.8
MOST_TIMES_BAD = 10
FEW_BAD = 10
# The half of the time with fewer receives in vain must have at least this share of the receives in
# vain of the other half. Otherwise the failures were short-lived.
STEADY_SHARE = 0.4
# Half hours that make up the last hour, and half hours that must be known of a busy queue.
LATELY_STRETCHES = 2
STRETCHES_OF_BUSY = 8
# On a busy queue, at most this share of the receives is in vain, and consumers finish the backlog
# within this many minutes.
FEW_SHARE = 0.1
MINUTES_OF_WORK = 5
# An open case of these symptoms reports the same fault more exactly.
EXPLAINED_BY = frozenset({"fifo_group_blocked"})
_NEEDS = frozenset(
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
            about=dlq_arn,
        )
    because = _describe_need(facts)
    return DetectedFault(because) if because else None


def is_suspect(facts: Facts) -> bool:
    """Return True if the queue's metrics must show whether it needs a DLQ.

    Such a queue has no DLQ and no Lambda function that reads it, and holds messages.
    """
    may_need = has_no_dlq(replace(facts, dlq_sources=facts.dlq_sources or ()))
    return may_need and not facts.lambda_consumers and facts.visible + facts.in_flight > 0


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan the DLQ that RedrivePolicy names, or a new one. A person must approve a FIFO DLQ."""
    found = detect(facts)
    because = facts.found or (found.because if found else "it has no DLQ")
    if facts.is_fifo:
        return ask_first(_plan_dlq(facts, f"{because}. {describe_taken_along(facts)}"))
    return _plan_dlq(facts, because)


def _plan_dlq(facts: Facts, because: str) -> Plan | Refusal:
    """Plan the missing queue that RedrivePolicy names, or else a new DLQ."""
    dlq_arn = find_missing_dlq(facts)
    if dlq_arn is not None:
        return plan_named_dlq(facts, dlq_arn, because)
    return plan_new_dlq(facts, because)


def _describe_need(facts: Facts) -> str | None:
    """Return a sentence that says why the queue needs a DLQ. None if no need is shown.

    None if the queue has a DLQ, or if a symptom in EXPLAINED_BY is open, which explains the fault.
    None if the queue has the name of a DLQ, because its sources may have been deleted.
    Without a Lambda consumer, None also if the queue was not measured, if a move task runs, or if
    no messages come back.
    """
    is_called_one = facts.queue_arn.removesuffix(FIFO).endswith(DLQ_SUFFIX)
    if not has_no_dlq(facts) or is_called_one or EXPLAINED_BY & facts.open_symptoms:
        return None
    if facts.lambda_consumers:
        function_arn = facts.lambda_consumers[0].function_arn
        return (
            f"it has no DLQ, and messages that {function_arn} cannot handle come back until they "
            "expire"
        )
    measured = facts.measurement
    if measured is None or facts.move_task_running or not _comes_back(facts, measured):
        return None
    messages = format_count(measured.messages, "message")
    left = measured.now.backlog
    return (
        f"it has no DLQ, and messages come back: in {format_duration(measured.duration)} consumers "
        f"received {messages} {format_count(measured.received, 'time')} and deleted "
        f"{measured.deleted:,}; {format_count(left, 'message')} {'is' if left == 1 else 'are'} left"
    )


def _comes_back(facts: Facts, measured: Measurement) -> bool:
    """Return True if some messages stay in the queue and are received again and again.

    If the queue was empty at times, consumers finished every message that they received again.
    """
    if measured.now.backlog == 0:
        return False
    stretches = measured.recent.stretches
    # If the first receives are in the last stretch, the empty queue before says nothing.
    is_new = not any(stretch.received for stretch in stretches[:-1])
    is_often = measured.received > RECEIVES_PER_DELETE * measured.deleted
    is_often = is_often and measured.received > measured.messages
    if is_often and (is_new or measured.fewest_messages != 0):
        return True
    if not stretches:
        return _few_stay_by_sums(facts, measured)
    return _few_stay_lately(facts, measured) or _few_stay_among_many(facts, stretches)


def _tries(facts: Facts, lasted: timedelta) -> float:
    """Return how many visibility timeouts fit into `lasted`.

    A message that never finishes is received once in each of them.
    """
    return lasted.total_seconds() / max(facts.visibility_seconds, 1)


def _few_stay_by_sums(facts: Facts, measured: Measurement) -> bool:
    """Return True if messages that never finish may explain the whole backlog.

    Their number is estimated from the counts of the whole measured time. This is used only if the
    counts of its half hours are not known.
    """
    bad = measured.fruitless_receives / max(_tries(facts, measured.duration), 1)
    return bad >= LEAST_BAD and measured.now.backlog <= MOST_TIMES_BAD * bad + 1


def _few_stay_lately(facts: Facts, measured: Measurement) -> bool:
    """Return True if the queue held hardly anything but messages that never finish.

    This looks at the last hour, or at the whole measured time if visibility timeouts are long.
    """
    stretches = measured.recent.stretches
    if _tries(facts, LATELY_STRETCHES * STRETCH_DURATION) >= ENOUGH_TRIES:
        stretches = stretches[-LATELY_STRETCHES:]
    stays = _StayingMessages.of(facts, stretches)
    return (
        stays is not None
        and stays.tries >= ENOUGH_TRIES
        and stays.is_steady
        and stays.bad >= LEAST_BAD
        and SHARE_THAT_STAYS * stays.bad <= stays.fewest <= MOST_TIMES_BAD * stays.bad + 1
        and stays.usual <= 2 * stays.fewest + 2
        and not stays.comes_and_goes
    )


def _few_stay_among_many(facts: Facts, stretches: Sequence[Measurement]) -> bool:
    """Return True if a few messages that never finish hide in the traffic of a busy queue.

    On such a queue few receives lead to no delete, and both halves of the time have about as many
    of them. A busy queue always holds good messages too. So the backlog may be larger than the bad
    messages explain. But consumers must be able to finish it within MINUTES_OF_WORK, and it must
    not grow.
    """
    stays = _StayingMessages.of(facts, stretches)
    return (
        stays is not None
        and len(stretches) >= STRETCHES_OF_BUSY
        and stays.tries >= ENOUGH_TRIES
        and stays.is_steady
        and stays.bad >= LEAST_BAD
        and stays.fewest >= stays.bad
        and stays.in_vain <= FEW_SHARE * stays.received
        and stays.usual <= stays.deleted_a_minute * MINUTES_OF_WORK
        and not stays.grows
    )


@dataclass(frozen=True)
class _StayingMessages:
    """Evidence about messages that never finish, from some half hours of the measured time.

    Attributes:
        tries: The number of visibility timeouts in that time.
        received: Receives.
        in_vain: Receives that no delete followed.
        bad: The number of messages that explain `in_vain`, if each is received once per timeout.
        fewest: The least number of messages in the queue.
        usual: The median number of messages in the queue.
        deleted_a_minute: Deletes per minute.
        is_steady: True if both halves of the time have about as many receives in vain.
        grows: True if the backlog is clearly larger at the end than at the start.
    """

    tries: float
    received: int
    in_vain: int
    bad: float
    fewest: int
    usual: float
    deleted_a_minute: float
    is_steady: bool
    grows: bool

    @property
    def comes_and_goes(self) -> bool:
        """True if many messages fail at random and are finished later.

        The number of such messages varies by chance, by its square root or more. The number of
        messages that never finish does not vary. With at most FEW_BAD bad messages, this is tested
        only if `fewest` is above `2 * bad + 1`: such a backlog cannot come from bad messages alone.
        """
        if self.bad > FEW_BAD:
            return self.usual - self.fewest > sqrt(self.bad)
        is_unexplained = self.fewest > 2 * self.bad + 1
        return is_unexplained and self.usual - self.fewest > sqrt(self.usual)

    @classmethod
    def of(cls, facts: Facts, stretches: Sequence[Measurement]) -> _StayingMessages | None:
        """Return the evidence; None if the queue was empty at times or minutes are missing."""
        backlogs = [
            stretch.usual_messages for stretch in stretches if stretch.usual_messages is not None
        ]
        fewest = min((stretch.fewest_messages or 0 for stretch in stretches), default=0)
        if not fewest or len(backlogs) < len(stretches):
            return None
        lasted = stretches[-1].until - stretches[0].since
        tries = max(_tries(facts, lasted), 1)
        half = len(stretches) // 2
        halves = (stretches[:half], stretches[half:]) if half else (stretches,)
        in_vain = [_count_in_vain(part) for part in halves]
        # A message that is still in flight was not received in vain yet.
        more_in_flight = stretches[-1].now.in_flight - stretches[0].before.in_flight
        total = max(0, sum(in_vain) - max(0, more_in_flight))
        deleted = sum(stretch.deleted for stretch in stretches)
        return cls(
            tries=tries,
            received=sum(stretch.received for stretch in stretches),
            in_vain=total,
            bad=total / tries,
            fewest=fewest,
            usual=median(backlogs),
            deleted_a_minute=deleted / (lasted / DATAPOINT_PERIOD),
            is_steady=min(in_vain) >= STEADY_SHARE * max(in_vain),
            grows=backlogs[-1] > 1.5 * backlogs[0] + 10,
        )


def _count_in_vain(stretches: Sequence[Measurement]) -> int:
    """Return the number of receives that no delete followed."""
    return max(0, sum(stretch.received - stretch.deleted for stretch in stretches))


def _attach(receives: int) -> tuple[CreateDlq, AttachDlq]:
    """Return an example's steps: create DLQ_ARN and attach it with this `maxReceiveCount`."""
    return (CreateDlq("", DLQ_ARN), AttachDlq("", Redrive(DLQ_ARN, receives).text))


_ATTACH = _attach(DEFAULT_MAX_RECEIVE_COUNT)
_NONE = standard(ApproximateNumberOfMessages=1, dlq_namesake=QueueFacts(DLQ_ARN, {}))
_READ = vary(_NONE, lambda_consumers=(FUNCTION,), sent=60, received=60, deleted=60)
_COMES_BACK = vary(_NONE, sent=3, received=60, deleted=2, backlog_now=1, visible_now=1)
_FEW_BAD = vary(
    _NONE,
    ApproximateNumberOfMessages=3,
    sent=140,
    received=500,
    deleted=137,
    backlog_now=3,
    visible_now=3,
)
# The function receives a few bad messages so often that it fails in most of its runs.
_FEW_FAIL = vary(_FEW_BAD, lambda_consumers=(FAILING,))
_AMONG_MANY = vary(_FEW_BAD, sent=9_000, received=11_000, deleted=8_997)
_GIVEN_BACK = vary(
    _NONE,
    ApproximateNumberOfMessages=8,
    sent=90,
    received=1_080,
    deleted=82,
    backlog_now=8,
    visible_now=8,
)
_ALONE = vary(_NONE, sent=0, received=720, deleted=0, backlog_before=1, backlog_now=1)
_OFTEN = vary(_COMES_BACK, received=720)
_NONE_FINISHED = vary(
    _NONE,
    ApproximateNumberOfMessages=60,
    sent=60,
    received=1_200,
    deleted=0,
    backlog_now=60,
    visible_now=60,
)
_TWO_CAME = vary(
    _NONE_FINISHED, ApproximateNumberOfMessages=2, sent=2, backlog_now=2, visible_now=2
)
_ALL_FINISHED = vary(_NONE, sent=420, received=840, deleted=420)
_SLOW = vary(_NONE, sent=1_000, received=600, deleted=580, backlog_now=420, in_flight_now=20)
_THERE = QueueFacts(DLQ_ARN, {"MessageRetentionPeriod": "345600"})
_QUARANTINE = arn_of_quarantine(STANDARD_ARN)


def _naming(dlq_arn: str) -> Facts:
    """Return a queue whose RedrivePolicy names `dlq_arn`, a queue that does not exist."""
    return with_dlq(dlq=QueueFacts(dlq_arn, {}))


DLQ_MISSING = FixedSymptom(
    name="dlq_missing",
    sentence="No DLQ takes messages that cannot be handled: they come back until they expire.",
    plan_in_words="Make the queue that RedrivePolicy names, under that name; if none is named, "
    "make one and attach it after 5 receives. If messages are received more than once, a person "
    "approves a limit of at least three times the mean. Never while consumers finish nothing or "
    "are too slow, and never without measurements.",
    aws_page=DLQ_GUIDE,
    steps=(CreateDlq, AttachDlq),
    plan=plan,
    gives_way_to=FIXED_FIRST | EXPLAINED_BY,
    shown_attributes=(AttachDlq.attribute,),
    # The fault is in the configuration. The measurement only shows that it matters now.
    detection=Detection(detect, _NEEDS, is_suspect, of_configuration=True),
    examples=lambda: (
        QueueExample(
            "the queue that is named is gone", _naming(DLQ_ARN), (CreateDlq("", DLQ_ARN),)
        ),
        QueueExample("a Lambda function reads it", _READ, _ATTACH),
        QueueExample("a message comes back again and again", _COMES_BACK, _attach(100)),
        QueueExample("a few of many come back", _FEW_BAD, _attach(20)),
        QueueExample("a function fails at a few of many", _FEW_FAIL, _attach(20)),
        QueueExample("a few of very many come back", _AMONG_MANY, _ATTACH),
        QueueExample("good ones are given back ten times", _GIVEN_BACK, _attach(50)),
        QueueExample("one message, nothing known of earlier", _ALONE, _attach(100)),
        QueueExample(
            "somebody's queue has the name", vary(_READ, dlq_namesake=_THERE), "name_taken"
        ),
        RefusalExample("no limit is known to be safe", _OFTEN, "no_safe_limit"),
        RefusalExample("nothing is finished", _NONE_FINISHED, "cause_first"),
        RefusalExample("two came and none is finished", _TWO_CAME, "nothing_finished"),
        RefusalExample(
            "it names a quarantine that is gone", _naming(_QUARANTINE), "names_a_quarantine"
        ),
        QueueNearMiss("it has one", with_dlq(dlq=_THERE)),
        QueueNearMiss("given back, and all are finished", _ALL_FINISHED),
        QueueNearMiss("slow consumers, a growing backlog", _SLOW),
        QueueNearMiss("it takes DLQ messages itself", as_dlq(_READ)),
        QueueNearMiss("it is called a DLQ", vary(_READ, queue_arn=DLQ_ARN)),
    ),
)

"""Symptom `dlq_messages_waiting`: messages wait in a DLQ although their cause is fixed.

The fault: the messages failed because of a fault that is fixed now. Nobody sends them back to their
source, and SQS deletes them when the DLQ's retention period is over.

How it shows: messages are in the DLQ, and a case about the source explains them and is fixed.

What Mendq changes: it sends the messages back (a redrive): a few first, then more and more, as long
as they stay away. If messages could expire meanwhile, it raises the DLQ's retention to 14 days
first. `redrive_plan.py` plans it, and `mendq/redrive/machine.py` has the rules of the redrive.

Why that is safe: nothing is sent while the cause is open, while more messages arrive, or while
somebody else works on them. The redrive stops as soon as too many messages fail again, and those go
to a quarantine queue. No message is deleted before SQS has accepted its copy. By default a person
approves the redrive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mendq.catalogue.dlq.dlq_messages_arriving import is_suspect
from mendq.catalogue.dlq.redrive_causes import REDRIVE_TAG
from mendq.catalogue.dlq.redrive_plan import FIXED_FIRST, find_causes, plan_redrive, time_left
from mendq.catalogue.examples import (
    A_DAY,
    DLQ_ARN,
    FOR_ONE_NETWORK,
    FUNCTION,
    KMS,
    LATER,
    MEASURED,
    SOLE,
    STANDARD_ARN,
    case,
    messages,
    source,
)
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.case import Case, State
from mendq.model.evidence import name_first_few
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import Redrive, parts_of
from mendq.model.steps import HELD_VALUE, RedriveMessages, SetMessageRetention
from mendq.model.tags import REDRIVE_PERMISSION
from mendq.notifications.text import format_count

_DETECTION_NEEDS = frozenset({Need.QUEUE, Need.DLQ_SOURCES, Need.MEASUREMENTS, Need.SOURCE_CASES})


def detect(facts: Facts) -> DetectedFault | None:
    """Find a DLQ with waiting messages and at least one fixed cause that explains them.

    Everything that speaks against a redrive is checked later, when it is planned.
    """
    if facts.measurement is None or not facts.visible or not facts.dlq_sources:
        return None
    fixed = find_causes(facts).fixed_cases
    if not fixed:
        return None
    causes = name_first_few(
        [f"{cause.symptom} at {parts_of(cause.queue_arn).name}" for cause in fixed[:2]]
    )
    left = time_left(facts)
    wait = "waits" if facts.visible == 1 else "wait"
    return DetectedFault(
        f"{format_count(facts.visible, 'DLQ message')} {wait}, and {causes} is fixed; "
        f"the first expires {left}",
        seconds_left=left.at_least.total_seconds(),
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan to send the messages back to their source, or say why they must stay."""
    return plan_redrive(facts, facts.found or "messages wait, and what killed them is fixed")


_SEND_BACK = RedriveMessages(HELD_VALUE, STANDARD_ARN)
_TWO_SOURCES = (source(), QueueFacts(f"{STANDARD_ARN}-2", source().attributes))
_NEXT_DLQ = Redrive(f"{DLQ_ARN}-2", 5).text
_TAG_OFF = {REDRIVE_TAG: "off"}
_ONE_NETWORK_SOURCE = source(Policy=FOR_ONE_NETWORK)
_TOO_SHORT = "visibility_timeout_too_short"
_DECLINED = case(_TOO_SHORT, State.PROPOSED, State.DECLINED)
_LONG_FIXED = replace(KMS, at=MEASURED.since)
_MORE_ARRIVE = {"visible_before": 190, "backlog_before": 190, "oldest_age_seconds_now": A_DAY}
_KEPT_FOUR_DAYS = messages(KMS, MessageRetentionPeriod=4 * A_DAY)
_RAISED = SetMessageRetention(4 * A_DAY, SetMessageRetention.maximum)


def _refusal(code: str, title: str, *cases: Case, **over: Any) -> RefusalExample:
    """Return an example: a DLQ as `messages` builds it, whose redrive is refused with this code."""
    return RefusalExample(title, messages(*cases, **over), code)


DLQ_MESSAGES_WAITING = FixedSymptom(
    name="dlq_messages_waiting",
    sentence="DLQ messages wait to go back to their source; they expire where nobody sends them.",
    plan_in_words="Send them back to their source, a few first, faster only while they stay away; "
    "before that keep them for 14 days where they could expire on the way.",
    aws_page=f"{SQS_GUIDE}/sqs-configure-dead-letter-queue-redrive.html",
    needs=_DETECTION_NEEDS
    | {Need.LAMBDA_CONSUMERS, Need.MOVE_TASKS, Need.OPEN_CASES, Need.SOLE_SOURCE},
    steps=(RedriveMessages, SetMessageRetention),
    plan=plan,
    shown_attributes=("ApproximateNumberOfMessages", "MessageRetentionPeriod"),
    gives_way_to=FIXED_FIRST,
    detection=Detection(detect, _DETECTION_NEEDS, is_suspect),
    tags=(REDRIVE_PERMISSION,),
    examples=lambda: (
        QueueExample("what was too short is fixed and watched", messages(), (_SEND_BACK,)),
        QueueExample("they may expire on the way", _KEPT_FOUR_DAYS, (_SEND_BACK, _RAISED)),
        QueueNearMiss("nothing waits", messages(ApproximateNumberOfMessages=0)),
        QueueNearMiss("nothing proves the fix yet", messages(case(_TOO_SHORT, State.APPLIED))),
        QueueNearMiss("it was fixed before the first message came", messages(until=LATER)),
        _refusal("need_already_met", "somebody took them meanwhile", ApproximateNumberOfMessages=0),
        _refusal("shared_dlq", "two queues die there", dlq_sources=_TWO_SOURCES, sole_source=None),
        _refusal("source_not_managed", "nobody manages it", sole_source=replace(SOLE, mode=None)),
        _refusal(
            "redrive_off", "its source's tag says so", sole_source=replace(SOLE, tags=_TAG_OFF)
        ),
        _refusal("redrive_off", "the DLQ's own tag forbids it", tags=_TAG_OFF),
        _refusal("messages_die_further", "its messages die further", RedrivePolicy=_NEXT_DLQ),
        _refusal("messages_are_read", "a function reads it", lambda_consumers=(FUNCTION,)),
        _refusal("messages_are_taken", "somebody deletes messages", deleted=1, deleted_lately=1),
        _refusal("move_task_running", "somebody moves them", move_task_running=True),
        _refusal("cause_not_fixed", "a second cause was declined", KMS, _DECLINED),
        _refusal(
            "messages_arrive", "more come, hours after it was fixed", _LONG_FIXED, **_MORE_ARRIVE
        ),
        _refusal("no_fixed_cause", "nobody knows what killed them", source_cases=()),
        _refusal(
            "network_only_policy",
            "the source lets in one network",
            dlq_sources=(_ONE_NETWORK_SOURCE,),
        ),
    ),
)

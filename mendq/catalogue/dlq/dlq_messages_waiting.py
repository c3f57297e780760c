"""DLQ messages wait, and what killed them is fixed: they could be handled now."""

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
from mendq.model.steps import HELD, RedriveMessages, SetMessageRetention
from mendq.model.tags import REDRIVE_PERMISSION
from mendq.notifications.text import format_count

_DETECTS_BY = frozenset({Need.QUEUE, Need.DLQ_SOURCES, Need.MEASUREMENTS, Need.SOURCE_CASES})


def detect(facts: Facts) -> DetectedFault | None:
    """A cause that is fixed, of messages that came while it was not; what else there is, is asked
    when it is planned."""
    if facts.measurement is None or not facts.visible or not facts.dlq_sources:
        return None
    fixed = find_causes(facts).fixed
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
    return plan_redrive(facts, facts.found or "messages wait, and what killed them is fixed")


_BACK = RedriveMessages(HELD, STANDARD_ARN)
_TWO = (source(), QueueFacts(f"{STANDARD_ARN}-2", source().attributes))
_FURTHER = Redrive(f"{DLQ_ARN}-2", 5).text
_OFF = {REDRIVE_TAG: "off"}
_FENCED = source(Policy=FOR_ONE_NETWORK)
_TOO_SHORT = "visibility_timeout_too_short"
_DECLINED = case(_TOO_SHORT, State.PROPOSED, State.DECLINED)
_LONG_FIXED = replace(KMS, at=MEASURED.since)
_COMING = {"visible_before": 190, "backlog_before": 190, "oldest_age_seconds_now": A_DAY}
_FOUR_DAYS = messages(KMS, MessageRetentionPeriod=4 * A_DAY)
_RAISED = SetMessageRetention(4 * A_DAY, SetMessageRetention.maximum)


def _refused(code: str, title: str, *cases: Case, **over: Any) -> RefusalExample:
    return RefusalExample(title, messages(*cases, **over), code)


DLQ_MESSAGES_WAITING = FixedSymptom(
    name="dlq_messages_waiting",
    sentence="DLQ messages wait to go back to their source; they expire where nobody sends them.",
    plan_in_words="Send them back to their source, a few first, faster only while they stay away; "
    "before that keep them for 14 days where they could expire on the way.",
    aws_page=f"{SQS_GUIDE}/sqs-configure-dead-letter-queue-redrive.html",
    needs=_DETECTS_BY | {Need.LAMBDA_CONSUMERS, Need.MOVE_TASKS, Need.OPEN_CASES, Need.SOLE_SOURCE},
    steps=(RedriveMessages, SetMessageRetention),
    plan=plan,
    shown_attributes=("ApproximateNumberOfMessages", "MessageRetentionPeriod"),
    gives_way_to=FIXED_FIRST,
    detection=Detection(detect, _DETECTS_BY, is_suspect),
    tags=(REDRIVE_PERMISSION,),
    examples=lambda: (
        QueueExample("what was too short is fixed and watched", messages(), (_BACK,)),
        QueueExample("they may expire on the way", _FOUR_DAYS, (_BACK, _RAISED)),
        QueueNearMiss("nothing waits", messages(ApproximateNumberOfMessages=0)),
        QueueNearMiss("nothing proves the fix yet", messages(case(_TOO_SHORT, State.APPLIED))),
        QueueNearMiss("it was fixed before the first message came", messages(until=LATER)),
        _refused("need_already_met", "somebody took them meanwhile", ApproximateNumberOfMessages=0),
        _refused("shared_dlq", "two queues die there", dlq_sources=_TWO, sole_source=None),
        _refused("source_not_managed", "nobody manages it", sole_source=replace(SOLE, mode=None)),
        _refused("redrive_off", "its source's tag says so", sole_source=replace(SOLE, tags=_OFF)),
        _refused("redrive_off", "the DLQ's own tag forbids it", tags=_OFF),
        _refused("messages_die_further", "its messages die further", RedrivePolicy=_FURTHER),
        _refused("messages_are_read", "a function reads it", lambda_consumers=(FUNCTION,)),
        _refused("messages_are_taken", "somebody deletes messages", deleted=1, deleted_lately=1),
        _refused("move_task_running", "somebody moves them", move_task_running=True),
        _refused("cause_not_fixed", "a second cause was declined", KMS, _DECLINED),
        _refused("messages_arrive", "more come, hours after it was fixed", _LONG_FIXED, **_COMING),
        _refused("no_fixed_cause", "nobody knows what killed them", source_cases=()),
        _refused("network_only_policy", "the source lets in one network", dlq_sources=(_FENCED,)),
    ),
)

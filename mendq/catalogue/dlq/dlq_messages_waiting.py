"""Symptom `dlq_messages_waiting`: messages wait in a DLQ although their cause is fixed.

The fault: the messages failed because of a fault that is fixed now. Nobody sends them back to their
source, and SQS deletes them when the DLQ's retention period is over.

How it shows: messages are in the DLQ, and a case about the source explains them and is fixed.

What Mendq changes: it sends the messages back (a redrive): a few first, then more and more, as long
as they do not come back to the DLQ. If messages could expire meanwhile, it raises the DLQ's
retention to 14 days first. `redrive_plan.py` plans it, and `mendq/redrive/machine.py` has the rules
of the redrive.

Why that is safe: nothing is sent while the cause is open, while more messages arrive, or while
somebody else works on them. The redrive stops as soon as too many messages fail again, and those go
to a quarantine queue. No message is deleted before SQS has accepted its copy. By default a person
approves the redrive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mendq.catalogue.dlq.dlq_messages_arriving import is_possible
from mendq.catalogue.dlq.redrive_causes import REDRIVE_TAG, SYMPTOMS_HARMLESS_WITHOUT_PAGE
from mendq.catalogue.dlq.redrive_plan import (
    SYMPTOMS_TO_FIX_FIRST,
    estimate_time_left,
    find_causes,
    is_redrive_of_other_source_watched,
    narrow_to_source,
    plan_redrive,
)
from mendq.catalogue.examples import (
    CLOSED_KMS_CASE,
    DAY_SECONDS,
    DLQ_ARN,
    DLQ_MEASUREMENT,
    LAMBDA_FUNCTION,
    LATER_EXAMPLE_TIME,
    ONE_NETWORK_POLICY,
    REDRIVE_SOURCE,
    STANDARD_ARN,
    WATCHED_VISIBILITY_CASE,
    case,
    dlq_with_messages,
    source,
)
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.case import Case
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.principals import name_first_principals
from mendq.model.queue import RedrivePolicy, parse_queue_arn
from mendq.model.severity_class import SeverityClass
from mendq.model.state import State
from mendq.model.steps import MESSAGES_HELD_IN_DLQ_VALUE, RedriveMessages, SetMessageRetention
from mendq.model.tags import REDRIVE_PERMISSION_TAG
from mendq.notifications.text import format_count

_DETECTION_NEEDS = frozenset(
    {Need.QUEUE, Need.LAMBDA_CONSUMERS, Need.DLQ_SOURCES, Need.MEASUREMENTS, Need.SOURCE_CASES}
)


def detect(facts: Facts) -> DetectedFault | None:
    """Return the fault if messages wait in this DLQ and a cause that explains them is fixed.

    Return None while the redrive of another source's messages is still watched. The objections to a
    redrive are checked later, when `plan` plans it.
    """
    if facts.measurement is None or not facts.visible or not facts.dlq_sources:
        return None
    facts_of_source = narrow_to_source(facts)
    fixed_cases = find_causes(facts_of_source).fixed_cases
    if not fixed_cases or is_redrive_of_other_source_watched(facts, facts_of_source):
        return None
    fixed_causes_text = name_first_principals(
        [f"{case.symptom} at {parse_queue_arn(case.queue_arn).name}" for case in fixed_cases[:2]]
    )
    time_until_expiry = estimate_time_left(facts)
    wait_verb = "waits" if facts.visible == 1 else "wait"
    return DetectedFault(
        f"{format_count(facts.visible, 'DLQ message')} {wait_verb}, and {fixed_causes_text} is "
        f"fixed; the first expires {time_until_expiry}",
        seconds_left=time_until_expiry.lower_bound.total_seconds(),
        source_arns=facts_of_source.source_arns,
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan to send the messages back to their source, or say why they must stay."""
    return plan_redrive(facts, facts.found or "messages wait, and what killed them is fixed")


_SEND_BACK_STEP = RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, STANDARD_ARN)
_OTHER_SOURCE_ARN = f"{STANDARD_ARN}-2"
_OTHER_REDRIVE_SOURCE = replace(REDRIVE_SOURCE, queue_arn=_OTHER_SOURCE_ARN)
_TWO_SOURCES: Mapping[str, Any] = {
    "dlq_sources": (source(), QueueFacts(_OTHER_SOURCE_ARN, source().attributes)),
    "redrive_sources": (REDRIVE_SOURCE, _OTHER_REDRIVE_SOURCE),
}
_SECOND_DLQ_REDRIVE_POLICY = RedrivePolicy(f"{DLQ_ARN}-2", 5).text
_TAGS_THAT_FORBID_REDRIVE = {REDRIVE_TAG: "off"}
_SOURCE_WITH_ONE_NETWORK_POLICY = source(Policy=ONE_NETWORK_POLICY)
_SYMPTOM_OF_CAUSE = "visibility_timeout_too_short"
_DECLINED_CASE = case(_SYMPTOM_OF_CAUSE, State.PROPOSED, State.DECLINED)
_CASE_FIXED_LONG_AGO = replace(CLOSED_KMS_CASE, at=DLQ_MEASUREMENT.since)
_ARRIVAL_COUNTS = {
    "visible_before": 190,
    "backlog_before": 190,
    "oldest_age_seconds_now": DAY_SECONDS,
}
_DLQ_WITH_FOUR_DAY_RETENTION = dlq_with_messages(
    CLOSED_KMS_CASE, MessageRetentionPeriod=4 * DAY_SECONDS
)
_RAISE_RETENTION_STEP = SetMessageRetention(4 * DAY_SECONDS, SetMessageRetention.maximum)


def _make_refusal_example(
    refusal_code: str, title: str, *cases: Case, **overrides: Any
) -> RefusalExample:
    """Return an example: a DLQ whose redrive is refused with this code.

    `cases` and `overrides` are passed to `dlq_with_messages`, which builds the DLQ.
    """
    return RefusalExample(title, dlq_with_messages(*cases, **overrides), refusal_code)


DLQ_MESSAGES_WAITING = FixedSymptom(
    name="dlq_messages_waiting",
    sentence="DLQ messages wait to go back to their source; they expire where nobody sends them.",
    plan_in_words="Send them back to their source, a few first, faster only while they stay away; "
    "before that keep them for 14 days where they could expire on the way.",
    first_step="Send the messages back once the cause is fixed.",
    aws_page=f"{SQS_GUIDE}/sqs-configure-dead-letter-queue-redrive.html",
    evidence_kinds=(EvidenceKind(SeverityClass.WILL_LOSE),),
    needs=_DETECTION_NEEDS
    | {Need.LAMBDA_CONSUMERS, Need.MOVE_TASKS, Need.OPEN_CASES, Need.REDRIVE_SOURCES},
    steps=(RedriveMessages, SetMessageRetention),
    plan=plan,
    shown_attributes=("ApproximateNumberOfMessages", "MessageRetentionPeriod"),
    # A crash that pages has an open case, which `plan` asks for. Other crashes lose no message, and
    # the messages of the DLQ would expire if they waited for them.
    gives_way_to=SYMPTOMS_TO_FIX_FIRST - SYMPTOMS_HARMLESS_WITHOUT_PAGE,
    detection=Detection(detect, _DETECTION_NEEDS, is_possible),
    tags=(REDRIVE_PERMISSION_TAG,),
    examples=lambda: (
        QueueExample(
            "what was too short is fixed and watched", dlq_with_messages(), (_SEND_BACK_STEP,)
        ),
        QueueExample(
            "they may expire on the way",
            _DLQ_WITH_FOUR_DAY_RETENTION,
            (_SEND_BACK_STEP, _RAISE_RETENTION_STEP),
        ),
        QueueExample(
            "another queue dies there too, and is not fixed",
            dlq_with_messages(
                WATCHED_VISIBILITY_CASE,
                case("consumer_failing", State.ESCALATED, queue_arn=_OTHER_SOURCE_ARN),
                **_TWO_SOURCES,
            ),
            (_SEND_BACK_STEP,),
        ),
        QueueNearMiss("nothing waits", dlq_with_messages(ApproximateNumberOfMessages=0)),
        QueueNearMiss(
            "nothing proves the fix yet", dlq_with_messages(case(_SYMPTOM_OF_CAUSE, State.APPLIED))
        ),
        QueueNearMiss(
            "it was fixed before the first message came",
            dlq_with_messages(until=LATER_EXAMPLE_TIME),
        ),
        _make_refusal_example(
            "need_already_met", "somebody took them meanwhile", ApproximateNumberOfMessages=0
        ),
        _make_refusal_example(
            "shared_dlq",
            "another source keeps Mendq out",
            redrive_sources=(REDRIVE_SOURCE, _OTHER_REDRIVE_SOURCE),
        ),
        _make_refusal_example(
            "source_not_managed",
            "nobody manages it",
            redrive_sources=(replace(REDRIVE_SOURCE, mode=None),),
        ),
        _make_refusal_example(
            "redrive_off",
            "its source's tag says so",
            redrive_sources=(replace(REDRIVE_SOURCE, tags=_TAGS_THAT_FORBID_REDRIVE),),
        ),
        _make_refusal_example(
            "redrive_off", "the DLQ's own tag forbids it", tags=_TAGS_THAT_FORBID_REDRIVE
        ),
        _make_refusal_example(
            "messages_die_further",
            "its messages die further",
            RedrivePolicy=_SECOND_DLQ_REDRIVE_POLICY,
        ),
        _make_refusal_example(
            "messages_are_read", "a function reads it", lambda_consumers=(LAMBDA_FUNCTION,)
        ),
        _make_refusal_example(
            "messages_are_taken",
            "somebody deletes messages",
            deleted=1,
            deletes_of_last_15_minutes=1,
        ),
        _make_refusal_example("move_task_running", "somebody moves them", move_task_running=True),
        _make_refusal_example(
            "cause_not_fixed", "a second cause was declined", CLOSED_KMS_CASE, _DECLINED_CASE
        ),
        _make_refusal_example(
            "messages_arrive",
            "more come, hours after it was fixed",
            _CASE_FIXED_LONG_AGO,
            **_ARRIVAL_COUNTS,
        ),
        _make_refusal_example("no_fixed_cause", "nobody knows what killed them", source_cases=()),
        _make_refusal_example(
            "network_only_policy",
            "the source lets in one network",
            dlq_sources=(_SOURCE_WITH_ONE_NETWORK_POLICY,),
        ),
    ),
)

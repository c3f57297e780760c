"""Symptom `dlq_source_not_allowed`: a DLQ does not accept the messages of a queue that names it.

The fault: a queue's RedrivePolicy names this DLQ, but the DLQ's RedriveAllowPolicy does not list
that queue. SQS cannot move messages, so a message that always fails is received again and again.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html

How it shows: in the policies of the two queues alone.

What Mendq changes: it proposes to add the queue to the sources that RedriveAllowPolicy lists.

Why that is safe: it only adds sources that name this DLQ and fit it. It never allows all queues and
removes none. SQS takes at most ten sources, and `denyAll` is a decision of the DLQ's owner: in both
cases Mendq notifies people. A person approves the change, because somebody may have left the source
out on purpose.
"""

from __future__ import annotations

from mendq.catalogue.examples import QUEUE_ARN, STANDARD_ARN, dlq, sources
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.evidence import name_first_few
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Ignore, Plan, Refusal
from mendq.model.queue import (
    MOST_NAMED_SOURCES,
    RedriveAllow,
    parse_redrive_allow_policy,
    why_unfit_as_dlq,
)
from mendq.model.steps import AllowRedriveFrom
from mendq.notifications.commands import get_attributes_command

ATTRIBUTE = AllowRedriveFrom.attribute


def detect(facts: Facts) -> DetectedFault | None:
    """Report the sources that name this DLQ, fit it, and are not allowed."""
    refused = _list_refused_sources(facts)
    if not refused:
        return None
    return DetectedFault(
        f"its {ATTRIBUTE} keeps out {name_first_few(refused)}, whose DLQ it is: what "
        "cannot be handled there is handed out again and again, and never becomes a message"
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan to allow the refused sources, as many as SQS takes; never all queues."""
    found = detect(facts)
    allowed = _parse_allow_policy(facts)
    if found is None or allowed is None:
        return Ignore("need_already_met", "it lets in every queue that names it")
    command = get_attributes_command(facts.queue_arn, ATTRIBUTE)
    if allowed.permission != "byQueue":
        reason = f"{found.because}. It lets in nobody at all, which is its owner's word"
        return Escalate("denied_to_all", reason, command)
    refused = _list_refused_sources(facts)
    free_places = max(0, MOST_NAMED_SOURCES - len(allowed.sources))
    added = refused[:free_places]
    left_out = refused[free_places:]
    if not added:
        reason = f"{found.because}. SQS takes {MOST_NAMED_SOURCES} sources by name, and it has them"
        return Escalate("too_many_sources", reason, command)
    step = AllowRedriveFrom(
        AllowRedriveFrom.value_in(facts.attributes), allowed.with_sources(*added).text
    )
    reason = f"{found.because}. Whoever named the others may have left it out on purpose"
    if left_out:
        reason += (
            f". SQS takes {MOST_NAMED_SOURCES} by name: {name_first_few(left_out)} would stay out"
        )
    return Plan((step,), reason)


def _parse_allow_policy(facts: Facts) -> RedriveAllow | None:
    """Return the DLQ's RedriveAllowPolicy; None if it cannot be read.

    A DLQ without the policy allows all sources.
    """
    return parse_redrive_allow_policy(facts.attributes.get(ATTRIBUTE, ""))


def _list_refused_sources(facts: Facts) -> tuple[str, ...]:
    """Return the fitting sources that the DLQ does not allow; none if its policy is unreadable."""
    allowed = _parse_allow_policy(facts)
    if allowed is None:
        return ()
    refused = (arn for arn in sorted(facts.source_arns) if not allowed.allows(arn))
    return tuple(arn for arn in refused if not why_unfit_as_dlq(arn, facts.queue_arn))


def _queue(allowed: str, *source_arns: str) -> Facts:
    """Return a DLQ that the queues `source_arns` name. `allowed` is its RedriveAllowPolicy."""
    return dlq(RedriveAllowPolicy=allowed, dlq_sources=sources(*source_arns))


def _allow_policy(*source_arns: str) -> str:
    return RedriveAllow("byQueue", source_arns).text


_ORDERS = STANDARD_ARN
_PARCELS = _ORDERS.replace("orders", "parcels")
_NOBODY = RedriveAllow("denyAll").text
_TEN = tuple(f"{_PARCELS}-{n}" for n in range(MOST_NAMED_SOURCES))
_ADDED = (AllowRedriveFrom(_allow_policy(_PARCELS), _allow_policy(_ORDERS, _PARCELS)),)

DLQ_SOURCE_NOT_ALLOWED = FixedSymptom(
    name="dlq_source_not_allowed",
    sentence="A DLQ does not let in the messages of a queue that names it, "
    "so they are received forever.",
    plan_in_words="Add the source to the queues that RedriveAllowPolicy names, 10 at most; "
    "never all queues.",
    aws_page=DLQ_GUIDE,
    steps=(AllowRedriveFrom,),
    plan=plan,
    shown_attributes=(ATTRIBUTE,),
    detection=Detection(detect, frozenset({Need.QUEUE, Need.DLQ_SOURCES}), of_configuration=True),
    examples=lambda: (
        QueueExample(
            "another source is named", _queue(_allow_policy(_PARCELS), _ORDERS, _PARCELS), _ADDED
        ),
        QueueExample("nobody is let in", _queue(_NOBODY, _ORDERS), "denied_to_all"),
        QueueExample(
            "it names ten", _queue(_allow_policy(*_TEN), _ORDERS, *_TEN), "too_many_sources"
        ),
        QueueNearMiss("without a policy all are let in", _queue("", _ORDERS)),
        QueueNearMiss("every source is named", _queue(_allow_policy(_ORDERS), _ORDERS)),
        QueueNearMiss("a text that is no policy", _queue('{"redrivePermission":', _ORDERS)),
        QueueNearMiss(
            "one is of the other type", _queue(_allow_policy(_ORDERS), _ORDERS, QUEUE_ARN)
        ),
        RefusalExample(
            "it names it by now", _queue(_allow_policy(_ORDERS), _ORDERS), "need_already_met"
        ),
    ),
)

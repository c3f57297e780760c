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
    EvidenceKind,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Ignore, Plan, Refusal
from mendq.model.principals import name_first_principals
from mendq.model.queue import (
    MOST_SOURCES_IN_ALLOW_POLICY,
    RedriveAllowPolicy,
    parse_redrive_allow_policy,
    why_unfit_as_dlq,
)
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import AllowRedriveFrom
from mendq.notifications.commands import get_attributes_command

ALLOW_POLICY_ATTRIBUTE = AllowRedriveFrom.attribute


def detect(facts: Facts) -> DetectedFault | None:
    """Report the fitting sources that name this DLQ, but are refused by its RedriveAllowPolicy."""
    refused_source_arns = _list_refused_sources(facts)
    if not refused_source_arns:
        return None
    return DetectedFault(
        f"its {ALLOW_POLICY_ATTRIBUTE} keeps out {name_first_principals(refused_source_arns)}, "
        "whose DLQ it is: what cannot be handled there is handed out again and again, and never "
        "becomes a message"
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan to allow the refused sources by name, as many as SQS takes.

    Notify people if the policy is `denyAll`, or if it names as many sources as SQS takes already.
    """
    fault = detect(facts)
    allow_policy = _parse_allow_policy(facts)
    if fault is None or allow_policy is None:
        return Ignore("need_already_met", "it lets in every queue that names it")
    command = get_attributes_command(facts.queue_arn, ALLOW_POLICY_ATTRIBUTE)
    if allow_policy.permission != "byQueue":
        reason = f"{fault.because}. It lets in nobody at all, which is its owner's word"
        return Escalate("denied_to_all", reason, command)
    refused_source_arns = _list_refused_sources(facts)
    number_of_addable_sources = max(0, MOST_SOURCES_IN_ALLOW_POLICY - len(allow_policy.sources))
    added_source_arns = refused_source_arns[:number_of_addable_sources]
    left_out_source_arns = refused_source_arns[number_of_addable_sources:]
    if not added_source_arns:
        reason = (
            f"{fault.because}. SQS takes {MOST_SOURCES_IN_ALLOW_POLICY} sources by name, and it "
            "has them"
        )
        return Escalate("too_many_sources", reason, command)
    step = AllowRedriveFrom(
        AllowRedriveFrom.value_in(facts.attributes),
        allow_policy.with_sources(*added_source_arns).text,
    )
    reason = f"{fault.because}. Whoever named the others may have left it out on purpose"
    if left_out_source_arns:
        reason += (
            f". SQS takes {MOST_SOURCES_IN_ALLOW_POLICY} by name: "
            f"{name_first_principals(left_out_source_arns)} would stay out"
        )
    return Plan((step,), reason)


def _parse_allow_policy(facts: Facts) -> RedriveAllowPolicy | None:
    """Return the DLQ's RedriveAllowPolicy; None if it cannot be read.

    A DLQ without the policy allows all sources.
    """
    return parse_redrive_allow_policy(facts.attributes.get(ALLOW_POLICY_ATTRIBUTE, ""))


def _list_refused_sources(facts: Facts) -> tuple[str, ...]:
    """Return the fitting sources that the DLQ does not allow; empty if its policy is unreadable."""
    allow_policy = _parse_allow_policy(facts)
    if allow_policy is None:
        return ()
    refused_source_arns = (
        source_arn
        for source_arn in sorted(facts.source_arns)
        if not allow_policy.allows(source_arn)
    )
    return tuple(
        source_arn
        for source_arn in refused_source_arns
        if not why_unfit_as_dlq(source_arn, facts.queue_arn)
    )


def _make_example_queue(allow_policy: str, *source_arns: str) -> Facts:
    """Return a DLQ that the queues `source_arns` name. `allow_policy` is its RedriveAllowPolicy."""
    return dlq(RedriveAllowPolicy=allow_policy, dlq_sources=sources(*source_arns))


def _make_allow_policy(*source_arns: str) -> str:
    return RedriveAllowPolicy("byQueue", source_arns).text


_ORDERS_QUEUE_ARN = STANDARD_ARN
_PARCELS_QUEUE_ARN = _ORDERS_QUEUE_ARN.replace("orders", "parcels")
_DENY_ALL_POLICY = RedriveAllowPolicy("denyAll").text
_TEN_SOURCE_ARNS = tuple(f"{_PARCELS_QUEUE_ARN}-{n}" for n in range(MOST_SOURCES_IN_ALLOW_POLICY))
_ADD_SOURCE_STEPS = (
    AllowRedriveFrom(
        _make_allow_policy(_PARCELS_QUEUE_ARN),
        _make_allow_policy(_ORDERS_QUEUE_ARN, _PARCELS_QUEUE_ARN),
    ),
)

DLQ_SOURCE_NOT_ALLOWED = FixedSymptom(
    name="dlq_source_not_allowed",
    sentence="A DLQ does not let in the messages of a queue that names it, "
    "so they are received forever.",
    plan_in_words="Add the source to the queues that RedriveAllowPolicy names, 10 at most; "
    "never all queues.",
    first_step="Add the source to the DLQ's RedriveAllowPolicy.",
    aws_page=DLQ_GUIDE,
    evidence_kinds=(EvidenceKind(SeverityClass.WILL_LOSE),),
    steps=(AllowRedriveFrom,),
    plan=plan,
    shown_attributes=(ALLOW_POLICY_ATTRIBUTE,),
    detection=Detection(
        detect, frozenset({Need.QUEUE, Need.DLQ_SOURCES}), is_of_configuration=True
    ),
    examples=lambda: (
        QueueExample(
            "another source is named",
            _make_example_queue(
                _make_allow_policy(_PARCELS_QUEUE_ARN), _ORDERS_QUEUE_ARN, _PARCELS_QUEUE_ARN
            ),
            _ADD_SOURCE_STEPS,
        ),
        QueueExample(
            "nobody is let in",
            _make_example_queue(_DENY_ALL_POLICY, _ORDERS_QUEUE_ARN),
            "denied_to_all",
        ),
        QueueExample(
            "it names ten",
            _make_example_queue(
                _make_allow_policy(*_TEN_SOURCE_ARNS), _ORDERS_QUEUE_ARN, *_TEN_SOURCE_ARNS
            ),
            "too_many_sources",
        ),
        QueueNearMiss(
            "without a policy all are let in", _make_example_queue("", _ORDERS_QUEUE_ARN)
        ),
        QueueNearMiss(
            "every source is named",
            _make_example_queue(_make_allow_policy(_ORDERS_QUEUE_ARN), _ORDERS_QUEUE_ARN),
        ),
        QueueNearMiss(
            "a text that is no policy",
            _make_example_queue('{"redrivePermission":', _ORDERS_QUEUE_ARN),
        ),
        QueueNearMiss(
            "one is of the other type",
            _make_example_queue(
                _make_allow_policy(_ORDERS_QUEUE_ARN), _ORDERS_QUEUE_ARN, QUEUE_ARN
            ),
        ),
        RefusalExample(
            "it names it by now",
            _make_example_queue(_make_allow_policy(_ORDERS_QUEUE_ARN), _ORDERS_QUEUE_ARN),
            "need_already_met",
        ),
    ),
)

"""Symptom `queue_missing`: callers use a queue that does not exist.

The fault: the queue was deleted, with all messages in it, or its callers have the wrong name,
account or region. Nothing that they send arrives.

How it shows: CloudTrail records failed calls with the code NonExistentQueue.

What Mendq does: it notifies people, with the callers and a command that shows who deleted the
queue. It never creates the queue. Only its owner knows whether it should exist and with which
settings, and the lost messages would not come back.
"""

from __future__ import annotations

from mendq.catalogue.access.minimum_policy import make_caller_lookup_command
from mendq.catalogue.examples import ROLE_ARN, STANDARD_ARN, failed_call, queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    Advice,
    CallExample,
    CallNearMiss,
    EvidenceKind,
    NotifiedSymptom,
    RefusalExample,
    is_message_call,
    make_code_patterns,
)
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Ignore, Refusal
from mendq.model.principals import name_first_principals
from mendq.model.severity_class import SeverityClass


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people; `Ignore` if the queue exists by now."""
    if facts.exists:
        reason = (
            f"{facts.queue_arn} is there: it was made anew meanwhile, "
            "or its callers name another account or region"
        )
        return Ignore("queue_exists", reason)
    reason = (
        f"{facts.queue_arn} does not exist and is still called: "
        "it was deleted, with the messages in it, or its name or region is wrong. "
        "SQS takes the same name again 60 s after the deletion. "
        f"Who called: {name_first_principals(facts.principals)}"
    )
    return Escalate(
        "queue_gone", reason, make_caller_lookup_command("DeleteQueue", facts.queue_arn)
    )


def _make_example(title: str, error_code: str) -> CallExample:
    missing_queue = Facts(STANDARD_ARN, {}, {}, principals=(ROLE_ARN,))
    return CallExample(title, failed_call("SendMessage", error_code), missing_queue, "queue_gone")


QUEUE_MISSING = NotifiedSymptom(
    name="queue_missing",
    sentence="The queue that callers name does not exist, so nothing they send arrives.",
    plan_in_words="Page with who still calls it and how to find who deleted it.",
    habit="keeps being called although it is not there",
    first_step="Create the queue again, or stop its callers.",
    aws_page=f"{SQS_GUIDE}/troubleshooting-api-errors.html",
    evidence_kinds=(EvidenceKind(SeverityClass.STANDING_STILL),),
    seen_as=make_code_patterns("queue_missing"),
    # Many programs only ask whether a queue exists. A caller that sends or receives needs it.
    is_evidence=is_message_call,
    needs=frozenset(),
    plan=plan,
    advice_if_many=Advice("Look for what deleted them all: a stack, a pipeline, a clean-up."),
    examples=lambda: (
        _make_example("sending to a queue that is gone", "AWS.SimpleQueueService.NonExistentQueue"),
        _make_example("the JSON protocol's word", "QueueDoesNotExist"),
        RefusalExample("a queue that is there again", queue(), "queue_exists"),
        CallNearMiss("a name is still blocked", failed_call("CreateQueue", "QueueDeletedRecently")),
        CallNearMiss("no such task", failed_call("StartMessageMoveTask", "ResourceNotFound")),
    ),
)

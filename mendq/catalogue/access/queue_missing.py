"""Callers name a queue that is not there."""

from __future__ import annotations

from mendq.catalogue.access.minimum_policy import who_called
from mendq.catalogue.examples import ROLE, STANDARD_ARN, failed_call, queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    Advice,
    CallExample,
    CallNearMiss,
    NotifiedSymptom,
    RefusalExample,
    carries_messages,
    seen_as_labelled,
)
from mendq.model.evidence import name_first_few
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Ignore, Refusal


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page where the queue is gone; where it is there, the callers' trouble is another."""
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
        f"Who called: {name_first_few(facts.principals)}"
    )
    return Escalate("queue_gone", reason, who_called("DeleteQueue", facts.queue_arn))


def _caught(title: str, code: str) -> CallExample:
    gone = Facts(STANDARD_ARN, {}, {}, principals=(ROLE,))
    return CallExample(title, failed_call("SendMessage", code), gone, "queue_gone")


QUEUE_MISSING = NotifiedSymptom(
    name="queue_missing",
    sentence="The queue that callers name does not exist, so nothing they send arrives.",
    plan_in_words="Page with who still calls it and how to find who deleted it.",
    habit="keeps being called although it is not there",
    aws_page=f"{SQS_GUIDE}/troubleshooting-api-errors.html",
    seen_as=seen_as_labelled("queue_missing"),
    # Programs ask whether a queue is there; only who wants to work with it misses it.
    is_evidence=carries_messages,
    needs=frozenset(),
    plan=plan,
    advice_if_many=Advice("Look for what deleted them all: a stack, a pipeline, a clean-up."),
    examples=lambda: (
        _caught("sending to a queue that is gone", "AWS.SimpleQueueService.NonExistentQueue"),
        _caught("the JSON protocol's word", "QueueDoesNotExist"),
        RefusalExample("a queue that is there again", queue(), "queue_exists"),
        CallNearMiss("a name is still blocked", failed_call("CreateQueue", "QueueDeletedRecently")),
        CallNearMiss("no such task", failed_call("StartMessageMoveTask", "ResourceNotFound")),
    ),
)

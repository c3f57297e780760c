"""Callers name a queue that is not there.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/troubleshooting-api-errors.html
"""

from __future__ import annotations

from mendq.catalogue import examples
from mendq.catalogue.symptom import Caught, NearMiss, Symptom, seen_as_labelled
from mendq.model.evidence import MESSAGE_TRAFFIC, named, who_called
from mendq.model.facts import Facts
from mendq.model.failed_call import FailedCall
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Ignore, Refusal


def speaks(call: FailedCall) -> bool:
    """Programs ask whether a queue is there; only who wants to work with it misses it."""
    return call.event_name in MESSAGE_TRAFFIC


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
        f"Who called: {named(facts.principals)}"
    )
    look = who_called("DeleteQueue", facts.queue_arn)
    return Escalate("queue_gone", reason, next_command=look)


_SQS_SAYS = "The specified queue does not exist."
_CALLER = "arn:aws:iam::123456789012:role/orders-worker"
_GONE = Facts(examples.STANDARD_ARN, {}, {}, principals=(_CALLER,))

QUEUE_MISSING = Symptom(
    name="queue_missing",
    sentence="The queue that callers name does not exist, so nothing they send arrives.",
    plan_in_words="Page with who still calls it and how to find who deleted it.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "troubleshooting-api-errors.html",
    seen_as=seen_as_labelled("queue_missing"),
    plan=plan,
    speaks=speaks,
    mass_advice="Look for what deleted them all: a stack, a pipeline, a clean-up.",
    caught=(
        Caught(
            "sending to a queue that is gone",
            examples.failed_call(
                "SendMessage",
                "AWS.SimpleQueueService.NonExistentQueue",
                _SQS_SAYS,
                examples.STANDARD_ARN,
            ),
            _GONE,
            code="queue_gone",
        ),
        Caught(
            "the older protocol's words",
            examples.failed_call(
                "ReceiveMessage",
                "QueueDoesNotExist",
                "The specified queue does not exist for this wsdl version.",
                examples.STANDARD_ARN,
            ),
            _GONE,
            code="queue_gone",
        ),
    ),
    near_misses=(
        NearMiss("a queue that is there again", "queue_exists", facts=examples.queue()),
        NearMiss(
            "a name that is still blocked after a deletion",
            "no_match",
            call=examples.failed_call("CreateQueue", "QueueDeletedRecently", ""),
        ),
        NearMiss(
            "a move task whose source is unknown",
            "no_match",
            call=examples.failed_call(
                "StartMessageMoveTask",
                "ResourceNotFoundException",
                "The resource that you specified for the DestinationArn parameter doesn't exist.",
            ),
        ),
    ),
)

"""Senders give a FIFO queue neither a deduplication id nor leave to make one of the body.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
"""

from __future__ import annotations

from mendq.catalogue import examples
from mendq.catalogue.symptom import Caught, NearMiss, SeenAs, Symptom
from mendq.model.facts import Facts, Need
from mendq.model.failed_call import asks_for_deduplication_id
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Ignore, Plan, Refusal
from mendq.model.queue import on_fifo
from mendq.model.steps import DeduplicateByContent


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Content-based deduplication, where it is off."""
    return _already_on(facts) or _switch_on()


def _already_on(facts: Facts) -> Refusal | None:
    if DeduplicateByContent.standing_in(facts.attributes) != DeduplicateByContent.wanted:
        return None
    reason = "content-based deduplication is on by now: no sender needs an id any more"
    return Ignore("already_on", reason)


def _switch_on() -> Plan:
    return Plan(
        steps=(DeduplicateByContent(DeduplicateByContent.shipped, DeduplicateByContent.wanted),),
        reason="senders give no deduplication id, so SQS refuses their messages; it can take a "
        "digest of the body instead. A message with the same body as one of the last 5 minutes is "
        "then accepted and dropped, even if its attributes differ",
    )


_TEXT = (
    "The queue should either have ContentBasedDeduplication enabled "
    "or MessageDeduplicationId provided explicitly"
)
_REFUSED = examples.failed_call("SendMessage", "InvalidParameterValue", _TEXT)

DEDUP_ID_MISSING = Symptom(
    name="dedup_id_missing",
    sentence="Senders give a FIFO queue no deduplication id, and it may not make one.",
    plan_in_words="Turn on ContentBasedDeduplication; equal bodies within 5 minutes are dropped.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "using-messagededuplicationid-property.html",
    seen_as=(
        SeenAs(
            frozenset({"SendMessage", "SendMessageBatch"}),
            "InvalidParameterValue",
            asks_for_deduplication_id,
            on_fifo,
        ),
    ),
    needs=frozenset({Need.QUEUE}),
    steps=(DeduplicateByContent,),
    plan=plan,
    autonomy=Mode.PROPOSE,
    caught=(
        Caught(
            "a queue without content-based deduplication",
            _REFUSED,
            examples.queue(ContentBasedDeduplication="false"),
            (DeduplicateByContent("false", "true"),),
        ),
        Caught(
            "a batch, in the spelling of the JSON protocol",
            examples.failed_call("SendMessageBatch", "InvalidParameterValueException", _TEXT),
            examples.queue(),
            (DeduplicateByContent("false", "true"),),
        ),
    ),
    near_misses=(
        NearMiss(
            "an id that SQS does not take",
            "no_match",
            call=examples.failed_call(
                "SendMessage",
                "InvalidParameterValue",
                "Value group 123 for parameter MessageDeduplicationId is invalid. Reason: "
                "MessageDeduplicationId can only include alphanumeric and punctuation characters. "
                "1 to 128 in length.",
            ),
        ),
        NearMiss(
            "a caller who writes SQS's sentence into the id",
            "no_match",
            call=examples.failed_call(
                "SendMessage",
                "InvalidParameterValue",
                f"Value {_TEXT} for parameter MessageDeduplicationId is invalid. Reason: "
                "MessageDeduplicationId can only include alphanumeric and punctuation characters. "
                "1 to 128 in length.",
            ),
        ),
        NearMiss(
            "a group id that is missing is another matter",
            "no_match",
            call=examples.failed_call(
                "SendMessage",
                "MissingParameter",
                "The request must contain the parameter MessageGroupId.",
            ),
        ),
        NearMiss(
            "a queue where it was turned on meanwhile",
            "already_on",
            facts=examples.queue(ContentBasedDeduplication="true"),
        ),
    ),
)

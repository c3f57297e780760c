"""Symptom `dedup_id_missing`: producers send to a FIFO queue without a deduplication id.

The fault: SQS needs an id by which it recognizes a repeated send. The producer gives none, and
`ContentBasedDeduplication` is off, so SQS does not make one from the body. It refuses the messages.

How it shows: CloudTrail records sends that fail with SQS's sentence about the missing
MessageDeduplicationId.

What Mendq changes: it proposes to turn on `ContentBasedDeduplication`. SQS then takes a SHA-256
digest of the body as the id.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html

Why a person decides: SQS then accepts and drops a message with the same body as one of the last
five minutes, even if its attributes differ. Only the producers' owner knows if that can happen.
Producers that send their own id are not affected.
"""

from __future__ import annotations

from mendq.catalogue.examples import failed_call, make_send_with_refused_attribute, queue
from mendq.catalogue.symptom import (
    SEND_CALLS,
    SQS_GUIDE,
    CallExample,
    CallNearMiss,
    EvidenceKind,
    FailedCallPattern,
    FixedSymptom,
    RefusalExample,
)
from mendq.model.facts import Facts
from mendq.model.failed_call import NO_DEDUPLICATION_ID_MESSAGE, is_missing_deduplication_id_message
from mendq.model.limits import Limits
from mendq.model.plan import Ignore, Plan, Refusal
from mendq.model.queue import may_be_fifo_arn
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import DeduplicateByContent

_DEDUPLICATE_STEP = DeduplicateByContent(
    DeduplicateByContent.default_word, DeduplicateByContent.fix_word
)


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan to turn on content-based deduplication if it is off."""
    if _DEDUPLICATE_STEP.value_in(facts.attributes) == _DEDUPLICATE_STEP.fix_word:
        reason = "content-based deduplication is on by now: no sender needs an id any more"
        return Ignore("already_on", reason)
    return Plan(
        (_DEDUPLICATE_STEP,),
        "senders give no deduplication id, so SQS refuses their messages; it can take a "
        "digest of the body instead. A message with the same body as one of the last 5 minutes is "
        "then accepted and dropped, even if its attributes differ",
    )


def _make_example(title: str, event_name: str, error_code: str) -> CallExample:
    call = failed_call(event_name, error_code, NO_DEDUPLICATION_ID_MESSAGE)
    return CallExample(title, call, queue(ContentBasedDeduplication="false"), (_DEDUPLICATE_STEP,))


DEDUP_ID_MISSING = FixedSymptom(
    name="dedup_id_missing",
    sentence="Senders give a FIFO queue no deduplication id, and it may not make one.",
    plan_in_words="Turn on ContentBasedDeduplication; equal bodies within 5 minutes are dropped.",
    habit="keeps being sent messages without a deduplication ID",
    first_step="Send a MessageDeduplicationId, or turn on ContentBasedDeduplication.",
    aws_page=f"{SQS_GUIDE}/using-messagededuplicationid-property.html",
    evidence_kinds=(EvidenceKind(SeverityClass.STANDING_STILL),),
    seen_as=(
        FailedCallPattern(
            SEND_CALLS,
            "InvalidParameterValue",
            is_missing_deduplication_id_message,
            may_be_fifo_arn,
        ),
    ),
    steps=(DeduplicateByContent,),
    plan=plan,
    examples=lambda: (
        _make_example("the queue may not make one", "SendMessage", "InvalidParameterValue"),
        _make_example(
            "the JSON protocol's word", "SendMessageBatch", "InvalidParameterValueException"
        ),
        CallNearMiss(
            "an id with a space",
            make_send_with_refused_attribute("MessageDeduplicationId", "group 123"),
        ),
        CallNearMiss(
            "SQS's sentence",
            make_send_with_refused_attribute("MessageDeduplicationId", NO_DEDUPLICATION_ID_MESSAGE),
        ),
        RefusalExample(
            "it was turned on by now", queue(ContentBasedDeduplication="true"), "already_on"
        ),
    ),
)

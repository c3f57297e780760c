"""Symptom `timeout_not_in_force`: the queue's visibility timeout decides nothing.

The fault: somebody chose a visibility timeout for the queue, but its consumer does not use it. Some
frameworks send a timeout of their own with each receive, and some write theirs into the queue each
time they start. A person who raises the queue's timeout then wonders why nothing changes.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html

How it shows: the tag `mendq:consumer`, or else the queue's name, attributes and tags, say which
framework reads the queue (`mendq/model/frameworks.py`), and the queue's timeout is neither SQS's
default nor the framework's own. What a consumer really sends shows only in logged calls, so a
consumer whose option was changed looks the same.

What Mendq does: it reports the queue and names the consumer's own option. It changes nothing, and
it proposes no other visibility timeout for such a queue, because that cannot help.
"""

from __future__ import annotations

from typing import Any

from mendq.catalogue.examples import LAMBDA_FUNCTION, standard_queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts, Need
from mendq.model.frameworks import CONSUMER_TAG, RecognizedConsumer, recognize_consumer
from mendq.model.plan import Refusal, Refuse
from mendq.model.queue import DEFAULT_NUMBER_BY_ATTRIBUTE
from mendq.model.severity_class import SeverityClass

_ATTRIBUTE = "VisibilityTimeout"


def find_consumer(facts: Facts) -> RecognizedConsumer | None:
    """Return the framework that reads the queue; None if it is not known or Lambda reads it."""
    if facts.lambda_consumers or facts.stopped_consumers:
        return None
    return recognize_consumer(facts.name, facts.attributes, facts.tags)


def refuse_ineffective_timeout(facts: Facts) -> Refusal | None:
    """Return the refusal to change a visibility timeout that the consumer does not use.

    Return None if the queue's timeout is in force, or if the consumer is not known.
    """
    consumer = find_consumer(facts)
    explanation = _explain(consumer) if consumer else ""
    if not explanation:
        return None
    fault_text = f"{facts.found}. " if facts.found else ""
    return Refuse("timeout_not_in_force", f"{fault_text}{explanation}")


def _explain(consumer: RecognizedConsumer) -> str:
    """Return why the queue's visibility timeout is not in force; empty if it is."""
    framework = consumer.framework
    if framework.own_timeout_seconds is not None:
        return (
            f"{consumer.describe()}. It sends a visibility timeout of its own with each receive, "
            f"{framework.own_timeout_seconds:,} s by default, so the queue's decides nothing. What "
            f"counts is {framework.timeout_option}"
        )
    if _ATTRIBUTE in framework.written_attributes:
        return (
            f"{consumer.describe()}. It writes the visibility timeout of its own configuration "
            "into the queue each time it starts, so another value does not last. What counts is "
            f"{framework.timeout_option}"
        )
    return ""


def detect(facts: Facts) -> DetectedFault | None:
    """Report a queue with a chosen visibility timeout that its consumer does not use."""
    consumer = find_consumer(facts)
    if consumer is None or consumer.framework.own_timeout_seconds is None:
        return None
    unremarkable_timeouts = (
        DEFAULT_NUMBER_BY_ATTRIBUTE[_ATTRIBUTE],
        consumer.framework.own_timeout_seconds,
    )
    if facts.visibility_seconds in unremarkable_timeouts:
        return None
    return DetectedFault(
        f"the visibility timeout of {facts.visibility_seconds:,} s is not in force: "
        f"{_explain(consumer)}",
        is_hygiene=True,
    )


def _make_example_queue(word: str, visibility_seconds: int = 120, **overrides: Any) -> Facts:
    return standard_queue(
        tags={CONSUMER_TAG.key: word}, VisibilityTimeout=visibility_seconds, **overrides
    )


TIMEOUT_NOT_IN_FORCE = ReportedSymptom(
    name="timeout_not_in_force",
    sentence="The consumer sends a visibility timeout of its own, so the queue's decides nothing.",
    plan_in_words="Report it with the consumer's own option, and propose no other timeout.",
    first_step="Set the timeout in the consumer's own option.",
    aws_page=f"{SQS_GUIDE}/sqs-visibility-timeout.html",
    evidence_kinds=(EvidenceKind(SeverityClass.HYGIENE),),
    detection=Detection(
        detect, frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}), is_of_configuration=True
    ),
    tags=(CONSUMER_TAG,),
    examples=lambda: (
        QueueExample("dramatiq by its tag", _make_example_queue("dramatiq")),
        QueueExample("Filebeat by its tag", _make_example_queue("filebeat", 60)),
        QueueExample(
            "Vector by another tag",
            standard_queue(tags={"app": "vector"}, VisibilityTimeout=900),
        ),
        QueueNearMiss("SQS's default, which nobody chose", _make_example_queue("dramatiq", 30)),
        QueueNearMiss("the framework's own timeout", _make_example_queue("vector", 300)),
        QueueNearMiss("Celery uses the queue's", _make_example_queue("celery")),
        QueueNearMiss("Rebus has written it", _make_example_queue("rebus")),
        QueueNearMiss("another consumer", _make_example_queue("other")),
        QueueNearMiss("not known", standard_queue(VisibilityTimeout=120)),
        QueueNearMiss(
            "Lambda reads it too",
            _make_example_queue("dramatiq", lambda_consumers=(LAMBDA_FUNCTION,)),
        ),
    ),
)

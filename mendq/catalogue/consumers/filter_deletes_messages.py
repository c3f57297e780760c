"""Symptom `filter_deletes_messages`: a filter of a queue's consumer deletes messages.

The fault: an event source mapping or a pipe has filter criteria. A message that no filter matches
is deleted from the queue: it reaches neither the function nor the DLQ. If a second consumer reads
the same queue, each message goes to only one of them, by chance. Then the filter deletes messages
that are meant for the other.
https://docs.aws.amazon.com/lambda/latest/dg/with-sqs-filtering.html

How it shows: in the configuration of the mappings and pipes.

What Mendq does: it reports the queue. It changes nothing, because the messages may be unwanted, and
a second consumer needs a queue of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from mendq.catalogue.examples import LAMBDA_FUNCTION, standard_queue
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts, LambdaConsumer, Need
from mendq.model.severity_class import SeverityClass

ONE_CONSUMER = EvidenceKind(SeverityClass.MAY_LOSE, "one consumer, or all have the same filters")
SEVERAL_CONSUMERS = EvidenceKind(
    SeverityClass.WILL_LOSE, "several consumers with different filters, or one without"
)


def detect(facts: Facts) -> DetectedFault | None:
    """Report filters that delete messages, worst if another consumer reads the queue too."""
    readers = list(_list_readers(facts))
    first_filtered = next((reader for reader in readers if reader.filters), None)
    if first_filtered is None:
        return None
    for other_reader in readers:
        if frozenset(other_reader.filters) != frozenset(first_filtered.filters):
            difference_text = "with another one" if other_reader.filters else "without one"
            return DetectedFault(
                f"{first_filtered.name} reads this queue with a filter, and {other_reader.name} "
                f"{difference_text}. SQS gives each message to only one of them, and a filter that "
                "does not match deletes the message. So messages for "
                f"{other_reader.name} are deleted when {first_filtered.name} receives them",
                mapping_id=first_filtered.mapping_id,
                evidence_kind=SEVERAL_CONSUMERS,
            )
    return DetectedFault(
        f"{first_filtered.name} reads the queue with a filter: a message that it does not match is "
        "deleted, and reaches neither a consumer nor the DLQ",
        mapping_id=first_filtered.mapping_id,
        evidence_kind=ONE_CONSUMER,
    )


class _Reader(NamedTuple):
    """A consumer that may have filters, and the mapping or pipe that has them."""

    name: str
    filters: tuple[str, ...]
    mapping_id: str


def _list_readers(facts: Facts) -> Iterator[_Reader]:
    for consumer in facts.lambda_consumers:
        yield _Reader(consumer.name, consumer.filters, consumer.mapping_id)
    for pipe, filters in facts.filters_by_pipe.items():
        yield _Reader(f"the pipe {pipe}", filters, pipe)


_PAID_FILTER = '{"body": {"state": ["paid"]}}'
_SENT_FILTER = '{"body": {"state": ["sent"]}}'


def _make_queue(*filters_of_consumers: tuple[str, ...]) -> Facts:
    """Return a queue that several functions read, each with these filters."""
    consumers = [
        replace(LAMBDA_FUNCTION, function_arn=f"{LAMBDA_FUNCTION.function_arn}-{number}")
        for number in range(len(filters_of_consumers))
    ]
    filtered_consumers: tuple[LambdaConsumer, ...] = tuple(
        replace(consumer, filters=filters)
        for consumer, filters in zip(consumers, filters_of_consumers, strict=True)
    )
    return standard_queue(lambda_consumers=filtered_consumers)


FILTER_DELETES_MESSAGES = ReportedSymptom(
    name="filter_deletes_messages",
    sentence="Messages that the filter of a queue's consumer does not match are deleted.",
    plan_in_words="Report it; which messages are unwanted is for people to say.",
    first_step="Check that nobody needs the messages that the filter drops.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/with-sqs-filtering.html",
    evidence_kinds=(SEVERAL_CONSUMERS, ONE_CONSUMER),
    detection=Detection(detect, frozenset({Need.LAMBDA_CONSUMERS}), is_of_configuration=True),
    examples=lambda: (
        QueueExample("one function with a filter", _make_queue((_PAID_FILTER,))),
        QueueExample(
            "two functions with different filters", _make_queue((_PAID_FILTER,), (_SENT_FILTER,))
        ),
        QueueExample("two functions, one with a filter", _make_queue((), (_SENT_FILTER,))),
        QueueExample(
            "two functions with the same filter", _make_queue((_SENT_FILTER,), (_SENT_FILTER,))
        ),
        QueueNearMiss("one function without a filter", _make_queue(())),
        QueueNearMiss("two functions without a filter", _make_queue((), ())),
        QueueNearMiss("no Lambda function reads it", standard_queue()),
    ),
)

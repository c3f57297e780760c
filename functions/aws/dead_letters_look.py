"""Looks at what dead letters bind together: the queues that name one, and redrives under way.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListDeadLetterSourceQueues.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListMessageMoveTasks.html
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

from botocore.exceptions import ClientError

from functions.aws.clients import Clients
from functions.aws.errors import QueueGone, code_of, looking
from functions.aws.queue_look import queue_url
from functions.healing.error_codes import canonical
from functions.healing.facts import Facts
from functions.healing.measuring import REACHES_BACK
from functions.healing.queue_names import arn_of, arn_of_url, parts_of

# Whoever has more sources than this shares one dead-letter queue among everything.
MOST_SOURCES = 100
# SQS ends a task that has run for so long.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
LONGEST_MOVE = timedelta(hours=36)
# Where a task names no destination.
SOURCES = "sources"
_UNDER_WAY = frozenset({"RUNNING", "CANCELLING"})
# What SQS answers about a queue that was never anybody's dead-letter queue, or is gone.
_NO_TASKS = frozenset(
    {"ResourceNotFound", "NonExistentQueue", "InvalidParameterValue", "UnsupportedOperation"}
)


def dead_letter_arn_here(facts: Facts) -> str | None:
    """A RedrivePolicy is a person's text: what is no queue of this account is not asked about."""
    named = arn_of(facts.dead_letter_arn)
    here = named is not None and parts_of(named)[:3] == parts_of(facts.queue_arn)[:3]
    return named if here else None


def source_arns_of(clients: Clients, queue_arn: str) -> tuple[str, ...]:
    """The queues whose RedrivePolicy names this one, in order, at most MOST_SOURCES.

    Raises QueueGone or FactsUnavailable.
    """
    with looking(f"sources of {queue_arn}"):
        pages = clients.sqs.get_paginator("list_dead_letter_source_queues").paginate(
            QueueUrl=queue_url(clients, queue_arn), PaginationConfig={"PageSize": MOST_SOURCES}
        )
        urls = (url for page in pages for url in page.get("queueUrls", []))
        try:
            found = [arn_of_url(url, clients.region) for url in islice(urls, MOST_SOURCES)]
        except ClientError as error:
            if canonical(code_of(error)) == "NonExistentQueue":
                raise QueueGone(queue_arn) from error
            raise
    return tuple(sorted({each for each in found if each is not None}))


def moved_lately_to(clients: Clients, dead_letter_arn: str, now: datetime) -> frozenset[str]:
    """Where messages of a dead-letter queue are, or within what is measured may have been, moved.

    SOURCES stands for the queues that they came from. Nobody is told when a task ended, so it may
    have gone on for as long as SQS lets one. Raises FactsUnavailable.
    """
    with looking(f"redrives out of {dead_letter_arn}"):
        try:
            answer = clients.sqs.list_message_move_tasks(SourceArn=dead_letter_arn, MaxResults=10)
        except ClientError as error:
            if canonical(code_of(error)) in _NO_TASKS:
                return frozenset()
            raise
    long_ago = now - REACHES_BACK - LONGEST_MOVE
    return frozenset(
        each.get("DestinationArn") or SOURCES
        for each in answer.get("Results", [])
        if each.get("Status") in _UNDER_WAY
        or "StartedTimestamp" not in each
        or _at(each["StartedTimestamp"]) >= long_ago
    )


def _at(epoch_milliseconds: int) -> datetime:
    return datetime.fromtimestamp(epoch_milliseconds / 1000, UTC)

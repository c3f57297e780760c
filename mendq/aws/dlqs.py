"""Read which queues use a DLQ, read its redrives, and check if a source and a DLQ fit together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import FactsUnavailable, code_of, translate_aws_errors, translate_queue_errors
from mendq.aws.queue import attributes_if_there, queue_url, tags_if_readable
from mendq.model.consent import Consent
from mendq.model.dlq import select_confirmed_sources
from mendq.model.facts import Facts
from mendq.model.failed_call import canonical_code
from mendq.model.metrics import OLDEST_WINDOW_START_AGE
from mendq.model.plan import Refusal, Refuse
from mendq.model.queue import (
    arn_of,
    arn_of_url,
    parse_redrive_allow_policy,
    parse_redrive_policy,
    parts_of,
    why_unfit_as_dlq,
)
from mendq.model.steps import AllowRedriveFrom, AttachDlq, AttributeStep, CreateDlq

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import ListMessageMoveTasksResultEntryTypeDef as MoveTask

# The most sources that SQS lists in one answer. A DLQ with more is not read.
MOST_SOURCES = 1_000
# SQS ends a task that has run for this time.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
LONGEST_MOVE = timedelta(hours=36)
# The destination of a task that names none: SQS moves messages to the queues they came from.
SOURCES = "sources"
# A task with an unknown status counts as running: Mendq then leaves the queue alone.
OVER = frozenset({"COMPLETED", "CANCELLED", "FAILED"})

# SQS's error codes for a queue that was never a DLQ or does not exist.
NO_TASKS = frozenset(
    {"ResourceNotFound", "NonExistentQueue", "InvalidParameterValue", "UnsupportedOperation"}
)


def dlq_arn_here(facts: Facts) -> str | None:
    """Return the ARN of the queue's DLQ if that is in the same account and region, else None.

    The RedrivePolicy may contain any text, because a person may have written it.
    """
    named = arn_of(facts.dlq_arn)
    here = named is not None and parts_of(named)[:3] == parts_of(facts.queue_arn)[:3]
    return named if here else None


def list_source_arns(clients: Clients, queue_arn: str) -> tuple[str, ...]:
    """Return the ARNs of all queues whose RedrivePolicy names this queue, sorted.

    Raises:
        QueueGone: The queue does not exist.
        FactsUnavailable: The queues cannot be listed, or there are more than MOST_SOURCES. A part
            of them is no answer: the one source that people use may be missing.
        QueueRefusesUs: The queue's policy denies access.
    """
    with translate_queue_errors("sources of", queue_arn):
        pages = clients.sqs.get_paginator("list_dead_letter_source_queues").paginate(
            QueueUrl=queue_url(clients, queue_arn), PaginationConfig={"PageSize": MOST_SOURCES}
        )
        urls = (url for page in pages for url in page.get("queueUrls", []))
        found = [arn_of_url(url, clients.region) for url in islice(urls, MOST_SOURCES + 1)]
    if len(found) > MOST_SOURCES:
        raise FactsUnavailable(f"more than {MOST_SOURCES:,} queues name {queue_arn} as their DLQ")
    return tuple(sorted({arn for arn in found if arn is not None}))


def list_confirmed_sources(clients: Clients, dlq: Facts, consent: Consent) -> tuple[str, ...]:
    """Return the ARNs of the confirmed sources of a DLQ (`select_confirmed_sources`).

    Raises the errors of `list_source_arns`.
    """
    named_by = list_source_arns(clients, dlq.queue_arn)
    tags_of = partial(tags_if_readable, clients)
    return select_confirmed_sources(named_by, dlq, consent, tags_of)


def list_move_tasks(
    clients: Clients, dlq_arn: str, none_where: Collection[str] = NO_TASKS
) -> list[MoveTask]:
    """Return the ten newest message movement tasks (SQS's own redrives) of a DLQ.

    Raise FactsUnavailable or QueueRefusesUs.

    Args:
        clients: The AWS clients.
        dlq_arn: The DLQ.
        none_where: SQS's error codes that count as "no tasks".
    """
    with translate_aws_errors(f"message movement tasks of {dlq_arn}"):
        try:
            answer = clients.sqs.list_message_move_tasks(SourceArn=dlq_arn, MaxResults=10)
        except ClientError as error:
            if canonical_code(code_of(error)) not in none_where:
                raise
            return []
    return answer.get("Results", [])


def recent_move_destinations(clients: Clients, dlq_arn: str, now: datetime) -> frozenset[str]:
    """Return the ARNs of the queues to which SQS moves messages of a DLQ, or moved them recently.

    SOURCES stands for the queues from which the messages came. A move is recent if it may have
    ended in the time that a measurement can cover (OLDEST_WINDOW_START_AGE). SQS does not report
    when a task ended, so each task counts as if it had run for LONGEST_MOVE. Raises
    FactsUnavailable or QueueRefusesUs.
    """
    # In milliseconds, as SQS spells a task's start.
    long_ago = (now - OLDEST_WINDOW_START_AGE - LONGEST_MOVE).timestamp() * 1_000
    destinations: set[str] = set()
    for task in list_move_tasks(clients, dlq_arn):
        is_running = task.get("Status") not in OVER
        if is_running or task.get("StartedTimestamp", long_ago) >= long_ago:
            destinations.add(task.get("DestinationArn") or SOURCES)
    return frozenset(destinations)


# The most DLQs that may follow one another, each the DLQ of the one before. More are a fault.
LONGEST_CHAIN = 5


def refuse_misfit(clients: Clients, now: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    """Return a refusal if a DLQ step does not fit the queue's present state; None if all fit.

    Raise FactsUnavailable.
    """
    for step in steps:
        if fault := _fault(clients, now, step, steps):
            return Refuse("dlq_unfit", f"{step.attribute} is not written: {fault}")
    return None


def _fault(
    clients: Clients, now: Facts, step: AttributeStep, steps: Sequence[AttributeStep]
) -> str | None:
    """Return why one step does not fit; None if it fits."""
    if isinstance(step, AllowRedriveFrom):
        return _not_its_sources(clients, now.queue_arn, step)
    if isinstance(step, AttachDlq):
        ends = (now.queue_arn, _target(step))
        return why_unfit_as_dlq(*ends) or _leads_back(clients, *ends)
    if isinstance(step, CreateDlq):
        attached = next((other for other in steps if isinstance(other, AttachDlq)), None)
        if (_target(attached) if attached else now.dlq_arn) != step.after:
            return f"the queue does not name {step.after[:120]} as its DLQ"
        return why_unfit_as_dlq(now.queue_arn, step.after)
    return "this Lambda does not own it"


def _target(step: AttachDlq) -> str:
    """Return the ARN of the DLQ that the step attaches; empty if its policy is not readable."""
    redrive = parse_redrive_policy(step.after)
    return redrive.dlq_arn if redrive else ""


def _leads_back(clients: Clients, source_arn: str, dlq_arn: str) -> str | None:
    """Return a sentence if the chain of DLQs leads back to the source or is too long.

    Too long means more than LONGEST_CHAIN DLQs. None if the chain ends before: at a queue without a
    DLQ, or with a DLQ that SQS does not accept for it.
    """
    behind = dlq_arn
    for _ in range(LONGEST_CHAIN):
        attributes = attributes_if_there(clients, behind)
        following = arn_of(Facts(behind, attributes, {}).dlq_arn)
        if following is None or why_unfit_as_dlq(behind, following):
            return None
        if following == source_arn:
            return f"its messages would come back from {behind}"
        behind = following
    return f"more than {LONGEST_CHAIN} DLQs stand behind one another"


def _not_its_sources(clients: Clients, queue_arn: str, step: AllowRedriveFrom) -> str | None:
    """Return why a queue that the step adds is not a source of this DLQ; None if all are."""
    before = parse_redrive_allow_policy(step.before)
    after = parse_redrive_allow_policy(step.after)
    added = set(after.sources if after else ()) - set(before.sources if before else ())
    for source_arn in sorted(added):
        fault = why_unfit_as_dlq(source_arn, queue_arn)
        if fault:
            return f"{source_arn[:120]} cannot be a source: {fault}"
        if Facts(source_arn, attributes_if_there(clients, source_arn), {}).dlq_arn != queue_arn:
            return f"{source_arn} does not name it as its DLQ"
    return None

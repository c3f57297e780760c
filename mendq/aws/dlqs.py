"""Read the queues that name a DLQ, and whether source and DLQ fit."""

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
from mendq.model.dlq import select_confirmed_sources
from mendq.model.facts import Facts
from mendq.model.failed_call import canonical_code
from mendq.model.limits import Consent
from mendq.model.metrics import REACHES_BACK
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

# As many as SQS lists in one answer, and more than anything but a flood of queues has.
MOST_SOURCES = 1_000
# SQS ends a task that has run for so long.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
LONGEST_MOVE = timedelta(hours=36)
# Where a task names no destination.
SOURCES = "sources"
# A status that SQS did not have when this was written is one that runs: nobody acts on it.
OVER = frozenset({"COMPLETED", "CANCELLED", "FAILED"})

# What SQS answers about a queue that was never anybody's DLQ, or is gone.
NO_TASKS = frozenset(
    {"ResourceNotFound", "NonExistentQueue", "InvalidParameterValue", "UnsupportedOperation"}
)


def dlq_arn_here(facts: Facts) -> str | None:
    """A RedrivePolicy is a person's text: what is no queue of this account is not asked about."""
    named = arn_of(facts.dlq_arn)
    here = named is not None and parts_of(named)[:3] == parts_of(facts.queue_arn)[:3]
    return named if here else None


def list_source_arns(clients: Clients, queue_arn: str) -> tuple[str, ...]:
    """The queues whose RedrivePolicy names this one, in order: all of them.

    Raises QueueGone or FactsUnavailable; that too where there are more than MOST_SOURCES, for one
    of those that are not looked at may be the only real one.
    """
    with translate_queue_errors("sources of", queue_arn):
        pages = clients.sqs.get_paginator("list_dead_letter_source_queues").paginate(
            QueueUrl=queue_url(clients, queue_arn), PaginationConfig={"PageSize": MOST_SOURCES}
        )
        urls = (url for page in pages for url in page.get("queueUrls", []))
        found = [arn_of_url(url, clients.region) for url in islice(urls, MOST_SOURCES + 1)]
    if len(found) > MOST_SOURCES:
        raise FactsUnavailable(f"more than {MOST_SOURCES:,} queues name {queue_arn} as their DLQ")
    return tuple(sorted({each for each in found if each is not None}))


def list_confirmed_sources(clients: Clients, dlq: Facts, consent: Consent) -> tuple[str, ...]:
    """Those of them that are believed. Raises QueueGone or FactsUnavailable."""
    named_by, tags_of = list_source_arns(clients, dlq.queue_arn), partial(tags_if_readable, clients)
    return select_confirmed_sources(named_by, dlq, consent, tags_of)


def list_move_tasks(
    clients: Clients, dlq_arn: str, none_where: Collection[str] = NO_TASKS
) -> list[MoveTask]:
    """The newest message movement tasks of a DLQ; `none_where` are the codes that say no tasks.

    Raises FactsUnavailable or QueueRefusesUs.
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
    """Where messages of a DLQ are, or within what is measured may have been, moved.

    SOURCES stands for the queues that they came from. Nobody is told when a task ended, so it may
    have gone on for as long as SQS lets one. Raises FactsUnavailable.
    """
    # In milliseconds, as SQS tells when a task was started.
    long_ago = (now - REACHES_BACK - LONGEST_MOVE).timestamp() * 1_000
    return frozenset(
        each.get("DestinationArn") or SOURCES
        for each in list_move_tasks(clients, dlq_arn)
        if each.get("Status") not in OVER or each.get("StartedTimestamp", long_ago) >= long_ago
    )


# So many DLQs behind one another are a fault of their own.
LONGEST_CHAIN = 5


def refuse_misfit(clients: Clients, now: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    """Why these steps are not to be taken of a queue as it is `now`; raises FactsUnavailable."""
    for step in steps:
        if fault := _fault(clients, now, step, steps):
            return Refuse("dlq_unfit", f"{step.attribute} is not written: {fault}")
    return None


def _fault(
    clients: Clients, now: Facts, step: AttributeStep, steps: Sequence[AttributeStep]
) -> str | None:
    if isinstance(step, AllowRedriveFrom):
        return _not_its_sources(clients, now.queue_arn, step)
    if isinstance(step, AttachDlq):
        ends = (now.queue_arn, _target(step))
        return why_unfit_as_dlq(*ends) or _leads_back(clients, *ends)
    if isinstance(step, CreateDlq):
        attached = next((each for each in steps if isinstance(each, AttachDlq)), None)
        if (_target(attached) if attached else now.dlq_arn) != step.after:
            return f"the queue does not name {step.after[:120]} as its DLQ"
        return why_unfit_as_dlq(now.queue_arn, step.after)
    return "this Lambda does not own it"


def _target(step: AttachDlq) -> str:
    redrive = parse_redrive_policy(step.after)
    return redrive.dlq_arn if redrive else ""


def _leads_back(clients: Clients, source_arn: str, dlq_arn: str) -> str | None:
    """Why messages would come round to their source; None as well where nobody can follow them."""
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
    before, after = parse_redrive_allow_policy(step.before), parse_redrive_allow_policy(step.after)
    added = set(after.sources if after else ()) - set(before.sources if before else ())
    for each in sorted(added):
        fault = why_unfit_as_dlq(each, queue_arn)
        if fault:
            return f"{each[:120]} cannot be a source: {fault}"
        if Facts(each, attributes_if_there(clients, each), {}).dlq_arn != queue_arn:
            return f"{each} does not name it as its DLQ"
    return None

"""Read which queues use a DLQ, read its redrives, and check if a source and a DLQ fit together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import (
    FactsUnavailable,
    error_code_of,
    translate_aws_errors,
    translate_queue_errors,
)
from mendq.aws.queue import queue_url, read_attributes_if_queue_exists, read_tags_if_allowed
from mendq.model.consent import Consent
from mendq.model.dlq import select_confirmed_sources
from mendq.model.facts import Facts
from mendq.model.failed_call import make_canonical_error_code
from mendq.model.metrics import OLDEST_WINDOW_START_AGE
from mendq.model.partitions import PARTITIONS_WITHOUT_MOVE_TASKS
from mendq.model.plan import Refusal, Refuse
from mendq.model.queue import (
    arn_of_url,
    parse_queue_arn,
    parse_redrive_allow_policy,
    parse_redrive_policy,
    queue_arn_or_none,
    why_unfit_as_dlq,
)
from mendq.model.redrives import MoveTask as MoveTaskRecord
from mendq.model.steps import AllowRedriveFrom, AttachDlq, AttributeStep, CreateDlq

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import ListMessageMoveTasksResultEntryTypeDef as MoveTask

# The most sources that SQS lists in one answer. A DLQ with more is not read.
MOST_LISTED_SOURCES = 1_000
# SQS ends a task that has run for this time.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
LONGEST_MOVE_TASK_DURATION = timedelta(hours=36)
# Stands for the destination of a task that names no queue: SQS then moves each message to the queue
# that it came from.
ORIGINAL_SOURCES_DESTINATION = "sources"
# A task with an unknown status counts as running: Mendq then leaves the queue alone.
ENDED_MOVE_TASK_STATUSES = frozenset({"COMPLETED", "CANCELLED", "FAILED"})

# SQS's error codes for a queue that was never a DLQ or does not exist.
ERROR_CODES_WITHOUT_MOVE_TASKS = frozenset(
    {"ResourceNotFound", "NonExistentQueue", "InvalidParameterValue", "UnsupportedOperation"}
)

# Error codes for an action that a service does not know. Not tried on AWS: which of them SQS
# returns in a partition without message movement tasks.
_UNKNOWN_ACTION_ERROR_CODES = frozenset(
    {"UnsupportedOperation", "UnknownOperation", "InvalidAction"}
)


def find_local_dlq_arn(facts: Facts) -> str | None:
    """Return the ARN of the queue's DLQ if the DLQ is in the same account and region.

    Return None if it is elsewhere, if the queue has no DLQ, or if the RedrivePolicy has a malformed
    ARN: a person may have written any text there.
    """
    dlq_arn = queue_arn_or_none(facts.dlq_arn)
    is_dlq_local = (
        dlq_arn is not None and parse_queue_arn(dlq_arn)[:3] == parse_queue_arn(facts.queue_arn)[:3]
    )
    return dlq_arn if is_dlq_local else None


def list_source_arns(clients: Clients, queue_arn: str) -> tuple[str, ...]:
    """Return the ARNs of all queues whose RedrivePolicy names this queue, sorted.

    Raises:
        QueueGone: The queue does not exist.
        FactsUnavailable: The queues cannot be listed, or there are more than MOST_LISTED_SOURCES.
            An incomplete list is never returned, because it may lack the source that is in use.
        QueueRefusesUs: The queue's policy denies access.
    """
    with translate_queue_errors("sources of", queue_arn):
        pages = clients.sqs.get_paginator("list_dead_letter_source_queues").paginate(
            QueueUrl=queue_url(clients, queue_arn),
            PaginationConfig={"PageSize": MOST_LISTED_SOURCES},
        )
        source_urls = (source_url for page in pages for source_url in page.get("queueUrls", []))
        source_arns = [
            arn_of_url(source_url, clients.region)
            for source_url in islice(source_urls, MOST_LISTED_SOURCES + 1)
        ]
    if len(source_arns) > MOST_LISTED_SOURCES:
        raise FactsUnavailable(
            f"more than {MOST_LISTED_SOURCES:,} queues name {queue_arn} as their DLQ"
        )
    return tuple(sorted({arn for arn in source_arns if arn is not None}))


def list_confirmed_sources(clients: Clients, dlq: Facts, consent: Consent) -> tuple[str, ...]:
    """Return the ARNs of the confirmed sources of a DLQ (`select_confirmed_sources`).

    Raises the errors of `list_source_arns`.
    """
    candidate_source_arns = list_source_arns(clients, dlq.queue_arn)
    read_tags = partial(read_tags_if_allowed, clients)
    return select_confirmed_sources(candidate_source_arns, dlq, consent, read_tags)


def list_move_tasks(
    clients: Clients,
    dlq_arn: str,
    error_codes_without_tasks: Collection[str] = ERROR_CODES_WITHOUT_MOVE_TASKS,
) -> list[MoveTask]:
    """Return the newest message movement tasks (SQS's own redrives) of a DLQ, at most ten.

    Raise FactsUnavailable or QueueRefusesUs.

    Args:
        clients: The AWS clients.
        dlq_arn: The DLQ.
        error_codes_without_tasks: SQS's error codes for which the result is empty.
    """
    with translate_aws_errors(f"message movement tasks of {dlq_arn}"):
        try:
            response = clients.sqs.list_message_move_tasks(SourceArn=dlq_arn, MaxResults=10)
        except ClientError as error:
            error_code = make_canonical_error_code(error_code_of(error))
            if error_code not in error_codes_without_tasks and not _is_without_move_tasks(
                dlq_arn, error_code
            ):
                raise
            return []
    return response.get("Results", [])


def _is_without_move_tasks(queue_arn: str, error_code: str) -> bool:
    """Return True if the error says that SQS has no move tasks in the queue's partition.

    Mendq asks there too, so that it sees the tasks as soon as SQS has them.
    """
    partition = parse_queue_arn(queue_arn).partition
    return partition in PARTITIONS_WITHOUT_MOVE_TASKS and error_code in _UNKNOWN_ACTION_ERROR_CODES


def read_recent_move_destinations(clients: Clients, dlq_arn: str, now: datetime) -> frozenset[str]:
    """Return the ARNs of the queues to which SQS moves messages of a DLQ, or moved them recently.

    ORIGINAL_SOURCES_DESTINATION stands for the queues from which the messages came. A move is
    recent if it may have ended in the time that a measurement can cover (OLDEST_WINDOW_START_AGE).
    SQS does not report when a task ended, so Mendq assumes that each task ran for
    LONGEST_MOVE_TASK_DURATION. Raise FactsUnavailable or QueueRefusesUs.
    """
    # In milliseconds, like the StartedTimestamp of a task.
    oldest_start_ms = (
        now - OLDEST_WINDOW_START_AGE - LONGEST_MOVE_TASK_DURATION
    ).timestamp() * 1_000
    destination_arns: set[str] = set()
    for move_task in list_move_tasks(clients, dlq_arn):
        is_task_running = move_task.get("Status") not in ENDED_MOVE_TASK_STATUSES
        if is_task_running or move_task.get("StartedTimestamp", oldest_start_ms) >= oldest_start_ms:
            destination_arns.add(move_task.get("DestinationArn") or ORIGINAL_SOURCES_DESTINATION)
    return frozenset(destination_arns)


def read_recent_redrives(
    clients: Clients, dlq_arn: str, source_arn: str, since: datetime
) -> tuple[MoveTaskRecord, ...]:
    """Return the move tasks that began to move a DLQ's messages to this source since then.

    Tasks to the original sources count too: SQS does not say to which source they moved how many
    messages. Raise FactsUnavailable or QueueRefusesUs.
    """
    records = list[MoveTaskRecord]()
    for move_task in list_move_tasks(clients, dlq_arn):
        started_at = datetime.fromtimestamp(move_task.get("StartedTimestamp", 0) / 1_000, UTC)
        if started_at >= since and move_task.get("DestinationArn", source_arn) == source_arn:
            moved_messages = move_task.get("ApproximateNumberOfMessagesMoved", 0)
            records.append(MoveTaskRecord(started_at, moved_messages))
    return tuple(records)


# The most DLQs in a chain, in which each DLQ has the next one as its own DLQ. A longer chain is a
# fault.
LONGEST_DLQ_CHAIN = 5


def refuse_unfit_dlq(
    clients: Clients, queue: Facts, steps: Sequence[AttributeStep]
) -> Refusal | None:
    """Return a refusal if a step does not fit the queues as they are now; None if all steps fit.

    Raise FactsUnavailable, or QueueRefusesUs if a queue's policy denies access.
    """
    for step in steps:
        if fault := _find_step_fault(clients, queue, step, steps):
            return Refuse("dlq_unfit", f"{step.attribute} is not written: {fault}")
    return None


def _find_step_fault(
    clients: Clients, queue: Facts, step: AttributeStep, steps: Sequence[AttributeStep]
) -> str | None:
    """Return why one step does not fit the queues as they are now; None if it fits.

    `steps` are all steps of the plan: a DLQ may be created by one step and attached by another.
    """
    if isinstance(step, AllowRedriveFrom):
        return _describe_wrong_source(clients, queue.queue_arn, step)
    if isinstance(step, AttachDlq):
        source_and_dlq_arns = (queue.queue_arn, _find_attached_dlq(step))
        return why_unfit_as_dlq(*source_and_dlq_arns) or _describe_dlq_loop(
            clients, *source_and_dlq_arns
        )
    if isinstance(step, CreateDlq):
        attach_step = next(
            (other_step for other_step in steps if isinstance(other_step, AttachDlq)), None
        )
        if (_find_attached_dlq(attach_step) if attach_step else queue.dlq_arn) != step.after:
            return f"the queue does not name {step.after[:120]} as its DLQ"
        return why_unfit_as_dlq(queue.queue_arn, step.after)
    return "this Lambda does not own it"


def _find_attached_dlq(step: AttachDlq) -> str:
    """Return the ARN of the DLQ that the step attaches; empty if the new policy is not readable."""
    redrive_policy = parse_redrive_policy(step.after)
    return redrive_policy.dlq_arn if redrive_policy else ""


def _describe_dlq_loop(clients: Clients, source_arn: str, dlq_arn: str) -> str | None:
    """Return the fault of the chain of DLQs that begins with `dlq_arn`; None if it has none.

    The fault is that the chain leads back to the source, or has more than LONGEST_DLQ_CHAIN DLQs.
    The chain ends at a queue that has no DLQ, or whose DLQ does not fit it.
    """
    last_dlq_arn = dlq_arn
    for _ in range(LONGEST_DLQ_CHAIN):
        attributes = read_attributes_if_queue_exists(clients, last_dlq_arn)
        next_dlq_arn = queue_arn_or_none(Facts(last_dlq_arn, attributes, {}).dlq_arn)
        if next_dlq_arn is None or why_unfit_as_dlq(last_dlq_arn, next_dlq_arn):
            return None
        if next_dlq_arn == source_arn:
            return f"its messages would come back from {last_dlq_arn}"
        last_dlq_arn = next_dlq_arn
    return f"more than {LONGEST_DLQ_CHAIN} DLQs stand behind one another"


def _describe_wrong_source(clients: Clients, queue_arn: str, step: AllowRedriveFrom) -> str | None:
    """Return why a queue that the step adds is not a source of this DLQ; None if all are."""
    policy_before = parse_redrive_allow_policy(step.before)
    policy_after = parse_redrive_allow_policy(step.after)
    source_arns_before = set(policy_before.sources if policy_before else ())
    source_arns_after = set(policy_after.sources if policy_after else ())
    for source_arn in sorted(source_arns_after - source_arns_before):
        fault = why_unfit_as_dlq(source_arn, queue_arn)
        if fault:
            return f"{source_arn[:120]} cannot be a source: {fault}"
        if (
            Facts(source_arn, read_attributes_if_queue_exists(clients, source_arn), {}).dlq_arn
            != queue_arn
        ):
            return f"{source_arn} does not name it as its DLQ"
    return None

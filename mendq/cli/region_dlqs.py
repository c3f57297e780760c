"""Find out which queues that others name as their DLQ are DLQs, for an alarm on all queues.

An alarm on the age of messages leaves DLQs out. Any queue can name any other queue as its DLQ, so
the name alone must not silence the alarm for a live queue. The rules:

1. A queue is a DLQ if one of the queues that name it is confirmed: its RedriveAllowPolicy names
   that source, or the settings of a deployed stack contain the source's full name. A tag confirms
   nothing, and neither does a prefix in the settings: whoever may create a queue chooses both.
2. Otherwise a queue is a DLQ if nobody asked it for messages in the last two weeks, and it is at
   least as old. A live queue has consumers that ask, also while it is empty.
3. If neither is known, the queue is watched. A DLQ that rings for days is noticed, and a live queue
   without an alarm is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import FORTNIGHT, build_query, make_queue_dimension, read_metric_series
from mendq.aws.errors import FactsUnavailable, is_access_denied
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.consent import Consent
from mendq.model.facts import Facts
from mendq.model.queue import parse_queue_arn, parse_redrive_allow_policy

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

# Each receive counts in one of these metrics of SQS.
RECEIVE_METRICS = ("NumberOfMessagesReceived", "NumberOfEmptyReceives")
NO_RECEIVE_REASON = "nobody asked it for messages in the last two weeks"
_DAY_SECONDS = 86_400
# GetMetricData takes at most 500 queries, and each queue needs one a metric.
_MOST_QUEUES_PER_CALL = 500 // len(RECEIVE_METRICS)


def read_consent_if_deployed(account: Account) -> Consent | None:
    """Return which queues the stack manages. None without a stack, or without the right to ask.

    Raises CommandError if the stack's settings cannot be read.
    """
    try:
        return account.settings.consent
    except CommandError as error:
        if error.code is not Exit.NOT_FOUND:
            raise
    except ClientError as error:
        if not is_access_denied(error):
            raise
    return None


def find_dlq_reasons(
    account: Account, dlqs: Sequence[Facts], sources: Mapping[str, Sequence[str]], now: datetime
) -> dict[str, str]:
    """Return why a queue that others name as their DLQ is one, by queue name.

    A queue without a reason is not known to be a DLQ.

    Args:
        account: The account and region.
        dlqs: The named queues with their attributes.
        sources: The ARNs of the queues that name a queue, by that queue's name.
        now: The time of the command.

    Raises:
        CommandError: The settings of a deployed stack cannot be read.
    """
    consent = read_consent_if_deployed(account)
    reason_by_name = dict[str, str]()
    for dlq in dlqs:
        reason = _find_confirmed_reason(dlq, sources[dlq.name], consent)
        if reason:
            reason_by_name[dlq.name] = reason
    other_dlqs = [dlq for dlq in dlqs if dlq.name not in reason_by_name]
    for name in _list_names_without_receive(account.clients, other_dlqs, now):
        reason_by_name[name] = NO_RECEIVE_REASON
    return reason_by_name


def _find_confirmed_reason(
    dlq: Facts, source_arns: Iterable[str], consent: Consent | None
) -> str | None:
    """Return why the queue is the DLQ of one of these sources; None if no source is confirmed.

    `consent` is None without a stack.
    """
    policy = parse_redrive_allow_policy(dlq.attributes.get("RedriveAllowPolicy", ""))
    allowed_arns = policy.sources if policy and policy.permission == "byQueue" else ()
    allowed_source_arns = [arn for arn in source_arns if arn in allowed_arns]
    if allowed_source_arns:
        return f"its RedriveAllowPolicy names {_name_queues(allowed_source_arns)}"
    if consent is None:
        return None
    named_source_arns = [
        arn for arn in source_arns if consent.has_exact_name(parse_queue_arn(arn).name)
    ]
    if named_source_arns:
        return f"it is the DLQ of {_name_queues(named_source_arns)}, which Mendq's settings name"
    return None


def _list_names_without_receive(
    clients: Clients, queues: Sequence[Facts], now: datetime
) -> list[str]:
    """Return the names of queues that are two weeks old and were not asked for messages since then.

    Empty if CloudWatch does not say it.
    """
    old_queues = [
        queue for queue in queues if queue.created_at and queue.created_at <= now - FORTNIGHT
    ]
    names = list[str]()
    for first in range(0, len(old_queues), _MOST_QUEUES_PER_CALL):
        try:
            names += _list_names_without_receive_in_batch(
                clients, old_queues[first : first + _MOST_QUEUES_PER_CALL], now
            )
        except FactsUnavailable:
            return names
    return names


def _list_names_without_receive_in_batch(
    clients: Clients, queues: Sequence[Facts], now: datetime
) -> list[str]:
    """Return the same for queues that fit into one call. Raises FactsUnavailable."""
    query_ids_by_name = dict[str, list[str]]()
    queries: list[MetricDataQueryTypeDef] = []
    for queue in queues:
        query_ids = query_ids_by_name.setdefault(queue.name, [])
        for metric in RECEIVE_METRICS:
            query_id = f"m{len(queries)}"
            query_ids.append(query_id)
            dimension = make_queue_dimension(queue.queue_arn)
            queries.append(build_query(query_id, dimension, metric, "Sum", _DAY_SECONDS))
    points_by_query_id = read_metric_series(
        clients, queries, now - FORTNIGHT, now, subject=f"{len(queues)} queues"
    )
    names = list[str]()
    for name, query_ids in query_ids_by_name.items():
        # A series that CloudWatch did not return whole is not in the answer.
        is_complete = all(query_id in points_by_query_id for query_id in query_ids)
        receive_count = sum(
            value for query_id in query_ids for _, value in points_by_query_id.get(query_id, ())
        )
        if is_complete and receive_count == 0:
            names.append(name)
    return names


def _name_queues(queue_arns: Iterable[str]) -> str:
    """Return the names of the first three queues, and the number of the others."""
    names = [parse_queue_arn(queue_arn).name for queue_arn in queue_arns]
    others_text = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + others_text

"""What SQS tells of dead-letter queues: who names one, which move tasks empty it.

A move task cannot be started here, so that there never is one to list.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListDeadLetterSourceQueues.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListMessageMoveTasks.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ministack.core import iam_actions
from ministack.services import sqs

from local_account.sqs.message_handlers import raised
from local_account.sqs.refusal import Refusal, invalid_parameter

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
ExtractArn = Callable[..., str]
MOST_SOURCES = 1_000
MOST_TASKS = 10
_NO_SOURCE = Refusal(  # (recorded, of StartMessageMoveTask)
    "ResourceNotFoundException",
    "The resource that you specified for the SourceArn parameter doesn't exist.",
    404,
)


def install() -> None:
    """Hook both actions; once per process."""
    iam_actions.extract_resource_arn = _naming_sources(iam_actions.extract_resource_arn)
    sqs._HANDLERS.update(
        ListDeadLetterSourceQueues=list_dead_letter_source_queues,
        ListMessageMoveTasks=list_message_move_tasks,
    )


def list_dead_letter_source_queues(data: Parameters, url: str) -> dict[str, Any]:
    """ListDeadLetterSourceQueues; pages only where MaxResults is given, as on AWS."""
    queue = sqs._get_q(data.get("QueueUrl") or url, "sqs:ListDeadLetterSourceQueues")
    most = _most(data, MOST_SOURCES)
    begin = int(data.get("NextToken") or 0)
    sources = sorted(_sources_of(queue["attributes"]["QueueArn"]))
    end = begin + (most or MOST_SOURCES)
    page: dict[str, Any] = {"queueUrls": sources[begin:end]}
    if most and end < len(sources):
        page["NextToken"] = str(end)
    return page


def list_message_move_tasks(data: Parameters, _url: str) -> dict[str, Any]:
    """ListMessageMoveTasks: none."""
    _most(data, MOST_TASKS)
    queue = sqs._queue_by_arn(str(data.get("SourceArn") or ""))
    if queue is None:
        raise raised(_NO_SOURCE)
    sqs._get_q(queue["url"], "sqs:ListMessageMoveTasks")  # asks the queue's policy
    return {"Results": []}


def dead_letter_arn(policy: object) -> str:
    """The queue that a RedrivePolicy names, or empty text; CloudFormation leaves an object."""
    content = json.loads(policy) if isinstance(policy, str) and policy else policy or {}
    return str(content.get("deadLetterTargetArn", "")) if isinstance(content, Mapping) else ""


def _sources_of(arn: str) -> Iterator[str]:
    for url, queue in list(sqs._queues.items()):
        if dead_letter_arn(queue["attributes"].get("RedrivePolicy")) == arn:
            yield url


def _most(data: Parameters, most: int) -> int | None:
    asked = data.get("MaxResults")
    if asked is not None and not 1 <= int(asked) <= most:
        raise raised(invalid_parameter(asked, "MaxResults", f"Must be between 1 and {most}."))
    return None if asked is None else int(asked)


def _naming_sources(extract: ExtractArn) -> ExtractArn:
    """Calls on move tasks name their queue by its ARN.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html
    """

    def extracting(service: str, *rest: Any) -> str:
        _method, _path, _headers, body, *_ = rest
        if service == "sqs" and b"SourceArn" in (body or b""):
            source = iam_actions._param(body, {}, "SourceArn")
            return source or extract(service, *rest)
        return extract(service, *rest)

    return extracting

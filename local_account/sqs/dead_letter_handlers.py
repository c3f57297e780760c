"""What SQS does about dead letters: who names their queue, and how they come there.

A standard queue's letter keeps its enqueue time, a FIFO queue's gets a new one, and its own id as
its deduplication id.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListDeadLetterSourceQueues.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ministack.core import iam_actions
from ministack.services import sqs

from local_account.sqs.message_handlers import raised
from local_account.sqs.move_tasks import read_handle
from local_account.sqs.move_tasks_permissions import note_caller
from local_account.sqs.refusal import invalid_parameter

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
ExtractArn = Callable[..., str]
MOST_SOURCES = 1_000


def install() -> None:
    """Hook the action, and what moves dead letters; once per process."""
    iam_actions.extract_resource_arn = _naming_sources(iam_actions.extract_resource_arn)
    sqs._HANDLERS["ListDeadLetterSourceQueues"] = list_dead_letter_source_queues
    sqs._dlq_sweep = _arriving_anew(sqs._dlq_sweep)


def list_dead_letter_source_queues(data: Parameters, url: str) -> dict[str, Any]:
    """ListDeadLetterSourceQueues; pages only where MaxResults is given, as on AWS."""
    queue = sqs._get_q(data.get("QueueUrl") or url, "sqs:ListDeadLetterSourceQueues")
    most = most_results(data, MOST_SOURCES)
    begin = int(data.get("NextToken") or 0)
    sources = sorted(sources_of(queue["attributes"]["QueueArn"]))
    end = begin + (most or MOST_SOURCES)
    page: dict[str, Any] = {"queueUrls": sources[begin:end]}
    if most and end < len(sources):
        page["NextToken"] = str(end)
    return page


def dead_letter_arn(policy: object) -> str:
    """The queue that a RedrivePolicy names, or empty text; CloudFormation leaves an object."""
    content = json.loads(policy) if isinstance(policy, str) and policy else policy or {}
    return str(content.get("deadLetterTargetArn", "")) if isinstance(content, Mapping) else ""


def sources_of(arn: str) -> Iterator[str]:
    """The URLs of the queues whose RedrivePolicy names this one."""
    for url, queue in list(sqs._queues.items()):
        if dead_letter_arn(queue["attributes"].get("RedrivePolicy")) == arn:
            yield url


def most_results(data: Parameters, most: int) -> int | None:
    """What MaxResults says, None where it says nothing; raises SQS's refusal."""
    asked = data.get("MaxResults")
    if asked is not None and not 1 <= int(asked) <= most:
        raise raised(invalid_parameter(asked, "MaxResults", f"Must be between 1 and {most}."))
    return None if asked is None else int(asked)


def _naming_sources(extract: ExtractArn) -> ExtractArn:
    """Calls on move tasks name their queue by its ARN.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html
    """

    def extracting(service: str, *rest: Any) -> str:
        _method, _path, headers, body, *_ = rest
        if service != "sqs":
            return extract(service, *rest)
        note_caller(headers)
        handle = read_handle(iam_actions._param(body, {}, "TaskHandle"))
        source = handle[1] if handle else iam_actions._param(body, {}, "SourceArn")
        return source or extract(service, *rest)

    return extracting


def _arriving_anew(sweep: Callable[[Queue], None]) -> Callable[[Queue], None]:
    def sweeping(queue: Queue) -> None:
        dead = sqs._queue_by_arn(dead_letter_arn(queue["attributes"].get("RedrivePolicy")))
        before = len(dead["messages"]) if dead else 0
        sweep(queue)
        if dead and dead["is_fifo"]:
            for letter in dead["messages"][before:]:
                _enqueue_anew(dead, letter)

    return sweeping


def _enqueue_anew(dead: Queue, letter: dict[str, Any]) -> None:
    dead["fifo_seq"] += 1
    letter["seq"] = str(dead["fifo_seq"]).zfill(20)
    letter["dedup_id"] = letter["id"]
    letter["sys"]["SentTimestamp"] = str(int(letter["enqueued_at"] * 1000))

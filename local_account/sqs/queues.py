"""Queues: which attributes and names SQS refuses where MiniStack takes them, and who names a DLQ.

Texts marked (recorded) were seen from the real SQS; the others follow its habit, their codes are
documented: SetQueueAttributes and CreateQueue in the API reference.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ministack.core import iam_actions
from ministack.core.responses import get_account_id, get_region
from ministack.services import sqs

from local_account.hooks import around

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
CHOICES: Mapping[str, tuple[str, ...]] = {
    "ContentBasedDeduplication": ("true", "false"),
    "DeduplicationScope": ("messageGroup", "queue"),
    "FifoQueue": ("true", "false"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
    "SqsManagedSseEnabled": ("true", "false"),
}
DOCUMENTS = ("Policy", "RedriveAllowPolicy", "RedrivePolicy")
SETTABLE = {
    *("DelaySeconds", "KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "MaximumMessageSize"),
    *("MessageRetentionPeriod", "ReceiveMessageWaitTimeSeconds", "VisibilityTimeout"),
    *DOCUMENTS,
    *CHOICES,
}
STANDARD_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
FIFO_NAME = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo")
MOST_ALLOWED_SOURCES = 10


def invalid_parameter(value: object, parameter: str, reason: str) -> Exception:
    """InvalidParameterValue, whose text repeats the caller's value."""
    said = f"Value {value} for parameter {parameter} is invalid. Reason: {reason}"
    error: Exception = sqs._Err("InvalidParameterValueException", said)
    return error


def install() -> None:
    """Hook the actions on queues; once per process."""
    _install_dlqs()

    @around(sqs._HANDLERS, "CreateQueue")
    def create_queue(inner: Any, data: Parameters, url: str) -> Any:
        name, attributes = str(data.get("QueueName") or ""), data.get("Attributes") or {}
        is_fifo = attributes.get("FifoQueue") == "true"
        if not is_fifo and name and not STANDARD_NAME.fullmatch(name):
            only = "Can only include alphanumeric characters, hyphens, or underscores."
            raise sqs._Err("InvalidParameterValueException", f"{only} 1 to 80 in length")
        arn = f"arn:aws:sqs:{get_region()}:{get_account_id()}:{name}"
        _refuse_attributes(data, arn, is_fifo=is_fifo and bool(FIFO_NAME.fullmatch(name)))
        is_new = sqs._queue_by_arn(arn) is None
        answer = inner(data, url)
        if is_new:  # SQS's own keys encrypt what nobody said anything about
            made = sqs._get_q(answer["QueueUrl"])["attributes"]
            by_sqs = "false" if made.get("KmsMasterKeyId") else "true"
            made.setdefault("SqsManagedSseEnabled", by_sqs)
        return answer

    @around(sqs._HANDLERS, "SetQueueAttributes")
    def set_queue_attributes(inner: Any, data: Parameters, url: str) -> Any:
        queue = sqs._get_q(data.get("QueueUrl") or url, "sqs:SetQueueAttributes")
        current, asked = queue["attributes"], data.get("Attributes") or {}
        _refuse_attributes(data, current["QueueArn"], is_fifo=queue["is_fifo"], current=current)
        answer = inner(data, url)
        if asked.get("SqsManagedSseEnabled") == "true":  # one kind of encryption ends the other
            current.pop("KmsMasterKeyId", None)
        elif asked.get("KmsMasterKeyId"):
            current["SqsManagedSseEnabled"] = "false"
        return answer


def _install_dlqs() -> None:
    sqs._HANDLERS["ListDeadLetterSourceQueues"] = list_dead_letter_source_queues
    sqs._HANDLERS["ListMessageMoveTasks"] = list_message_move_tasks

    @around(sqs, "_dlq_sweep")
    def move_dead(inner: Any, queue: Queue) -> None:
        """A FIFO queue's DLQ message gets its own id as its deduplication id, and a new time."""
        dead = sqs._queue_by_arn(dlq_arn(queue["attributes"].get("RedrivePolicy")))
        before = len(dead["messages"]) if dead else 0
        with sqs._queues_lock, _without_locked_groups(queue):
            inner(queue)
        for message in dead["messages"][before:] if dead and dead["is_fifo"] else ():
            dead["fifo_seq"] += 1
            message["seq"] = str(dead["fifo_seq"]).zfill(20)
            message["dedup_id"] = message["id"]
            message["sys"]["SentTimestamp"] = str(int(message["enqueued_at"] * 1000))

    @around(iam_actions, "extract_resource_arn")
    def extract(inner: Any, service: str, *rest: Any) -> Any:
        """Name the queue of a move task to IAM by the ARN."""
        _method, _path, _headers, body, *_ = rest
        source = iam_actions._param(body, {}, "SourceArn") if service == "sqs" else ""
        return source or inner(service, *rest)


@contextmanager
def _without_locked_groups(queue: Queue) -> Iterator[None]:
    """Keep the messages of locked FIFO groups out of the queue meanwhile, and in their place after.

    A group is locked while one of its messages is in flight: SQS returns no other of it, and so
    moves none to the DLQ. The messages behind a failing one never overtake it on their way there.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
    """
    if not queue["is_fifo"]:
        yield
        return
    messages, now = queue["messages"], time.time()
    locked_groups = {
        message.get("group_id")
        for message in messages
        if message.get("receive_count") and message["visible_at"] > now
    }
    locked_ids = {message["id"] for message in messages if message.get("group_id") in locked_groups}
    queue["messages"] = [message for message in messages if message["id"] not in locked_ids]
    try:
        yield
    finally:
        staying_ids = {message["id"] for message in queue["messages"]} | locked_ids
        queue["messages"] = [message for message in messages if message["id"] in staying_ids]


def _refuse_attributes(
    data: Parameters, arn: str, *, is_fifo: bool, current: Mapping[str, str] | None = None
) -> None:
    """Refuse attributes as a whole, and change nothing; no `current` is a queue to be created."""
    asked = {name: str(value) for name, value in (data.get("Attributes") or {}).items()}
    for name, value in asked.items():
        _refuse_name(name, value, is_fifo=is_fifo, is_new=current is None)
        is_text = name in DOCUMENTS and value and not _object(value)
        if is_text or value not in CHOICES.get(name, (value,)):
            raise _invalid_attribute(name)
    after = {**(current or {}), **asked}
    per_group = after.get("FifoThroughputLimit") == "perMessageGroupId"
    if per_group and after.get("DeduplicationScope") != "messageGroup":
        only = "perMessageGroupId is allowed only when the value for DeduplicationScope is"
        raise _invalid_attribute("FifoThroughputLimit", f" Reason: {only} messageGroup.")
    for name, reason in (
        ("RedrivePolicy", _misfit(asked.get("RedrivePolicy", ""), arn, is_fifo)),
        ("RedriveAllowPolicy", _contradiction(asked.get("RedriveAllowPolicy", ""))),
    ):
        if reason:
            raise invalid_parameter(asked[name], name, reason)


def _refuse_name(name: str, value: str, *, is_fifo: bool, is_new: bool) -> None:
    unknown = sqs._Err("InvalidAttributeName", f"Unknown Attribute {name}.")  # (recorded)
    if name not in SETTABLE or (name == "ContentBasedDeduplication" and not is_fifo):
        raise unknown
    if name == "FifoQueue" and (value != "true" or not (is_fifo or is_new)):
        change = _invalid_attribute(name, " Reason: Modifying queue type is not supported.")
        raise change if is_fifo else unknown  # (both recorded)
    if name in ("DeduplicationScope", "FifoThroughputLimit") and not is_fifo:
        message = f"You can specify the {name} only when FifoQueue is set to true."  # (recorded)
        raise sqs._Err("InvalidAttributeName", message)


def _invalid_attribute(name: str, reason: str = "") -> Exception:
    said = f"Invalid value for the parameter {name}.{reason}"
    error: Exception = sqs._Err("InvalidAttributeValue", said)
    return error


def _object(value: object) -> Mapping[str, Any]:
    """The JSON object of a policy, an empty one for any other text.

    CloudFormation leaves an object where the API leaves its text.
    """
    if isinstance(value, Mapping):
        return value
    try:
        content = json.loads(str(value or ""))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def dlq_arn(policy: object) -> str:
    """The queue that a RedrivePolicy names, or empty text."""
    return str(_object(policy).get("deadLetterTargetArn", ""))


def _misfit(policy: str, source_arn: str, is_fifo: bool) -> str:
    """Tell why a source may not name this DLQ; MiniStack itself refuses a wrong shape.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
    """
    if not (arn := dlq_arn(policy)):
        return ""
    if (dead := sqs._queue_by_arn(arn)) is None:
        return "DLQ message target does not exist."
    if dead["is_fifo"] != is_fifo:
        return "DLQ message target must be of the same type, FIFO or standard, as the source."
    allows = _object(dead["attributes"].get("RedriveAllowPolicy"))
    permission = allows.get("redrivePermission", "allowAll")
    named = permission == "byQueue" and source_arn in allows.get("sourceQueueArns", ())
    if permission == "allowAll" or named:
        return ""
    return "DLQ message target does not allow the source queue in its redrive allow policy."


def _contradiction(policy: str) -> str:
    """Tell why a RedriveAllowPolicy is none."""
    content = _object(policy)
    permission, sources = content.get("redrivePermission"), content.get("sourceQueueArns") or []
    fitting = {"allowAll": (0, 0), "denyAll": (0, 0), "byQueue": (1, MOST_ALLOWED_SOURCES)}
    least, most = fitting.get(str(permission), (1, 0))
    if not policy or least <= len(sources) <= most:
        return ""
    return f"It is allowAll, denyAll, or byQueue with 1 to {MOST_ALLOWED_SOURCES} sourceQueueArns."


def list_dead_letter_source_queues(data: Parameters, url: str) -> dict[str, Any]:
    """ListDeadLetterSourceQueues, on one page."""
    queue = sqs._get_q(data.get("QueueUrl") or url, "sqs:ListDeadLetterSourceQueues")
    arn, queues = queue["attributes"]["QueueArn"], list(sqs._queues.items())
    sources = [u for u, q in queues if dlq_arn(q["attributes"].get("RedrivePolicy")) == arn]
    return {"queueUrls": [sqs._externalize_url(each) for each in sorted(sources)]}


def list_message_move_tasks(data: Parameters, _url: str) -> dict[str, Any]:
    """ListMessageMoveTasks of an account in which nobody starts any."""
    queue = sqs._queue_by_arn(str(data.get("SourceArn") or ""))
    if queue is None:  # (recorded)
        said = "The resource that you specified for the SourceArn parameter doesn't exist."
        raise sqs._Err("ResourceNotFoundException", said, 404)
    sqs._get_q(queue["url"], "sqs:ListMessageMoveTasks")
    return {"Results": []}

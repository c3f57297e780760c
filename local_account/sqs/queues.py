"""Actions on queues: refuse names and attributes that SQS refuses, and handle DLQs as SQS does.

MiniStack itself accepts such names and attributes. Error messages marked (recorded) were seen from
the real SQS. The other messages are written in the same style. The error codes are those that the
API reference documents for SetQueueAttributes and CreateQueue.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ministack.core import iam_actions
from ministack.core.responses import get_account_id, get_region
from ministack.services import sqs

from local_account.hooks import replace_functions
from local_account.sqs.counting import RECEIVES_BEFORE_MARK
from mendq.model.queue import parse_redrive_policy

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
Message = dict[str, Any]
# Attributes that take only certain values.
ALLOWED_VALUES: Mapping[str, tuple[str, ...]] = {
    "ContentBasedDeduplication": ("true", "false"),
    "DeduplicationScope": ("messageGroup", "queue"),
    "FifoQueue": ("true", "false"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
    "SqsManagedSseEnabled": ("true", "false"),
}
# Attributes whose value is a JSON object.
JSON_ATTRIBUTES = ("Policy", "RedriveAllowPolicy", "RedrivePolicy")
SETTABLE_ATTRIBUTES = {
    "DelaySeconds",
    "KmsDataKeyReusePeriodSeconds",
    "KmsMasterKeyId",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "VisibilityTimeout",
    *JSON_ATTRIBUTES,
    *ALLOWED_VALUES,
}
STANDARD_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,80}")
FIFO_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo")
MAXIMUM_ALLOWED_SOURCES = 10


def make_invalid_parameter_error(value: object, parameter: str, reason: str) -> Exception:
    """Return SQS's error InvalidParameterValue. Its message has the value, parameter and reason."""
    message = f"Value {value} for parameter {parameter} is invalid. Reason: {reason}"
    error: Exception = sqs._Err("InvalidParameterValueException", message)
    return error


def install() -> None:
    """Make MiniStack handle queues, attributes and DLQs as SQS does. Call this once per process."""
    _install_dlqs()

    @replace_functions(sqs._HANDLERS, "CreateQueue")
    def create_queue(original_function: Any, parameters: Parameters, url: str) -> Any:
        name = str(parameters.get("QueueName") or "")
        attributes = parameters.get("Attributes") or {}
        is_fifo = attributes.get("FifoQueue") == "true"
        if not is_fifo and name and not STANDARD_NAME_PATTERN.fullmatch(name):
            name_rule_text = "Can only include alphanumeric characters, hyphens, or underscores."
            raise sqs._Err("InvalidParameterValueException", f"{name_rule_text} 1 to 80 in length")
        queue_arn = f"arn:aws:sqs:{get_region()}:{get_account_id()}:{name}"
        _check_attributes(
            parameters, queue_arn, is_fifo=is_fifo and bool(FIFO_NAME_PATTERN.fullmatch(name))
        )
        is_new_queue = sqs._queue_by_arn(queue_arn) is None
        response = original_function(parameters, url)
        if is_new_queue:
            # SQS encrypts with its own keys unless the caller chose another encryption.
            stored_attributes = sqs._get_q(response["QueueUrl"])["attributes"]
            sqs_encryption_value = "false" if stored_attributes.get("KmsMasterKeyId") else "true"
            stored_attributes.setdefault("SqsManagedSseEnabled", sqs_encryption_value)
        return response

    @replace_functions(sqs._HANDLERS, "SetQueueAttributes")
    def set_queue_attributes(original_function: Any, parameters: Parameters, url: str) -> Any:
        queue = sqs._get_q(parameters.get("QueueUrl") or url, "sqs:SetQueueAttributes")
        current_attributes = queue["attributes"]
        requested_attributes = parameters.get("Attributes") or {}
        _check_attributes(
            parameters,
            current_attributes["QueueArn"],
            is_fifo=queue["is_fifo"],
            current_attributes=current_attributes,
        )
        response = original_function(parameters, url)
        # A queue has one kind of encryption: switching one on switches the other off.
        if requested_attributes.get("SqsManagedSseEnabled") == "true":
            current_attributes.pop("KmsMasterKeyId", None)
        elif requested_attributes.get("KmsMasterKeyId"):
            current_attributes["SqsManagedSseEnabled"] = "false"
        return response


def _install_dlqs() -> None:
    """Make MiniStack list DLQs' sources, and move messages to DLQs, as SQS does."""
    sqs._HANDLERS["ListDeadLetterSourceQueues"] = list_dead_letter_source_queues

    @replace_functions(sqs, "_dlq_sweep")
    def move_to_dlq(original_function: Any, queue: Queue) -> None:
        """Move messages to the DLQ as SQS does.

        A message moves if it was received from this queue as often as the RedrivePolicy says;
        receives from a queue that it was in before do not count. So a message does not wander
        between two queues that are each other's DLQ without being received.

        A message that moves to a FIFO DLQ gets a new sequence number and a new sent time. Its
        message id becomes its deduplication id.
        """
        policy_text = json.dumps(_parse_policy(queue["attributes"].get("RedrivePolicy")))
        redrive_policy = parse_redrive_policy(policy_text)
        dlq = sqs._queue_by_arn(redrive_policy.dlq_arn) if redrive_policy else None
        if redrive_policy is None or dlq is None or dlq is queue:
            return
        with sqs._queues_lock:
            moving_ids, staying_ids = _divide_failing_messages(
                queue, redrive_policy.max_receive_count
            )
            if not moving_ids:
                return
            dlq_length_before = len(dlq["messages"])
            with _hide_messages(queue, staying_ids):
                original_function(queue)
            _complete_moves(queue, dlq, dlq["messages"][dlq_length_before:])

    @replace_functions(iam_actions, "extract_resource_arn")
    def extract_queue_arn(original_function: Any, service: str, *other_arguments: Any) -> Any:
        """Return the ARN of the resource that a call is about.

        SQS's calls about message move tasks name the queue by its ARN, in SourceArn or in the
        task's handle. MiniStack itself finds the resource of all other calls.
        """
        _method, _path, _headers, body, *_ = other_arguments
        source_arn = iam_actions._param(body, {}, "SourceArn") if service == "sqs" else ""
        if service == "sqs" and not source_arn:
            source_arn = _read_source_arn(iam_actions._param(body, {}, "TaskHandle"))
        return source_arn or original_function(service, *other_arguments)


def _read_source_arn(task_handle: object) -> str:
    """Return the ARN of the DLQ in a move task's handle; empty if the handle is invalid."""
    try:
        return str(json.loads(base64.b64decode(str(task_handle or "")))["sourceArn"])
    except (ValueError, LookupError, TypeError):
        return ""


def count_receives(message: Message) -> int:
    """Return how often a message was received from the queue that it is in now."""
    return int(message["receive_count"]) - int(message.get(RECEIVES_BEFORE_MARK, 0))


def _complete_moves(source: Queue, dlq: Queue, moved_messages: list[Message]) -> None:
    """Give messages what SQS changes when it moves them to a DLQ."""
    for message in moved_messages:
        message["sys"]["DeadLetterQueueSourceArn"] = source["attributes"]["QueueArn"]
        message[RECEIVES_BEFORE_MARK] = message["receive_count"]
        if dlq["is_fifo"]:
            dlq["fifo_seq"] += 1
            message["seq"] = str(dlq["fifo_seq"]).zfill(20)
            message["dedup_id"] = message["id"]
            message["sys"]["SentTimestamp"] = str(int(message["enqueued_at"] * 1000))


def _divide_failing_messages(queue: Queue, max_receive_count: int) -> tuple[set[str], set[str]]:
    """Return the ids of the messages that may move to the DLQ, and of those that stay.

    Only messages with `max_receive_count` receives in all are looked at. A message stays if it was
    received less often from this queue, or if its message group is locked. In a FIFO queue, a
    message group is locked while one of its messages is in flight: SQS neither returns another
    message of the group nor moves one to the DLQ. So no message overtakes a failing message of its
    group.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
    """
    failing_messages = [
        message
        for message in queue["messages"]
        if message.get("receive_count", 0) >= max_receive_count
    ]
    locked_group_ids = find_locked_group_ids(queue) if failing_messages else set()
    staying_ids = {
        message["id"]
        for message in failing_messages
        if count_receives(message) < max_receive_count
        or message.get("group_id") in locked_group_ids
    }
    return {message["id"] for message in failing_messages} - staying_ids, staying_ids


def find_locked_group_ids(queue: Queue) -> set[str]:
    """Return the message groups of a FIFO queue that have a message in flight."""
    now = time.time()
    return {
        message["group_id"]
        for message in queue["messages"]
        if queue["is_fifo"] and message.get("receive_count") and message["visible_at"] > now
    }


@contextmanager
def _hide_messages(queue: Queue, hidden_ids: set[str]) -> Iterator[None]:
    """Hide messages inside the block, and restore them afterwards at their places."""
    messages = queue["messages"]
    queue["messages"] = [message for message in messages if message["id"] not in hidden_ids]
    try:
        yield
    finally:
        remaining_ids = {message["id"] for message in queue["messages"]} | hidden_ids
        queue["messages"] = [message for message in messages if message["id"] in remaining_ids]


def _check_attributes(
    parameters: Parameters,
    queue_arn: str,
    *,
    is_fifo: bool,
    current_attributes: Mapping[str, str] | None = None,
) -> None:
    """Raise SQS's error if one of a call's attributes is invalid.

    Args:
        parameters: Parameters of CreateQueue or SetQueueAttributes.
        queue_arn: ARN of the queue.
        is_fifo: True if the queue is or becomes a FIFO queue.
        current_attributes: The queue's attributes; None if the call creates the queue.
    """
    requested_attributes = {
        name: str(value) for name, value in (parameters.get("Attributes") or {}).items()
    }
    for name, value in requested_attributes.items():
        _check_attribute_name(name, value, is_fifo=is_fifo, is_new_queue=current_attributes is None)
        is_invalid_json = name in JSON_ATTRIBUTES and value and not _parse_policy(value)
        if is_invalid_json or value not in ALLOWED_VALUES.get(name, (value,)):
            raise _make_invalid_attribute_error(name)
    attributes_after = {**(current_attributes or {}), **requested_attributes}
    is_throughput_per_group = attributes_after.get("FifoThroughputLimit") == "perMessageGroupId"
    if is_throughput_per_group and attributes_after.get("DeduplicationScope") != "messageGroup":
        throughput_condition = (
            "perMessageGroupId is allowed only when the value for DeduplicationScope is"
        )
        raise _make_invalid_attribute_error(
            "FifoThroughputLimit", f" Reason: {throughput_condition} messageGroup."
        )
    redrive_policy_fault = _find_redrive_fault(
        requested_attributes.get("RedrivePolicy", ""), queue_arn, is_fifo
    )
    if redrive_policy_fault:
        raise make_invalid_parameter_error(
            requested_attributes["RedrivePolicy"], "RedrivePolicy", redrive_policy_fault
        )
    redrive_allow_policy_fault = _find_redrive_allow_fault(
        requested_attributes.get("RedriveAllowPolicy", "")
    )
    if redrive_allow_policy_fault:
        raise make_invalid_parameter_error(
            requested_attributes["RedriveAllowPolicy"],
            "RedriveAllowPolicy",
            redrive_allow_policy_fault,
        )


def _check_attribute_name(name: str, value: str, *, is_fifo: bool, is_new_queue: bool) -> None:
    """Raise SQS's error if this queue cannot have the attribute, or cannot change `FifoQueue`."""
    # (recorded)
    unknown_attribute_error = sqs._Err("InvalidAttributeName", f"Unknown Attribute {name}.")
    if name not in SETTABLE_ATTRIBUTES or (name == "ContentBasedDeduplication" and not is_fifo):
        raise unknown_attribute_error
    if name == "FifoQueue" and (value != "true" or not (is_fifo or is_new_queue)):
        if not is_fifo:
            raise unknown_attribute_error  # (recorded)
        reason = " Reason: Modifying queue type is not supported."  # (recorded)
        raise _make_invalid_attribute_error(name, reason)
    if name in ("DeduplicationScope", "FifoThroughputLimit") and not is_fifo:
        message = f"You can specify the {name} only when FifoQueue is set to true."  # (recorded)
        raise sqs._Err("InvalidAttributeName", message)


def _make_invalid_attribute_error(name: str, reason: str = "") -> Exception:
    message = f"Invalid value for the parameter {name}.{reason}"
    error: Exception = sqs._Err("InvalidAttributeValue", message)
    return error


def _parse_policy(value: object) -> Mapping[str, Any]:
    """Return a policy as an object; an empty object if `value` is not a JSON object.

    CloudFormation stores a policy as an object, the API as a JSON text.
    """
    if isinstance(value, Mapping):
        return value
    try:
        document = json.loads(str(value or ""))
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def read_dlq_arn(policy: object) -> str:
    """Return the ARN of the DLQ that a RedrivePolicy names; empty if it names none."""
    return str(_parse_policy(policy).get("deadLetterTargetArn", ""))


def _find_redrive_fault(policy: str, source_arn: str, is_fifo: bool) -> str:
    """Return why the source queue cannot use the DLQ of this RedrivePolicy; empty if it can.

    Also empty if the policy names no DLQ. MiniStack itself refuses a policy with wrong fields.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
    """
    if not (dlq_arn := read_dlq_arn(policy)):
        return ""
    dlq = sqs._queue_by_arn(dlq_arn)
    if dlq is None:
        return "DLQ message target does not exist."
    if dlq["is_fifo"] != is_fifo:
        return "DLQ message target must be of the same type, FIFO or standard, as the source."
    allow_policy = _parse_policy(dlq["attributes"].get("RedriveAllowPolicy"))
    redrive_permission = allow_policy.get("redrivePermission", "allowAll")
    if redrive_permission == "allowAll":
        return ""
    if redrive_permission == "byQueue" and source_arn in allow_policy.get("sourceQueueArns", ()):
        return ""
    return "DLQ message target does not allow the source queue in its redrive allow policy."


def _find_redrive_allow_fault(policy: str) -> str:
    """Return why a RedriveAllowPolicy is invalid; empty if it is valid or there is none."""
    if not policy:
        return ""
    allow_policy = _parse_policy(policy)
    redrive_permission = allow_policy.get("redrivePermission")
    source_arns = allow_policy.get("sourceQueueArns") or []
    if redrive_permission in ("allowAll", "denyAll") and not source_arns:
        return ""
    if redrive_permission == "byQueue" and 1 <= len(source_arns) <= MAXIMUM_ALLOWED_SOURCES:
        return ""
    return (
        f"It is allowAll, denyAll, or byQueue with 1 to {MAXIMUM_ALLOWED_SOURCES} sourceQueueArns."
    )


def list_dead_letter_source_queues(parameters: Parameters, url: str) -> dict[str, Any]:
    """Return the response to ListDeadLetterSourceQueues: all source queues, on one page."""
    dlq = sqs._get_q(parameters.get("QueueUrl") or url, "sqs:ListDeadLetterSourceQueues")
    dlq_arn = dlq["attributes"]["QueueArn"]
    source_urls = [
        queue_url
        for queue_url, queue in list(sqs._queues.items())
        if read_dlq_arn(queue["attributes"].get("RedrivePolicy")) == dlq_arn
    ]
    return {"queueUrls": [sqs._externalize_url(source_url) for source_url in sorted(source_urls)]}

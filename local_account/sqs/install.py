"""Putting AWS's behaviour into MiniStack's SQS: queues, names of errors, locks, DLQ messages."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ministack.core import iam_evaluator
from ministack.core.responses import get_account_id, get_region
from ministack.services import sqs

from local_account.hooks import around
from local_account.sqs import denials, messages, move_tasks
from local_account.sqs.attributes import DlqFacts, Target, dlq_arn, refusal_of
from local_account.sqs.counting import Counting
from local_account.sqs.error_switch import DELETING, KINDS, RECEIVE, SENDING, ErrorSwitch, Moment
from local_account.sqs.messages import raised

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
STANDARD_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
FIFO_NAME = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo")
MOST_SOURCES = 1_000
REUSE_AFTER_SECONDS = 60.0
# MiniStack's name of an error -> the name in the JSON protocol of AWS.
_JSON_NAMES = {
    "AccessDenied": "AccessDeniedException",
    "InvalidParameterValue": "InvalidParameterValueException",
    "MissingParameter": "MissingRequiredParameterException",
}
# How MiniStack's words end -> how those end that AWS was recorded to use.
_TAILS = {
    " does not exist for this wsdl version.": " does not exist.",
    " explicitly.": " explicitly",
}


@dataclass(frozen=True)
class SqsMemory:
    """What SQS remembers beside its queues, from the account's start on."""

    deleted_at: dict[str, float] = field(default_factory=dict)
    errors: ErrorSwitch = field(default_factory=ErrorSwitch)
    counting: Counting = field(default_factory=Counting)


def install(memory: SqsMemory) -> None:
    """Hook everything; once per process."""
    sqs._queues_lock = threading.RLock()  # held around what is held already
    _word_errors()
    denials.install()
    messages.install()
    _refuse_new(memory)
    _refuse_changes()
    _tell_of_dlq()
    move_tasks.install()

    @around(sqs._HANDLERS, "SendMessage", "SendMessageBatch", "PurgeQueue")
    @around(sqs, "_expire_retained", "_dlq_sweep")
    def locked(inner: Any, *given: Any) -> Any:
        """A mapping's poller replaces a queue's list of messages: nothing is added meanwhile."""
        with sqs._queues_lock:
            return inner(*given)

    memory.counting.install()
    _switch_errors(memory.errors)


def _word_errors() -> None:
    sqs._QUERY_COMPAT_CODES.update({name: code for code, name in _JSON_NAMES.items()})

    @around(sqs, "_json_err_resp")
    def in_json(inner: Any, code: str, message: str, status: int = 400) -> Any:
        for tail, recorded in _TAILS.items():
            if message.endswith(tail):
                message = message.removesuffix(tail) + recorded
        return inner(_JSON_NAMES.get(code, code), message, status)


def _refuse_new(memory: SqsMemory) -> None:
    """Have CreateQueue refuse what AWS refuses, a name that was deleted a moment ago among it."""

    @around(sqs._HANDLERS, "CreateQueue")
    def create_queue(inner: Any, data: Parameters, url: str) -> Any:
        name, attributes = str(data.get("QueueName") or ""), data.get("Attributes") or {}
        is_fifo = attributes.get("FifoQueue") == "true"
        if not is_fifo and name and not STANDARD_NAME.fullmatch(name):
            only = "Can only include alphanumeric characters, hyphens, or underscores."
            raise sqs._Err("InvalidParameterValueException", f"{only} 1 to 80 in length")
        arn = f"arn:aws:sqs:{get_region()}:{get_account_id()}:{name}"
        target = Target(arn, is_fifo=is_fifo and bool(FIFO_NAME.fullmatch(name)), is_new=True)
        _refuse_attributes(data, target)
        is_new = sqs._queue_by_arn(arn) is None
        deleted_at = memory.deleted_at.get(arn, -math.inf)
        if is_new and time.monotonic() - deleted_at < REUSE_AFTER_SECONDS:
            raise sqs._Err(
                "QueueDeletedRecently",
                f"You must wait {REUSE_AFTER_SECONDS:.0f} seconds after deleting a queue before "
                "you can create another with the same name.",
            )
        answer = inner(data, url)
        if is_new:  # SQS's own keys encrypt what nobody said anything about
            made = sqs._get_q(answer["QueueUrl"])["attributes"]
            by_sqs = "false" if made.get("KmsMasterKeyId") else "true"
            made.setdefault("SqsManagedSseEnabled", by_sqs)
        return answer

    @around(sqs._HANDLERS, "DeleteQueue")
    def delete_queue(inner: Any, data: Parameters, url: str) -> Any:
        arn = sqs._get_q(data.get("QueueUrl") or url)["attributes"]["QueueArn"]
        answer = inner(data, url)
        memory.deleted_at[arn] = time.monotonic()
        return answer


def _refuse_changes() -> None:
    """Have SetQueueAttributes refuse what AWS refuses, before anything changes."""

    @around(sqs._HANDLERS, "SetQueueAttributes")
    def set_queue_attributes(inner: Any, data: Parameters, url: str) -> Any:
        queue = sqs._get_q(data.get("QueueUrl") or url, "sqs:SetQueueAttributes")
        current = queue["attributes"]
        _refuse_attributes(data, Target(current["QueueArn"], queue["is_fifo"], False, current))
        answer, asked = inner(data, url), data.get("Attributes") or {}
        if asked.get("SqsManagedSseEnabled") == "true":  # one kind of encryption ends the other
            current.pop("KmsMasterKeyId", None)
        elif asked.get("KmsMasterKeyId"):
            current["SqsManagedSseEnabled"] = "false"
        return answer


def _refuse_attributes(data: Parameters, target: Target) -> None:
    asked = {name: str(value) for name, value in (data.get("Attributes") or {}).items()}
    if refusal := refusal_of(asked, target, _find_dlq):
        raise raised(refusal)


def _find_dlq(arn: str) -> DlqFacts | None:
    queue = sqs._queue_by_arn(arn)
    if queue is None:
        return None
    policy = queue["attributes"].get("RedriveAllowPolicy", "")
    # CloudFormation may leave an object where the API leaves its text.
    return DlqFacts(queue["is_fifo"], policy if isinstance(policy, str) else json.dumps(policy))


def _tell_of_dlq() -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html"""
    sqs._HANDLERS["ListDeadLetterSourceQueues"] = list_dead_letter_source_queues

    @around(sqs, "_dlq_sweep")
    def move_dead(inner: Any, queue: Queue) -> None:
        """A FIFO queue's DLQ message gets its own id as its deduplication id, and a new time."""
        dead = sqs._queue_by_arn(dlq_arn(queue["attributes"].get("RedrivePolicy")))
        before = len(dead["messages"]) if dead else 0
        inner(queue)
        for message in dead["messages"][before:] if dead and dead["is_fifo"] else ():
            dead["fifo_seq"] += 1
            message["seq"] = str(dead["fifo_seq"]).zfill(20)
            message["dedup_id"] = message["id"]
            message["sys"]["SentTimestamp"] = str(int(message["enqueued_at"] * 1000))


def list_dead_letter_source_queues(data: Parameters, url: str) -> dict[str, Any]:
    """ListDeadLetterSourceQueues; pages only where MaxResults is given, as on AWS."""
    queue = sqs._get_q(data.get("QueueUrl") or url, "sqs:ListDeadLetterSourceQueues")
    begin, most = int(data.get("NextToken") or 0), data.get("MaxResults")
    arn = queue["attributes"]["QueueArn"]
    sources = sorted(
        url
        for url, each in list(sqs._queues.items())
        if dlq_arn(each["attributes"].get("RedrivePolicy")) == arn
    )
    end = begin + int(most or MOST_SOURCES)
    more = {"NextToken": str(end)} if most and end < len(sources) else {}
    return {"queueUrls": [sqs._externalize_url(each) for each in sources[begin:end]], **more}


def _switch_errors(switch: ErrorSwitch) -> None:
    """Have the calls fail that are switched to, after everything else is hooked."""
    sqs._QUERY_COMPAT_CODES.update({name: kind.query_code for name, kind in KINDS.items()})

    def switched(action: str) -> None:
        @around(sqs._HANDLERS, action)
        def handle(inner: Any, data: Parameters, url: str) -> Any:
            if switch.errors and (error := switch.error_of(moment := _moment(action, data, url))):
                kind = KINDS[error]
                raise sqs._Err(error, kind.text.format(moment), kind.status)
            return inner(data, url)

    for action in SENDING | DELETING | {RECEIVE}:
        switched(action)


def _moment(action: str, data: Parameters, url: str) -> Moment:
    """Raises as the call itself does where the queue is not there or its policy refuses."""
    queue = sqs._get_q(data.get("QueueUrl") or url, f"sqs:{action.removesuffix('Batch')}")
    waits = data.get("WaitTimeSeconds")
    return Moment(
        action=action,
        queue_arn=queue["attributes"]["QueueArn"],
        is_fifo=queue["is_fifo"],
        attributes=queue["attributes"],
        wait_seconds=None if waits is None else int(waits),
        caller_arn=iam_evaluator.caller_arn(),
    )

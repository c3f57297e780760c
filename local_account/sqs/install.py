"""Putting AWS's behaviour into MiniStack's SQS."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ministack.services import sqs

from local_account.sqs import (
    dead_letter_handlers,
    denials,
    move_tasks_handlers,
    move_tasks_permissions,
    sending,
    switched_handlers,
)
from local_account.sqs import message_handlers as messages
from local_account.sqs.counting import Counting
from local_account.sqs.memory import SqsMemory
from local_account.sqs.move_tasks_mover import Mover
from local_account.sqs.queue_handlers import (
    noting_delete_queue,
    refusing_create_queue,
    refusing_set_queue_attributes,
)
from local_account.sqs.receipt_book import note

Parameters = Mapping[str, Any]
Respond = Callable[[str, str, int], tuple[Any, ...]]
# MiniStack's name of an error -> the name in the JSON protocol of AWS.
_JSON_NAMES = {
    "AccessDenied": "AccessDeniedException",
    "InvalidParameterValue": "InvalidParameterValueException",
    "MissingParameter": "MissingRequiredParameterException",
}
# MiniStack's words -> those that AWS was recorded to use.
_JSON_WORDS = {
    "The specified queue does not exist for this wsdl version.": (
        "The specified queue does not exist."
    ),
}
_WORDS = {
    "The queue should either have ContentBasedDeduplication enabled or "
    "MessageDeduplicationId provided explicitly.": (
        "The queue should either have ContentBasedDeduplication enabled or "
        "MessageDeduplicationId provided explicitly"
    ),
}
MOST_ENTRIES = 10


def install(memory: SqsMemory, counting: Counting) -> None:
    """Hook everything; once per process."""
    denials.install()
    move_tasks_permissions.install()
    dead_letter_handlers.install()
    move_tasks_handlers.install(Mover())
    sending.install()
    sqs._queues_lock = threading.RLock()  # held around what is held already
    sqs._QUERY_COMPAT_CODES.update({name: code for code, name in _JSON_NAMES.items()})
    sqs._json_err_resp = _reworded(sqs._json_err_resp, _JSON_NAMES, {**_WORDS, **_JSON_WORDS})
    sqs._xml_err_resp = _reworded(sqs._xml_err_resp, {}, _WORDS)
    sqs._collect_msgs = _noting(sqs._collect_msgs)
    sqs._validate_batch_entries = _counting(sqs._validate_batch_entries)
    sqs._HANDLERS.update(
        CreateQueue=refusing_create_queue(sqs._HANDLERS["CreateQueue"], memory.deleted_names),
        DeleteQueue=noting_delete_queue(sqs._HANDLERS["DeleteQueue"], memory.deleted_names),
        SetQueueAttributes=refusing_set_queue_attributes(sqs._HANDLERS["SetQueueAttributes"]),
        ReceiveMessage=_refusing_receive(sqs._HANDLERS["ReceiveMessage"]),
        DeleteMessage=messages.delete_message,
        DeleteMessageBatch=messages.delete_message_batch,
        ChangeMessageVisibility=messages.change_message_visibility,
        ChangeMessageVisibilityBatch=messages.change_message_visibility_batch,
    )
    for name in ("SendMessage", "SendMessageBatch", "PurgeQueue"):
        sqs._HANDLERS[name] = _locked(sqs._HANDLERS[name])
    sqs._expire_retained = _locked(sqs._expire_retained)
    sqs._dlq_sweep = _locked(sqs._dlq_sweep)
    counting.install()
    switched_handlers.install(memory.errors)


def _reworded(respond: Respond, names: Mapping[str, str], words: Mapping[str, str]) -> Respond:
    def responding(code: str, message: str, status: int = 400) -> tuple[Any, ...]:
        return respond(names.get(code, code), words.get(message, message), status)

    return responding


def _noting(collect: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    def collecting(queue: dict[str, Any], most: int, hidden_seconds: int) -> list[Any]:
        with sqs._queues_lock:
            received = collect(queue, most, hidden_seconds)
            note(queue, received)
        return received

    return collecting


def _counting(validate: Callable[[list[Any], str], None]) -> Callable[[list[Any], str], None]:
    def validating(entries: list[Any], entry_name: str) -> None:
        if len(entries) > MOST_ENTRIES:
            raise sqs._Err(  # (recorded)
                "TooManyEntriesInBatchRequest",
                f"Maximum number of entries per request are {MOST_ENTRIES}. "
                f"You have sent {len(entries)}.",
            )
        validate(entries, entry_name)

    return validating


def _refusing_receive(
    receive: Callable[[Parameters, str], Awaitable[dict[str, Any]]],
) -> Callable[[Parameters, str], Awaitable[dict[str, Any]]]:
    async def receiving(data: Parameters, url: str) -> dict[str, Any]:
        if refusal := messages.receive_refusal(data):
            raise messages.raised(refusal)
        return await receive(data, url)

    return receiving


def _locked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A mapping's poller replaces a queue's list of messages: nothing may be added meanwhile."""

    def locking(*arguments: Any) -> Any:
        with sqs._queues_lock:
            return function(*arguments)

    return locking

"""Refuse calls about messages if the KMS key cannot be used, or the caller may not use it.

Nothing is encrypted here. The rules come from AWS's pages below:

1. A message keeps the key that its queue had when the message arrived, even if the queue gets
   another key or none, or if the message moves to a DLQ.
2. Sending needs kms:GenerateDataKey and kms:Decrypt on the queue's key. (SQS's document history of
   2024-07-24 says that senders no longer need kms:Decrypt; its page still asks for it.)
3. Receiving needs kms:Decrypt on the key of each message.
4. The caller needs these permissions. For an event source mapping, the caller is the function's
   role. For a delivery by EventBridge, SNS or S3, it is the service, which only the key's policy
   can admit. The key `alias/aws/sqs` admits all principals of its account, and no others.

Four things are assumed, because AWS does not document them:

- A receive that finds no message needs no key.
- A receive that would return a message with an unusable key fails as a whole.
- Such a failed receive changes no receive count.
- If KMS refuses a key, calls fail at once, although SQS may use a data key for up to
  KmsDataKeyReusePeriodSeconds without asking KMS.

Grants (CreateGrant) have no effect here. The error texts are KMS's own, without the KMS request id
that SQS adds.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-server-side-encryption.html
https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import ministack.app
from ministack.core import iam_evaluator, router
from ministack.core.responses import get_account_id, request_scope
from ministack.services import iam, kms, s3, sns, sqs

from local_account.hooks import replace_functions
from local_account.permissions import (
    ResourceCall,
    find_account_of_access_key,
    is_allowed,
    make_call_context,
)

Queue = dict[str, Any]
Message = dict[str, Any]
KeyRecord = Mapping[str, Any]
AWS_MANAGED_KEY = "alias/aws/sqs"
DECRYPT_ACTION = "kms:Decrypt"
SEND_ACTIONS = ("kms:GenerateDataKey", DECRYPT_ACTION)
RECEIVE_ACTIONS = (DECRYPT_ACTION,)
# Name in the JSON protocol -> code in the query protocol, which SDKs show.
QUERY_CODE_BY_ERROR = {
    "KmsAccessDenied": "KMS.AccessDeniedException",
    "KmsDisabled": "KMS.DisabledException",
    "KmsInvalidKeyUsage": "KMS.InvalidKeyUsageException",
    "KmsInvalidState": "KMS.InvalidStateException",
    "KmsNotFound": "KMS.NotFoundException",
}
# Key of a message under which the ARN of its KMS key is stored; the ARN is empty without a key.
_KEY_ARN_MARK = "local_account_key"
# Region, account, and the rest: key/ID or alias/NAME.
_KEY_ARN = re.compile(r"arn:[^:]+:kms:([^:]+):(\d{12}):(.+)")
# The access key that signed the current call to SQS, and the role of the mapping that polls now.
_access_key: ContextVar[str] = ContextVar("_access_key", default="")
_poller_role_arn: ContextVar[str] = ContextVar("_poller_role_arn", default="")
logger = logging.getLogger("mendq.sqs")


class KeyRefusal(NamedTuple):
    """Why KMS refuses the use of a key: SQS's error name in the JSON protocol, and the message."""

    error: str
    message: str


class ServicePrincipal(NamedTuple):
    """An AWS service that delivers a message, and the resource for which it delivers the message.

    Attributes:
        arn: The service's name, such as `events.amazonaws.com`, because services have no ARN.
        source_arn: The ARN of the rule, topic or bucket.
    """

    arn: str
    source_arn: str


class KeyUse(NamedTuple):
    """A use of a key by SQS.

    Attributes:
        key_arn: The ARN of the key; empty if there is no key.
        actions: The KMS actions that SQS needs for it.
        queue_arn: The ARN of the queue.
    """

    key_arn: str
    actions: Sequence[str]
    queue_arn: str


def install() -> None:
    """Make MiniStack refuse calls and deliveries because of KMS keys. Call this once per process.

    Call this before the `install` of other modules that replace functions of SQS, so that a refused
    receive changes nothing in them.
    """
    sqs._QUERY_COMPAT_CODES.update(QUERY_CODE_BY_ERROR)

    @replace_functions(iam_evaluator, "pin_request_caller")
    def pin_caller(
        original_function: Any, headers: dict[str, str], query_parameters: Any = None
    ) -> None:
        _access_key.set(router.extract_access_key_id(headers, query_parameters))
        original_function(headers, query_parameters)

    @replace_functions(sqs._HANDLERS, "SendMessage", "SendMessageBatch")
    def send(original_function: Any, parameters: Mapping[str, Any], url: str) -> Any:
        queue = sqs._get_q(parameters.get("QueueUrl") or url, "sqs:SendMessage")
        key_use = KeyUse(_find_key_arn(queue), SEND_ACTIONS, _get_queue_arn(queue))
        _raise_refusal(find_refusal(key_use, find_caller()))
        response = original_function(parameters, url)
        _mark_new_messages(queue)
        return response

    @replace_functions(sqs, "_collect_msgs")
    def collect_messages(original_function: Any, queue: Queue, *other_arguments: Any) -> Any:
        with sqs._queues_lock:
            _mark_new_messages(queue)
            if any(message[_KEY_ARN_MARK] for message in queue["messages"]):
                # Receive from a copy of the queue first, so that a refused call changes nothing.
                copies = [dict(message) for message in queue["messages"]]
                received = original_function({**queue, "messages": copies}, *other_arguments)
                _raise_refusal(_find_receive_refusal(queue, received))
            return original_function(queue, *other_arguments)

    @replace_functions(sns, "_deliver_to_sqs")
    def deliver_from_topic(
        original_function: Any, queue_arn: str, *arguments: Any, topic_arn: str = "", **others: Any
    ) -> None:
        service = ServicePrincipal("sns.amazonaws.com", topic_arn)
        with encrypt_delivery(queue_arn, service) as refusal:
            if refusal is None:
                original_function(queue_arn, *arguments, topic_arn=topic_arn, **others)

    @replace_functions(s3, "_deliver_event_to_sqs")
    def deliver_from_bucket(
        original_function: Any, queue_arn: str, event: Any, region: str, bucket_name: str = ""
    ) -> None:
        service = ServicePrincipal("s3.amazonaws.com", f"arn:aws:s3:::{bucket_name}")
        with encrypt_delivery(queue_arn, service) as refusal:
            if refusal is None:
                original_function(queue_arn, event, region, bucket_name)


@contextmanager
def poll_as(role_arn: str) -> Iterator[None]:
    """Inside the block, receive with the permissions of a function's role."""
    token = _poller_role_arn.set(role_arn)
    try:
        yield
    finally:
        _poller_role_arn.reset(token)


@contextmanager
def encrypt_delivery(queue_arn: str, principal: Any) -> Iterator[KeyRefusal | None]:
    """Check a delivery to a queue, and yield KMS's refusal, or None if it is allowed.

    A refusal is logged. If the block delivers a message, the message gets the queue's key.

    Args:
        queue_arn: The ARN of the queue. If there is no such queue, nothing is refused.
        principal: The service that delivers, or the role that it uses (`make_role`).
    """
    queue = sqs._queue_by_arn(queue_arn)
    if queue is None:
        yield None
        return
    # An event source mapping that polls replaces the queue's list of messages.
    with sqs._queues_lock:
        _mark_new_messages(queue)
        key_use = KeyUse(_find_key_arn(queue), SEND_ACTIONS, queue_arn)
        refusal = find_refusal(key_use, principal)
        if refusal:
            logger.error("a message for %s is lost: %s", queue_arn, refusal.message)
        yield refusal
        _mark_new_messages(queue)


def find_refusal(key_use: KeyUse, principal: Any) -> KeyRefusal | None:
    """Return why KMS refuses the use of a key; None if it does not, or if there is no key.

    Args:
        key_use: The use of the key.
        principal: MiniStack's principal, or the service that delivers.
    """
    if not key_use.key_arn:
        return None
    if _is_aws_managed(key_use.key_arn):
        is_granted = _has_aws_managed_key(principal, key_use.key_arn)
        return None if is_granted else _deny(principal, DECRYPT_ACTION)
    record = _find_key_record(key_use.key_arn)
    if record is None:
        return KeyRefusal("KmsNotFound", f"Key '{key_use.key_arn}' does not exist")
    for action in key_use.actions:
        if not _is_granted(key_use, record, action, principal):
            return _deny(principal, action)
    return _find_state_refusal(record)


def _deny(principal: Any, action: str) -> KeyRefusal:
    name = getattr(principal, "arn", "anonymous")
    message = f"User: {name} is not authorized to perform: {action} on the queue's KMS key"
    return KeyRefusal("KmsAccessDenied", message)


def _is_aws_managed(key_arn: str) -> bool:
    match = _KEY_ARN.fullmatch(key_arn)
    return match is not None and match[3] == AWS_MANAGED_KEY


def _has_aws_managed_key(principal: Any, key_arn: str) -> bool:
    """Return True if the key `alias/aws/sqs` with this ARN admits the principal."""
    if not ministack.app.AUTH:
        return True
    match = _KEY_ARN.fullmatch(key_arn)
    return match is not None and getattr(principal, "account", "") == match[2]


def find_move_refusal(
    message: Message, dlq: Queue, destination: Queue, principal: Any
) -> KeyRefusal | None:
    """Return why KMS does not let a principal move a DLQ's message to another queue, or None.

    The principal must be able to use the message's key and the key of the destination.
    """
    _mark_new_messages(dlq)
    receive_use = KeyUse(message[_KEY_ARN_MARK], RECEIVE_ACTIONS, _get_queue_arn(dlq))
    send_use = KeyUse(_find_key_arn(destination), SEND_ACTIONS, _get_queue_arn(destination))
    return find_refusal(receive_use, principal) or find_refusal(send_use, principal)


def append_message(queue: Queue, message: Message) -> None:
    """Append a new message to a queue, with the queue's key."""
    _mark_new_messages(queue)
    queue["messages"].append(message)
    _mark_new_messages(queue)


def _find_state_refusal(record: KeyRecord) -> KeyRefusal | None:
    """Return why the state or type of a key prevents its use; None if it can be used."""
    if record["KeySpec"] != "SYMMETRIC_DEFAULT":
        message = f"{record['Arn']} key usage is {record['KeyUsage']} which is not valid"
        return KeyRefusal("KmsInvalidKeyUsage", message)
    if record["KeyState"] == "Disabled":
        return KeyRefusal("KmsDisabled", f"{record['Arn']} is disabled.")
    if record["KeyState"] != "Enabled":
        state_text = re.sub(r"(?<!^)(?=[A-Z])", " ", record["KeyState"]).lower()
        return KeyRefusal("KmsInvalidState", f"{record['Arn']} is {state_text}.")
    return None


def _is_granted(key_use: KeyUse, record: KeyRecord, action: str, principal: Any) -> bool:
    """Return True if the principal may do `action` on the key. Always True with AUTH=false.

    Args:
        key_use: The use of the key.
        record: The key.
        action: The KMS action.
        principal: MiniStack's principal, or the service that delivers.
    """
    if not ministack.app.AUTH:
        return True
    if isinstance(principal, ServicePrincipal):
        # A policy that admits an account does not admit a service, so the call has no account.
        context = make_call_context("*", "Service", action, record["Arn"])
        context.principal_account = ""
        source_keys = {
            "aws:sourcearn": principal.source_arn,
            "aws:sourceaccount": principal.source_arn.split(":")[4] or get_account_id(),
        }
        context.service_context = source_keys | _make_key_context(key_use, record, "")
        evaluation = iam_evaluator.evaluate_resource_policy(
            record["Policy"], context, service=principal.arn
        )
        return bool(evaluation.decision == "Allow")
    condition_keys = _make_key_context(key_use, record, getattr(principal, "account", ""))
    call = ResourceCall(
        action,
        record["Arn"],
        record["Policy"],
        is_policy_required=True,
        condition_keys=condition_keys,
    )
    return is_allowed(principal, call)


def _make_key_context(key_use: KeyUse, record: KeyRecord, caller_account: str) -> dict[str, Any]:
    """Return the condition keys of a use of a key by SQS.

    https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html
    """
    _, _, _, region, key_account, _ = record["Arn"].split(":", 5)
    with request_scope(key_account, region):
        alias_names = [
            alias_arn.split(":", 5)[5]
            for alias_arn, key_id in kms._aliases.items()
            if key_id == record["KeyId"]
        ]
    return {
        "kms:viaservice": f"sqs.{key_use.queue_arn.split(':')[3]}.amazonaws.com",
        "kms:calleraccount": caller_account,
        "kms:encryptioncontext:aws:sqs:arn": key_use.queue_arn,
        "kms:resourcealiases": alias_names or None,
    }


def find_caller() -> Any:
    """Return MiniStack's principal of the call, or the role of the mapping that polls.

    If nobody signed the call, return an error that is allowed nothing.
    """
    if role_arn := _poller_role_arn.get():
        return make_role(role_arn)
    access_key = _access_key.get()
    if not access_key:
        return iam_evaluator.AuthError("MissingAuthenticationToken", "Nobody signed this call.")
    return iam_evaluator.resolve_principal(access_key, find_account_of_access_key(access_key))


def make_role(role_arn: str) -> Any:
    """Return MiniStack's principal for a session of a role of this account."""
    account, role_name = get_account_id(), role_arn.rpartition("/")[2]
    return iam_evaluator.PrincipalInfo(
        arn=f"arn:aws:sts::{account}:assumed-role/{role_name}/service",
        type="AssumedRole",
        account=account,
        policies=iam_evaluator._gather_role_policies(role_name, account),
        limits=iam_evaluator._permissions_boundary(iam._roles, role_name, account),
    )


def _find_receive_refusal(queue: Queue, messages: Sequence[Message]) -> KeyRefusal | None:
    """Return why the key of one of these messages is refused, or None if all can be decrypted."""
    principal = find_caller()
    for key_arn in dict.fromkeys(message[_KEY_ARN_MARK] for message in messages):
        key_use = KeyUse(key_arn, RECEIVE_ACTIONS, _get_queue_arn(queue))
        if refusal := find_refusal(key_use, principal):
            return refusal
    return None


def _raise_refusal(refusal: KeyRefusal | None) -> None:
    if refusal:
        raise sqs._Err(refusal.error, refusal.message)


def _find_key_arn(queue: Queue) -> str:
    """Return the ARN of the queue's key; empty if the queue has no key.

    If an alias names the key, return the ARN of the key itself. If there is no such key, return the
    ARN that KmsMasterKeyId means.
    """
    key = str(queue["attributes"].get("KmsMasterKeyId") or "")
    if not key:
        return ""
    _, _, _, region, account, _ = _get_queue_arn(queue).split(":", 5)
    if not key.startswith("arn:"):
        is_alias = key.startswith("alias/")
        key = f"arn:aws:kms:{region}:{account}:{key if is_alias else f'key/{key}'}"
    record = _find_key_record(key)
    return str(record["Arn"]) if record else key


def _find_key_record(key_arn: str) -> KeyRecord | None:
    """Return the key that this ARN of a key or an alias means; None if there is no such key."""
    match = _KEY_ARN.fullmatch(key_arn)
    if match is None:
        return None
    with request_scope(match[2], match[1]):
        record: KeyRecord | None = kms._resolve_key(key_arn)
    return record


def _mark_new_messages(queue: Queue) -> None:
    """Mark the messages that arrived since the last call with the queue's key.

    MiniStack appends messages, so all new messages are at the end of the list. A message that was
    moved from another queue keeps its key.
    """
    with sqs._queues_lock:
        key_arn = ""
        for message in reversed(queue["messages"]):
            if _KEY_ARN_MARK in message:
                break
            key_arn = key_arn or _find_key_arn(queue)
            message[_KEY_ARN_MARK] = key_arn


def _get_queue_arn(queue: Queue) -> str:
    return str(queue["attributes"]["QueueArn"])

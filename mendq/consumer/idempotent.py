"""Do each order once, even if consumers crash, are slow, or receive messages twice.

`Once` is for every consumer. `Careful` is an example to copy, for a queue of orders.

How `Once` works:

1. A run claims the key before the work. The claim is one item in DynamoDB that says which run has
   the key and until when. If another run has claimed the key, `Busy` is raised.
2. A claim is short and is renewed while the work runs. So it ends about `claim_seconds` after a
   crash, and a slow consumer keeps it.
3. All times are DynamoDB's own: the Date header of its answer, or that date plus a duration. So a
   wrong clock of a consumer never makes `Once` refuse work. AWS itself refuses a request that does
   not reach it within about five minutes of the time that boto3 signs.
4. A run takes over an expired claim only if the claim has not changed since the run read it. A
   claim that was renewed in between is not taken.
5. A run recognizes its own claim. If DynamoDB's answer was lost and the call is repeated, the run
   does not mistake its claim for another run's.
6. A run records that its work is done even if it lost its claim meanwhile, because that is true. It
   then raises `ClaimLost`, because another run may have done the same work.

The work may still be done twice in two cases:

- A process is suspended for longer than its claim, or cannot reach DynamoDB for that long, and
  continues while another run does the same work.
- A process crashes or cannot reach DynamoDB after the work and before it is recorded.

If the service that does the work can recognize a repeated key, give it the same key.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html
https://www.rfc-editor.org/rfc/rfc9110#name-date
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from itertools import islice
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from . import VisibilityHeartbeat

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, ResponseMetadataTypeDef
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

Order = Mapping[str, Any]
_LOG = logging.getLogger(__name__)
# How long DynamoDB keeps a key: longer than SQS keeps a message, which is at most 14 days in its
# queue and 14 days in its DLQ.
REMEMBERED_SECONDS = 30 * 86_400
# The number of renewals in `claim_seconds`.
_RENEWALS_PER_CLAIM = 4
# The most renewals of a new claim before the work, if each write takes longer than half of
# `claim_seconds`.
_MOST_CLAIM_REFRESHES = 4
# The most tries to record that the work is done. All together take about `claim_seconds`.
_MOST_RECORD_ATTEMPTS = 5
# The most messages that a consumer holds because their orders are busy. A body can be 1 MiB.
MOST_WAITING_MESSAGES = 100
_CONDITION_FAILED_CODE = "ConditionalCheckFailedException"
_ACCESS_DENIED_CODES = frozenset({"AccessDenied", "AccessDeniedException"})


class Busy(Exception):
    """Another run has claimed this key: it does the work, or has crashed. Try the message again.

    It is also raised if this run could not claim the key in time, because its writes were too slow.
    """


class ClaimLost(Busy):
    """The work is done, but its claim ended meanwhile, so another run may have done it as well."""


@dataclass(frozen=True)
class Once:
    """Does the work for each key once, by conditional writes to DynamoDB.

    Args:
        dynamodb: A client that may call GetItem and UpdateItem.
        table: A table with the partition key `key` and the time to live `expires_at`.
        claim_seconds: How long a key stays claimed after a crash. The work may take longer, because
            its claim is renewed four times in this time. Choose less than the visibility timeout,
            so that the first redelivery after a crash can do the work.
    """

    dynamodb: DynamoDBClient
    table: str
    claim_seconds: int = 20

    def __post_init__(self) -> None:
        # DynamoDB's Date header has whole seconds, and so has a claim.
        if not isinstance(self.claim_seconds, int) or self.claim_seconds < 1:
            raise ValueError(
                f"claim_seconds is {self.claim_seconds}: it must be a whole number, at least 1"
            )

    def run(self, key: str, work: Callable[[], object]) -> bool:
        """Do the work unless it was done before.

        Returns:
            True if this call did the work, False if it had been done before.

        Raises:
            Busy: Another run has the key, or each write of the claim took too long. The work was
                not done.
            ClaimLost: The work was done and recorded, but perhaps by another run as well.
            Exception: The error that `work` raised. The key is free again at once, or after
                `claim_seconds` if DynamoDB cannot be reached.
            ClientError, BotoCoreError: A call to DynamoDB failed. If `work` has already run, it may
                not be recorded as done; then a later run does it again.
            RuntimeError: An answer of DynamoDB has no readable Date header. The work was not done.
        """
        owner = uuid4().hex
        if not self._claim_key(key, owner):
            return False
        work_end_event = Event()
        renewal_thread = Thread(
            target=self._renew_claim_until,
            args=(key, owner, work_end_event),
            name="claim",
            daemon=True,
        )
        renewal_thread.start()
        try:
            try:
                work()
            except Exception:
                self._release_claim(key, owner)
                raise
            self._record_work_done(key, owner)
        finally:
            work_end_event.set()
            # Do not wait for a call that hangs. Its condition makes a late write harmless.
            renewal_thread.join(self.claim_seconds)
        return True

    def require_redeliveries(
        self, *, visibility_seconds: int, max_receive_count: int, holds_busy: bool = False
    ) -> None:
        """Raise ValueError if the claim of a crashed run can outlast every redelivery.

        SQS would then move the message to the DLQ although its work can be done.

        Args:
            visibility_seconds: The visibility timeout with which messages are received.
            max_receive_count: The maxReceiveCount of the queue's RedrivePolicy.
            holds_busy: True if the consumer holds a message whose key is busy, as `Careful` does.
                False if it lets the visibility timeout end, as a Lambda function does. Such a
                consumer may lose its first redelivery right after the crash.
        """
        lost_receive_count = 1 if holds_busy else 2
        seconds_until_dlq = visibility_seconds * (max_receive_count - lost_receive_count)
        if self.claim_seconds < seconds_until_dlq:
            return
        least_receive_count = self.claim_seconds // visibility_seconds + 1 + lost_receive_count
        remedy = f"set maxReceiveCount to at least {least_receive_count}"
        if seconds_until_dlq > 1:
            remedy = f"set claim_seconds to less than {seconds_until_dlq}, or {remedy}"
        raise ValueError(
            f"claim_seconds of {self.claim_seconds} is too long for this queue: after a crash its "
            f"maxReceiveCount of {max_receive_count} and visibility timeout of "
            f"{visibility_seconds} s leave {max(0, seconds_until_dlq)} s before a message that can "
            f"still be handled goes to the DLQ; {remedy}"
        )

    def _claim_key(self, key: str, owner: str) -> bool:
        """Claim the key for this run, whose id is `owner`.

        Return True if this run has claimed the key, False if the work is already done. Raise Busy
        if another run has the key, or if each write of the claim takes too long.
        """
        item, now = self._read_item(key)
        if "is_done" in item:
            return False
        if _is_claimed(item, now):
            raise Busy(key)
        condition = "attribute_not_exists(held_until)"
        condition_values: dict[str, AttributeValueTypeDef] = {}
        if "held_until" in item:
            # Replace only the expired claim that was read. Its owner may have renewed it meanwhile.
            condition = "held_until = :seen"
            condition_values = {":seen": item["held_until"]}
        try:
            stored_at = self._store_claim(
                key, owner, now, f"(held_by = :owner OR {condition})", condition_values
            )
        except (BotoCoreError, ClientError) as error:
            item, stored_at = self._read_item(key)
            if _read_error_code(error) == _CONDITION_FAILED_CODE:
                # Another run was faster.
                if "is_done" in item:
                    return False
                raise Busy(key) from error
            # The claim may be stored although its answer was lost.
            if item.get("held_by") != {"S": owner}:
                raise
        self._refresh_claim(key, owner, now, stored_at)
        return True

    def _refresh_claim(self, key: str, owner: str, claimed_at: int, stored_at: int) -> None:
        """Renew a claim that took long to store, so that most of it is left when the work begins.

        boto3 repeats a throttled or unanswered call for many seconds, and the process may be
        suspended. Without this, the claim could be over before the work begins. Times are
        DynamoDB's, in seconds.

        Raises:
            Busy: Another run took over the claim, or every write takes too long.
        """
        for _ in range(_MOST_CLAIM_REFRESHES):
            if stored_at - claimed_at <= self.claim_seconds / 2:
                return
            claimed_at = stored_at
            try:
                stored_at = self._store_claim(key, owner, claimed_at, "held_by = :owner", {})
            except ClientError as error:
                if _read_error_code(error) == _CONDITION_FAILED_CODE:
                    raise Busy(key) from error
                raise
        _LOG.warning("each write of the claim on %s took too long; the work waits", key)
        self._release_claim(key, owner)
        raise Busy(key)

    def _renew_claim_until(self, key: str, owner: str, work_end_event: Event) -> None:
        """Renew the claim regularly until the work is over or the claim is lost."""
        while not work_end_event.wait(self.claim_seconds / _RENEWALS_PER_CLAIM):
            try:
                _, now = self._read_item(key)
                self._store_claim(key, owner, now, "held_by = :owner", {})
            # Try the next renewal after any other error, because the work still runs. Timeouts of
            # gevent and cancellations of asyncio are no `Exception`.
            except BaseException as error:  # noqa: BLE001
                is_claim_lost = _read_error_code(error) == _CONDITION_FAILED_CODE
                if is_claim_lost and not work_end_event.is_set():
                    _LOG.warning("lost the claim on %s: another run may do its work as well", key)
                if is_claim_lost:
                    return
                _LOG.warning("the claim on %s could not be renewed: %s", key, error)

    def _store_claim(
        self,
        key: str,
        owner: str,
        now: int,
        condition: str,
        condition_values: Mapping[str, AttributeValueTypeDef],
    ) -> int:
        """Store that `owner` has the key until `claim_seconds` after `now`.

        Args:
            key: The key.
            owner: The id of this run.
            now: DynamoDB's time in seconds.
            condition: A DynamoDB condition. The claim is stored only if the condition is met and
                the work is not recorded as done.
            condition_values: The values of the condition's placeholders.

        Returns:
            DynamoDB's time when it answered, in seconds.
        """
        response = self.dynamodb.update_item(
            TableName=self.table,
            Key={"key": {"S": key}},
            UpdateExpression="SET held_by = :owner, held_until = :until, expires_at = :expires",
            ConditionExpression=f"attribute_not_exists(is_done) AND {condition}",
            ExpressionAttributeValues={
                ":owner": {"S": owner},
                ":until": {"N": str(now + self.claim_seconds)},
                ":expires": {"N": str(now + REMEMBERED_SECONDS)},
                **condition_values,
            },
        )
        return _read_answer_time(response["ResponseMetadata"])

    def _record_work_done(self, key: str, owner: str) -> None:
        """Record that the work is done, even if this run has lost its claim.

        Repeat a failed call for about `claim_seconds`, because the work would be done again without
        the record.

        Raises:
            ClaimLost: The work is recorded, but this run has lost its claim.
            ClientError, BotoCoreError: The work could not be recorded.
        """
        for attempt_number in range(1, _MOST_RECORD_ATTEMPTS + 1):
            try:
                previous_item = self.dynamodb.update_item(
                    TableName=self.table,
                    Key={"key": {"S": key}},
                    UpdateExpression="SET is_done = if_not_exists(is_done, :owner)",
                    ExpressionAttributeValues={":owner": {"S": owner}},
                    ReturnValues="ALL_OLD",
                ).get("Attributes", {})
                break
            except (BotoCoreError, ClientError) as error:
                if attempt_number == _MOST_RECORD_ATTEMPTS:
                    _LOG.error("the work for %s is done and could not be recorded", key)
                    raise
                _LOG.warning("that %s is done could not be recorded yet: %s", key, error)
                time.sleep(self.claim_seconds / _MOST_RECORD_ATTEMPTS)
        if previous_item.get("held_by") != {"S": owner}:
            raise ClaimLost(key)
        if previous_item.get("is_done", {"S": owner}) != {"S": owner}:
            _LOG.warning("another run has done the work for %s as well", key)

    def _release_claim(self, key: str, owner: str) -> None:
        """End the claim at once, unless another run has it. If that fails, the claim expires."""
        try:
            self.dynamodb.update_item(
                TableName=self.table,
                Key={"key": {"S": key}},
                UpdateExpression="REMOVE held_by, held_until",
                ConditionExpression="held_by = :owner",
                ExpressionAttributeValues={":owner": {"S": owner}},
            )
        except (BotoCoreError, ClientError) as error:
            _LOG.warning("the claim on %s was not given back: %s", key, error)

    def _read_item(self, key: str) -> tuple[Mapping[str, AttributeValueTypeDef], int]:
        """Return the item of the key, empty if there is none, and DynamoDB's time in seconds."""
        response = self.dynamodb.get_item(
            TableName=self.table, Key={"key": {"S": key}}, ConsistentRead=True
        )
        return response.get("Item", {}), _read_answer_time(response["ResponseMetadata"])


def _read_answer_time(metadata: ResponseMetadataTypeDef) -> int:
    """Return the time of DynamoDB's answer, in whole seconds since 1970.

    Raise RuntimeError if the answer has no Date header, or none that is a date. The header is
    always in UTC, also if a proxy writes it without a time zone.
    """
    date_header = metadata["HTTPHeaders"].get("date", "")
    try:
        answer_time = parsedate_to_datetime(date_header)
    except (OverflowError, TypeError, ValueError) as error:
        problem = f"DynamoDB's answer has no Date header that is a date, but {date_header[:80]!r}"
        raise RuntimeError(f"{problem}: is a proxy in between?") from error
    if answer_time.tzinfo is None:
        answer_time = answer_time.replace(tzinfo=UTC)
    return int(answer_time.timestamp())


def _is_claimed(item: Mapping[str, AttributeValueTypeDef], now: int) -> bool:
    """Return True if a run has claimed the key and the claim is not over.

    `now` is DynamoDB's time, rounded down to the second, so that a claim never ends too early.
    """
    return "held_until" in item and float(item["held_until"]["N"]) >= now


def _read_error_code(error: BaseException) -> str:
    """Return the AWS error code, or an empty text if the error has none."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return ""


class _OrderOutcome(Enum):
    """The result of the work on one message. BUSY means that another run has the order."""

    DONE = auto()
    BUSY = auto()
    FAILED = auto()


@dataclass
class Careful:
    """Consumes a queue of orders and processes each order once.

    A message whose order is busy in another run stays invisible if the next `consume` starts within
    `seconds`, and that call tries it again. So its receive count does not rise, and the other
    messages do not wait for it. At most MOST_WAITING_MESSAGES messages wait in this way. SQS
    returns further ones after their visibility timeout.

    Several threads may use one object.

    Args:
        sqs: A client that may call ReceiveMessage, DeleteMessage and ChangeMessageVisibility. If
            it may also call GetQueueAttributes, the first `consume` checks the queue's settings.
        queue_url: The queue.
        once: Remembers which orders are done.
        work: Processes one order.
        seconds: The visibility timeout: how long a message stays hidden after a crash.
    """

    sqs: SQSClient
    queue_url: str
    once: Once
    work: Callable[[Order], object]
    seconds: int = 30

    def __post_init__(self) -> None:
        self._heartbeat = VisibilityHeartbeat(self.sqs, self.queue_url, seconds=self.seconds)
        # Messages whose orders are busy, by message id, in the order in which they came.
        self._waiting_messages: dict[str, MessageTypeDef] = {}
        self._lock = Lock()
        self._is_queue_checked = False

    def consume(self) -> None:
        """Receive once, and do the orders of the received and the waiting messages.

        A message is deleted if its order is done, and waits for the next call if its order is busy.
        If its order failed, SQS returns the message when its visibility timeout is over.

        Raises:
            ValueError: The queue would move messages to its DLQ before the claim of a crashed
                consumer is over.
            ClientError, BotoCoreError: ReceiveMessage failed.
        """
        self._check_queue()
        # The heartbeat holds the last of ten messages while the first one is worked on.
        with self._heartbeat as heartbeat:
            # Between two calls of `consume` there is no heartbeat for waiting messages.
            heartbeat.keep()
            received_messages = heartbeat.receive(
                MaxNumberOfMessages=10,
                WaitTimeSeconds=1,
                MessageSystemAttributeNames=["MessageGroupId"],
            )
            with self._lock:
                messages = self._waiting_messages
                self._waiting_messages = {}
            messages.update({message["MessageId"]: message for message in received_messages})
            kept_messages: dict[str, MessageTypeDef] = {}
            try:
                waiting_messages = self._handle_messages_in_order(messages, heartbeat)
                kept_messages = dict(islice(waiting_messages.items(), MOST_WAITING_MESSAGES))
            finally:
                # SQS returns a message whose work failed after its visibility timeout.
                heartbeat.stop_extending(*(messages.keys() - kept_messages.keys()))
                with self._lock:
                    self._waiting_messages.update(kept_messages)

    def _handle_messages_in_order(
        self, messages: Mapping[str, MessageTypeDef], heartbeat: VisibilityHeartbeat
    ) -> dict[str, MessageTypeDef]:
        """Handle each message. Return the messages that must wait, by message id.

        A message waits if its order is busy, or if an earlier message of its FIFO group waits. A
        message is released if an earlier message of its FIFO group failed.
        """
        busy_group_ids: set[str] = set()
        failed_group_ids: set[str] = set()
        waiting_messages: dict[str, MessageTypeDef] = {}
        for message_id, message in messages.items():
            group_id = self._get_group_id(message)
            # In a FIFO queue, no message may overtake an earlier message of its group.
            if group_id in failed_group_ids:
                heartbeat.release(message_id)
                continue
            if group_id in busy_group_ids:
                waiting_messages[message_id] = message
                continue
            outcome = self._handle_message(message, heartbeat)
            if outcome is _OrderOutcome.BUSY:
                busy_group_ids.add(group_id)
                waiting_messages[message_id] = message
            elif outcome is _OrderOutcome.FAILED:
                failed_group_ids.add(group_id)
        return waiting_messages

    def _handle_message(
        self, message: MessageTypeDef, heartbeat: VisibilityHeartbeat
    ) -> _OrderOutcome:
        """Do the order of one message, and delete the message if the order is done."""
        if message["MessageId"] not in heartbeat.held:
            # The message was lost: another consumer may have it.
            return _OrderOutcome.FAILED
        try:
            order = json.loads(message["Body"])
            # The key must not be the message id, because a message that is sent or redriven again
            # has a new id.
            self.once.run(order["order_id"], lambda: self.work(order))
        except Busy:
            return _OrderOutcome.BUSY
        except Exception:  # noqa: BLE001 - one order's failure must not stop the others
            # The message comes again, and after maxReceiveCount it goes to the DLQ.
            _LOG.exception("the order in message %s failed", message["MessageId"])
            return _OrderOutcome.FAILED
        heartbeat.delete(message["MessageId"])
        return _OrderOutcome.DONE

    def _get_group_id(self, message: MessageTypeDef) -> str:
        """Return the id of the message's group; in a standard queue, the message's own id."""
        if self.queue_url.endswith(".fifo"):
            return message.get("Attributes", {}).get("MessageGroupId", "")
        return message["MessageId"]

    def _check_queue(self) -> None:
        """Raise ValueError if the claim is too long for the queue's maxReceiveCount.

        Each call reads the queue's RedrivePolicy, until one check has passed. If AWS denies the
        read, log a warning and do not try again.
        """
        if self._is_queue_checked:
            return
        try:
            response = self.sqs.get_queue_attributes(
                QueueUrl=self.queue_url, AttributeNames=["RedrivePolicy"]
            )
        except (BotoCoreError, ClientError) as error:
            if _read_error_code(error).rpartition(".")[2] in _ACCESS_DENIED_CODES:
                self._is_queue_checked = True
                _LOG.warning("claim_seconds is not checked: sqs:GetQueueAttributes is not allowed")
            return
        redrive_policy = json.loads(response.get("Attributes", {}).get("RedrivePolicy") or "{}")
        if "maxReceiveCount" in redrive_policy:
            self.once.require_redeliveries(
                visibility_seconds=self.seconds,
                max_receive_count=int(redrive_policy["maxReceiveCount"]),
                holds_busy=True,
            )
        self._is_queue_checked = True

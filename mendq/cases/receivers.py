"""The case store's records of receivers, and the code that makes or checks a receiver.

A receiver is a DLQ or quarantine that Mendq made or a person confirmed. `mendq/model/receiver.py`
has the rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, convert, to_builtins

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnreadable
from mendq.aws.queue import make_queue, read_attributes_if_queue_exists, read_queue_tags
from mendq.cases import items
from mendq.cases.transactions import Table
from mendq.catalogue.dlq.unconfirmed_receiver import refuse_unconfirmed_receiver
from mendq.model.facts import QueueFacts
from mendq.model.plan import Refusal
from mendq.model.receiver import (
    Receiver,
    find_difference_from_new_queue,
    find_receiver_objection,
    find_source_objection,
    remove_aws_tags,
)

# The objection to a queue that no longer exists.
DELETED_OBJECTION = "it was deleted"


class Receivers(Table, frozen=True):
    """The records of receivers: queues that may receive another queue's messages.

    Methods raise CaseStoreUnavailable.
    """

    def load(self, queue_arn: str) -> Receiver | None:
        """Return the record of the queue with this ARN; None if there is none.

        Return None also for an unreadable record, so that Mendq asks a person to confirm the queue
        again.
        """
        item = self.get(_make_receiver_key(queue_arn))
        if "document" not in item:
            return None
        try:
            with items.convert_decode_errors(f"the record of {queue_arn}"):
                receiver = convert(json.loads(item["document"]["S"]), Receiver)
        except CaseStoreUnreadable:
            return None
        return receiver if receiver.queue_arn == queue_arn else None

    def put(self, receiver: Receiver) -> None:
        """Store a record in place of the last one."""
        document = json.dumps(to_builtins(receiver), sort_keys=True)
        self.change(
            _make_receiver_key(receiver.queue_arn), "SET document = :document", document=document
        )

    def remove(self, queue_arn: str) -> bool:
        """Remove the record of a queue. Return False if there is none."""
        return self.change(
            _make_receiver_key(queue_arn), "REMOVE document", "attribute_exists(document)"
        )


def _make_receiver_key(queue_arn: str) -> items.Key:
    return items.item_key(queue_arn, "receiver")


class ReceiverMaker(Struct, frozen=True):
    """Makes queues that receive another queue's messages, or checks those that exist.

    Attributes:
        receivers: The records in the case store.
        now: The time of this invocation.
        writer: The name of the Lambda that makes the queue.
    """

    clients: Clients
    receivers: Receivers
    now: datetime
    writer: str

    def make_or_check(
        self, queue_arn: str, new_queue_attributes: Mapping[str, str], source_arn: str = ""
    ) -> QueueFacts | Refusal:
        """Return a queue that may receive messages now. Create it if it does not exist.

        Args:
            queue_arn: The queue's ARN.
            new_queue_attributes: The attributes with which Mendq creates the queue.
            source_arn: The source of a quarantine; empty for a DLQ.

        Returns:
            The queue with its attributes and tags. A refusal if it must not receive messages:
            the existing queue is not on record, is on record for another source, or has changed
            since; or SQS does not create it, or it cannot be used yet.

        Raises:
            ClientError, BotoCoreError: The queue could not be created. A retry may help.
            FactsUnavailable, QueueRefusesUs: The queue could not be read.
            CaseStoreUnavailable: The case store does not answer. No queue is created without a
                record.
        """
        attributes = read_attributes_if_queue_exists(self.clients, queue_arn)
        if attributes:
            receiver = self.receivers.load(queue_arn)
        else:
            receiver = Receiver(queue_arn, self.now, self.writer, source_arn=source_arn)
            self.receivers.put(receiver)
            created_attributes = make_queue(self.clients, queue_arn, new_queue_attributes)
            if isinstance(created_attributes, Refusal):
                return created_attributes
            attributes = created_attributes
        queue = QueueFacts(queue_arn, attributes, read_queue_tags(self.clients, queue_arn) or {})
        objection = None
        if receiver is not None and receiver.is_creation_noted(self.now):
            objection = find_source_objection(receiver, source_arn)
            objection = objection or find_difference_from_new_queue(queue, new_queue_attributes)
            if remove_aws_tags(queue.tags):
                objection = (
                    objection or "it has tags, and Mendq gives none to a queue that it makes"
                )
            if objection is None:
                receiver = self._record_new_queue(queue, source_arn)
        objection = objection or find_receiver_objection(receiver, queue, source_arn)
        if objection:
            return refuse_unconfirmed_receiver(queue_arn, objection, source_arn)
        return queue

    def find_objection(self, queue_arn: str, source_arn: str = "") -> str | None:
        """Return why an existing queue must not receive messages now; None if it may.

        Call it before each batch of messages. `source_arn` is the source of a quarantine; empty for
        a DLQ. Raise FactsUnavailable, QueueRefusesUs or CaseStoreUnavailable.
        """
        queue = read_receiver_facts(self.clients, queue_arn)
        if not queue.exists:
            return DELETED_OBJECTION
        return find_receiver_objection(self.receivers.load(queue_arn), queue, source_arn)

    def refuse_unconfirmed_queue(self, queue_arn: str, source_arn: str = "") -> Refusal | None:
        """Return a refusal if the queue exists and must not receive messages now; otherwise None.

        Return None also if a run of Mendq was about to create the queue. `source_arn` is the source
        of a quarantine; empty for a DLQ. Raise the errors of `find_objection`.
        """
        queue = read_receiver_facts(self.clients, queue_arn)
        receiver = self.receivers.load(queue_arn)
        if not queue.exists or (receiver is not None and receiver.is_creation_noted(self.now)):
            return None
        objection = find_receiver_objection(receiver, queue, source_arn)
        if objection:
            return refuse_unconfirmed_receiver(queue_arn, objection, source_arn)
        return None

    def _record_new_queue(self, queue: QueueFacts, source_arn: str) -> Receiver:
        """Record a queue that Mendq has just made, and return the record."""
        receiver = Receiver.of_queue(
            queue,
            recorded_at=self.now,
            recorded_by=self.writer,
            is_made_by_mendq=True,
            source_arn=source_arn,
        )
        self.receivers.put(receiver)
        return receiver


def read_receiver_facts(clients: Clients, queue_arn: str) -> QueueFacts:
    """Return a queue with its attributes and tags. Both are empty if there is no such queue.

    Raise FactsUnavailable, or QueueRefusesUs if the queue's policy denies access.
    """
    attributes = read_attributes_if_queue_exists(clients, queue_arn)
    if not attributes:
        return QueueFacts(queue_arn, {})
    return QueueFacts(queue_arn, attributes, read_queue_tags(clients, queue_arn) or {})

"""Check the quarantines and DLQs: has a person confirmed them, and are they as recorded?

Mendq sends messages only to a queue that the case store records (`mendq/model/receiver.py`). The
check looks at each existing queue to which Mendq would send messages of a managed queue:

- the quarantine of the managed queue;
- the DLQ that Mendq made for it;
- a queue with the name that Mendq gives a new DLQ, if the case store records that queue or an open
  case needs a DLQ. Otherwise Mendq does not use that queue, because it belongs to an operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnreadable, QueueRefusesUs
from mendq.aws.queue import list_queue_names
from mendq.cases.made_dlqs import MadeDlqs
from mendq.cases.receivers import Receivers, read_receiver_facts
from mendq.cases.table import OpenCases
from mendq.catalogue.dlq.dlq_missing import DLQ_MISSING
from mendq.catalogue.dlq.unconfirmed_receiver import (
    advise_shorter_source_name,
    confirm_receiver_command,
)
from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Status
from mendq.cli.output import shorten_list
from mendq.model.dlq import arn_of_quarantine
from mendq.model.queue import arn_of_dlq, parse_queue_arn
from mendq.model.receiver import OtherSourceObjection, find_receiver_objection
from mendq.notifications.text import format_count

RECEIVERS_CHECK_NAME = "quarantines and DLQs"
# With a thousand managed queues, one call after the other would take minutes.
_THREAD_COUNT = 8


class CheckedReceiver(Struct, frozen=True):
    """A quarantine or a DLQ, and why Mendq does not use it.

    Attributes:
        queue_arn: The quarantine or the DLQ.
        source_arn: The source of a quarantine; empty for a DLQ.
        objection: Why Mendq does not use the queue; empty if it does.
    """

    queue_arn: str
    source_arn: str
    objection: str

    @property
    def name(self) -> str:
        return parse_queue_arn(self.queue_arn).name


def check_receivers(account: Account, queue_arns: list[str], now: datetime) -> Iterator[Check]:
    """Yield one check of the quarantines and DLQs of the managed queues.

    Yield none if no queue is managed. Raises ClientError, FactsUnavailable or CaseStoreUnavailable.
    """
    if not queue_arns:
        return
    receivers = _list_receivers(account, queue_arns, now)
    unused_receivers = [receiver for receiver in receivers if receiver.objection]
    if not unused_receivers:
        count_text = format_count(len(receivers), "queue")
        yield Check(RECEIVERS_CHECK_NAME, Status.OK, f"{count_text}, as the case store records")
        return
    first_receiver, *other_receivers = unused_receivers
    sentence = f"Mendq does not use {first_receiver.name}: {first_receiver.objection}"
    if other_receivers:
        other_names = [receiver.name for receiver in other_receivers]
        sentence = (
            f"{len(unused_receivers)} are not confirmed or changed since: "
            f"{shorten_list([first_receiver.name, *other_names])}. {sentence}"
        )
    if isinstance(first_receiver.objection, OtherSourceObjection):
        # A command to confirm it would take the quarantine from the other source.
        sentence += f". {advise_shorter_source_name(first_receiver.source_arn)}"
        yield Check(RECEIVERS_CHECK_NAME, Status.WARN, sentence)
        return
    if other_receivers:
        sentence += ". Confirm each"
    command_text = confirm_receiver_command(first_receiver.queue_arn, first_receiver.source_arn)
    yield Check(RECEIVERS_CHECK_NAME, Status.WARN, sentence, Command(command_text))


def _list_receivers(
    account: Account, queue_arns: list[str], now: datetime
) -> list[CheckedReceiver]:
    """Return the checked quarantines and DLQs of these queues, each once, in the queues' order."""
    reader = _ReceiverReader(
        clients=account.clients,
        receivers=account.open_store(Receivers),
        made_dlqs=account.open_store(MadeDlqs),
        existing_queue_names={*list_queue_names(account.clients)},
        arns_that_need_dlq={
            case.queue_arn
            for case in account.open_store(OpenCases).list_open_cases()
            if case.symptom == DLQ_MISSING.name
        },
        now=now,
    )
    receiver_by_arn = dict[str, CheckedReceiver]()
    with ThreadPoolExecutor(_THREAD_COUNT) as thread_pool:
        for receivers_of_queue in thread_pool.map(reader.list_receivers_of, queue_arns):
            for receiver in receivers_of_queue:
                receiver_by_arn.setdefault(receiver.queue_arn, receiver)
    return list(receiver_by_arn.values())


class _ReceiverReader(Struct, frozen=True):
    """Reads the quarantine and the DLQs of one managed queue after the other.

    Attributes:
        existing_queue_names: The names of all queues of the account and region.
        arns_that_need_dlq: The queues with an open case because they have no DLQ.
    """

    clients: Clients
    receivers: Receivers
    made_dlqs: MadeDlqs
    existing_queue_names: AbstractSet[str]
    arns_that_need_dlq: AbstractSet[str]
    now: datetime

    def list_receivers_of(self, source_arn: str) -> list[CheckedReceiver]:
        """Return the existing quarantine and DLQs to which Mendq would send the queue's messages.

        Raises FactsUnavailable or CaseStoreUnavailable.
        """
        checked_receivers = []
        quarantine_arn = arn_of_quarantine(source_arn)
        if self._may_exist(quarantine_arn):
            checked_receivers.append(self._check(quarantine_arn, source_arn))
        checked_receivers.extend(
            self._check(dlq_arn, "") for dlq_arn in self._list_dlq_arns(source_arn)
        )
        return checked_receivers

    def _may_exist(self, queue_arn: str) -> bool:
        return parse_queue_arn(queue_arn).name in self.existing_queue_names

    def _list_dlq_arns(self, source_arn: str) -> Iterator[str]:
        """Yield the existing DLQs that Mendq made for the queue, or would attach to it."""
        made_dlq_arn = ""
        # A record that cannot be read names no DLQ. The scan reports such a record.
        with suppress(CaseStoreUnreadable):
            made_dlq_arn = self.made_dlqs.load_made_dlq_arn(source_arn)
        if made_dlq_arn and self._may_exist(made_dlq_arn):
            yield made_dlq_arn
        new_dlq_arn = arn_of_dlq(source_arn)
        if new_dlq_arn == made_dlq_arn or not self._may_exist(new_dlq_arn):
            return
        if source_arn in self.arns_that_need_dlq or self.receivers.load(new_dlq_arn) is not None:
            yield new_dlq_arn

    def _check(self, queue_arn: str, source_arn: str) -> CheckedReceiver:
        """Check a quarantine or DLQ by the rule that Mendq applies before it sends messages."""
        try:
            queue = read_receiver_facts(self.clients, queue_arn)
        except QueueRefusesUs as error:
            return CheckedReceiver(queue_arn, source_arn, f"it cannot be read: {error}")
        receiver = self.receivers.load(queue_arn)
        is_being_made = receiver is not None and receiver.is_creation_noted(self.now)
        if not queue.exists or is_being_made:
            return CheckedReceiver(queue_arn, source_arn, "")
        objection = find_receiver_objection(receiver, queue, source_arn)
        return CheckedReceiver(queue_arn, source_arn, objection or "")

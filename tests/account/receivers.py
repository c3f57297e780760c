"""Records of DLQs and quarantines in the case store of an account in moto."""

from __future__ import annotations

from mendq.cases.receivers import Receivers, read_receiver_facts
from mendq.cases.seal_keys import SealKeys
from mendq.model.receiver import Receiver
from tests.account.account import Account

CONFIRMER = "arn:aws:sts::123456789012:assumed-role/Operators/alice"


def open_receivers(account: Account) -> Receivers:
    return Receivers(account.clients.dynamodb, account.settings.case_table)


def open_seal_keys(account: Account) -> SealKeys:
    return SealKeys(account.clients.dynamodb, account.settings.case_table, "seals")


def confirm_receiver(account: Account, queue_arn: str) -> None:
    """Record that a person confirmed the queue as it is now."""
    queue = read_receiver_facts(account.clients, queue_arn)
    receiver = Receiver.of_queue(
        queue, recorded_at=account.now, recorded_by=CONFIRMER, is_made_by_mendq=False
    )
    open_receivers(account).put(receiver)

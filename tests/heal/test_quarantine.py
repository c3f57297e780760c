"""A source gets its quarantine when one is needed, and no other queue takes its place."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from mendq.aws.errors import FactsUnavailable
from mendq.model.facts import Facts
from mendq.model.plan import Refusal
from mendq.redrive.messages import Message, marked_quarantined, quarantine_reason
from mendq.redrive.redrive import quarantine_of
from mendq.redrive.send_batches import Destination
from tests.heal.conftest import ACCOUNT, REGION, Account
from tests.heal.messages import timed, two

__all__ = ["timed"]
NAMES = pytest.mark.parametrize(
    ("name", "quarantine"),
    [("orders", "orders-quarantine"), ("orders.fifo", "orders-quarantine.fifo")],
)


def facts(account: Account, queue_arn: str) -> Facts:
    return Facts(queue_arn, account.attributes(queue_arn), {"mendq": "heal", "team": "orders"})


@NAMES
def test_it_is_made_once_encrypted_and_without_tags(
    account: Account, name: str, quarantine: str
) -> None:
    source = facts(account, account.queue(name))
    made = quarantine_of(account.clients, source)
    assert made == f"arn:aws:sqs:{REGION}:{ACCOUNT}:{quarantine}"
    attributes = account.attributes(str(made))
    assert attributes["MessageRetentionPeriod"] == "1209600"
    assert attributes["SqsManagedSseEnabled"] == "true"
    assert attributes.get("FifoQueue", "false") == str(name.endswith(".fifo")).lower()
    assert "Policy" not in attributes
    tags = account.clients.sqs.list_queue_tags(QueueUrl=account.url(str(made)))
    assert tags.get("Tags", {}) == {}
    assert quarantine_of(account.clients, source) == made


def test_it_is_encrypted_with_the_sources_key(account: Account) -> None:
    source = facts(account, account.queue("orders", KmsMasterKeyId="alias/orders"))
    made = quarantine_of(account.clients, source)
    assert account.attributes(str(made))["KmsMasterKeyId"] == "alias/orders"


def test_a_persons_queue_that_forgets_early_is_not_used_and_not_changed(account: Account) -> None:
    source = facts(account, account.queue("orders"))
    theirs = account.queue("orders-quarantine", tag=None, MessageRetentionPeriod="60")
    before = account.attributes(theirs)
    refusal = quarantine_of(account.clients, source)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "name_taken"
    assert "less than 1209600 seconds" in refusal.reason
    assert account.attributes(theirs) == before


@pytest.mark.parametrize(("state", "is_used"), [("Enabled", False), ("Disabled", True)])
def test_a_queue_that_a_function_consumes_is_not_used(
    account: Account, monkeypatch: pytest.MonkeyPatch, state: str, *, is_used: bool
) -> None:
    source = facts(account, account.queue("orders"))
    made = quarantine_of(account.clients, source)
    mapping = {"FunctionArn": "arn:aws:lambda:us-east-1:1:function:tidy", "State": state}

    def mappings(_: object, queue_arn: str) -> list[dict[str, str]]:
        return [mapping] if queue_arn == made else []

    monkeypatch.setattr("mendq.redrive.redrive.mappings_of", mappings)
    found = quarantine_of(account.clients, source)
    assert (found == made) is is_used
    assert isinstance(found, Refusal) is not is_used
    assert is_used or (isinstance(found, Refusal) and "tidy consumes it" in found.reason)


def test_aws_that_does_not_answer_is_asked_again(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        error = {"Code": "ServiceUnavailable", "Message": "later"}
        raise ClientError({"Error": error}, "CreateQueue")  # type: ignore[typeddict-item]

    source = facts(account, account.queue("orders"))
    monkeypatch.setattr(account.clients.sqs_for_writing, "create_queue", fail)
    with pytest.raises(FactsUnavailable, match="orders-quarantine"):
        quarantine_of(account.clients, source)


@pytest.mark.parametrize("fifo", [False, True])
def test_a_message_in_it_says_why_and_when_and_goes_whole(timed: Account, *, fifo: bool) -> None:
    queues = two(timed, fifo=fifo)
    made = str(quarantine_of(timed.clients, facts(timed, queues.there)))

    def mark(message: Message) -> Message:
        return marked_quarantined(
            message, "it came back", at=timed.now, source_arn=queues.there, case_id="case-1"
        )

    redrive_count = {"mendq.redrive": {"DataType": "Number", "StringValue": "1"}}
    queues.write("poison", MessageAttributes=redrive_count)
    moved = queues.move(Destination(made, timed.url(made), "case-1", mark))
    assert moved.moved == 1
    (message,) = queues.read(made)
    retained = quarantine_reason(message)
    assert message.body == "poison"
    assert retained is not None
    assert (retained.why, retained.at) == ("it came back", timed.now.isoformat())
    assert (retained.source, retained.redrive_count) == (queues.there, 1)
    assert queues.left() == []

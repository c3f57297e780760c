"""The table of seal keys, and keys that earlier versions stored in the case store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from mendq.cases import items
from mendq.cases.seal_keys import SealKeys, SealUse
from mendq.model.seal import SealKey
from tests.account.account import Account, moto_account
from tests.account.receivers import open_seal_keys

QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders-quarantine"
OTHER = f"{QUEUE}-2"


@pytest.fixture(name="aws")
def make_account() -> Iterator[Account]:
    with moto_account() as account:
        yield account


def store_former_key(account: Account, use: SealUse, key: str = "former") -> None:
    """Store a key where versions before the table of seal keys stored it."""
    item = {**items.item_key(QUEUE, use), "seal_key": {"S": key}, "document": {"S": "{}"}}
    account.clients.dynamodb.put_item(TableName=account.settings.case_table, Item=item)


def test_each_queue_and_use_has_a_key_of_its_own_that_stays(aws: Account) -> None:
    seal_keys = open_seal_keys(aws)
    assert seal_keys.load(QUEUE, SealUse.QUARANTINE) is None
    first = seal_keys.provide(QUEUE, SealUse.QUARANTINE, aws.now)
    assert len(first.key) == 64
    assert first.former_key == b""
    later = aws.now + timedelta(days=1)
    assert seal_keys.provide(QUEUE, SealUse.QUARANTINE, later) == first
    assert seal_keys.load(QUEUE, SealUse.QUARANTINE) == first
    other_keys = {
        seal_keys.provide(QUEUE, SealUse.REDRIVE, aws.now).key,
        seal_keys.provide(OTHER, SealUse.QUARANTINE, aws.now).key,
    }
    assert len(other_keys | {first.key}) == 3


def test_key_that_another_run_makes_at_the_same_time_stays_with_its_time(aws: Account) -> None:
    """Both runs find no key. The other run makes one before this run's write arrives."""
    events = aws.clients.dynamodb.meta.events
    before_write = "before-call.dynamodb.UpdateItem"
    first_keys: list[SealKey] = []

    def make_key_first(**_: object) -> None:
        events.unregister(before_write, make_key_first)
        first_keys.append(open_seal_keys(aws).provide(QUEUE, SealUse.REDRIVE, aws.now))

    events.register_first(before_write, make_key_first)
    later = aws.now + timedelta(minutes=1)
    assert open_seal_keys(aws).provide(QUEUE, SealUse.REDRIVE, later) == first_keys[0]
    assert open_seal_keys(aws).load(QUEUE, SealUse.REDRIVE) == first_keys[0]


def test_new_seal_key_is_not_written_to_the_case_store(aws: Account) -> None:
    key = open_seal_keys(aws).provide(QUEUE, SealUse.QUARANTINE, aws.now)
    assert key.key.decode() not in str(aws.case_store_items())


@pytest.mark.parametrize("use", SealUse)
def test_former_key_is_read_until_a_new_key_is_made_and_never_makes_seals(
    aws: Account, use: SealUse
) -> None:
    store_former_key(aws, use)
    seal_keys = open_seal_keys(aws)
    assert seal_keys.load(QUEUE, use) == SealKey(b"", b"former")
    key = seal_keys.provide(QUEUE, use, aws.now)
    assert (key.former_key, key.created_at) == (b"former", aws.now.replace(microsecond=0))
    assert key.key != b"former"
    assert seal_keys.load(QUEUE, use) == key


def test_key_planted_in_the_case_store_after_the_new_key_was_made_counts_for_nothing(
    aws: Account,
) -> None:
    key = open_seal_keys(aws).provide(QUEUE, SealUse.QUARANTINE, aws.now)
    store_former_key(aws, SealUse.QUARANTINE, "planted")
    assert open_seal_keys(aws).load(QUEUE, SealUse.QUARANTINE) == key
    assert open_seal_keys(aws).provide(QUEUE, SealUse.QUARANTINE, aws.now) == key


def test_stack_without_a_table_of_seal_keys_gives_the_former_key(aws: Account) -> None:
    seal_keys = SealKeys(aws.clients.dynamodb, aws.settings.case_table, "")
    assert seal_keys.load(QUEUE, SealUse.QUARANTINE) is None
    store_former_key(aws, SealUse.QUARANTINE)
    assert seal_keys.load(QUEUE, SealUse.QUARANTINE) == SealKey(b"", b"former")

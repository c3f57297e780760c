"""Baselines: a queue's configuration at times when it was healthy."""

from __future__ import annotations

from datetime import UTC, timedelta

import pytest

from mendq.cases.baselines import MAXIMUM_BASELINE_BYTES, Baselines
from tests.account.account import Account

EARLY = '[{"at": "0001-01-01T00:00:00+14:00", "attributes": {}}]'


@pytest.mark.parametrize("text", ["{", "[3]", '[{"at": 1}]', "[" * 100_000, EARLY])
def test_unreadable_baselines_load_as_empty_and_can_be_replaced(
    account: Account, text: str
) -> None:
    baselines = Baselines(account.clients.dynamodb, "case_store")
    item = {"pk": {"S": "baselines#arn:q"}, "sk": {"S": "baselines"}, "baselines": {"S": text}}
    account.clients.dynamodb.put_item(TableName="case_store", Item=item)
    assert baselines.load("arn:q") == ()
    baselines.put("arn:q", {"VisibilityTimeout": "30"}, account.now)
    assert len(baselines.load("arn:q")) == 1


def test_baseline_time_without_a_zone_is_read_in_utc_and_can_be_compared(account: Account) -> None:
    text = '[{"at": "2026-01-01T00:00:00", "attributes": {}}]'
    item = {"pk": {"S": "baselines#arn:q"}, "sk": {"S": "baselines"}, "baselines": {"S": text}}
    account.clients.dynamodb.put_item(TableName="case_store", Item=item)
    (known,) = Baselines(account.clients.dynamodb, "case_store").load("arn:q")
    assert known.at.tzinfo is UTC
    assert known.at < account.now


def test_baselines_that_an_earlier_version_stored_with_the_queue_are_kept(
    account: Account,
) -> None:
    text = '[{"at": "2026-01-01T00:00:00Z", "attributes": {"VisibilityTimeout": "60"}}]'
    item = {"pk": {"S": "arn:q"}, "sk": {"S": "baselines"}, "baselines": {"S": text}}
    account.clients.dynamodb.put_item(TableName="case_store", Item=item)
    baselines = Baselines(account.clients.dynamodb, "case_store")
    assert [baseline.attributes for baseline in baselines.load("arn:q")] == [
        {"VisibilityTimeout": "60"}
    ]
    baselines.put("arn:q", {"VisibilityTimeout": "30"}, account.now)
    assert [baseline.attributes for baseline in baselines.load("arn:q")] == [
        {"VisibilityTimeout": "30"},
        {"VisibilityTimeout": "60"},
    ]
    assert account.case_store_items()["arn:q", "baselines"]["baselines"] == {"S": text}


def test_oldest_baselines_are_dropped_at_the_size_limit_and_the_newest_is_kept(
    account: Account,
) -> None:
    baselines = Baselines(account.clients.dynamodb, "case_store")
    for n in range(4):
        policy = f"{n}" * (MAXIMUM_BASELINE_BYTES // 3)
        baselines.put("arn:q", {"Policy": policy}, account.now + timedelta(days=n))
    assert [baseline.attributes["Policy"][0] for baseline in baselines.load("arn:q")] == ["3", "2"]
    baselines.put(
        "arn:q", {"Policy": "4" * MAXIMUM_BASELINE_BYTES}, account.now + timedelta(days=9)
    )
    assert [baseline.attributes["Policy"][0] for baseline in baselines.load("arn:q")] == ["4"]

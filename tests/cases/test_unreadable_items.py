"""An unreadable item of the case store affects only its own case."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.aws.clients import LONGEST_CALL_SECONDS
from mendq.aws.errors import CaseStoreUnreadable
from mendq.cases import open_case_index
from mendq.follow_up.follow_up import LONGEST_SECONDS_PER_CASE, follow_up
from tests.account.account import ACCOUNT, REGION, Account
from tests.heal.operators import (
    OWNERS,
    load_newest_case,
    make_context,
    make_failing_queue,
    roll_back,
)

SYMPTOM = "visibility_timeout_too_short"
BAD = f"arn:aws:sqs:{REGION}:{ACCOUNT}:bad.fifo"
NUMBERS = ["1" + "0" * 30, "1" + "0" * 20, "1" + "0" * 13, "-1" + "0" * 13, "1.5"]
NESTED = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def queue_with_proposal(account: Account) -> str:
    return make_failing_queue(account, "propose")


def _put(account: Account, queue: str, sort: str, **fields: Any) -> None:
    item = account.case_store_items().get((queue, sort), {"pk": {"S": queue}, "sk": {"S": sort}})
    account.clients.dynamodb.put_item(TableName="case_store", Item={**item, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        *(
            {name: {"N": number}}
            for name in ("opened_at", open_case_index.SORT_ATTRIBUTE)
            for number in NUMBERS
        ),
        *({"opened_at": {"NULL": True}}, {"state": {"S": "x"}}, {"case_id": {"N": "7"}}),
    ],
)
def test_follow_up_moves_the_other_cases_beside_an_unreadable_listed_case(
    account: Account, queue_with_proposal: str, fields: dict[str, Any]
) -> None:
    good = account.case_store_items()[queue_with_proposal, f"case#{SYMPTOM}"]
    item = {**good, "pk": {"S": BAD}, "case_id": {"S": "bad"}, **fields}
    account.clients.dynamodb.put_item(TableName="case_store", Item=item)
    account.later(hours=25)
    followed = follow_up(make_context(account), OWNERS, lambda: 60)
    assert [(case.queue_arn, case.state) for case in followed.moved_cases] == [
        (queue_with_proposal, "expired")
    ]


@pytest.mark.parametrize(
    ("sort", "fields"),
    [
        (f"case#{SYMPTOM}", {"opened_at": {"N": "1" + "0" * 20}}),
        (f"case#{SYMPTOM}", {"document": {"S": NESTED}}),
        (f"case#{SYMPTOM}", {"failures": {"S": "[1e400]"}}),
        ("attribute#VisibilityTimeout", {"writes": {"S": NESTED}}),
        (f"evidence#{SYMPTOM}", {"sightings": {"SS": ['[1e400,"a","b","c","d",null,null]']}}),
        (f"page#{SYMPTOM}", {"announced": {"S": "[]"}}),
    ],
)
def test_rollback_and_heal_change_nothing_if_an_item_of_the_case_store_is_unreadable(
    account: Account, queue_with_proposal: str, sort: str, fields: dict[str, Any]
) -> None:
    _put(account, queue_with_proposal, sort, **fields)
    with pytest.raises(CaseStoreUnreadable):
        make_context(account).case_store.look(queue_with_proposal, SYMPTOM, ("VisibilityTimeout",))
    before = account.attributes(queue_with_proposal)
    assert roll_back(account, load_newest_case(account).case_id)["error"] == "case_store_unreadable"
    healed = account.heal(account.late_deletes(queue_with_proposal, "x", "y", "z"))
    assert healed.error_by_message_id == {}
    assert account.attributes(queue_with_proposal) == before


def test_follow_up_reserves_time_for_two_hung_calls_per_case(account: Account) -> None:
    config: Any = account.clients.dynamodb.meta.config
    tries = config.retries["total_max_attempts"]
    hung_seconds = tries * (config.connect_timeout + config.read_timeout)
    assert hung_seconds < LONGEST_CALL_SECONDS
    assert 2 * LONGEST_CALL_SECONDS <= LONGEST_SECONDS_PER_CASE < 60

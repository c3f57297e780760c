"""Messages that died because the visibility timeout is too short, and their redrive."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from local_account.process import LocalAccount
from mendq.cases import items
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.model.lifecycle import SCAN_INTERVAL_AND_WINDOW
from tests.local_account.callers import invoke_function
from tests.local_account.mendq_here import mendq_here, newest_case, wait_for_case
from tests.local_account.queues import Queue, eventually
from tests.local_account.slow_consumers import (
    NAME,
    RECEIVES,
    TIMEOUT_SECONDS,
    consume_too_slowly,
    make_source_and_dlq,
    scan_queues,
)

pytestmark = pytest.mark.account
MESSAGES = 120
WORKERS = 28
PUT_BACK_MINUTES = (1, 65)  # the last whole minute is an empty queue's as well


def _scan(account: LocalAccount) -> None:
    """Have the deployed scan begin the hour's round once more."""
    table = account.outputs["CaseTable"]
    note = items.item_key(ACCOUNT_PARTITION, "scan")
    account.client("dynamodb").delete_item(TableName=table, Key=note)
    assert invoke_function(account, "Scan", {})["findings"]


def test_source_of_dlq_messages_gets_a_timeout_proposal_and_then_its_dlq_a_redrive_proposal(
    account: LocalAccount,
) -> None:
    source, dlq = make_source_and_dlq(account, {"mendq": "heal"})
    consume_too_slowly(account, MESSAGES, WORKERS, given_up=(source,))
    for queue, minutes in product((source, dlq), PUT_BACK_MINUTES):
        account.put_back(queue.arn, minutes=minutes)

    shown = scan_queues(account, source, dlq)
    finding = shown[source.arn, NAME]
    assert finding["steps"] == ["VisibilityTimeout: 2 s -> 5 s"]
    for said in (
        f"{MESSAGES} messages left without a delete after {RECEIVES}.0 receives each",
        f"Its DLQ {dlq.arn.rpartition(':')[2]} holds {MESSAGES}: ",
        f"after {RECEIVES} receives (maxReceiveCount) of {TIMEOUT_SECONDS} s each",
    ):
        assert said in finding["because"]
    assert shown[dlq.arn, "dlq_messages_arriving"]["would"] == "waits"

    _scan(account)
    case_id = wait_for_case(account, source, "proposed")
    assert source.attributes()["VisibilityTimeout"] == str(TIMEOUT_SECONDS)
    assert mendq_here(account, "approve", case_id, "--yes").exit_code == 0
    assert source.attributes()["VisibilityTimeout"] == "5"
    _finishes_in_time(source, newest_case(account, source))
    later = datetime.now(UTC) + SCAN_INTERVAL_AND_WINDOW + timedelta(minutes=5)
    for minutes in range(2):
        invoke_function(
            account, "FollowUp", {"time": (later + timedelta(minutes=minutes)).isoformat()}
        )
    wait_for_case(account, source, "watching")
    _scan(account)
    wait_for_case(account, dlq, "proposed")
    case = newest_case(account, dlq)
    assert (case["symptom"], case["steps"][0]["after"]) == ("dlq_messages_waiting", source.arn)


def _finishes_in_time(queue: Queue, case: Mapping[str, Any]) -> None:
    """Handle a message once none of those from before the change may be held any more."""
    settled = datetime.fromisoformat(case["opened_at"]) + timedelta(seconds=6)
    eventually(lambda: datetime.now(UTC) > settled, every_seconds=0.5)
    queue.send()
    queue.delete(queue.receive())

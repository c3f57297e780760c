"""Messages that died because the visibility timeout is too short, and their way back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local_account.process import LocalAccount
from mendq.cases import items
from mendq.model.lifecycle import A_SCAN_AND_ITS_WINDOW
from tests.local_account.callers import invoked
from tests.local_account.mendq_here import case_in, newest_case
from tests.local_account.queues import Queue, eventually
from tests.local_account.slow_consumers import (
    NAME,
    RECEIVES,
    TIMEOUT_SECONDS,
    found,
    source_and_dlq,
    worked_too_slowly,
)

pytestmark = pytest.mark.account
MESSAGES, WORKERS = 120, 28
PUT_BACK_MINUTES = (1, 65)  # the last whole minute is an empty queue's as well


def _scan(account: LocalAccount) -> None:
    """Have the deployed scan begin the hour's round once more."""
    table, note = account.outputs["CaseTable"], items.key(items.ACCOUNT, "scan")
    account.client("dynamodb").delete_item(TableName=table, Key=note)
    assert invoked(account, "Scan", {})["findings"]


def test_what_died_is_found_on_its_empty_source_fixed_and_then_sent_back(
    account: LocalAccount,
) -> None:
    dlq_tags = {"mendq": "heal"}
    (late, late_dlq), (gives_up, given_up) = (source_and_dlq(account, dlq_tags) for _ in range(2))
    worked_too_slowly(account, MESSAGES, WORKERS, late, given_up=(gives_up,))
    dead = {queue.arn: queue.count() for queue in (late_dlq, given_up)}
    assert dead[given_up.arn] == MESSAGES
    assert dead[late_dlq.arn] > MESSAGES / 2, "a late delete that nobody overtook deletes"
    for queue in (late, late_dlq, gives_up, given_up):
        for minutes in PUT_BACK_MINUTES:
            account.put_back(queue.arn, minutes=minutes)

    shown = found(account, late, late_dlq, gives_up, given_up)
    for source, dlq in ((late, late_dlq), (gives_up, given_up)):
        finding = shown[source.arn, NAME]
        assert finding["steps"] == ["VisibilityTimeout: 2 s -> 5 s"]
        holds = f"Its DLQ {dlq.arn.rpartition(':')[2]} holds {dead[dlq.arn]}: "
        goes = f"after {RECEIVES} receives (maxReceiveCount) of {TIMEOUT_SECONDS} s each"
        assert holds in finding["because"]
        assert goes in finding["because"]
        assert shown[dlq.arn, "dlq_messages_arriving"]["would"] == "waits"
    assert "messages were handled twice" in shown[late.arn, NAME]["because"]
    said = f"{MESSAGES} messages left without a delete after {RECEIVES}.0 receives each"
    assert said in shown[gives_up.arn, NAME]["because"]

    _scan(account)
    for source in (late, gives_up):
        case_in(account, source, "applied")
        assert source.attributes()["VisibilityTimeout"] == "5"
    _finishes_in_time(gives_up, newest_case(account, gives_up))
    later = datetime.now(UTC) + A_SCAN_AND_ITS_WINDOW + timedelta(minutes=5)
    for minutes in range(2):
        invoked(account, "FollowUp", {"time": (later + timedelta(minutes=minutes)).isoformat()})
    case_in(account, gives_up, "watching")
    assert newest_case(account, late)["state"] == "unverified", "nobody has used it since"
    _scan(account)
    case_in(account, given_up, "proposed")
    case = newest_case(account, given_up)
    assert (case["symptom"], case["steps"][0]["after"]) == ("dlq_messages_waiting", gives_up.arn)
    assert newest_case(account, late_dlq).get("symptom") != "dlq_messages_waiting"


def _finishes_in_time(queue: Queue, case: Mapping[str, Any]) -> None:
    """Handle a message once none of those from before the change may be held any more."""
    settled = datetime.fromisoformat(case["opened_at"]) + timedelta(seconds=6)
    eventually(lambda: datetime.now(UTC) > settled, every_seconds=0.5)
    queue.send()
    queue.delete(queue.receive())

"""Messages that died because the visibility timeout is too short, and their way back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local_account.demo.redrive import consuming
from local_account.demo.stage import ONCE
from local_account.demo.traffic import Caller, numbered, send
from local_account.process import LocalAccount
from mendq.cases import items
from mendq.model.lifecycle import A_SCAN_AND_ITS_WINDOW
from mendq.model.queue import Redrive
from tests.local_account.callers import invoked
from tests.local_account.mendq_here import case_in, mendq_here, newest_case
from tests.local_account.queues import Queue, eventually, new_queue

pytestmark = pytest.mark.account
MESSAGES, WORKERS, RECEIVES = 300, 70, 3
TIMEOUT_SECONDS, WORK_SECONDS = 2, 3
TAGS = {"mendq": "heal", "mendq:max-processing-seconds": f"{WORK_SECONDS}"}
NAME = "visibility_timeout_too_short"
PUT_BACK_MINUTES = (1, 65)  # the last whole minute is an empty queue's as well


def _source_and_dlq(account: LocalAccount) -> tuple[Queue, Queue]:
    dead = new_queue(account, tags={"mendq": "heal"}, MessageRetentionPeriod="1209600")
    policy = Redrive(dead.arn, RECEIVES).text
    timeout = f"{TIMEOUT_SECONDS}"
    source = new_queue(account, tags=TAGS, VisibilityTimeout=timeout, RedrivePolicy=policy)
    return source, dead


def _consumer(account: LocalAccount, queue: Queue, *, deletes: bool) -> Callable[[], None]:
    """Work for too long, and give up, or delete what others hold by then: SQS answers 200."""
    caller = Caller(account.client("sqs", config=ONCE), queue.url, lambda _: None)

    def consume() -> None:
        messages = caller.receive(MaxNumberOfMessages=10)
        caller.enough.wait(WORK_SECONDS if messages else 0)
        for each in messages if deletes else ():
            caller.delete(each)

    return consume


def _all_die(account: LocalAccount, sources: Mapping[str, Queue]) -> None:
    """Until nothing is left in any; the consumers of `late` delete, and too late."""
    with ExitStack() as consumed:
        for name, queue in sources.items():
            send(Caller(queue.sqs, queue.url, lambda _: None), numbered(MESSAGES))
            consume = _consumer(account, queue, deletes=name == "late")
            consumed.enter_context(consuming(consume, WORKERS))
        eventually(lambda: not any(map(_left, sources.values())), seconds=90, every_seconds=0.5)


def _left(queue: Queue) -> int:
    return queue.count() + queue.count("ApproximateNumberOfMessagesNotVisible")


def _found(account: LocalAccount, *queues: Queue) -> dict[tuple[str, str], Any]:
    """What `mendq scan --dry-run` finds of these queues, by queue and symptom."""
    shown = json.loads(mendq_here(account, "scan", "--dry-run", "--json").stdout)
    arns = {each.arn for each in queues}
    return {
        (each["queue_arn"], each["symptom"]): each
        for each in shown["findings"]
        if each["queue_arn"] in arns
    }


def _scan(account: LocalAccount) -> None:
    """Have the deployed scan begin the hour's round once more."""
    table, note = account.outputs["CaseTable"], items.key(items.ACCOUNT, "scan")
    account.client("dynamodb").delete_item(TableName=table, Key=note)
    assert invoked(account, "Scan", {})["findings"]


def test_what_died_is_found_on_its_empty_source_fixed_and_then_sent_back(
    account: LocalAccount,
) -> None:
    (late, late_dlq), (gives_up, given_up) = (_source_and_dlq(account) for _ in range(2))
    _all_die(account, {"late": late, "gives_up": gives_up})
    dead = {queue.arn: queue.count() for queue in (late_dlq, given_up)}
    assert dead[given_up.arn] == MESSAGES
    assert dead[late_dlq.arn] > MESSAGES / 2, "a late delete that nobody overtook deletes"
    for queue in (late, late_dlq, gives_up, given_up):
        for minutes in PUT_BACK_MINUTES:
            account.put_back(queue.arn, minutes=minutes)

    found = _found(account, late, late_dlq, gives_up, given_up)
    for source, dlq in ((late, late_dlq), (gives_up, given_up)):
        finding = found[source.arn, NAME]
        assert finding["steps"] == ["VisibilityTimeout: 2 s -> 5 s"]
        holds = f"Its DLQ {dlq.arn.rpartition(':')[2]} holds {dead[dlq.arn]}: "
        goes = f"after {RECEIVES} receives (maxReceiveCount) of {TIMEOUT_SECONDS} s each"
        assert holds in finding["because"]
        assert goes in finding["because"]
        assert found[dlq.arn, "dlq_messages_arriving"]["would"] == "waits"
    assert "messages were handled twice" in found[late.arn, NAME]["because"]
    said = f"{MESSAGES} messages left without a delete after 3.0 receives each"
    assert said in found[gives_up.arn, NAME]["because"]

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

"""What a batch as a whole may cost, and what one bad group may cost the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mendq.heal.apply import NOTED_EVERY, with_failures
from mendq.heal.batch import heal_batch
from mendq.model.case import State
from mendq.model.evidence import Evidence
from tests.heal.conftest import ACCOUNT, REGION, WORKER, Account, settings
from tests.heal.test_assess import codes
from tests.heal.test_guardrails import case
from tests.model.test_advance import BEGINS, NEEDED, TIMING, failed


def _fail_all(account: Account, queues: list[str]) -> dict[str, str]:
    bodies: dict[str, str] = {}
    for n, queue in enumerate(queues):
        bodies |= account.late_deletes(queue, f"{n}a", f"{n}b", f"{n}c")
    return bodies


def test_what_there_is_no_time_for_comes_again_and_is_not_begun(account: Account) -> None:
    queues = [account.queue(f"q{n}.fifo", VisibilityTimeout="10") for n in range(3)]
    clock: Iterator[float] = iter([60, 60, 60, 60, 60, 60, 60, 60, 60, *[5.0] * 50])
    run = replace(account.run(), remaining_seconds=lambda: next(clock))
    healed = heal_batch(_fail_all(account, queues), run)
    raised = sum(account.visibility(queue) == 15 for queue in queues)
    assert 0 < raised < 3
    assert len(healed.errors) == 3 * (3 - raised)
    assert len(account.transitions()) == raised


def test_a_forged_event_does_not_poison_the_good_ones(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "\ud800", requestID="\udfff"))
    healed = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert healed.errors == {}
    assert account.visibility(queue) == 45


def _keep_out(account: Account, queue: str, ending: str = "") -> None:
    """As a queue's policy does that denies everybody everything."""
    us = f"arn:aws:sts::{ACCOUNT}:assumed-role/mendq-heal-{REGION}/mendq"

    def deny(model: Any, **_: Any) -> None:
        action = f"sqs:{model.name.lower()}"
        message = (
            f"User: {us} is not authorized to perform: {action} on resource: {queue} "
            f"with an explicit deny in a resource-based policy{ending}"
        )
        error = {"Error": {"Code": "AccessDenied", "Message": message}}
        raise ClientError(error, model.name)  # type: ignore[arg-type]

    for name in ("ListQueueTags", "GetQueueAttributes"):
        account.clients.sqs.meta.events.register(f"before-call.sqs.{name}", deny)


@pytest.mark.parametrize("ending", ["", f": arn:aws:sqs:{REGION}:{ACCOUNT}:orders.fifo"])
def test_the_queues_own_policy_is_its_owners_word(account: Account, ending: str) -> None:
    queue = account.queue(VisibilityTimeout="30")
    _keep_out(account, queue, ending)
    healed = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert codes(healed) == ["queue_refuses_us"]
    assert healed.errors == {}


@pytest.mark.parametrize(("named", "pages"), [((), 0), (("orders.fifo",), 1)])
def test_a_policy_that_keeps_everybody_out_is_reported_where_settings_name_the_queue(
    account: Account, named: tuple[str, ...], pages: int
) -> None:
    account.settings = settings(queues=named)
    queue = account.queue(VisibilityTimeout="30")
    denied = (
        f"User: {WORKER} is not authorized to perform: sqs:sendmessage on resource: {queue} "
        "with an explicit deny in a resource-based policy"
    )
    over = {"eventName": "SendMessage", "errorCode": "AccessDenied", "errorMessage": denied}
    _keep_out(account, queue)
    account.heal(account.late_deletes(queue, "1", "2", "3", **over))
    assert len(account.pages("urgent")) == pages


@pytest.mark.parametrize(
    ("sk", "fields"),
    [
        ("case#visibility_timeout_too_short", {"document": {"S": "{}"}}),
        ("case#visibility_timeout_too_short", {"document": {"S": "not json"}}),
        ("evidence#visibility_timeout_too_short", {"sightings": {"SS": ["[]"]}}),
        ("attribute#VisibilityTimeout", {"writes": {"S": '[["x", 1, 2]]'}}),
        ("attribute#VisibilityTimeout", {"intent": {"S": "[]"}}),
    ],
)
def test_a_case_store_that_cannot_be_read_is_no_leave_to_write(
    account: Account, sk: str, fields: dict[str, Any]
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    item = {"pk": {"S": queue}, "sk": {"S": sk}, **fields}
    account.clients.dynamodb.put_item(TableName="case_store", Item=item)
    healed = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert codes(healed) == ["case_store_unreadable"]
    assert healed.errors == {}
    assert account.visibility(queue) == 30


def test_a_claim_without_an_end_has_run_out(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    item = {
        "pk": {"S": queue},
        "sk": {"S": "attribute#VisibilityTimeout"},
        "claim_owner": {"S": "nobody"},
    }
    account.clients.dynamodb.put_item(TableName="case_store", Item=item)
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.visibility(queue) == 45


OF_A_STACK = {
    "aws:cloudformation:stack-name": "shop",
    "aws:cloudformation:logical-id": "Orders",
}


@pytest.mark.parametrize("tag", ["observe", "heal"])
def test_a_case_says_which_stack_deploys_its_queue(account: Account, tag: str) -> None:
    queue = account.queue(tag=tag, VisibilityTimeout="30")
    url = account.clients.sqs.get_queue_url(QueueName=queue.rpartition(":")[2])["QueueUrl"]
    account.clients.sqs.tag_queue(QueueUrl=url, Tags=OF_A_STACK)
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    (opened,) = account.transitions()
    evidence = opened["evidence"]
    assert (evidence["stack"], evidence["resource"]) == ("shop", "Orders")
    assert evidence["failed_calls"] == 3


def test_a_case_of_a_queue_without_a_stack_names_none(account: Account) -> None:
    account.heal(account.late_deletes(account.queue(VisibilityTimeout="30"), "1", "2", "3"))
    (opened,) = account.transitions()
    assert not {"stack", "resource"} & set(opened["evidence"])


def test_a_storm_of_failed_calls_is_noted_every_five_minutes() -> None:
    applied, known, notes = case(State.APPLIED), Evidence(), 0
    for second in range(3_600):
        call = failed(BEGINS + timedelta(seconds=second))
        event = replace(call.sightings[0], event_id=f"event-{second}")
        noted = with_failures(applied, known, Evidence((event,)), NEEDED, TIMING)
        if noted is not None:
            notes, known = notes + 1, noted
    assert known.suffices(NEEDED)
    assert notes == NEEDED.distinct_events + 3_600 // NOTED_EVERY.seconds - 1


def test_calls_from_before_are_not_noted() -> None:
    early = failed(BEGINS - timedelta(seconds=1))
    assert with_failures(case(State.APPLIED), Evidence(), early, NEEDED, TIMING) is None


def test_the_same_call_is_noted_once() -> None:
    call = failed(BEGINS)
    known = with_failures(case(State.APPLIED), Evidence(), call, NEEDED, TIMING)
    assert known == call
    assert with_failures(case(State.APPLIED), call, call, NEEDED, TIMING) is None

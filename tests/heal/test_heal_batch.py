"""One batch of failed calls: time, invalid records and queues that refuse Mendq."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from mendq.heal.apply import FAILURE_NOTES_PAUSE, merge_failures
from mendq.heal.batch import heal_failed_calls
from mendq.model.evidence import EVENTS_SUFFICIENT_FOR_CASE, Evidence
from mendq.model.state import State
from tests.account.account import ACCOUNT, REGION, WORKER, Account, make_settings
from tests.account.faults import calls_of
from tests.heal.builders import list_refusal_codes, make_late_deletes
from tests.heal.situations import make_case
from tests.model.builders import FAILURES_COUNT_FROM, TIMING, make_failures
from tests.scan.scanner import deny_operation


def test_batch_out_of_time_leaves_other_queues_unchanged_and_retries_their_calls(
    account: Account,
) -> None:
    queues = [account.queue(f"q{n}.fifo", VisibilityTimeout="10") for n in range(3)]
    clock: Iterator[float] = iter([*[60.0] * 12, *[5.0] * 50])
    run = structs.replace(account.run(), remaining_seconds=lambda: next(clock))
    result = heal_failed_calls(make_late_deletes(account, queues), run)
    raised = sum(account.visibility(queue) == 15 for queue in queues)
    assert 0 < raised < 3
    assert len(result.error_by_message_id) == 3 * (3 - raised)
    assert len(account.transitions()) == raised


def test_record_with_invalid_unicode_does_not_stop_later_failed_calls(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "\ud800", requestID="\udfff"))
    result = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert result.error_by_message_id == {}
    assert account.visibility(queue) == 45


def _deny_reading_queues(account: Account, ending: str = "") -> None:
    """Deny Mendq to read the queue, as a queue policy that denies everyone does."""
    for name in ("ListQueueTags", "GetQueueAttributes"):
        deny_operation(account.clients.sqs, name, words=f"a resource-based policy{ending}")


@pytest.mark.parametrize("ending", ["", f": arn:aws:sqs:{REGION}:{ACCOUNT}:orders.fifo"])
def test_queue_whose_policy_denies_mendq_is_not_changed_and_its_calls_are_not_retried(
    account: Account, ending: str
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    _deny_reading_queues(account, ending)
    calls = calls_of(account)
    result = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert list_refusal_codes(result) == ["queue_refuses_us"]
    assert result.error_by_message_id == {}
    assert "SetQueueAttributes" not in calls
    assert account.transitions() == []


def test_queue_whose_policy_denies_mendq_only_its_attributes_is_not_changed_recorded_or_retried(
    account: Account,
) -> None:
    """The policy lets Mendq read the tags but not the attributes."""
    queue = account.queue(VisibilityTimeout="30")
    before = account.attributes(queue)
    items = account.case_store_items()
    let_in = deny_operation(
        account.clients.sqs, "GetQueueAttributes", words="a resource-based policy"
    )
    result = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert list_refusal_codes(result) == ["queue_refuses_us"]
    assert result.error_by_message_id == {}, "the calls are not delivered again"
    let_in()
    assert account.attributes(queue) == before
    assert account.transitions() == []
    noted = account.case_store_items().keys() - items.keys()
    assert {key[1] for key in noted if key[0] == queue} == set()


@pytest.mark.parametrize(("named", "pages"), [((), 0), (("orders.fifo",), 1)])
def test_queue_policy_that_denies_everyone_is_reported_only_if_the_settings_name_the_queue(
    account: Account, named: tuple[str, ...], pages: int
) -> None:
    account.settings = make_settings(queues=named)
    queue = account.queue(VisibilityTimeout="30")
    denied = (
        f"User: {WORKER} is not authorized to perform: sqs:sendmessage on resource: {queue} "
        "with an explicit deny in a resource-based policy"
    )
    over = {"eventName": "SendMessage", "errorCode": "AccessDenied", "errorMessage": denied}
    _deny_reading_queues(account)
    account.heal(account.late_deletes(queue, "1", "2", "3", **over))
    assert ["orders.fifo" in body for _, body in account.pages("urgent")] == [True] * pages


def test_claim_without_an_expiry_does_not_stop_a_fix(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    key = {"pk": {"S": queue}, "sk": {"S": "attribute#VisibilityTimeout"}}
    claimed = {**key, "claim_owner": {"S": "nobody"}}
    account.clients.dynamodb.put_item(TableName="case_store", Item=claimed)
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.visibility(queue) == 45


def test_case_evidence_names_the_cloudformation_stack_and_resource(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    of_a_stack = {"stack-name": "shop", "logical-id": "Orders"}
    account.tag(queue, **{f"aws:cloudformation:{tag}": of_a_stack[tag] for tag in of_a_stack})
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    evidence = account.transitions()[0]["evidence"]
    assert (evidence["stack"], evidence["resource"]) == ("shop", "Orders")


def test_calls_failing_after_a_fix_are_stored_until_sufficient_then_every_five_minutes() -> None:
    applied = make_case(State.APPLIED)
    known = Evidence()
    notes = 0
    for second in range(3_600):
        call = make_failures(FAILURES_COUNT_FROM + timedelta(seconds=second))
        event = replace(call.sightings[0], event_id=f"event-{second}")
        noted = merge_failures(applied, known, Evidence((event,)), TIMING)
        if noted is not None:
            notes = notes + 1
            known = noted
    assert known.is_sufficient
    assert notes == EVENTS_SUFFICIENT_FOR_CASE + 3_600 // FAILURE_NOTES_PAUSE.seconds - 1


def test_failed_calls_from_before_the_fix_are_not_stored() -> None:
    early = make_failures(FAILURES_COUNT_FROM - timedelta(seconds=1))
    assert merge_failures(make_case(State.APPLIED), Evidence(), early, TIMING) is None

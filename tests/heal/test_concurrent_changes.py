"""People, crashes and other runs act between heal's read, claim and write."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.stub import Stubber

from mendq.model.case import Case
from tests.account.account import Account
from tests.account.faults import Fault, Killed, come_between
from tests.heal.builders import list_refusal_codes

# The calls of a fixed queue, in order; the write is the eighth.
CLAIM = 6
WRITE = 8


def _settled_queue(account: Account, visibility: int = 30) -> str:
    """Make a queue that was not changed for five minutes."""
    queue = account.queue(VisibilityTimeout=str(visibility))
    account.later(minutes=5)
    return queue


def _die_at_call(account: Account, queue: str, kind: str, at: int) -> None:
    fault = Fault(account, kind, at)
    with pytest.raises(Killed):
        account.heal(account.late_deletes(queue, "1", "2", "3"))
    fault.strike_at = -1


def _redeliver(account: Account, queue: str) -> None:
    """Deliver the same events again after the intake queue's visibility timeout."""
    bodies = account.late_deletes(queue, "1", "2", "3")
    account.later(minutes=7)
    account.heal(bodies)


def test_value_that_a_person_sets_between_read_and_write_is_kept_and_no_case_is_recorded(
    account: Account,
) -> None:
    queue = _settled_queue(account)
    come_between(
        account, "sqs.GetQueueAttributes", lambda: account.set_visibility(queue, 20), nth=2
    )
    result = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.visibility(queue) == 20
    assert list_refusal_codes(result) == ["changed_meanwhile"]
    assert len(result.error_by_message_id) == 3
    assert "claim_owner" not in account.attribute_item(queue)
    assert not [sk for _, sk in account.case_store_items() if sk.startswith("snapshot")]
    assert account.transitions() == []


def test_write_whose_answer_was_lost_is_not_repeated_over_a_persons_value(account: Account) -> None:
    queue = _settled_queue(account)

    def lose(**_: Any) -> None:
        account.later(seconds=5)
        account.set_visibility(queue, 20)
        raise ReadTimeoutError(endpoint_url="moto")

    account.clients.sqs_for_writing.meta.events.register_last("before-send", lose)
    result = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.visibility(queue) == 20
    assert len(result.error_by_message_id) == 3
    _redeliver(account, queue)
    assert account.visibility(queue) == 20
    assert account.transitions()[-1]["to"] == "overridden"


def test_write_of_a_run_that_died_is_recorded_even_in_a_freeze_once_its_claim_has_expired(
    account: Account,
) -> None:
    """Nothing is recorded while the dead run's claim is valid."""
    queue = _settled_queue(account)
    _die_at_call(account, queue, "killed_after", WRITE)
    account.freeze()
    assert account.visibility(queue) == 45
    assert list_refusal_codes(account.heal(account.late_deletes(queue, "4", "5", "6"))) == [
        "claimed"
    ]
    assert account.transitions() == []
    _redeliver(account, queue)
    assert [transition["to"] for transition in account.transitions()] == ["applied"]
    assert "claim_owner" not in account.attribute_item(queue)


def test_write_that_sqs_refuses_escalates_the_case_and_releases_the_claim(account: Account) -> None:
    queue = _settled_queue(account)
    with Stubber(account.clients.sqs_for_writing) as sqs:
        sqs.add_client_error("set_queue_attributes", "InvalidAttributeValue")
        result = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert result.error_by_message_id == {}
    assert account.visibility(queue) == 30
    assert account.transitions()[0]["to"] == "escalated"
    assert "claim_owner" not in account.attribute_item(queue)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ({"VisibilityTimeout": "30"}, 30),
        ({"VisibilityTimeout": "20"}, 20),
        ({"DelaySeconds": "1"}, 45),
    ],
)
def test_queue_changed_after_a_run_died_at_its_write_is_overridden_and_not_written_again(
    account: Account, change: dict[str, str], value: int
) -> None:
    """Nobody can know who set 45. Mendq keeps the person's earlier value and writes no more."""
    queue = _settled_queue(account)
    _die_at_call(account, queue, "killed_after", WRITE)
    account.later(minutes=5)
    account.set(queue, **change)
    _redeliver(account, queue)
    assert account.transitions()[-1]["to"] == "overridden"
    assert account.attribute_item(queue)["person_value"] == {"S": "30"}
    account.later(hours=1)
    account.heal(account.late_deletes(queue, "4", "5", "6"))
    assert account.visibility(queue) == value


@pytest.mark.parametrize("tag", ["off", "observe"])
def test_write_of_a_run_that_died_is_recorded_even_if_the_queue_left_heal_mode(
    account: Account, tag: str
) -> None:
    queue = _settled_queue(account)
    _die_at_call(account, queue, "killed_after", WRITE)
    account.tag(queue, mendq=tag)
    _redeliver(account, queue)
    (case,) = account.transitions()
    assert case["to"] == "applied"
    assert "claim_owner" not in account.attribute_item(queue)


def test_value_that_a_person_sets_is_not_recorded_as_the_fix_of_a_run_that_died_before_writing(
    account: Account,
) -> None:
    queue = _settled_queue(account)
    _die_at_call(account, queue, "killed_after", CLAIM)
    account.tag(queue, mendq="off")
    _redeliver(account, queue)
    assert "intent" not in account.attribute_item(queue)
    account.later(days=21)
    account.set_visibility(queue, 45)
    account.tag(queue, mendq="observe")
    account.later(hours=1)
    account.heal(account.late_deletes(queue, "9"))
    assert account.transitions() == []
    assert "person_value" not in account.attribute_item(queue)


def test_release_by_a_run_that_does_not_hold_the_claim_changes_nothing_in_the_case_store(
    account: Account,
) -> None:
    queue = _settled_queue(account)
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    (case,) = account.transitions()
    before = account.case_store_items()
    case_store = account.run().case_store
    seen = case_store.look(queue, "visibility_timeout_too_short", ())
    case_store.release(Case.from_document(case), "invocation-zombie", seen)
    assert account.case_store_items() == before


def test_two_concurrent_runs_write_a_queue_once(account: Account) -> None:
    queue = _settled_queue(account)
    bodies = account.late_deletes(queue, "1", "2", "3")
    come_between(account, "dynamodb.TransactWriteItems", lambda: account.heal(bodies))
    assert list_refusal_codes(account.heal(bodies)) == ["claimed"]
    assert account.visibility(queue) == 45
    assert len(account.transitions()) == 1


def test_run_does_not_write_while_another_runs_claim_is_valid(account: Account) -> None:
    """The second run read the queue before the claim, so only the case store can stop its write."""
    queue = _settled_queue(account)
    bodies = account.late_deletes(queue, "1", "2", "3")
    come_between(
        account,
        "sqs.GetQueueAttributes",
        lambda: _die_at_call(account, queue, "killed_after", CLAIM),
    )
    assert list_refusal_codes(account.heal(bodies)) == ["claimed"]
    assert account.visibility(queue) == 30
    assert account.transitions() == []


def test_failed_calls_that_two_concurrent_runs_store_add_up_to_a_fix(account: Account) -> None:
    queue = _settled_queue(account)
    account.heal(account.late_deletes(queue, "1"))
    other = account.late_deletes(queue, "2")
    come_between(account, "dynamodb.UpdateItem", lambda: account.heal(other))
    last = account.late_deletes(queue, "3")
    assert [*account.heal(last).error_by_message_id] == [*last], (
        "it comes again, and finds the others' too"
    )
    account.heal(last)
    assert account.visibility(queue) == 45

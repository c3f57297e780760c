"""An operator rolls a case back."""

from __future__ import annotations

import pytest
from botocore.stub import Stubber
from msgspec.structs import replace

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.model.limits import Limits
from tests.account.account import Account
from tests.account.faults import Fault, Killed, calls_of, come_between
from tests.heal.operators import (
    ALICE,
    call_without_effect,
    fail_calls,
    list_states,
    load_newest_case,
    make_failing_queue,
    move_case,
    outcomes_by_attribute,
    roll_back,
)
from tests.scan.scanner import deny_operation

WEEK_SECONDS = 7 * 24 * 3600
# The calls of a rollback, in order; the write is the seventh.
CLAIM = 5
WRITE = 7


@pytest.fixture
def fixed_queue(account: Account) -> str:
    """A queue that heal raised from 30 to 45 some minutes ago."""
    return make_failing_queue(account)


def test_rollback_of_a_case_that_wrote_nothing_is_refused_and_changes_nothing(
    account: Account,
) -> None:
    queue = account.queue(tag="observe", VisibilityTimeout="30")
    fail_calls(account, queue)
    answer = call_without_effect(
        account, queue, lambda: roll_back(account, load_newest_case(account).case_id)
    )
    assert answer["error"] == "nothing_written"


def test_rollback_of_another_accounts_case_is_refused_and_changes_nothing(
    account: Account, fixed_queue: str
) -> None:
    case_id = load_newest_case(account).case_id
    account.settings = replace(account.settings, account="999999999999")
    answer = call_without_effect(account, fixed_queue, lambda: roll_back(account, case_id))
    assert answer["error"] == "elsewhere"


def test_rollback_dry_run_reports_the_undo_and_changes_nothing(
    account: Account, fixed_queue: str
) -> None:
    case_id = load_newest_case(account).case_id
    dry = call_without_effect(
        account, fixed_queue, lambda: roll_back(account, case_id, dry_run=True)
    )
    assert (dry["case_id"], dry["state"]) == (case_id, "applied")
    values = {"before": "30", "after": "45", "now": "45", "command": ""}
    assert dry["attributes"] == [{"attribute": "VisibilityTimeout", "outcome": "undone", **values}]
    assert outcomes_by_attribute(roll_back(account, case_id)) == outcomes_by_attribute(dry)


def test_rollback_restores_the_value_from_before_the_fix_and_no_other_attribute(
    account: Account, fixed_queue: str
) -> None:
    before = account.attributes(fixed_queue)
    case = load_newest_case(account)
    answer = roll_back(account, case.case_id)
    assert answer["state"] == "rolled_back"
    assert answer["attributes"][0]["now"] == "30"
    now = account.attributes(fixed_queue)
    assert now.pop("LastModifiedTimestamp") != before.pop("LastModifiedTimestamp")
    assert now == {**before, "VisibilityTimeout": "30"}


def test_rollback_records_the_operator_and_the_undone_step_in_the_case(
    account: Account, fixed_queue: str
) -> None:
    roll_back(account, load_newest_case(account).case_id)
    undone = load_newest_case(account)
    assert undone.queue_arn == fixed_queue
    assert (undone.n, undone.came_from, undone.actor) == (2, "applied", ALICE)
    assert undone.steps == ({"attribute": "VisibilityTimeout", "before": "45", "after": "30"},)


def test_rollback_closes_the_case_and_leaves_the_attribute_alone_for_a_week(
    account: Account, fixed_queue: str
) -> None:
    roll_back(account, load_newest_case(account).case_id)
    item = account.attribute_item(fixed_queue)
    assert item["writes"] == {"S": "[]"}
    assert item["overridden_until"] == {"N": str(int(account.now.timestamp()) + WEEK_SECONDS)}
    assert not {"claim_owner", "intent", "person_value"} & set(item)
    assert (
        "open" not in account.case_store_items()[fixed_queue, "case#visibility_timeout_too_short"]
    )


@pytest.mark.parametrize(("value", "outcome"), [(44, "kept"), (90, "kept"), (30, "nothing")])
def test_rollback_after_a_person_changed_the_value_changes_neither_queue_nor_case(
    account: Account, fixed_queue: str, value: int, outcome: str
) -> None:
    account.set_visibility(fixed_queue, value)
    answer = call_without_effect(
        account, fixed_queue, lambda: roll_back(account, load_newest_case(account).case_id)
    )
    assert (answer["state"], outcomes_by_attribute(answer)) == (
        "applied",
        {"VisibilityTimeout": outcome},
    )


@pytest.mark.parametrize(
    ("value", "outcome"), [(30, "undone"), (45, "kept"), (44, "kept"), (90, "kept")]
)
def test_second_rollback_reports_the_current_value_and_changes_nothing(
    account: Account, fixed_queue: str, value: int, outcome: str
) -> None:
    case_id = load_newest_case(account).case_id
    roll_back(account, case_id)
    account.later(minutes=5)
    account.set_visibility(fixed_queue, value)
    again = call_without_effect(account, fixed_queue, lambda: roll_back(account, case_id))
    assert (again["state"], outcomes_by_attribute(again)) == (
        "rolled_back",
        {"VisibilityTimeout": outcome},
    )
    assert [(attribute["now"], attribute["command"]) for attribute in again["attributes"]] == [
        (str(value), "")
    ]


def test_rollback_works_in_a_freeze_without_write_budget_and_without_tag(
    account: Account, fixed_queue: str
) -> None:
    account.freeze()
    account.settings = replace(account.settings, limits=Limits(writes_per_minute=0))
    account.clients.sqs.untag_queue(QueueUrl=account.url(fixed_queue), TagKeys=["mendq"])
    assert roll_back(account, load_newest_case(account).case_id)["state"] == "rolled_back"
    assert account.visibility(fixed_queue) == 30


def test_rollback_with_too_little_time_left_writes_nothing_and_keeps_no_claim(
    account: Account, fixed_queue: str
) -> None:
    case_id = load_newest_case(account).case_id
    answer = roll_back(account, case_id, remaining_seconds=5)
    assert answer["error"] == "too_little_time"
    assert account.visibility(fixed_queue) == 45
    assert "claim_owner" not in account.attribute_item(fixed_queue)
    assert roll_back(account, case_id)["state"] == "rolled_back"


def test_rollback_that_sqs_refuses_answers_the_command_to_run_and_keeps_no_claim(
    account: Account, fixed_queue: str
) -> None:
    case_id = load_newest_case(account).case_id
    with Stubber(account.clients.sqs_for_writing) as sqs:
        sqs.add_client_error("set_queue_attributes", "AccessDenied", "not tagged", 403)
        answer = roll_back(account, case_id)
    assert answer["error"] == "aws_refused"
    assert "not tagged" in answer["reason"]
    (by_person,) = answer["attributes"]
    assert (by_person["outcome"], by_person["now"]) == ("printed", "45")
    assert by_person["command"].startswith("aws sqs set-queue-attributes ")
    assert by_person["command"].endswith(" --attributes VisibilityTimeout=30")
    assert account.visibility(fixed_queue) == 45
    assert "claim_owner" not in account.attribute_item(fixed_queue)
    assert list_states(account) == ["applied"]


def test_rollback_and_its_dry_run_are_refused_while_another_run_holds_the_claim(
    account: Account, fixed_queue: str
) -> None:
    case_id = load_newest_case(account).case_id
    _die_at_call(account, case_id, at=CLAIM)
    answer = call_without_effect(account, fixed_queue, lambda: roll_back(account, case_id))
    assert answer["error"] == "claimed"
    dry = call_without_effect(
        account, fixed_queue, lambda: roll_back(account, case_id, dry_run=True)
    )
    assert dry["error"] == "claimed"


def test_rollback_of_a_case_is_refused_until_the_queues_newer_case_is_rolled_back(
    account: Account, fixed_queue: str
) -> None:
    first = load_newest_case(account)
    move_case(account, first, "closed")
    account.later(hours=1)
    fail_calls(account, fixed_queue, "b")
    newer = load_newest_case(account)
    assert newer.case_id != first.case_id
    answer = call_without_effect(account, fixed_queue, lambda: roll_back(account, first.case_id))
    assert answer["error"] == "wrong_state"
    assert newer.case_id in answer["reason"]
    assert roll_back(account, newer.case_id)["attributes"][0]["now"] == "45"
    assert roll_back(account, first.case_id)["attributes"][0]["now"] == "30"
    assert account.visibility(fixed_queue) == 30


def _die_at_call(account: Account, case_id: str, at: int) -> None:
    fault = Fault(account, "killed_after", at)
    with pytest.raises(Killed):
        roll_back(account, case_id)
    fault.strike_at = -1


def test_value_that_a_person_sets_after_a_rollback_died_is_kept_and_the_case_is_overridden(
    account: Account, fixed_queue: str
) -> None:
    case_id = load_newest_case(account).case_id
    _die_at_call(account, case_id, WRITE)
    account.later(minutes=2)
    account.set_visibility(fixed_queue, 45)
    answer = roll_back(account, case_id)
    assert answer["state"] == "overridden"
    assert account.visibility(fixed_queue) == 45


def test_failed_calls_after_a_rollback_are_reported_once_in_a_week_and_then_only_proposed(
    account: Account, fixed_queue: str
) -> None:
    roll_back(account, load_newest_case(account).case_id)
    account.later(hours=1)
    fail_calls(account, fixed_queue, "again-")
    assert list_states(account) == ["applied", "rolled_back", "refused"]
    ((subject, body),) = account.pages("info")
    assert subject.startswith("Mendq refused: visibility timeout too short on orders.fifo in ")
    assert "it shows again since VisibilityTimeout was rolled back" in body
    transitions = account.transitions()
    pages = account.pages("info")
    account.later(hours=-1)
    for day in range(6):
        account.later(days=1)
        fail_calls(account, fixed_queue, f"day{day}-")
    account.later(hours=23, minutes=59)
    fail_calls(account, fixed_queue, "last-")
    assert account.visibility(fixed_queue) == 30
    assert account.transitions() == transitions
    assert account.pages("info") == pages
    account.later(minutes=1)
    fail_calls(account, fixed_queue, "after-")
    assert list_states(account) == ["applied", "rolled_back", "refused", "proposed"]
    assert account.visibility(fixed_queue) == 30, "what was taken back waits for a person"


WRITES = {
    *("SetQueueAttributes", "TransactWriteItems", "UpdateItem", "PutItem", "DeleteItem"),
    *("PutObject", "Publish", "PutEvents", "Invoke"),
}


@pytest.mark.parametrize("at", [CLAIM, WRITE])
def test_dry_run_of_a_rollback_that_died_changes_nothing_and_the_next_rollback_finishes_it(
    account: Account, fixed_queue: str, at: int
) -> None:
    """A dry run must change nothing, although the next rollback would finish the dead one."""
    case_id = load_newest_case(account).case_id
    _die_at_call(account, case_id, at)
    account.later(minutes=3)
    calls = calls_of(account)
    dry = call_without_effect(
        account, fixed_queue, lambda: roll_back(account, case_id, dry_run=True)
    )
    assert dry["error"] == "claimed"
    assert "ask again in two minutes" in dry["reason"]
    assert WRITES.isdisjoint(calls)
    assert roll_back(account, case_id)["state"] == "rolled_back"
    assert account.visibility(fixed_queue) == 30


def test_rollback_dry_run_makes_no_writing_aws_call(account: Account, fixed_queue: str) -> None:
    calls = calls_of(account)
    roll_back(account, load_newest_case(account).case_id, dry_run=True)
    assert {"GetQueueAttributes", "TransactGetItems"} <= {*calls}
    assert WRITES.isdisjoint(calls)


def test_rollback_of_a_case_of_an_unknown_symptom_is_refused_and_changes_nothing(
    account: Account, fixed_queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = load_newest_case(account)
    monkeypatch.delitem(SYMPTOM_BY_NAME, case.symptom)
    answer = call_without_effect(account, fixed_queue, lambda: roll_back(account, case.case_id))
    assert answer["error"] == "unknown_symptom"
    assert "`mendq close`" in answer["reason"]


def test_rollback_reads_a_case_again_that_changed_meanwhile_and_rolls_it_back(
    account: Account, fixed_queue: str
) -> None:
    """The state changes between rollback's two reads of the case store."""
    case = load_newest_case(account)
    come_between(
        account, "dynamodb.TransactGetItems", lambda: move_case(account, case, "escalated")
    )
    assert roll_back(account, case.case_id)["state"] == "rolled_back"
    assert account.visibility(fixed_queue) == 30
    undone = load_newest_case(account)
    assert (undone.n, undone.came_from) == (3, "escalated")


def test_rollback_is_refused_and_writes_nothing_if_the_case_state_keeps_changing(
    account: Account, fixed_queue: str
) -> None:
    case = load_newest_case(account)
    for nth, state in enumerate(("escalated", "overridden", "closed"), start=1):
        come_between(
            account,
            "dynamodb.TransactGetItems",
            lambda state=state: move_case(account, load_newest_case(account), state),  # type: ignore[misc]
            nth=2 * nth - 1,
        )
    answer = roll_back(account, case.case_id)
    assert answer["error"] == "claimed"
    assert account.visibility(fixed_queue) == 45
    assert list_states(account) == ["applied", "escalated", "overridden", "closed"]


def test_rollback_of_a_deleted_queue_is_refused_and_changes_nothing(
    account: Account, fixed_queue: str
) -> None:
    case_id = load_newest_case(account).case_id
    account.clients.sqs.delete_queue(QueueUrl=account.url(fixed_queue))
    items = account.case_store_items()
    calls = calls_of(account)
    answer = roll_back(account, case_id)
    assert answer["error"] == "queue_gone"
    assert answer["reason"] == f"there is no queue {fixed_queue} any more"
    assert WRITES.isdisjoint(calls)
    assert account.case_store_items() == items
    assert list_states(account) == ["applied"]


def test_rollback_of_a_queue_whose_policy_denies_mendq_is_refused_and_changes_nothing(
    account: Account, fixed_queue: str
) -> None:
    case_id = load_newest_case(account).case_id
    words = "a resource-based policy"
    let_in = deny_operation(account.clients.sqs, "GetQueueAttributes", words=words)
    items = account.case_store_items()
    calls = calls_of(account)
    answer = roll_back(account, case_id)
    assert answer["error"] == "queue_refuses_us"
    assert f"with an explicit deny in {words}" in answer["reason"]
    assert WRITES.isdisjoint(calls)
    assert account.case_store_items() == items
    let_in()
    assert account.visibility(fixed_queue) == 45
    assert roll_back(account, case_id)["state"] == "rolled_back"

"""Heal turns the failed calls of a queue into a fix and a recorded case."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mendq.heal.guardrails import MAXIMUM_DRILLS
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.model.tags import DRILL_TAG
from tests.account.account import ACCOUNT, REGION, Account, make_settings
from tests.account.faults import calls_of, come_between
from tests.heal.builders import list_refusal_codes, make_late_deletes
from tests.scan.scanner import deny_operation


def test_heal_of_an_untagged_queue_changes_and_records_nothing(account: Account) -> None:
    queue = account.queue(tag=None, VisibilityTimeout="2")
    before = account.attributes(queue)
    result = account.heal(account.late_deletes(queue, "1", "2", "3", "4"))
    assert account.attributes(queue) == before
    assert account.case_store_items() == {}
    assert account.transitions() == []
    assert list_refusal_codes(result) == ["not_managed"]


@pytest.mark.parametrize("tag", ["observe", "heal ", "HEAL", ""])
def test_heal_with_an_observe_or_invalid_tag_changes_nothing_and_records_the_fix_as_observed(
    account: Account, tag: str
) -> None:
    queue = account.queue(tag=tag, VisibilityTimeout="2")
    before = account.attributes(queue)
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.attributes(queue) == before
    (case,) = account.transitions()
    assert case["to"] == "observed"
    assert case["steps"] == [{"attribute": "VisibilityTimeout", "before": "2", "after": "3"}]


def _list_evidence_items(account: Account) -> list[str]:
    return [sort for _, sort in account.case_store_items() if sort.startswith("evidence")]


def test_third_failed_call_fixes_the_queue_although_each_call_came_in_a_batch_of_its_own(
    account: Account,
) -> None:
    queue = account.queue(VisibilityTimeout="2")
    for event_id in ("1", "2"):
        account.heal(account.late_deletes(queue, event_id))
    assert account.visibility(queue) == 2
    account.heal(account.late_deletes(queue, "3"))
    assert account.visibility(queue) == 3


def test_case_names_the_number_the_first_request_and_the_callers_of_its_failed_calls(
    account: Account,
) -> None:
    queue = account.queue(VisibilityTimeout="2")
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    (case,) = account.transitions()
    assert case["evidence"]["failed_calls"] == 3
    assert case["evidence"]["first_request_id"] == "request-1"
    assert case["evidence"]["principals"] == [f"arn:aws:iam::{ACCOUNT}:role/orders-worker"]


def test_stored_failed_calls_are_removed_once_a_case_is_recorded(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="2")
    account.heal(account.late_deletes(queue, "1", "2"))
    assert _list_evidence_items(account) == ["evidence#visibility_timeout_too_short"]
    account.heal(account.late_deletes(queue, "3"))
    assert _list_evidence_items(account) == []


def test_fix_is_recorded_as_an_applied_case_with_account_symptom_and_actor_and_not_notified(
    account: Account,
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    (case,) = account.transitions()
    assert (case["schema"], case["n"], case["from"], case["to"]) == (1, 1, None, "applied")
    assert (case["account"], case["region"]) == (ACCOUNT, REGION)
    assert case["symptom"] == "visibility_timeout_too_short"
    assert (case["actor"], case["notified"]) == ("heal", False)


def test_fix_stores_the_earlier_value_in_a_snapshot_and_as_the_persons_value(
    account: Account,
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    (case,) = account.transitions()
    snapshot = account.case_store_items()[queue, f"snapshot#{case['case_id']}#1"]
    assert '"VisibilityTimeout": "30"' in snapshot["configuration"]["S"]
    assert account.attribute_item(queue)["person_value"] == {"S": "30"}


def test_fix_releases_its_claim_on_the_attribute(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.visibility(queue) == 45
    assert "claim_owner" not in account.attribute_item(queue)


def test_failed_calls_by_mendqs_own_role_are_ignored(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="2")
    role = f"arn:aws:sts::{ACCOUNT}:assumed-role/mendq-heal-{REGION}"
    own = {"sessionContext": {"sessionIssuer": {"arn": role}}}
    result = account.heal(account.late_deletes(queue, "1", "2", "3", userIdentity=own))
    assert account.visibility(queue) == 2
    assert result.ignored_call_reasons == ["own_call"] * 3


def test_timeout_set_by_a_person_after_a_fix_is_kept_for_11_days_and_the_case_is_overridden(
    account: Account,
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    account.set_visibility(queue, 10)
    account.later(hours=49)
    account.heal(account.late_deletes(queue, "4", "5", "6"))
    assert account.visibility(queue) == 10
    assert account.transitions()[-1]["to"] == "overridden"
    for event in range(9):
        account.later(days=1)
        account.heal(account.late_deletes(queue, f"{event}a", f"{event}b", f"{event}c"))
    assert account.visibility(queue) == 10
    assert account.transitions()[-1]["to"] == "overridden"


def test_queue_beyond_the_writes_per_minute_limit_is_fixed_at_its_next_failed_call(
    account: Account,
) -> None:
    account.settings = make_settings(limits=Limits(writes_per_minute=2))
    queues = [account.queue(f"q{n}.fifo", VisibilityTimeout="10") for n in range(3)]
    result = account.heal(make_late_deletes(account, queues))
    assert sorted(account.visibility(queue) for queue in queues) == [10, 15, 15]
    assert list_refusal_codes(result) == ["account_budget"]
    assert len(result.error_by_message_id) == 3
    account.later(minutes=1)
    account.heal(account.late_deletes(queues[2], "one-more"))
    assert [account.visibility(queue) for queue in queues] == [15, 15, 15]


def test_queue_beyond_three_with_the_symptom_within_an_hour_is_fixed_only_after_the_hour(
    account: Account,
) -> None:
    queues = [account.queue(f"q{n}.fifo", VisibilityTimeout="10") for n in range(5)]
    account.heal(make_late_deletes(account, queues[:3]))
    account.later(minutes=59)
    account.heal(make_late_deletes(account, queues[3:]))
    assert [account.visibility(queue) for queue in queues] == [15, 15, 15, 10, 10]
    assert "within the hour" in account.transitions()[-1]["reason"]
    account.later(minutes=90)
    account.heal(make_late_deletes(account, queues[4:]))
    assert account.visibility(queues[4]) == 15


def test_three_queues_with_the_symptom_are_fixed_without_listing_the_managed_queues(
    account: Account,
) -> None:
    """Three queues never share a cause, so heal does not need to count the others."""
    queues = [account.queue(f"q{n}.fifo", VisibilityTimeout="10") for n in range(3)]
    deny_operation(account.clients.tagging, "GetResources")
    calls = calls_of(account)
    healed = account.heal(make_late_deletes(account, queues))
    assert healed.error_by_message_id == {}
    assert [account.visibility(queue) for queue in queues] == [15] * 3
    assert "GetResources" not in calls


def test_mass_symptom_over_several_batches_changes_no_queue_and_notifies_people_once(
    account: Account,
) -> None:
    queues = [account.queue(f"q{n}.fifo", VisibilityTimeout="10") for n in range(24)]
    for first in range(0, len(queues), 6):
        assert (
            account.heal(make_late_deletes(account, queues[first : first + 6])).error_by_message_id
            == {}
        )
        account.later(seconds=5)
    assert [account.visibility(queue) for queue in queues] == [10] * len(queues)
    cases = account.transitions()
    assert sorted(case["queue_arn"] for case in cases) == sorted(queues)
    assert {case["to"] for case in cases} == {"refused"}
    assert all(case["reason"].endswith("the cause is not this queue's") for case in cases)
    assert len(account.pages("urgent") + account.pages("info")) == 1


def test_mass_symptom_of_queues_tagged_heal_is_not_hidden_by_many_healthy_ones_tagged_observe(
    account: Account,
) -> None:
    queues = [account.queue(f"q{n}.fifo", VisibilityTimeout="10") for n in range(4)]
    for n in range(80):
        account.queue(f"of-a-stranger-{n}", tag="observe")
    assert (
        list_refusal_codes(account.heal(make_late_deletes(account, queues))) == ["mass_symptom"] * 4
    )
    assert [account.visibility(queue) for queue in queues] == [10] * 4


def test_heal_without_the_case_store_changes_nothing_and_retries_the_events(
    account: Account,
) -> None:
    account.settings = replace(account.settings, case_table="gone")
    queue = account.queue(VisibilityTimeout="10")
    result = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.visibility(queue) == 10
    assert {type(error).__name__ for error in result.error_by_message_id.values()} == {
        "CaseStoreUnavailable"
    }


@pytest.mark.parametrize("named", [(), ("gone.fifo",)])
def test_failed_calls_to_a_deleted_queue_cause_no_error_and_no_case_even_if_settings_name_it(
    account: Account, named: tuple[str, ...]
) -> None:
    account.settings = make_settings(queues=named, mode=Mode.HEAL)
    gone = f"arn:aws:sqs:{REGION}:{ACCOUNT}:gone.fifo"
    result = account.heal(account.late_deletes(gone, "1", "2", "3"))
    assert result.error_by_message_id == {}
    assert account.transitions() == []


def test_heal_does_not_write_if_the_queue_is_recreated_between_read_and_claim(
    account: Account,
) -> None:
    queue = account.queue(VisibilityTimeout="30")

    def remake() -> None:
        account.clients.sqs.delete_queue(QueueUrl=account.url(queue))
        account.later(seconds=61)
        account.queue(tag=None, VisibilityTimeout="30")

    come_between(account, "dynamodb.TransactWriteItems", remake)
    result = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.visibility(queue) == 30
    assert list_refusal_codes(result) == ["changed_meanwhile"]


def _make_fixed_queue(account: Account) -> str:
    queue = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    account.later(minutes=5)
    return queue


def _read_stored_failures(account: Account, queue: str) -> str:
    return str(account.case_store_items()[queue, "case#visibility_timeout_too_short"]["failures"])


@pytest.mark.parametrize(
    ("conflicts", "is_delivered_again"),
    [pytest.param(1, False, id="one conflict"), pytest.param(2, True, id="two conflicts")],
)
def test_failed_call_after_a_fix_is_stored_despite_one_concurrent_run_and_redelivered_after_two(
    account: Account, conflicts: int, is_delivered_again: bool
) -> None:
    """Heal retries immediately, but only once. After a second conflict SQS delivers the call
    again.
    """
    queue = _make_fixed_queue(account)
    others = [account.late_deletes(queue, f"other-{n}") for n in range(conflicts)]
    is_in: list[int] = []

    def run_concurrently(**_: Any) -> None:
        if others and not is_in:
            is_in.append(1)
            account.heal(others.pop())
            is_in.clear()

    events: Any = account.clients.dynamodb.meta.events
    events.register("before-call.dynamodb.UpdateItem", run_concurrently)
    result = account.heal(account.late_deletes(queue, "mine"))
    assert ("message-mine" in result.error_by_message_id) is is_delivered_again
    if is_delivered_again:
        assert account.heal(account.late_deletes(queue, "mine")).error_by_message_id == {}
    assert "mine" in _read_stored_failures(account, queue)
    assert all(f"other-{n}" in _read_stored_failures(account, queue) for n in range(conflicts))


def test_queue_tagged_as_a_drill_is_fixed_and_not_counted_in_a_mass_symptom(
    account: Account,
) -> None:
    queues = [account.queue(f"q{n}.fifo", VisibilityTimeout="10") for n in range(4)]
    account.tag(queues[0], **{DRILL_TAG: "true"})
    account.heal(make_late_deletes(account, queues))
    assert [account.visibility(queue) for queue in queues] == [15] * 4
    assert account.pages("urgent") == []


def test_more_drill_queues_at_once_than_the_maximum_are_not_fixed_and_notify_nobody(
    account: Account,
) -> None:
    """Otherwise the drill tag on every queue would bypass the guardrail."""
    names = (f"q{n}.fifo" for n in range(MAXIMUM_DRILLS + 1))
    queues = [account.queue(name, VisibilityTimeout="10") for name in names]
    for queue in queues:
        account.tag(queue, **{DRILL_TAG: "true"})
    account.heal(make_late_deletes(account, queues))
    assert [account.visibility(queue) for queue in queues] == [10] * len(queues)
    assert account.pages("urgent") == account.pages("info") == []

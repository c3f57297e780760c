"""A consumer that works on a batch one message after the other: heal plans for the batch."""

from __future__ import annotations

from datetime import timedelta

from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG
from mendq.heal.gather import gather_facts
from mendq.model.facts import Need
from mendq.model.state import State
from tests.account.account import Account
from tests.heal.operators import (
    ALICE,
    Heal,
    list_states,
    load_newest_case,
    send_decision,
)


def make_tagged_queue(account: Account, seconds: int, mode: str = "heal", timeout: int = 30) -> str:
    """Make a FIFO queue of which a message takes `seconds`, and go on for five minutes."""
    queue = account.queue(tag=mode, VisibilityTimeout=str(timeout))
    account.tag(queue, **{MAX_PROCESSING_TAG: str(seconds)})
    account.later(minutes=5)
    return queue


def delete_late(account: Account, queue: str, seconds_apart: int, count: int = 4) -> None:
    """Let heal receive late deletes of one consumer, the newest of them now."""
    bodies: dict[str, str] = {}
    for number in range(count):
        deleted_at = account.now - timedelta(seconds=number * seconds_apart)
        event_time = deleted_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        bodies |= account.late_deletes(queue, f"late-{number}", eventTime=event_time)
    account.heal(bodies)


def test_late_deletes_of_a_batch_raise_the_timeout_to_what_ten_messages_need(
    account: Account,
) -> None:
    queue = make_tagged_queue(account, 8)
    delete_late(account, queue, seconds_apart=8)
    assert account.visibility(queue) == 120
    case = load_newest_case(account)
    assert case.state is State.APPLIED
    assert "late deletes came about 8 s apart" in case.reason


def test_late_deletes_of_twenty_consumers_with_batches_raise_the_timeout(account: Account) -> None:
    """Heal receives only one late delete of each consumer at a time."""
    queue = make_tagged_queue(account, 8)
    for message_number in range(4):
        account.later(seconds=8)
        bodies: dict[str, str] = {}
        for consumer_number in range(20):
            bodies |= account.late_deletes(
                queue,
                f"late-{message_number}-{consumer_number}",
                sourceIPAddress=f"10.0.0.{consumer_number}",
            )
        account.heal(bodies)
    assert account.visibility(queue) == 120


def test_late_deletes_as_far_apart_as_the_timeout_change_no_queue_with_a_processing_time_tag(
    account: Account,
) -> None:
    queue = make_tagged_queue(account, 8)
    delete_late(account, queue, seconds_apart=30)
    assert account.visibility(queue) == 30
    case = load_newest_case(account)
    assert (case.state, case.code) == (State.REFUSED, "need_already_met")


def test_batch_over_the_timeout_limit_changes_nothing_escalates_and_advises_smaller_batches(
    account: Account,
) -> None:
    queue = make_tagged_queue(account, 61, timeout=92)
    delete_late(account, queue, seconds_apart=61)
    assert account.visibility(queue) == 92
    case = load_newest_case(account)
    assert (case.state, case.code) == (State.ESCALATED, "batch_too_long")
    assert "MaxNumberOfMessages=1" in case.reason


def test_approved_batch_plan_is_written_although_no_further_call_failed(account: Account) -> None:
    """The plan is made again after the approval, from the deletes that the case has recorded."""
    Heal(account)
    queue = make_tagged_queue(account, 8, mode="propose")
    delete_late(account, queue, seconds_apart=8)
    proposal = load_newest_case(account)
    assert (proposal.state, account.visibility(queue)) == (State.PROPOSED, 30)
    account.later(minutes=5)
    send_decision(account, "approve", proposal.case_id, ALICE)
    assert account.visibility(queue) == 120
    assert list_states(account) == [State.PROPOSED, State.APPROVED, State.APPLIED]


def test_refused_visibility_timeout_case_stays_among_the_queues_facts_for_six_hours(
    account: Account,
) -> None:
    """Otherwise a page about failing consumers would say that a longer timeout does not help."""
    queue = make_tagged_queue(account, 8)
    delete_late(account, queue, seconds_apart=30)
    assert load_newest_case(account).state is State.REFUSED
    needs = {Need.QUEUE, Need.OPEN_CASES}
    account.later(hours=5, minutes=59)
    facts = gather_facts(account.run(), queue, {}, needs)
    assert facts.refused_symptoms == {"visibility_timeout_too_short"}
    account.later(minutes=1)
    assert gather_facts(account.run(), queue, {}, needs).refused_symptoms == frozenset()

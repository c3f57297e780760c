"""A missing DLQ from finding to approval, attachment, verification and rollback."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mendq.follow_up.follow_up import FollowUpResult, follow_up
from mendq.heal.outcome import Outcome
from mendq.heal.owners import make_owner_request
from mendq.heal.resume import continue_case
from mendq.model.queue import MOST_RECEIVES_BEFORE_DLQ, RedrivePolicy
from mendq.model.steps import AttachDlq
from tests.account.account import Account
from tests.account.calm_metrics import ReportedQueue
from tests.heal.operators import (
    OWNERS,
    list_states,
    load_newest_case,
    make_context,
    make_owner_run,
    outcomes_by_attribute,
    roll_back,
    send_decision,
)
from tests.scan.scanner import Scanner

MISSING = "dlq_missing"


@pytest.fixture
def account(scanner: Scanner) -> Account:
    return scanner.account


def make_queue_without_dlq(scanner: Scanner) -> str:
    queue = scanner.account.queue("orders", VisibilityTimeout="30")
    url = scanner.account.url(queue)
    scanner.account.clients.sqs.send_message(QueueUrl=url, MessageBody="poison")
    scanner.account.later(days=1)
    scanner.put_metrics_of_returning_message(queue)
    return queue


def scan_and_heal(scanner: Scanner) -> None:
    scanner.scan()
    for healed in scanner.heal():
        assert healed.error_by_message_id == {}


def approve_dlq(scanner: Scanner) -> str:
    queue = make_queue_without_dlq(scanner)
    scan_and_heal(scanner)
    assert (
        send_decision(scanner.account, "approve", load_newest_case(scanner.account).case_id)[
            "state"
        ]
        == "approved"
    )
    scanner.account.later(minutes=1)
    return queue


def continue_newest_case(account: Account) -> Outcome:
    return continue_case(
        make_owner_request(load_newest_case(account)), make_owner_run(MISSING, account)
    )


def run_follow_up(account: Account) -> FollowUpResult:
    return follow_up(make_context(account), OWNERS, lambda: 60)


def read_redrive_policy(account: Account, queue: str) -> str:
    return AttachDlq.value_in(account.attributes(queue))


def queue_exists(account: Account, queue_arn: str) -> bool:
    urls = account.clients.sqs.list_queues().get("QueueUrls", [])
    return any(url.endswith(f"/{queue_arn.rpartition(':')[2]}") for url in urls)


def test_approved_dlq_is_attached_with_a_snapshot_stored_and_verified_6_to_9_hours_later(
    scanner: Scanner, account: Account
) -> None:
    queue = approve_dlq(scanner)
    outcome = continue_newest_case(account)
    assert outcome.case is not None
    assert (outcome.case.state, outcome.case.actor) == ("applied", "attach_dlq")
    # No message was deleted, so nothing shows how often a good message is received.
    assert (
        read_redrive_policy(account, queue)
        == RedrivePolicy(f"{queue}-dlq", MOST_RECEIVES_BEFORE_DLQ).text
    )
    assert {sk for _, sk in account.case_store_items() if sk.startswith("snapshot#")}
    ReportedQueue(account.clients, f"{queue}-dlq")
    for hours, state in ((6, "applied"), (2.5, "verified")):
        account.later(hours=hours)
        run_follow_up(account)
        assert list_states(account)[-1] == state


def test_approval_to_attach_a_dlq_expires_and_changes_nothing_if_the_queue_was_recreated(
    scanner: Scanner, account: Account
) -> None:
    queue = approve_dlq(scanner)
    account.clients.sqs.delete_queue(QueueUrl=account.url(queue))
    account.later(minutes=5)
    account.queue("orders", VisibilityTimeout="30")
    account.later(minutes=2)
    assert continue_newest_case(account).refusal
    assert list_states(account)[-1] == "expired"
    assert "another queue" in account.transitions()[-1]["reason"]
    assert read_redrive_policy(account, queue) == ""
    assert not queue_exists(account, f"{queue}-dlq")


def attach_dlq(scanner: Scanner) -> str:
    queue = approve_dlq(scanner)
    continue_newest_case(scanner.account)
    assert list_states(scanner.account)[-1] == "applied"
    scanner.account.later(minutes=10)
    return queue


def test_rollback_of_an_attached_dlq_detaches_it_and_prints_the_command_to_delete_it(
    scanner: Scanner, account: Account
) -> None:
    queue = attach_dlq(scanner)
    document = roll_back(account, load_newest_case(account).case_id)
    assert outcomes_by_attribute(document) == {
        "DeadLetterQueue": "printed",
        "RedrivePolicy": "undone",
    }
    assert read_redrive_policy(account, queue) == ""
    assert queue_exists(account, f"{queue}-dlq")
    assert list_states(account)[-1] == "rolled_back"


def test_dlq_that_a_rollback_detached_is_attached_again_if_a_person_approves_a_week_later(
    scanner: Scanner, account: Account
) -> None:
    """The queue is Mendq's own, so no person is overruled."""
    queue = attach_dlq(scanner)
    roll_back(account, load_newest_case(account).case_id)
    account.later(days=8)
    scanner.put_metrics_of_returning_message(queue)
    scan_and_heal(scanner)
    send_decision(account, "approve", load_newest_case(account).case_id)
    account.later(minutes=1)
    continue_newest_case(account)
    assert list_states(account)[-2:] == ["approved", "applied"]
    assert (
        read_redrive_policy(account, queue)
        == RedrivePolicy(f"{queue}-dlq", MOST_RECEIVES_BEFORE_DLQ).text
    )


def _detach(account: Account, queue: str) -> None:
    account.clients.sqs.set_queue_attributes(
        QueueUrl=account.url(queue), Attributes={"RedrivePolicy": ""}
    )


def _delete(account: Account, queue: str) -> None:
    account.clients.sqs.delete_queue(QueueUrl=account.url(f"{queue}-dlq"))


@pytest.mark.parametrize("theirs", [_detach, _delete])
def test_dlq_that_a_person_detached_or_deleted_is_not_proposed_again_for_a_week(
    scanner: Scanner, account: Account, theirs: Callable[[Account, str], None]
) -> None:
    queue = attach_dlq(scanner)
    theirs(account, queue)
    account.later(hours=8)
    assert run_follow_up(account).errors == {}
    assert list_states(account)[-1] == "overridden"
    scanner.put_metrics_of_returning_message(queue)
    scan_and_heal(scanner)
    assert list_states(account)[-1] == "overridden"

"""A DLQ's life: found, approved, attached, proven, taken back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mendq.follow_up.follow_up import FollowUpResult, follow_up
from mendq.heal.outcome import Outcome
from mendq.heal.owners import make_owner_request
from mendq.heal.resume import continue_case
from mendq.model.queue import MOST_RECEIVES_BEFORE_DLQ, RedrivePolicy
from mendq.model.steps import AttachDlq
from tests.heal.conftest import Account
from tests.heal.operators import OWNERS, case_of, context_of, outcomes, run_of, say, states, undo
from tests.scan.scanning import Scanning

MISSING = "dlq_missing"


@pytest.fixture
def account(scanned: Scanning) -> Account:
    return scanned.account


def without_dlq(scanned: Scanning) -> str:
    queue = scanned.account.queue("orders", VisibilityTimeout="30")
    url = scanned.account.url(queue)
    scanned.account.clients.sqs.send_message(QueueUrl=url, MessageBody="poison")
    scanned.account.later(days=1)
    scanned.count_one_coming_back(queue)
    return queue


def found(scanned: Scanning) -> None:
    scanned.scan()
    for healed in scanned.heal():
        assert healed.error_by_message_id == {}


def approved(scanned: Scanning) -> str:
    queue = without_dlq(scanned)
    found(scanned)
    assert say(scanned.account, "approve", case_of(scanned.account).case_id)["state"] == "approved"
    scanned.account.later(minutes=1)
    return queue


def taken_up(account: Account) -> Outcome:
    return continue_case(make_owner_request(case_of(account)), run_of(MISSING, account))


def followed(account: Account) -> FollowUpResult:
    return follow_up(context_of(account), OWNERS, lambda: 60)


def redrive_of(account: Account, queue: str) -> str:
    return AttachDlq.value_in(account.attributes(queue))


def exists(account: Account, queue_arn: str) -> bool:
    urls = account.clients.sqs.list_queues().get("QueueUrls", [])
    return any(url.endswith(f"/{queue_arn.rpartition(':')[2]}") for url in urls)


def test_what_a_person_approved_is_attached_and_proven_by_standing_unfound(
    scanned: Scanning, account: Account
) -> None:
    queue = approved(scanned)
    outcome = taken_up(account)
    assert outcome.case is not None
    assert (outcome.case.state, outcome.case.actor) == ("applied", "attach_dlq")
    # Nothing was finished, so nothing says how often a good message is received.
    assert (
        redrive_of(account, queue) == RedrivePolicy(f"{queue}-dlq", MOST_RECEIVES_BEFORE_DLQ).text
    )
    assert {sk for _, sk in account.case_store_items() if sk.startswith("snapshot#")}
    for hours, state in ((6, "applied"), (2.5, "verified")):
        account.later(hours=hours)
        followed(account)
        assert states(account)[-1] == state


def test_an_approval_does_not_outlive_its_queue(scanned: Scanning, account: Account) -> None:
    queue = approved(scanned)
    account.clients.sqs.delete_queue(QueueUrl=account.url(queue))
    account.later(minutes=5)
    account.queue("orders", VisibilityTimeout="30")
    account.later(minutes=2)
    assert taken_up(account).refusal
    assert states(account)[-1] == "expired"
    assert "another queue" in account.transitions()[-1]["reason"]
    assert redrive_of(account, queue) == ""
    assert not exists(account, f"{queue}-dlq")


def attached(scanned: Scanning) -> str:
    queue = approved(scanned)
    taken_up(scanned.account)
    assert states(scanned.account)[-1] == "applied"
    scanned.account.later(minutes=10)
    return queue


def test_taken_back_its_queue_is_retained_and_may_be_attached_again_after_the_silence(
    scanned: Scanning, account: Account
) -> None:
    """The queue that was kept is ours: nobody is overruled."""
    queue = attached(scanned)
    document = undo(account, case_of(account).case_id)
    assert outcomes(document) == {"DeadLetterQueue": "printed", "RedrivePolicy": "undone"}
    assert (redrive_of(account, queue), exists(account, f"{queue}-dlq")) == ("", True)
    assert states(account)[-1] == "rolled_back"
    account.later(days=8)
    scanned.count_one_coming_back(queue)
    found(scanned)
    say(account, "approve", case_of(account).case_id)
    account.later(minutes=1)
    taken_up(account)
    assert states(account)[-2:] == ["approved", "applied"]
    assert (
        redrive_of(account, queue) == RedrivePolicy(f"{queue}-dlq", MOST_RECEIVES_BEFORE_DLQ).text
    )


def _detach(account: Account, queue: str) -> None:
    account.clients.sqs.set_queue_attributes(
        QueueUrl=account.url(queue), Attributes={"RedrivePolicy": ""}
    )


def _delete(account: Account, queue: str) -> None:
    account.clients.sqs.delete_queue(QueueUrl=account.url(f"{queue}-dlq"))


@pytest.mark.parametrize("theirs", [_detach, _delete])
def test_a_person_who_takes_it_away_is_left_alone(
    scanned: Scanning, account: Account, theirs: Callable[[Account, str], None]
) -> None:
    queue = attached(scanned)
    theirs(account, queue)
    account.later(hours=8)
    assert followed(account).errors == {}
    assert states(account)[-1] == "overridden"
    scanned.count_one_coming_back(queue)
    found(scanned)
    assert states(account)[-1] == "overridden", "and silent for a week"

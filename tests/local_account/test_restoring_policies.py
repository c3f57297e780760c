"""Pinned policies in the account: real refused calls, `mendq`, the deployed restore_policy.

Nothing here judges a policy as Access Analyzer does: its answers are told.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_account.demo.mailbox import Mailbox
from local_account.demo.stage import DONE
from local_account.process import LocalAccount
from mendq.model.case import Severity
from tests.local_account.pinned import SAID_MINUTES, PinnedQueue
from tests.local_account.queues import eventually

pytestmark = pytest.mark.account
NOT_DONE = 1


@pytest.fixture(scope="module")
def enforced() -> Iterator[LocalAccount]:
    """Several queues have it within the hour, which elsewhere is nobody's queue's fault."""
    settings = {"limits": {"massSymptomShare": 1, "writesPerMinute": 100}}
    with LocalAccount(settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def box(enforced: LocalAccount) -> Mailbox:
    return Mailbox.open(enforced)


@pytest.fixture
def pinned(enforced: LocalAccount) -> Iterator[PinnedQueue]:
    """A queue whose pinned policy lets the caller send."""
    made = PinnedQueue.made(enforced)
    made.send()
    yield made
    enforced.end_access_analyzer_answers()


def _proposed(pinned: PinnedQueue) -> tuple[str, str]:
    """(What a deployment wrote over the pinned policy, the case that proposes to undo it)."""
    emptied = pinned.overwritten_by(pinned.deployer.sqs)
    pinned.refuse()
    return emptied, str(pinned.until("proposed")["case_id"])


def test_what_a_deployment_overwrote_is_put_back_byte_for_byte(
    pinned: PinnedQueue, box: Mailbox
) -> None:
    emptied, case_id = _proposed(pinned)
    page = pinned.notified(box, "Mendq proposed: access denied")
    assert page.severity is Severity.INFO
    assert f"by {pinned.caller.arn}" in page.text
    assert f"{pinned.deployer.arn} overwrote it" in page.text
    assert pinned.policy == emptied, "nothing before a person's word"
    pinned.account.have_access_analyzer_answer("PASS")
    done = pinned.mendq("approve", case_id, "--yes")
    assert done.exit_code == DONE, done.output
    assert pinned.policy == pinned.good
    assert pinned.case()["state"] == "applied"
    pinned.send()
    last = pinned.announced("show", case_id)["transitions"][-1]
    assert (last["actor"], last["to"]) == ("restore_policy", "applied")
    undone = pinned.mendq("rollback", case_id, "--yes").output
    assert "  printed  Policy" in undone
    assert "aws sqs set-queue-attributes" in undone
    assert pinned.policy == pinned.good, "a policy is never rolled back by a write"


def test_until_cloudtrail_had_the_time_to_tell_the_calls_wait(pinned: PinnedQueue) -> None:
    emptied = pinned.overwritten_by(pinned.deployer.sqs, announced=False)
    pinned.refuse()
    pin = pinned.announced("policy", "show", pinned.queue.arn)
    assert (pin["good"], pin["passes"]) == (False, True)
    eventually(lambda: _judged_by_heal(pinned, "pin_not_judged_yet"))
    assert pinned.case() == {}
    pinned.account.put_back(pinned.queue.arn, SAID_MINUTES, of="last_change")
    assert pinned.announced("policy", "show", pinned.queue.arn)["good"]
    pinned.refuse()
    pinned.until("proposed")
    assert pinned.policy == emptied


def _judged_by_heal(pinned: PinnedQueue, code: str) -> bool:
    """Whether its log says so of this queue."""
    logs = pinned.account.client("logs")
    (group,) = (
        each["logGroupName"]
        for each in logs.describe_log_groups()["logGroups"]
        if "HealLog" in each["logGroupName"]
    )
    lines = (each["message"] for each in logs.filter_log_events(logGroupName=group)["events"])
    return any(pinned.queue.arn in line and code in line for line in lines)


@pytest.mark.parametrize(
    ("announced", "because"),
    [
        ("FAIL", "CheckNoPublicAccess: CheckNoPublicAccess answers as it was told to; It was told"),
        (None, "Access Analyzer's CheckNoPublicAccess of the pinned policy did not answer"),
    ],
)
def test_without_a_pass_of_access_analyzer_nothing_is_written(
    pinned: PinnedQueue, box: Mailbox, announced: str | None, because: str
) -> None:
    emptied, _ = _proposed(pinned)
    if announced:
        pinned.account.have_access_analyzer_answer(announced)
    done = pinned.mendq("approve", pinned.case()["case_id"], "--yes")
    assert (done.exit_code, pinned.policy) == (NOT_DONE, emptied)
    case = pinned.case()
    assert (case["state"], because in case["reason"]) == ("expired", True)
    page = pinned.notified(box, "Mendq expired: access denied")
    assert because in page.text
    assert "You approved it, and it was not done" in page.text

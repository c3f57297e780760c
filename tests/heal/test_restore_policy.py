"""Restoring a pinned policy after a deployment overwrote it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from mendq.model.mode import Mode
from mendq.model.state import State
from tests.account.account import ACCOUNT, WORKER, Account
from tests.heal.operators import list_states, load_newest_case, move_case
from tests.heal.policy_events import DEPLOYS
from tests.heal.restoring import (
    EMPTIED,
    GRANTS,
    Analyzer,
    deny_calls,
    deploy_policy,
    make_pinned_queue,
    make_policy,
    make_queue_with_emptied_policy,
    policy_of,
    restore_policy,
    set_policy,
)
from tests.scan.scanner import deny_operation


@pytest.fixture
def analyzer(account: Account) -> Analyzer:
    return Analyzer(account)


def _make_proposed_restore(account: Account) -> str:
    queue = make_queue_with_emptied_policy(account)
    assert list_states(account) == ["proposed"]
    return queue


def _make_approved_restore(account: Account) -> str:
    queue = _make_proposed_restore(account)
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=1)
    return queue


@pytest.mark.usefixtures("analyzer")
def test_approved_restore_writes_the_pinned_policy_byte_for_byte(account: Account) -> None:
    queue = _make_approved_restore(account)
    outcome = restore_policy(account)
    assert outcome.case is not None
    assert (outcome.case.state, outcome.case.actor) == (State.APPLIED, "restore_policy")
    assert policy_of(account, queue) == GRANTS


def test_restored_policy_is_checked_for_public_access_before_and_after_its_write(
    account: Account, analyzer: Analyzer
) -> None:
    _make_approved_restore(account)
    outcome = restore_policy(account)
    assert outcome.case is not None
    asked = {"policyDocument": GRANTS, "resourceType": "AWS::SQS::Queue"}
    assert analyzer.asked == [("CheckNoPublicAccess", asked)] * 2
    assert outcome.case.reason.endswith("finds what stands there not public")


def test_restored_policy_that_is_found_public_stays_and_escalates_with_the_command_to_undo_it(
    account: Account, analyzer: Analyzer
) -> None:
    queue = _make_approved_restore(account)
    analyzer.then = {"results": {"CheckNoPublicAccess": "FAIL"}}
    outcome = restore_policy(account)
    case = load_newest_case(account)
    assert case.state is State.ESCALATED
    assert "as it stands there the policy does not pass CheckNoPublicAccess" in case.reason
    assert outcome.case is not None
    assert outcome.case.state is State.ESCALATED
    assert policy_of(account, queue) == GRANTS
    ((_, body),) = account.pages("urgent")
    assert "UNDO" in body
    assert "set-queue-attributes" in body


@pytest.mark.parametrize(
    "words", ["a service control policy", "a resource-based policy"], ids=["silent", "kept out"]
)
def test_restored_policy_that_mendq_cannot_read_back_stays_and_the_case_says_so(
    account: Account, analyzer: Analyzer, words: str
) -> None:
    """The pinned policy itself can deny Mendq to read it."""
    queue = _make_approved_restore(account)
    let_in: list[Callable[[], None]] = []

    def shut(**_: Any) -> None:
        let_in.append(deny_operation(account.clients.sqs, "GetQueueAttributes", words=words))

    events: Any = account.clients.sqs_for_writing.meta.events
    events.register("after-call.sqs.SetQueueAttributes", shut)
    outcome = restore_policy(account)
    let_in[0]()
    assert outcome.refusal is None
    assert outcome.case is not None
    assert outcome.case.state is State.APPLIED
    assert "what stands there could not be read" in outcome.case.reason
    assert "not public" not in outcome.case.reason, "nobody has looked"
    assert [check for check, _ in analyzer.asked] == ["CheckNoPublicAccess"]
    assert policy_of(account, queue) == GRANTS
    assert load_newest_case(account).state is State.APPLIED


@pytest.mark.parametrize("result", ["FAIL", "", "pass"])
def test_restore_expires_unwritten_if_the_public_access_check_does_not_pass(
    account: Account, analyzer: Analyzer, result: str
) -> None:
    queue = _make_approved_restore(account)
    analyzer.results["CheckNoPublicAccess"] = result
    restore_policy(account)
    assert policy_of(account, queue) == EMPTIED
    assert load_newest_case(account).state is State.EXPIRED
    assert "does not pass CheckNoPublicAccess: as it is" in load_newest_case(account).reason


def _is_anything_claimed(account: Account) -> bool:
    return any("claim_owner" in item for item in account.case_store_items().values())


@pytest.mark.parametrize(
    ("status", "error_code"),
    [
        (503, "ServiceUnavailableException"),
        (429, "ThrottlingException"),
        (403, "AccessDeniedException"),
    ],
)
def test_restore_writes_nothing_until_access_analyzer_answers_again(
    account: Account, analyzer: Analyzer, status: int, error_code: str
) -> None:
    queue = _make_approved_restore(account)
    analyzer.fails_with = status
    analyzer.fails_as = error_code
    restore_policy(account)
    assert policy_of(account, queue) == EMPTIED
    assert load_newest_case(account).state is State.APPROVED
    assert not _is_anything_claimed(account)
    account.later(minutes=30)
    analyzer.fails_with = None
    restore_policy(account)
    assert policy_of(account, queue) == GRANTS


def test_restore_of_a_policy_that_access_analyzer_rejects_expires_and_is_never_written(
    account: Account, analyzer: Analyzer
) -> None:
    queue = _make_approved_restore(account)
    analyzer.fails_with = 400
    analyzer.fails_as = "ValidationException"
    restore_policy(account)
    assert policy_of(account, queue) == EMPTIED
    assert load_newest_case(account).state is State.EXPIRED
    assert not _is_anything_claimed(account)
    account.later(minutes=30)
    analyzer.fails_with = None
    restore_policy(account)
    assert policy_of(account, queue) == EMPTIED


@pytest.mark.usefixtures("analyzer")
def test_restore_keeps_a_policy_that_a_person_sets_between_check_and_write_and_expires(
    account: Account,
) -> None:
    queue = _make_approved_restore(account)
    persons = make_policy(DEPLOYS)
    edited = account.clients.access_analyzer.meta.events

    def edit(**_: object) -> None:
        set_policy(account, queue, persons)

    edited.register("before-call.accessanalyzer.CheckNoPublicAccess", edit)
    outcome = restore_policy(account)
    assert policy_of(account, queue) == persons
    assert outcome.refusal is not None
    assert outcome.refusal.code == "changed_meanwhile"
    assert load_newest_case(account).state is State.APPROVED
    account.later(minutes=25)
    restore_policy(account)
    assert policy_of(account, queue) == persons
    assert load_newest_case(account).state is State.EXPIRED


def test_restore_never_undoes_a_persons_revocation_and_notifies_once(account: Account) -> None:
    """T3: a person removes a grant of the pinned policy, and the principal that lost access keeps
    calling.
    """
    queue = make_pinned_queue(account, "heal")
    account.settings = replace(account.settings, autonomy={"access_denied": Mode.HEAL})
    set_policy(account, queue, EMPTIED)
    for attempt in range(4):
        account.later(minutes=40)
        deny_calls(account, queue, f"again-{attempt}")
    assert policy_of(account, queue) == EMPTIED
    assert list_states(account) == ["escalated"]
    assert "has changed it since" in load_newest_case(account).reason
    ((_, body),) = account.pages("urgent")
    assert "is not put back" in body


@pytest.mark.usefixtures("analyzer")
@pytest.mark.parametrize("minutes", [30, 600])
def test_restore_that_grants_access_is_written_only_after_approval_even_in_heal_mode(
    account: Account, minutes: int
) -> None:
    """T3: CloudTrail may never report a revocation, so a person has to decide."""
    queue = make_pinned_queue(account, "heal")
    account.settings = replace(account.settings, autonomy={"access_denied": Mode.HEAL})
    set_policy(account, queue, make_policy(DEPLOYS))
    account.history.clear()
    account.later(hours=3)
    deploy_policy(account, queue)
    account.later(minutes=minutes)
    deny_calls(account, queue)
    assert list_states(account) == ["proposed"]
    assert "a person decides" in load_newest_case(account).reason
    ((_, body),) = account.pages("info")
    worker, billing = (
        f"arn:aws:iam::{ACCOUNT}:role/{role_name}" for role_name in ("orders-worker", "billing")
    )
    assert f"Principal AWS: {worker} is new" in body
    assert f"Principal AWS: {billing} is gone" in body
    restore_policy(account)
    assert policy_of(account, queue) == EMPTIED
    move_case(account, load_newest_case(account), "approved")
    restore_policy(account)
    assert policy_of(account, queue) == GRANTS


def test_approved_restore_expires_if_the_policy_changed_since_the_proposal(
    account: Account, analyzer: Analyzer
) -> None:
    """A deployment added a Deny between the proposal and its approval, which nobody saw."""
    queue = _make_proposed_restore(account)
    denies = make_policy(WORKER, Effect="Deny")
    deploy_policy(account, queue, denies)
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=25)
    restore_policy(account)
    assert policy_of(account, queue) == denies
    assert load_newest_case(account).state is State.EXPIRED
    assert analyzer.asked == []


def test_pin_that_cannot_be_read_escalates_and_restores_nothing(account: Account) -> None:
    """A person with access to the table can write such a pin."""
    queue = make_pinned_queue(account)
    deploy_policy(account, queue)
    account.later(minutes=25)
    nonsense = {"pk": {"S": queue}, "sk": {"S": "pin"}, "pin": {"S": "[" * 30_000}}
    account.clients.dynamodb.put_item(TableName=account.settings.case_table, Item=nonsense)
    deny_calls(account, queue)
    assert list_states(account) == ["escalated"]
    assert "its pin cannot be read" in load_newest_case(account).reason
    assert len(account.pages("urgent")) == 1
    assert policy_of(account, queue) == EMPTIED

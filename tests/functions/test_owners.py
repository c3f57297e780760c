"""The Lambdas that write queue attributes, and the two through which people decide about cases."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from functions import approve, attach_dlq, heal, redrive, restore_policy, rollback
from mendq.aws.errors import CaseUnreadable
from mendq.heal.approve import MAXIMUM_CASE_ID_LENGTH
from mendq.heal.owners import make_owner_request
from mendq.model.limits import Bounds
from mendq.model.state import State
from tests.account.account import Account
from tests.functions.builders import LAMBDA_CONTEXT, Deploy, sum_metrics
from tests.heal.operators import (
    ALICE,
    OWNERS,
    call_without_effect,
    fail_calls,
    list_states,
    load_newest_case,
    move_case,
    outcomes_by_attribute,
)
from tests.heal.restoring import (
    GRANTS,
    Analyzer,
    deny_calls,
    deploy_policy,
    make_pinned_queue,
    policy_of,
)
from tests.redrive.world import make_redrive_world

CASE_LAMBDAS = (attach_dlq, heal, redrive, restore_policy)


@pytest.mark.parametrize("owner", CASE_LAMBDAS)
@pytest.mark.parametrize(
    "event",
    [
        {},
        {"case_id": "x"},
        {"case_id": "c", "queue_arn": "arn:aws:sqs:us-east-1:123456789012:orders"},
        {"case_id": "c", "queue_arn": "orders", "symptom": "dlq_missing"},
    ],
)
def test_request_without_a_valid_case_is_a_logged_fault_and_changes_no_case(
    account: Account, deploy: Deploy, caplog: pytest.LogCaptureFixture, owner: Any, event: Any
) -> None:
    deploy(owner.handler, account, bounds=Bounds())
    with pytest.raises(CaseUnreadable):
        owner.handler(event, LAMBDA_CONTEXT)
    assert [vars(record)["blame"] for record in caplog.records] == ["a fault"]
    assert account.transitions() == []


@pytest.mark.parametrize("owner", [attach_dlq, redrive, restore_policy])
def test_lambda_that_does_not_own_visibility_timeout_refuses_the_case_and_writes_nothing(
    account: Account, deploy: Deploy, owner: Any
) -> None:
    deploy(owner.handler, account, bounds=Bounds())
    account.later(minutes=-10)
    queue = account.queue(tag="propose", VisibilityTimeout="30")
    fail_calls(account, queue)
    move_case(account, load_newest_case(account), "approved")
    assert (
        owner.handler(make_owner_request(load_newest_case(account)), LAMBDA_CONTEXT)["code"]
        == "another_owner"
    )
    assert account.visibility(queue) == 30
    assert list_states(account)[-1] == "approved"


def test_restore_policy_writes_the_pinned_policy_of_an_approved_case_and_counts_one_fix(
    account: Account, deploy: Deploy, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy(restore_policy.handler, account)
    Analyzer(account)
    account.later(minutes=-27)
    queue = make_pinned_queue(account)
    account.later(hours=3)
    deploy_policy(account, queue)
    account.later(minutes=25)
    deny_calls(account, queue)
    move_case(account, load_newest_case(account), "approved")
    capsys.readouterr()
    answer = restore_policy.handler(make_owner_request(load_newest_case(account)), LAMBDA_CONTEXT)
    assert answer["state"] == "applied"
    assert policy_of(account, queue) == GRANTS
    metrics = sum_metrics(capsys.readouterr().out)
    assert metrics["AutoFixes"] == 1
    assert "Refusals" not in metrics


def test_redrive_invocation_returns_its_progress_and_counts_only_newly_moved_messages(
    deploy: Deploy, capsys: pytest.CaptureFixture[str]
) -> None:
    with make_redrive_world() as world:
        deploy(redrive.handler, world.account, **structs.asdict(world.make_run().settings))
        world.send(*"abcdefgh")
        request = make_owner_request(world.record_case(State.APPLIED))
        answer = redrive.handler(request, LAMBDA_CONTEXT)
        assert answer["state"] is None
        assert answer["stage"] == "soak"
        assert answer["moved"] == 5
        assert world.count_visible_messages(world.source) == 5
        metrics = sum_metrics(capsys.readouterr().out)
        assert metrics == {"RedrivenMessages": 5, "QuarantinedMessages": 0}
        assert redrive.handler({**request, "cancel": True}, LAMBDA_CONTEXT)["code"] == ""
        assert sum_metrics(capsys.readouterr().out)["RedrivenMessages"] == 0, (
            "no message was moved since"
        )


DECISION_LAMBDAS = (approve, rollback)
# Everything that a request to approve or to rollback needs, except its case.
DECISION: dict[str, object] = {"actor": ALICE, "decision": "approve", "dry_run": False}


def make_queue_with_applied_case(account: Account) -> str:
    """Make a queue that heal raised from 30 to 45."""
    queue = account.queue(VisibilityTimeout="30")
    fail_calls(account, queue)
    assert account.visibility(queue) == 45
    return queue


@pytest.mark.parametrize("decision_lambda", DECISION_LAMBDAS)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"case_id": ""},
        {"case_id": None},
        {"case_id": 7},
        {"case_id": ["c"]},
        {"case_id": "c" * (MAXIMUM_CASE_ID_LENGTH + 1)},
    ],
    ids=["missing", "empty", "null", "a number", "a list", "too long"],
)
def test_approve_and_rollback_refuse_a_request_without_a_case_id_and_change_nothing(
    account: Account, deploy: Deploy, decision_lambda: Any, fields: dict[str, object]
) -> None:
    deploy(decision_lambda.handler, account, owners=OWNERS)
    queue = make_queue_with_applied_case(account)
    answer = call_without_effect(
        account, queue, lambda: decision_lambda.handler({**DECISION, **fields}, LAMBDA_CONTEXT)
    )
    assert answer["error"] == "bad_request"


@pytest.mark.parametrize("decision", [None, "", "Approve", "apply", ["approve"]])
def test_approve_refuses_an_unknown_decision_about_a_proposal_and_changes_nothing(
    account: Account, deploy: Deploy, decision: object
) -> None:
    deploy(approve.handler, account, owners=OWNERS)
    queue = account.queue(tag="propose", VisibilityTimeout="30")
    fail_calls(account, queue)
    event = {**DECISION, "case_id": load_newest_case(account).case_id, "decision": decision}
    answer = call_without_effect(account, queue, lambda: approve.handler(event, LAMBDA_CONTEXT))
    assert answer["error"] == "bad_request"


@pytest.mark.parametrize("decision_lambda", DECISION_LAMBDAS)
def test_approve_and_rollback_of_an_unknown_case_answer_not_found_and_change_nothing(
    account: Account, deploy: Deploy, decision_lambda: Any
) -> None:
    deploy(decision_lambda.handler, account, owners=OWNERS)
    queue = make_queue_with_applied_case(account)
    event = {**DECISION, "case_id": "no-such"}
    answer = call_without_effect(
        account, queue, lambda: decision_lambda.handler(event, LAMBDA_CONTEXT)
    )
    assert answer["error"] == "not_found"


@pytest.mark.parametrize("decision_lambda", DECISION_LAMBDAS)
def test_approve_and_rollback_without_a_case_store_write_nothing_and_ask_for_a_retry(
    account: Account, deploy: Deploy, decision_lambda: Any
) -> None:
    deploy(decision_lambda.handler, account, owners=OWNERS)
    queue = make_queue_with_applied_case(account)
    event = {**DECISION, "case_id": load_newest_case(account).case_id}
    account.clients.dynamodb.delete_table(TableName="case_store")
    answer = decision_lambda.handler(event, LAMBDA_CONTEXT)
    assert answer["error"] == "unavailable"
    assert "ask again in two minutes" in answer["reason"]
    assert account.visibility(queue) == 45


def test_rollback_lambda_writes_only_if_the_request_says_that_dry_run_is_false(
    account: Account, deploy: Deploy
) -> None:
    deploy(rollback.handler, account, owners=OWNERS)
    queue = account.queue(VisibilityTimeout="30")
    fail_calls(account, queue)
    event = {"case_id": load_newest_case(account).case_id, "actor": ALICE}
    for dry_run in (event, {**event, "dry_run": True}, {**event, "dry_run": "false"}):
        assert outcomes_by_attribute(rollback.handler(dry_run, LAMBDA_CONTEXT)) == {
            "VisibilityTimeout": "undone"
        }
        assert account.visibility(queue) == 45
    assert rollback.handler({**event, "dry_run": False}, LAMBDA_CONTEXT)["state"] == "rolled_back"
    assert account.visibility(queue) == 30
    assert load_newest_case(account).actor == ALICE

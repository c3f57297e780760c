"""Operators approve, decline and close cases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.cases.record import Notification, record_transition
from mendq.follow_up.follow_up import follow_up
from mendq.heal.approve import UNNAMED_ACTOR, OperatorRequest
from mendq.heal.owners import make_owner_request
from mendq.heal.resume import continue_case
from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.mode import Mode
from tests.account.account import Account, make_settings
from tests.account.faults import come_between
from tests.account.owners import SILENCE, silence_owners
from tests.heal.operators import (
    ALICE,
    OWNERS,
    Heal,
    call_without_effect,
    fail_calls,
    list_states,
    load_newest_case,
    make_context,
    make_failing_queue,
    move_case,
    send_decision,
)

BOB = ALICE.replace("alice", "bob")


@pytest.fixture
def heal(account: Account) -> Heal:
    account.settings = make_settings(tag_may_raise_to=Mode.PROPOSE)
    return Heal(account)


@pytest.fixture
def proposal(account: Account, heal: Heal) -> Case:
    """A case that proposes to raise a visibility timeout from 30 to 45."""
    make_failing_queue(account, "propose")
    return load_newest_case(account)


@pytest.mark.parametrize("decision", ["", "Approve", "approved", "apply", None, ["approve"]])
def test_decision_with_an_unknown_word_is_a_bad_request_and_changes_nothing(
    account: Account, proposal: Case, decision: object
) -> None:
    answer = call_without_effect(
        account, proposal.queue_arn, lambda: send_decision(account, decision, proposal.case_id)
    )
    assert answer["error"] == "bad_request"


def test_operator_request_turns_line_breaks_in_the_actor_into_spaces_and_escapes_u202e() -> None:
    request = OperatorRequest.of({"case_id": "c", "actor": "a\nb\u202e"})
    assert isinstance(request, OperatorRequest)
    assert request.actor == "a b\\u202e"


def test_operator_request_with_a_blank_actor_names_an_operator_who_gave_no_name() -> None:
    request = OperatorRequest.of({"case_id": "c", "actor": "\n\t"})
    assert isinstance(request, OperatorRequest)
    assert request.actor == UNNAMED_ACTOR == "an operator who gave no name"


@pytest.mark.parametrize("decision", ["approve", "decline"])
def test_approve_or_decline_of_an_applied_case_is_refused_as_wrong_state_and_changes_nothing(
    account: Account, decision: str
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    fail_calls(account, queue)
    case_id = load_newest_case(account).case_id
    answer = call_without_effect(account, queue, lambda: send_decision(account, decision, case_id))
    assert answer["error"] == "wrong_state"
    assert f"is applied; to {decision} takes a case that is proposed" in answer["reason"]


@pytest.mark.parametrize("tag", ["heal", "propose"])
def test_close_of_an_applied_or_proposed_case_is_refused_changes_nothing_and_calls_no_lambda(
    account: Account, heal: Heal, tag: str
) -> None:
    """A closed case is not verified, and its approval is not asked for any more."""
    account.settings = make_settings()
    queue = account.queue(tag=tag, VisibilityTimeout="30")
    fail_calls(account, queue)
    case_id = load_newest_case(account).case_id
    answer = call_without_effect(account, queue, lambda: send_decision(account, "close", case_id))
    assert answer["error"] == "wrong_state"
    assert heal.asked == []


def test_reason_of_a_proposal_says_until_when_it_can_be_approved(
    account: Account, proposal: Case
) -> None:
    until = proposal.at + timedelta(hours=account.settings.timing.proposal_hours)
    assert proposal.reason.endswith(f"; it can be approved until {until:%Y-%m-%d %H:%M:%S} UTC")


def test_approve_of_a_day_old_proposal_is_refused_as_expired_and_calls_no_lambda(
    account: Account, proposal: Case, heal: Heal
) -> None:
    account.later(hours=23, minutes=55)
    queue = proposal.queue_arn
    case_id = proposal.case_id
    answer = call_without_effect(account, queue, lambda: send_decision(account, "approve", case_id))
    assert answer["error"] == "expired"
    assert heal.asked == []


def test_approve_calls_heal_once_writes_the_proposed_value_and_records_who_approved(
    account: Account, proposal: Case, heal: Heal
) -> None:
    answer = send_decision(account, "approve", proposal.case_id)
    assert account.visibility(proposal.queue_arn) == 45
    assert answer["state"] == "applied"
    assert answer["steps"] == list(proposal.steps)
    assert list_states(account) == ["proposed", "approved", "applied"]
    approved = account.transitions()[1]
    assert (approved["n"], approved["actor"], approved["steps"]) == (2, ALICE, answer["steps"])
    assert heal.asked == [make_owner_request(proposal)]


def test_approve_keeps_a_value_that_a_person_set_since_the_proposal_and_expires_the_case(
    account: Account, proposal: Case
) -> None:
    account.set_visibility(proposal.queue_arn, 40)
    answer = send_decision(account, "approve", proposal.case_id)
    assert account.visibility(proposal.queue_arn) == 40
    assert (answer["state"], answer["code"]) == ("expired", "plan_changed")


def test_approve_for_a_deleted_queue_expires_the_case_and_notifies_without_a_command(
    account: Account, proposal: Case, heal: Heal
) -> None:
    gone = {"QueueUrl": account.url(proposal.queue_arn)}
    heal.before = lambda: account.clients.sqs.delete_queue(**gone)
    send_decision(account, "approve", proposal.case_id)
    ended = load_newest_case(account)
    assert (ended.state, ended.reason) == ("expired", "the queue is gone")
    assert ended.next_step["command"] == ""
    *_, (_, page) = account.pages()
    assert "Why: Expired (queue_deleted): the queue is gone" in page
    assert "Do nothing: the queue is gone" in page
    assert not [line for line in page.splitlines() if line.strip().startswith(("aws ", "mendq "))]


def test_approve_of_a_queue_tagged_off_meanwhile_expires_the_case_changes_nothing_and_notifies(
    account: Account, proposal: Case, heal: Heal
) -> None:
    heal.before = lambda: account.tag(proposal.queue_arn, mendq="off")
    send_decision(account, "approve", proposal.case_id)
    ended = load_newest_case(account)
    assert (ended.state, ended.reason) == ("expired", "Mendq may no longer change this queue")
    assert account.visibility(proposal.queue_arn) == 30
    assert "aws sqs get-queue-attributes" in account.pages()[-1][1]


def test_case_stays_approved_if_the_heal_lambda_fails_and_a_second_approve_writes_the_value(
    account: Account, proposal: Case, heal: Heal
) -> None:
    heal.fails = True
    answer = send_decision(account, "approve", proposal.case_id)
    assert answer["state"] == "approved"
    assert "it ran out of time" in answer["reason"]
    assert "follow_up calls heal again" in answer["reason"]
    assert account.visibility(proposal.queue_arn) == 30
    heal.fails = False
    account.later(minutes=1)
    assert send_decision(account, "approve", proposal.case_id)["state"] == "applied"
    assert list_states(account) == ["proposed", "approved", "applied"]


@pytest.mark.parametrize("how", SILENCE)
def test_case_stays_approved_if_heal_gives_no_answer_and_a_second_approve_writes_the_value(
    account: Account, proposal: Case, how: str
) -> None:
    speak = silence_owners(account, how)
    answer = send_decision(account, "approve", proposal.case_id)
    assert answer["state"] == "approved"
    assert "the case stays approved, and follow_up calls heal again" in answer["reason"]
    assert account.visibility(proposal.queue_arn) == 30
    speak()
    account.later(minutes=1)
    assert send_decision(account, "approve", proposal.case_id)["state"] == "applied"
    assert list_states(account) == ["proposed", "approved", "applied"]


@pytest.mark.parametrize("at", ["dynamodb.TransactGetItems", "dynamodb.TransactWriteItems"])
def test_decline_at_the_same_time_as_an_approve_is_refused_if_the_approve_was_stored_first(
    account: Account, proposal: Case, at: str
) -> None:
    """Alice approves just before Bob's run reads the case store, or just before it writes."""
    answers: list[dict[str, Any]] = []
    come_between(
        account,
        at,
        lambda: answers.append(send_decision(account, "approve", proposal.case_id, ALICE)),
    )
    answer = send_decision(account, "decline", proposal.case_id, BOB)
    assert (answers[0]["state"], answers[0]["by"]) == ("applied", ALICE)
    assert answer["error"] == "wrong_state"
    assert account.visibility(proposal.queue_arn) == 45
    assert [(transition["to"], transition["actor"]) for transition in account.transitions()] == [
        ("proposed", "heal"),
        ("approved", ALICE),
        ("applied", "heal"),
    ]


@pytest.mark.parametrize(
    ("decision", "state"), [("decline", ""), ("close", "escalated"), ("close", "overridden")]
)
def test_second_decline_or_close_answers_who_ended_the_case_first_and_changes_nothing(
    account: Account, proposal: Case, decision: str, state: str
) -> None:
    if state:
        move_case(account, proposal, state)
    account.later(minutes=1)
    case = load_newest_case(account)
    first = send_decision(account, decision, proposal.case_id, ALICE)
    assert (first["state"], first["by"]) == (f"{decision}d", ALICE)
    ended = load_newest_case(account)
    assert (ended.state, ended.actor, ended.n) == (f"{decision}d", ALICE, case.n + 1)
    queue = proposal.queue_arn
    case_id = proposal.case_id
    heard = call_without_effect(
        account, queue, lambda: send_decision(account, decision, case_id, BOB)
    )
    assert heard == first


def end_freeze(account: Account) -> None:
    key = {"pk": {"S": "account"}, "sk": {"S": "freeze"}}
    account.clients.dynamodb.delete_item(TableName=account.settings.case_table, Key=key)


def test_approval_that_is_declined_during_a_freeze_is_not_written_when_the_freeze_ends(
    account: Account,
) -> None:
    account.settings = make_settings(autonomy={"visibility_timeout_too_short": Mode.PROPOSE})
    queue = account.queue(VisibilityTimeout="30")
    fail_calls(account, queue)
    case_id = load_newest_case(account).case_id
    account.freeze()
    Heal(account)
    answer = send_decision(account, "approve", case_id)
    assert (answer["state"], answer["code"]) == ("approved", "frozen")
    assert "Black Friday" in answer["reason"]
    approved = make_owner_request(load_newest_case(account))
    assert send_decision(account, "decline", case_id)["state"] == "declined"
    end_freeze(account)
    account.later(minutes=10)
    follow_up(make_context(account), OWNERS, lambda: 60)
    continue_case(approved, account.run())
    assert account.visibility(queue) == 30
    assert list_states(account) == ["proposed", "approved", "declined"]


def _make_case_of_unknown_symptom(account: Account, proposal: Case, state: str) -> Case:
    """Make a case of a symptom that only another version of Mendq knows."""
    if state != "proposed":
        move_case(account, proposal, state)
    newest = make_context(account).open_cases.list_transitions(proposal.case_id)[-1]
    gone = replace(newest, case_id="queue_asleep-000000000000", symptom="queue_asleep")
    context = make_context(account)
    view = context.case_store.look(gone.queue_arn, gone.symptom, ())
    record_transition(gone, view, Notification(None, Facts(gone.queue_arn, {}, {})), context)
    return gone


@pytest.mark.parametrize("state", ["proposed", "escalated"])
def test_approve_of_a_case_of_an_unknown_symptom_is_refused_and_changes_nothing(
    account: Account, proposal: Case, state: str
) -> None:
    case_id = _make_case_of_unknown_symptom(account, proposal, state).case_id
    queue = proposal.queue_arn
    answer = call_without_effect(account, queue, lambda: send_decision(account, "approve", case_id))
    assert answer["error"] == "unknown_symptom"


@pytest.mark.parametrize("state", ["proposed", "escalated"])
def test_close_ends_a_case_of_an_unknown_symptom_without_a_notification(
    account: Account, proposal: Case, state: str
) -> None:
    case = _make_case_of_unknown_symptom(account, proposal, state)
    pages = account.pages()
    account.later(minutes=1)
    assert send_decision(account, "close", case.case_id, BOB)["state"] == "closed"
    closed = make_context(account).open_cases.list_transitions(case.case_id)[-1]
    assert (closed.came_from, closed.actor, closed.notified) == (state, BOB, False)
    assert closed.document() in account.transitions()
    unsettled = make_context(account).open_cases.list_unsettled_cases()
    assert case.case_id not in [open_case.case_id for open_case in unsettled]
    assert account.pages() == pages
    assert account.visibility(proposal.queue_arn) == 30
    assert send_decision(account, "close", case.case_id)["by"] == BOB

"""Test the decisions of a person: `mendq approve`, `decline` and `close`."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.cli.builders import Operator
from tests.heal.operators import load_newest_case, move_case

STATE_AFTER_COMMAND = {"approve": "applied", "decline": "declined", "close": "closed"}


def open_case_for(operator: Operator, command: str) -> str:
    """Open a case in a state in which the command is possible. Return its id."""
    case_id = operator.open_proposed_case()
    if command == "close":
        move_case(operator.aws, load_newest_case(operator.aws), "escalated")
    return case_id


@pytest.mark.parametrize("command", STATE_AFTER_COMMAND)
def test_approve_decline_or_close_without_yes_is_refused_and_invokes_no_lambda(
    operator: Operator, command: str
) -> None:
    unconfirmed = operator.run(command, open_case_for(operator, command))
    assert unconfirmed.exit_code == 2
    assert "--yes" in unconfirmed.stderr
    assert operator.account.invoked == []


@pytest.mark.parametrize(("command", "state_after"), STATE_AFTER_COMMAND.items())
def test_approve_decline_or_close_with_yes_sends_the_decision_and_the_callers_arn(
    operator: Operator, command: str, state_after: str
) -> None:
    case_id = open_case_for(operator, command)
    answer = {"case_id": case_id, "state": state_after, "reason": "", "steps": []}
    operator.set_lambda_answers("ApproveFunction", answer)
    assert operator.run_json(command, case_id, "--yes") == answer
    ((function, event),) = operator.account.invoked
    assert function == "ApproveFunction"
    assert event["decision"] == command
    assert event["case_id"] == case_id
    assert event["actor"].startswith("arn:aws:")


def test_approve_that_the_lambda_refuses_fails_with_its_error_code_and_reason(
    operator: Operator,
) -> None:
    case_id = operator.open_proposed_case()
    operator.set_lambda_answers(
        "ApproveFunction", {"error": "wrong_state", "reason": "it is declined"}
    )
    refused = operator.run_json("approve", case_id, "--yes", code=1)["error"]
    assert refused == {"code": "wrong_state", "message": "not done: it is declined"}


def test_approve_of_a_case_that_a_guardrail_refuses_says_that_nothing_changed(
    operator: Operator,
) -> None:
    case_id = operator.open_proposed_case()
    answer = {"case_id": case_id, "state": "refused", "reason": "frozen", "steps": []}
    operator.set_lambda_answers("ApproveFunction", answer, answer)
    assert operator.run_json("approve", case_id, "--yes", code=1) == answer
    output = operator.read_output("approve", case_id, "--yes", code=1)
    assert "nothing was changed by this command" in output


@pytest.mark.parametrize(
    ("code", "waits_for"),
    [
        pytest.param("frozen", "frozen", id="change freeze"),
        pytest.param("", "owner_unavailable", id="the writing Lambda did not run"),
    ],
)
def test_approve_says_that_the_approval_is_recorded_and_what_the_change_waits_for(
    operator: Operator, code: str, waits_for: str
) -> None:
    case_id = operator.open_proposed_case()
    answer = {
        "case_id": case_id,
        "state": "approved",
        "reason": "changes are frozen: x",
        "code": code,
    }
    operator.set_lambda_answers("ApproveFunction", answer, answer)
    document = operator.run_json("approve", case_id, "--yes")
    assert document["state"] == "approved"
    assert document["waits"] == waits_for
    output = operator.read_output("approve", case_id, "--yes")
    assert "changes are frozen: x recorded; the change waits" in output
    assert "nothing was changed" not in output


@pytest.mark.parametrize(("word", "state"), [("decline", "declined"), ("close", "closed")])
def test_decline_of_a_declined_or_close_of_a_closed_case_returns_its_state_without_a_lambda(
    operator: Operator, word: str, state: str
) -> None:
    case_id = operator.open_proposed_case()
    move_case(operator.aws, load_newest_case(operator.aws), state)
    assert operator.run_json(word, case_id)["state"] == state
    assert operator.account.invoked == []


@dataclass(frozen=True)
class ImpossibleDecision:
    """A command that is not possible in a state of a case."""

    command: str
    state: str


IMPOSSIBLE_DECISIONS = [
    ImpossibleDecision(command="approve", state="declined"),
    ImpossibleDecision(command="approve", state="applied"),
    ImpossibleDecision(command="decline", state="applied"),
    ImpossibleDecision(command="close", state="applied"),
    ImpossibleDecision(command="close", state="proposed"),
]


@pytest.mark.parametrize("decision", IMPOSSIBLE_DECISIONS, ids=str)
def test_decision_that_does_not_fit_the_case_state_is_refused_and_invokes_no_lambda(
    operator: Operator, decision: ImpossibleDecision
) -> None:
    case_id = operator.open_proposed_case()
    if decision.state != "proposed":
        move_case(operator.aws, load_newest_case(operator.aws), decision.state)
    error = operator.run_json(decision.command, case_id, code=1)["error"]
    assert error["code"] == "wrong_state"
    assert f"is {decision.state}" in error["message"]
    assert operator.account.invoked == []


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize("word", [*STATE_AFTER_COMMAND, "rollback", "show"])
def test_command_with_an_empty_case_id_is_refused_although_only_one_case_is_open(
    operator: Operator, word: str, empty: str
) -> None:
    """Every id begins with an empty text, so an unset shell variable must not name the case."""
    operator.open_proposed_case()
    assert "name a case or its queue" in operator.read_refusal(word, empty, code=2)
    assert operator.account.invoked == []

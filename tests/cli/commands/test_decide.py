"""Test the decisions of a person: `mendq approve`, `decline` and `close`."""

from __future__ import annotations

import pytest

from tests.cli.builders import Operator
from tests.heal.operators import load_newest_case, move_case

LED_TO = {"approve": "applied", "decline": "declined", "close": "closed"}


@pytest.mark.parametrize("word", LED_TO)
def test_approve_decline_close_invoke_the_lambda_only_with_yes_and_send_the_callers_arn(
    operator: Operator, word: str
) -> None:
    case_id = operator.open_proposed_case()
    if word == "close":
        move_case(operator.aws, load_newest_case(operator.aws), "escalated")
    unconfirmed = operator.run(word, case_id)
    assert (unconfirmed.exit_code, operator.account.invoked) == (2, [])
    assert "--yes" in unconfirmed.stderr
    answer = {"case_id": case_id, "state": LED_TO[word], "reason": "", "steps": []}
    operator.set_lambda_answers("ApproveFunction", answer)
    assert operator.run_json(word, case_id, "--yes") == answer
    ((output, event),) = operator.account.invoked
    assert (output, event["decision"], event["case_id"]) == ("ApproveFunction", word, case_id)
    assert event["actor"].startswith("arn:aws:")


def test_approve_with_json_returns_the_error_code_of_the_lambdas_refusal(
    operator: Operator,
) -> None:
    case_id = operator.open_proposed_case()
    operator.set_lambda_answers(
        "ApproveFunction", {"error": "wrong_state", "reason": "it is declined"}
    )
    refused = operator.run_json("approve", case_id, "--yes", code=1)["error"]
    assert refused == {"code": "wrong_state", "message": "not done: it is declined"}
    answer = {"case_id": case_id, "state": "refused", "reason": "frozen", "steps": []}
    operator.set_lambda_answers("ApproveFunction", answer)
    assert operator.run_json("approve", case_id, "--yes", code=1) == answer
    operator.set_lambda_answers("ApproveFunction", answer)
    output = operator.read_output("approve", case_id, "--yes", code=1)
    assert "nothing was changed by this command" in output


@pytest.mark.parametrize(("code", "waits"), [("frozen", "frozen"), ("", "owner_unavailable")])
def test_approve_says_that_the_approval_is_recorded_and_what_the_change_waits_for(
    operator: Operator, code: str, waits: str
) -> None:
    case_id = operator.open_proposed_case()
    answer = {"case_id": case_id, "state": "approved", "reason": "changes are frozen: x"}
    operator.set_lambda_answers("ApproveFunction", *[{**answer, "code": code}] * 2)
    found = operator.run_json("approve", case_id, "--yes")
    assert (found["state"], found["waits"]) == ("approved", waits)
    output = operator.read_output("approve", case_id, "--yes")
    assert "changes are frozen: x recorded; the change waits" in output
    assert "nothing was changed" not in output


@pytest.mark.parametrize(("word", "state"), [("decline", "declined"), ("close", "closed")])
def test_decline_or_close_of_an_already_ended_case_returns_its_state_without_the_lambda(
    operator: Operator, word: str, state: str
) -> None:
    case_id = operator.open_proposed_case()
    move_case(operator.aws, load_newest_case(operator.aws), state)
    assert operator.run_json(word, case_id)["state"] == state
    assert operator.account.invoked == []


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("approve", "declined"),
        ("approve", "applied"),
        ("decline", "applied"),
        ("close", "applied"),
        ("close", "proposed"),
    ],
)
def test_decision_that_does_not_fit_the_case_state_is_refused_without_the_lambda(
    operator: Operator, word: str, state: str
) -> None:
    case_id = operator.open_proposed_case()
    if state != "proposed":
        move_case(operator.aws, load_newest_case(operator.aws), state)
    error = operator.run_json(word, case_id, code=1)["error"]
    assert error["code"] == "wrong_state"
    assert f"is {state}" in error["message"]
    assert operator.account.invoked == []


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize("word", [*LED_TO, "rollback", "show"])
def test_a_command_refuses_an_empty_case_id_though_one_case_is_open(
    operator: Operator, word: str, empty: str
) -> None:
    """Every id begins with an empty text, so an unset shell variable must not name the case."""
    operator.open_proposed_case()
    assert "name a case or its queue" in operator.read_refusal(word, empty, code=2)
    assert operator.account.invoked == []

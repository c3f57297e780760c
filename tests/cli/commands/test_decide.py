from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Operator


@pytest.mark.parametrize("command", ["approve", "decline", "close"])
def test_without_a_terminal_nothing_is_asked_of_the_lambda(
    operator: Operator, command: str
) -> None:
    case_id = operator.proposed()
    result = operator.mendq(command, case_id)
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert operator.account.invoked == []


@pytest.mark.parametrize("command", ["approve", "decline", "close"])
def test_a_case_that_is_not_there(operator: Operator, command: str) -> None:
    assert operator.mendq(command, "nothing-like-it", "--yes").exit_code == 4
    assert operator.account.invoked == []


def test_a_refusal_of_the_lambda_with_json_carries_its_code(operator: Operator) -> None:
    case_id = operator.proposed()
    operator.answers("ApproveFunction", {"error": "wrong_state", "reason": "it is declined"})
    refused = operator.json("approve", case_id, "--yes", code=1)["error"]
    assert refused == {"code": "wrong_state", "message": "not done: it is declined"}


def test_a_refusal_of_the_lambda_is_told_with_its_reason(operator: Operator) -> None:
    case_id = operator.proposed()
    operator.answers("ApproveFunction", {"error": "wrong_state", "reason": "it is declined"})
    result = operator.mendq("approve", case_id, "--yes")
    assert (result.exit_code, result.stderr) == (1, "mendq: not done: it is declined\n")


def test_what_came_out_differently_is_a_failure(operator: Operator) -> None:
    case_id = operator.proposed()
    answer = {"case_id": case_id, "state": "refused", "reason": "frozen", "steps": []}
    operator.answers("ApproveFunction", answer)
    assert operator.json("approve", case_id, "--yes", code=1) == answer


def test_approved_and_not_made_yet_is_not_called_nothing(operator: Operator) -> None:
    case_id = operator.proposed()
    answer = {"case_id": case_id, "state": "approved", "reason": "heal could not be called"}
    operator.answers("ApproveFunction", answer)
    result = operator.mendq("approve", case_id, "--yes")
    assert result.exit_code == 1
    assert "approved; the change comes within minutes, or the case expires" in result.stdout
    assert "nothing was changed" not in result.stdout


@pytest.mark.parametrize("said", [{"state": "mended"}, {"state": ["applied"]}, {}])
def test_a_state_of_a_later_version_is_no_trace(operator: Operator, said: dict[str, Any]) -> None:
    case_id = operator.proposed()
    operator.answers("ApproveFunction", said)
    result = operator.mendq("approve", case_id, "--yes")
    assert result.exit_code == 1
    assert "no state that this version knows" in result.stdout


@pytest.mark.parametrize(
    ("command", "state"), [("approve", "applied"), ("decline", "declined"), ("close", "closed")]
)
def test_the_word_reaches_the_lambda_with_who_said_it(
    operator: Operator, command: str, state: str
) -> None:
    case_id = operator.proposed()
    answer = {"case_id": case_id, "state": state, "reason": "", "steps": []}
    operator.answers("ApproveFunction", answer)
    assert operator.json(command, case_id, "--yes") == answer
    ((output, event),) = operator.account.invoked
    assert (output, event["decision"], event["case_id"]) == ("ApproveFunction", command, case_id)
    assert event["actor"].startswith("arn:aws:")


def test_the_plan_is_shown_before_the_question(operator: Operator) -> None:
    case_id = operator.proposed()
    shown = operator.mendq("approve", case_id).stdout
    assert "VisibilityTimeout: 30 s -> 45 s" in shown
    assert "proposed, until 20" in shown
    assert "Different now" in shown

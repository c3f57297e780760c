from __future__ import annotations

from typing import Any

from mendq.cli.deploy.drill_queue import Ending
from mendq.model.case import Case
from tests.cli.conftest import Operator
from tests.heal.operators import case_of, move, say, undo


def _lambdas(operator: Operator) -> None:
    def rollback(event: Any) -> dict[str, Any]:
        return undo(operator.aws, event["case_id"], dry_run=event["dry_run"])

    operator.account.lambdas["RollbackFunction"] = rollback
    operator.account.lambdas["ApproveFunction"] = lambda event: say(
        operator.aws, event["decision"], event["case_id"], event["actor"]
    )


def _ended(operator: Operator, case: Case) -> Ending:
    ending = Ending(operator.account, case)
    ending.run(lambda: operator.aws.visibility(case.queue_arn))
    return ending


def test_a_fix_is_taken_back_and_its_case_has_ended(operator: Operator) -> None:
    _lambdas(operator)
    operator.applied()
    ending = _ended(operator, case_of(operator.aws))
    assert ending.fault == ""
    assert [each.name for each in ending.stages] == [
        "fix taken back: 30 s",
        "case ended: rolled_back",
    ]
    assert operator.aws.visibility("orders.fifo") == 30
    assert operator.json("cases", "--open") == []


def test_a_proposal_does_not_go_on_waiting_for_a_person(operator: Operator) -> None:
    _lambdas(operator)
    operator.proposed()
    ending = _ended(operator, case_of(operator.aws))
    assert (ending.fault, ending.case.state) == ("", "declined")
    assert operator.json("cases", "--open") == []


def test_what_a_person_would_be_called_for_is_closed(operator: Operator) -> None:
    _lambdas(operator)
    operator.applied()
    move(operator.aws, case_of(operator.aws), "overridden")
    ending = _ended(operator, case_of(operator.aws))
    assert (ending.fault, ending.case.state) == ("", "closed")


def test_a_case_that_has_ended_by_itself_asks_nothing(operator: Operator) -> None:
    arn = operator.aws.queue(tag="observe", VisibilityTimeout="30")
    operator.aws.heal(operator.aws.late_deletes(arn, "a", "b", "c"))
    ending = _ended(operator, case_of(operator.aws))
    assert [each.name for each in ending.stages] == ["case ended: observed"]
    assert operator.account.invoked == []


def test_what_could_not_be_taken_back_is_said(operator: Operator) -> None:
    operator.applied()
    refused = {"error": "claimed", "reason": "another run is at work"}
    operator.answers("RollbackFunction", refused)
    case = case_of(operator.aws)
    ending = _ended(operator, case)
    assert ending.fault == f"{case.case_id} stays applied: another run is at work"
    assert ending.stages == []

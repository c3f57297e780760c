"""Test how operators see and stop a case whose messages are sent back."""

from __future__ import annotations

import pytest

from mendq.model.queue import RedrivePolicy
from mendq.model.state import State
from tests.cli.builders import Operator
from tests.redrive.world import Redriving


@pytest.fixture
def world(operator: Operator) -> Redriving:
    dlq = operator.aws.queue("orders-dlq")
    source = operator.aws.queue("orders", RedrivePolicy=RedrivePolicy(dlq, 3).text)
    redriving = Redriving(operator.aws, source, dlq)
    redriving.listen(operator.aws.clients)
    operator.connect_lambdas()
    return redriving


@pytest.mark.parametrize("state", [State.VERIFIED, State.ESCALATED])
def test_show_of_a_finished_redrive_case_offers_no_undo(
    operator: Operator, world: Redriving, state: State
) -> None:
    case = world.case(State.APPLIED, state)
    assert operator.run_json("show", case.case_id)["undo"] == []
    output = operator.read_output("show", case.case_id)
    assert "nothing goes on: what went back stays there" in output
    for word in ("rollback", "set-queue-attributes", "delete-queue"):
        assert word not in output


def test_rollback_of_a_running_redrive_case_cancels_the_redrive_only_with_yes(
    operator: Operator, world: Redriving
) -> None:
    case = world.case(State.APPLIED)
    preview = operator.read_output("rollback", case.case_id, "--dry-run")
    assert "stopped: the rest is held, and what went back stays there" in preview
    assert world.asked == []
    operator.read_output("rollback", case.case_id, "--yes")
    assert [request["cancel"] for request in world.asked] == [True]
    assert world.newest().state is State.ROLLED_BACK
    again = operator.read_output("rollback", case.case_id, "--yes")
    assert "Rolled back already" in again
    assert "somebody else" not in again

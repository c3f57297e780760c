"""Test how operators see and stop a case whose messages are sent back."""

from __future__ import annotations

import pytest

from mendq.model.queue import RedrivePolicy
from mendq.model.state import State
from tests.cli.builders import Operator
from tests.redrive.world import RedriveWorld


@pytest.fixture
def world(operator: Operator) -> RedriveWorld:
    dlq = operator.aws.queue("orders-dlq")
    source = operator.aws.queue("orders", RedrivePolicy=RedrivePolicy(dlq, 3).text)
    redriving = RedriveWorld(operator.aws, source, dlq)
    redriving.register_answers(operator.aws.clients)
    operator.connect_lambdas()
    return redriving


@pytest.mark.parametrize("state", [State.VERIFIED, State.ESCALATED])
def test_show_of_a_finished_redrive_case_offers_no_undo(
    operator: Operator, world: RedriveWorld, state: State
) -> None:
    case = world.record_case(State.APPLIED, state)
    assert operator.run_json("show", case.case_id)["undo"] == []
    output = operator.read_output("show", case.case_id)
    assert "nothing goes on: what went back stays there" in output
    for word in ("rollback", "set-queue-attributes", "delete-queue"):
        assert word not in output


def test_dry_run_of_a_rollback_of_a_redrive_says_what_stops_and_cancels_nothing(
    operator: Operator, world: RedriveWorld
) -> None:
    case = world.record_case(State.APPLIED)
    preview = operator.read_output("rollback", case.case_id, "--dry-run")
    assert "stopped: the rest is held, and what went back stays there" in preview
    assert world.owner_requests == []
    assert world.read_newest_case().state is State.APPLIED


def test_rollback_of_a_redrive_with_yes_cancels_it_and_a_second_rollback_cancels_nothing(
    operator: Operator, world: RedriveWorld
) -> None:
    case = world.record_case(State.APPLIED)
    operator.read_output("rollback", case.case_id, "--yes")
    assert [request["cancel"] for request in world.owner_requests] == [True]
    assert world.read_newest_case().state is State.ROLLED_BACK
    again = operator.read_output("rollback", case.case_id, "--yes")
    assert "Rolled back already" in again
    assert "somebody else" not in again
    assert [request["cancel"] for request in world.owner_requests] == [True]

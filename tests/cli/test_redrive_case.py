"""A case whose messages go back, as operators see it and stop it: no undo that would not be one."""

from __future__ import annotations

import pytest

from mendq.model.case import State
from mendq.model.queue import Redrive
from mendq.model.steps import SetMessageRetention
from tests.cli.conftest import Operator
from tests.redrive.world import LONGEST, Redriving


@pytest.fixture
def world(operator: Operator) -> Redriving:
    dlq = operator.aws.queue("orders-dlq")
    source = operator.aws.queue("orders", RedrivePolicy=Redrive(dlq, 3).text)
    made = Redriving(operator.aws, source, dlq)
    made.listen(operator.aws.clients)
    operator.lambdas_answer()
    return made


@pytest.mark.parametrize("state", [State.VERIFIED, State.ESCALATED])
def test_one_that_is_over_is_shown_without_any_undo(
    operator: Operator, world: Redriving, state: State
) -> None:
    case = world.case(State.APPLIED, state)
    assert operator.json("show", case.case_id)["undo"] == []
    said = operator.shown("show", case.case_id)
    assert "nothing goes on: what went back stays there" in said
    for word in ("rollback", "set-queue-attributes", "delete-queue"):
        assert word not in said


def test_that_retention_was_raised_is_all_that_can_be_taken_back_by_mover(
    operator: Operator, world: Redriving
) -> None:
    step = SetMessageRetention(345_600, LONGEST)
    case = world.case(State.APPLIED, State.VERIFIED, steps=(world.back(), step))
    operator.aws.clients.sqs.set_queue_attributes(
        QueueUrl=operator.aws.url(world.dlq),
        Attributes={step.attribute: str(LONGEST)},  # type: ignore[dict-item]
    )
    (command,) = operator.json("show", case.case_id)["undo"]
    assert "MessageRetentionPeriod=345600" in command
    assert "Dlq" not in command


def test_it_is_stopped_once_a_person_said_so(operator: Operator, world: Redriving) -> None:
    case = world.case(State.APPLIED)
    preview = operator.shown("rollback", case.case_id, "--dry-run")
    assert "stopped: the rest is held, and what went back stays there" in preview
    assert world.asked == []
    operator.shown("rollback", case.case_id, "--yes")
    assert [each["cancel"] for each in world.asked] == [True]
    assert world.newest().state is State.ROLLED_BACK
    again = operator.shown("rollback", case.case_id, "--yes")
    assert "Rolled back already" in again
    assert "somebody else" not in again

"""Test `mendq drill`: its queue, the end of its case, and interruption by a signal."""

from __future__ import annotations

import os
import signal
import time
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from mendq.cli.deploy import drill
from mendq.cli.deploy.drill import DrillRun
from mendq.cli.deploy.drill_queue import make_drill_queue
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.model.mode import Mode
from mendq.model.tags import DRILL_TAG
from tests.cli.builders import Operator
from tests.heal.operators import list_states, load_newest_case, move_case

NAME = "orders.fifo"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def test_drill_refuses_an_existing_queue_name_and_leaves_that_queue_unchanged(
    operator: Operator,
) -> None:
    existing_queue = operator.aws.queue(NAME, tag=None, VisibilityTimeout="2")
    with (
        pytest.raises(CommandError, match="is there already") as stopped,
        make_drill_queue(operator.aws.clients.sqs, NAME, {"mendq": "heal"}),
    ):
        pytest.fail("the drill took a queue of somebody else")
    assert stopped.value.code is Exit.USAGE
    assert operator.aws.visibility(existing_queue) == 2
    url = operator.aws.url(existing_queue)
    assert not operator.aws.clients.sqs.list_queue_tags(QueueUrl=url).get("Tags")


def _end_drill_case(operator: Operator) -> DrillRun:
    drill_queue: Any = SimpleNamespace(visibility_timeout_seconds=operator.aws.visibility(NAME))
    run = DrillRun(Invocation(), drill_queue, "", Mode.HEAL, case=load_newest_case(operator.aws))
    drill_queue.visibility_timeout_seconds = 30
    run.end_case()
    return run


def test_drill_reports_a_case_that_it_cannot_roll_back(operator: Operator) -> None:
    case_id = operator.open_applied_case()
    refused = {"error": "claimed", "reason": "another run is at work"}
    operator.set_lambda_answers("RollbackFunction", refused)
    run = _end_drill_case(operator)
    assert run.case_ending_fault == f"{case_id} stays applied: another run is at work"
    assert run.stages == []


def test_drill_closes_a_case_whose_value_a_person_has_overridden(operator: Operator) -> None:
    operator.open_applied_case()
    move_case(operator.aws, load_newest_case(operator.aws), "overridden")
    operator.connect_lambdas()
    assert [stage["stage"] for stage in _end_drill_case(operator).stages] == ["case ended: closed"]


@pytest.mark.parametrize(
    ("number", "mode", "ended"),
    [
        *((signal_number, "heal", ["applied", "rolled_back"]) for signal_number in SIGNALS),
        (signal.SIGINT, "propose", ["proposed", "declined"]),
        (signal.SIGINT, "observe", ["observed"]),
        (signal.SIGINT, "", []),
    ],
    ids=[
        "SIGINT heal",
        "SIGTERM heal",
        "SIGHUP heal",
        "SIGINT propose",
        "SIGINT observe",
        "SIGINT before a case",
    ],
)
def test_drill_interrupted_by_a_signal_ends_its_case_and_deletes_its_queue(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, number: int, mode: str, ended: list[str]
) -> None:
    tags: dict[str, str] = {}

    def send_signal(run: DrillRun, _: float) -> NoReturn:
        sqs = operator.aws.clients.sqs
        url = run.queue.url
        tags.update(sqs.list_queue_tags(QueueUrl=url)["Tags"])
        if mode:
            sqs.tag_queue(QueueUrl=url, Tags={"mendq": mode})
            operator.aws.later(seconds=200)
            operator.aws.heal(operator.aws.late_deletes(run.queue_arn, "a", "b", "c"))
        os.kill(os.getpid(), number)
        time.sleep(10)
        pytest.fail("the signal ended nothing")

    operator.connect_lambdas()
    monkeypatch.setattr(drill, "_require_logging_trail", lambda *_: None)
    monkeypatch.setattr(DrillRun, "run_and_time", send_signal)
    handlers = [signal.getsignal(signal_number) for signal_number in SIGNALS]
    result = operator.run("drill", "--yes")
    *_, line = result.stderr.splitlines()
    said = f"is {ended[-1]}" if ended else "no case was opened yet"
    assert result.exit_code == 1
    assert line.startswith("mendq: interrupted: ")
    assert f"{said}; queue mendq-drill-" in line
    assert tags == {"mendq": "heal", DRILL_TAG: "true"}
    assert list_states(operator.aws) == ended
    assert "QueueUrls" not in operator.aws.clients.sqs.list_queues()
    assert [signal.getsignal(signal_number) for signal_number in SIGNALS] == handlers

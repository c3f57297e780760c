from __future__ import annotations

import os
import signal
import time
from typing import Any, NoReturn

import pytest

from mendq.cli.deploy import drill
from tests.cli.conftest import Answer, Operator
from tests.heal.operators import say, states, undo

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def answered(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """Somebody whose trail logs the drill's queue, and whose Lambdas answer."""
    monkeypatch.setattr(drill, "_require_situation", lambda *_: None)
    answers: dict[str, Answer] = {
        "RollbackFunction": lambda event: undo(operator.aws, event["case_id"]),
        "ApproveFunction": lambda event: say(operator.aws, event["decision"], event["case_id"]),
    }
    operator.account.lambdas.update(answers)
    return operator


def _killed_by(number: int) -> NoReturn:
    os.kill(os.getpid(), number)
    time.sleep(10)
    pytest.fail("the signal ended nothing")


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(
    ("mode", "ended"), [("heal", ["applied", "rolled_back"]), ("propose", ["proposed", "declined"])]
)
def test_a_signal_ends_the_drill_as_its_own_end_does(
    answered: Operator, monkeypatch: pytest.MonkeyPatch, number: int, mode: str, ended: list[str]
) -> None:
    def timed(_call: Any, _made: Any, arn: str, *_: Any) -> NoReturn:
        answered.aws.later(seconds=200)
        answered.aws.heal(answered.aws.late_deletes(arn, "a", "b", "c"))
        _killed_by(number)

    monkeypatch.setattr(drill, "_timed", timed)
    handlers = [signal.getsignal(each) for each in SIGNALS]
    result = answered.mendq("drill", "--yes", "--mode", mode)
    assert result.exit_code == 1
    *_, line = result.stderr.splitlines()
    assert line.startswith("mendq: interrupted: ")
    assert f"is {ended[-1]}; queue mendq-drill-" in line
    assert "is removed" in line
    assert states(answered.aws) == ended
    assert "QueueUrls" not in answered.aws.clients.sqs.list_queues()
    assert [signal.getsignal(each) for each in SIGNALS] == handlers


def test_a_signal_before_any_case_says_so(
    answered: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drill, "_timed", lambda *_: _killed_by(signal.SIGTERM))
    result = answered.mendq("drill", "--yes")
    assert (result.exit_code, answered.account.invoked) == (1, [])
    assert "no case was opened yet; queue mendq-drill-" in result.stderr
    assert "QueueUrls" not in answered.aws.clients.sqs.list_queues()

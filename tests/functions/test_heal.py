"""The heal Lambda as Lambda calls it: a batch in, partial failures out, metrics on the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from functions import heal
from mendq.heal.assess import with_facts as real
from mendq.heal.context import Run
from mendq.heal.guardrails import Situation
from tests.functions.conftest import CONTEXT, Context, Deploy, metrics
from tests.heal.conftest import Account, every_client


@pytest.fixture(autouse=True)
def _lambda(account: Account, deploy: Deploy) -> None:
    deploy(heal.handler, account)


def deliver(bodies: dict[str, str]) -> list[str]:
    """The messages that are to come again."""
    records = [
        {"messageId": message_id, "body": body, "eventSource": "aws:sqs"}
        for message_id, body in bodies.items()
    ]
    answer = heal.handler({"Records": records}, CONTEXT)
    return sorted(each["itemIdentifier"] for each in answer["batchItemFailures"])


def test_junk_costs_itself_and_is_parked(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    junk = {"junk": "<html>", "nest": "[" * 9000, "empty": "{}"}
    assert deliver({**junk, **account.late_deletes(queue, "1", "2", "3")}) == ["junk", "nest"]
    assert account.visibility(queue) == 45
    seen = metrics(capsys.readouterr().out)
    assert (seen["FailedCallsSeen"], seen["UnreadableEvents"]) == (3, 2)
    assert "HealErrors" not in seen, "junk is no fault of heal's"
    assert seen["AutoFixes"] == seen["AutoFixes by ['symptom']"] == 1
    assert not {"Refusals", "UnknownErrorCodes"} & seen.keys()


def test_one_queue_that_cannot_be_looked_at_costs_itself(
    account: Account, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = account.queue(VisibilityTimeout="30"), account.queue("bad.fifo")

    def refuse(params: dict[str, Any], **_: Any) -> None:
        if "bad.fifo" in str(params.get("body", "")):
            raise ConnectionError

    account.clients.sqs.meta.events.register("before-call.sqs.GetQueueAttributes", refuse)
    bodies = account.late_deletes(good, "1", "2", "3") | account.late_deletes(bad, "4", "5", "6")
    assert deliver(bodies) == ["message-4", "message-5", "message-6"]
    assert account.visibility(good) == 45
    (logged,) = (each for each in caplog.records if each.levelname == "ERROR")
    assert logged.exc_info
    assert logged.exc_info[0] is ConnectionError
    assert metrics(capsys.readouterr().out)["HealErrors"] == 1, "once for its three messages"


def test_an_unknown_code_is_counted_and_never_acted_on(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    assert deliver(account.late_deletes(queue, "1", "2", "3", errorCode="Teapot")) == []
    assert account.visibility(queue) == 30
    assert metrics(capsys.readouterr().out)["UnknownErrorCodes"] == 3


def test_three_thousand_deliveries_are_one_write(account: Account) -> None:
    """Grouped first: what a batch costs does not grow with its events."""
    queue, calls = account.queue(VisibilityTimeout="30"), list[str]()
    for client in every_client(account.clients):
        client.meta.events.register("before-call", lambda model, **_: calls.append(model.name))
    bodies = account.late_deletes(queue, *map(str, range(1000)))
    for _ in range(3):
        deliver(bodies)
    assert calls.count("SetQueueAttributes") == 1
    assert calls.count("TransactWriteItems") == 2
    assert account.transitions()[0]["evidence"]["failed_calls"] == 1000


def test_what_is_to_come_again_is_no_error(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    monkeypatch.setattr(Context, "get_remaining_time_in_millis", lambda _: 3_000)
    assert len(deliver(account.late_deletes(queue, "1", "2", "3"))) == 3
    assert "HealErrors" not in metrics(capsys.readouterr().out)


@pytest.mark.parametrize("mode", ["observe", "propose", "heal"])
def test_two_runs_that_read_one_burst_are_no_error(
    account: Account,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    """One is faster; the messages of the other come again."""
    queue = account.queue(tag=mode, VisibilityTimeout="30")
    overtaken = list[object]()

    def with_facts(slower: Situation, run: Run) -> Situation:
        if not overtaken:
            overtaken.append(slower)
            account.heal(account.late_deletes(queue, "4", "5", "6"))
        return real(slower, run)

    monkeypatch.setattr("mendq.heal.batch.with_facts", with_facts)
    failed = deliver(account.late_deletes(queue, "1", "2", "3"))
    assert overtaken
    assert len(account.transitions()) == 1
    assert len(failed) in {0, 3}
    assert "HealErrors" not in metrics(capsys.readouterr().out)


ROOT = str(Path(heal.__file__).parents[1])
# Modules of ours that a cold start loads, packages among them and the catalogue apart; files of
# ours that one failed call comes to until its queue is fixed.
MOST_MODULES, MOST_FILES = 59, 30
COUNT = """
import sys, functions.heal
ours = {each for each in sys.modules if each.partition(".")[0] in ("functions", "mendq")}
print(len([each for each in ours if not each.startswith("mendq.catalogue")]))
"""


def test_a_cold_start_loads_few_modules() -> None:
    environment = {**os.environ, "PYTHONPATH": ROOT}
    told = subprocess.check_output([sys.executable, "-c", COUNT], env=environment, text=True)
    assert int(told) <= MOST_MODULES


def test_one_failed_call_comes_to_few_files(account: Account) -> None:
    queue, entered = account.queue(VisibilityTimeout="30"), set[str]()
    bodies = account.late_deletes(queue, "1", "2", "3")

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.add(frame.f_code.co_filename)

    deliver({})
    sys.setprofile(note)
    try:
        deliver(bodies)
    finally:
        sys.setprofile(None)
    assert account.visibility(queue) == 45
    rooms = (f"{ROOT}/functions/", f"{ROOT}/mendq/")
    assert 20 < sum(each.startswith(rooms) for each in entered) <= MOST_FILES

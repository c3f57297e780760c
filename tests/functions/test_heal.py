"""The heal Lambda as Lambda calls it: a batch in, partial failures out, metrics on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from functions import heal
from mendq.aws.errors import CaseMoved, EventUnreadable, FactsUnavailable, RetryLater
from mendq.heal.batch import BatchResult
from mendq.model.names import OwnMetric
from tests.account.account import Account
from tests.account.faults import calls_of
from tests.functions.builders import LAMBDA_CONTEXT, Deploy, make_sqs_event, sum_metrics


@pytest.fixture(autouse=True)
def _lambda(account: Account, deploy: Deploy) -> None:
    deploy(heal.handler, account)


def deliver(bodies: dict[str, str]) -> list[str]:
    """The messages that are to come again."""
    answer = heal.handler(make_sqs_event(bodies), LAMBDA_CONTEXT)
    return sorted(each["itemIdentifier"] for each in answer["batchItemFailures"])


def test_heal_batch_with_unreadable_messages_returns_only_those_and_still_fixes_the_queue(
    account: Account, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    junk = {"junk": "<html>", "nest": "[" * 9000, "empty": "{}"}
    assert deliver({**junk, **account.late_deletes(queue, "1", "2", "3")}) == ["junk", "nest"]
    assert account.visibility(queue) == 45
    seen = sum_metrics(capsys.readouterr().out)
    assert seen["FailedCallsSeen"] == 3
    (logged,) = (vars(record) for record in caplog.records if "reasons" in vars(record))
    assert logged["reasons"].total() == 2
    assert "HealErrors" not in seen, "junk is no fault of heal's"
    assert seen["AutoFixes"] == seen["AutoFixes by ['symptom']"] == 1
    assert not {"Refusals", "UnknownErrorCodes"} & seen.keys()


def test_heal_batch_retries_only_the_messages_of_a_queue_whose_attributes_cannot_be_read(
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
    assert sum_metrics(capsys.readouterr().out)["HealErrors"] == 1, "once for its three messages"


def test_failed_calls_with_an_unknown_error_code_are_counted_and_change_no_queue(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    assert deliver(account.late_deletes(queue, "1", "2", "3", errorCode="Teapot")) == []
    assert account.visibility(queue) == 30
    assert sum_metrics(capsys.readouterr().out)["UnknownErrorCodes"] == 3


def test_heal_writes_a_queue_once_for_3000_failed_calls_in_three_batches(account: Account) -> None:
    """Grouped first: what a batch costs does not grow with its events."""
    queue, calls = account.queue(VisibilityTimeout="30"), calls_of(account)
    bodies = account.late_deletes(queue, *map(str, range(1000)))
    for _ in range(3):
        deliver(bodies)
    assert calls.count("SetQueueAttributes") == 1
    assert calls.count("TransactWriteItems") == 2
    assert account.transitions()[0]["evidence"]["failed_calls"] == 1000


def test_heal_errors_metric_ignores_retries_unreadable_events_and_lost_races() -> None:
    """Of two runs that read one burst one is faster."""
    gone = FactsUnavailable("orders")
    errors = (CaseMoved(), RetryLater(), EventUnreadable(), gone, gone)
    healed = BatchResult(
        error_by_message_id={f"message-{n}": each for n, each in enumerate(errors)}
    )
    assert healed.unexpected_errors == [gone]
    assert healed.count_by_metric()[OwnMetric.HEAL_ERRORS] == 1


ROOT = str(Path(heal.__file__).parents[1])
# What a cold start loads beside the SDK and what that loads, and why. Whoever adds to it says so.
LOADED = {
    "aws_lambda_powertools": "the log and the metrics",
    "typing_extensions": "Powertools asks for it",
    "msgspec": "the types of the engine, and the SDK's models",
    "statistics": "how evenly a group of messages stands, in the catalogue",
    "_statistics": "statistics asks for it",
    "fractions": "statistics asks for it",
}
ROOMS = {
    "aws": "looks at the queue",
    "cases": "the case store",
    "catalogue": "what a failed call may be of",
    "heal": "itself",
    "model": "the words of all of them",
    "notifications": "a case's next step, and who is told",
    "probe": "which failed call is its own",
}
COLD_START = """
import gc, json, sys
import botocore.client, botocore.session
from botocore import credentials, endpoint, httpsession, retryhandler, signers
of_the_sdk = {each.partition(".")[0] for each in sys.modules}
import functions.heal
loaded = sorted(sys.modules)
print(json.dumps([sorted(of_the_sdk), loaded, gc.isenabled()]))
"""


def test_heal_cold_start_imports_only_listed_packages() -> None:
    environment = {**os.environ, "PYTHONPATH": ROOT}
    told = subprocess.check_output([sys.executable, "-c", COLD_START], env=environment, text=True)
    of_the_sdk, loaded, collects = json.loads(told)
    ours = [each for each in loaded if each.partition(".")[0] in {"functions", "mendq"}]
    assert {each.partition(".")[0] for each in {*loaded} - {*ours}} - {*of_the_sdk} == {*LOADED}
    assert {each.split(".")[1] for each in ours if each.startswith("mendq.")} == {*ROOMS}
    assert collects, "garbage is collected again"

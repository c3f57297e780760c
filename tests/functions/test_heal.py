"""The heal Lambda handles an SQS batch, returns the failed messages and sends metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from functions import heal
from mendq.aws.errors import CaseMoved, EventUnreadable, FactsUnavailable, RetryLater
from mendq.cases.spent_metrics import SpentMetrics
from mendq.heal.batch import BatchResult
from mendq.model.names import OwnMetric
from tests.account.account import Account
from tests.account.faults import calls_of
from tests.functions.builders import LAMBDA_CONTEXT, Deploy, make_sqs_event, sum_metrics


@pytest.fixture(autouse=True)
def _deploy_heal(account: Account, deploy: Deploy) -> None:
    deploy(heal.handler, account)


def deliver(bodies: dict[str, str]) -> list[str]:
    """Return the ids of the messages that SQS must deliver again."""
    answer = heal.handler(make_sqs_event(bodies), LAMBDA_CONTEXT)
    return sorted(failure["itemIdentifier"] for failure in answer["batchItemFailures"])


def test_heal_batch_with_unreadable_messages_returns_only_those_and_still_fixes_the_queue(
    account: Account, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    unreadable = {"junk": "<html>", "nest": "[" * 9000, "empty": "{}"}
    assert deliver({**unreadable, **account.late_deletes(queue, "1", "2", "3")}) == ["junk", "nest"]
    assert account.visibility(queue) == 45
    metrics = sum_metrics(capsys.readouterr().out)
    assert metrics["FailedCallsSeen"] == 3
    (logged,) = (vars(record) for record in caplog.records if "reasons" in vars(record))
    assert logged["reasons"].total() == 2
    assert "HealErrors" not in metrics, "an unreadable message is not an error of heal"
    assert metrics["AutoFixes"] == 1
    assert metrics["AutoFixes by ['symptom']"] == 1
    assert not {"Refusals", "UnknownErrorCodes"} & metrics.keys()


def test_heal_batch_retries_only_the_messages_of_a_queue_whose_attributes_cannot_be_read(
    account: Account, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    readable = account.queue(VisibilityTimeout="30")
    unreadable = account.queue("bad.fifo")

    def refuse(params: dict[str, Any], **_: Any) -> None:
        if "bad.fifo" in str(params.get("body", "")):
            raise ConnectionError

    account.clients.sqs.meta.events.register("before-call.sqs.GetQueueAttributes", refuse)
    bodies = account.late_deletes(readable, "1", "2", "3")
    bodies |= account.late_deletes(unreadable, "4", "5", "6")
    assert deliver(bodies) == ["message-4", "message-5", "message-6"]
    assert account.visibility(readable) == 45
    (logged,) = (record for record in caplog.records if record.levelname == "ERROR")
    assert logged.exc_info
    assert logged.exc_info[0] is ConnectionError
    assert sum_metrics(capsys.readouterr().out)["HealErrors"] == 1, "once for its three messages"


def test_metrics_that_heal_asked_for_are_counted_once_in_the_scans_budget(
    account: Account,
) -> None:
    _, clients = heal.handler.settings_and_clients
    clients.metric_count.asked = 7
    for _ in range(2):
        heal.handler({"found": []}, LAMBDA_CONTEXT)
    store = SpentMetrics(account.clients.dynamodb, account.settings.case_table)
    assert store.read_spent_metrics(datetime.now(UTC)) == 7


def test_failed_calls_with_an_unknown_error_code_are_counted_and_change_no_queue(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    assert deliver(account.late_deletes(queue, "1", "2", "3", errorCode="Teapot")) == []
    assert account.visibility(queue) == 30
    assert sum_metrics(capsys.readouterr().out)["UnknownErrorCodes"] == 3


def test_heal_writes_a_queue_once_if_a_batch_of_1000_failed_calls_is_delivered_three_times(
    account: Account,
) -> None:
    """Failed calls are grouped by queue first, so a large batch costs no more AWS calls."""
    queue = account.queue(VisibilityTimeout="30")
    calls = calls_of(account)
    bodies = account.late_deletes(queue, *map(str, range(1000)))
    for _ in range(3):
        deliver(bodies)
    assert calls.count("SetQueueAttributes") == 1
    assert calls.count("TransactWriteItems") == 2
    assert account.transitions()[0]["evidence"]["failed_calls"] == 1000


def test_heal_errors_metric_counts_an_error_once_but_no_retry_bad_event_or_lost_race() -> None:
    """Two runs may read the same failed calls. The slower run gets CaseMoved."""
    unavailable = FactsUnavailable("orders")
    errors = (CaseMoved(), RetryLater(), EventUnreadable(), unavailable, unavailable)
    result = BatchResult(
        error_by_message_id={f"message-{n}": error for n, error in enumerate(errors)}
    )
    assert result.unexpected_errors == [unavailable]
    assert result.count_by_metric()[OwnMetric.HEAL_ERRORS] == 1


ROOT = str(Path(heal.__file__).parents[1])
# The packages that a cold start imports besides the AWS SDK, each with its reason.
IMPORT_REASONS = {
    "aws_lambda_powertools": "the log and the metrics",
    "typing_extensions": "Powertools asks for it",
    "msgspec": "the types of the engine, and the SDK's models",
    "statistics": "the catalogue measures how evenly message groups are used",
    "_statistics": "statistics asks for it",
    "fractions": "statistics asks for it",
}
PACKAGE_REASONS = {
    "aws": "reads and writes the queue",
    "cases": "the case store",
    "catalogue": "the symptoms that a failed call can have",
    "heal": "the engine",
    "model": "the types that all packages share",
    "notifications": "the next step of a case, and who is notified",
    "probe": "recognizes the failed call of the probe",
}
COLD_START = """
import gc, json, sys
import botocore.client, botocore.session
from botocore import credentials, endpoint, httpsession, retryhandler, signers
sdk_packages = {name.partition(".")[0] for name in sys.modules}
import functions.heal
loaded = sorted(sys.modules)
print(json.dumps([sorted(sdk_packages), loaded, gc.isenabled()]))
"""


def test_heal_cold_start_imports_exactly_the_listed_packages_and_keeps_gc_on() -> None:
    environment = {**os.environ, "PYTHONPATH": ROOT}
    printed = subprocess.check_output(
        [sys.executable, "-c", COLD_START], env=environment, text=True
    )
    sdk_packages, loaded, has_gc = json.loads(printed)
    ours = [name for name in loaded if name.partition(".")[0] in {"functions", "mendq"}]
    others = {name.partition(".")[0] for name in {*loaded} - {*ours}}
    assert others - {*sdk_packages} == {*IMPORT_REASONS}
    assert {name.split(".")[1] for name in ours if name.startswith("mendq.")} == {*PACKAGE_REASONS}
    assert has_gc, "garbage collection must be on again after the import"

"""The heal Lambda as Lambda calls it: a batch in, partial failures out, metrics on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from functions import heal
from mendq.heal.assess import Assessment
from mendq.heal.context import Outcome
from tests.heal.conftest import Account, every_client


@dataclass
class Context:
    """What Lambda hands over."""

    aws_request_id: str = "request-1"
    function_name: str = "heal"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:heal"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@pytest.fixture(autouse=True)
def _lambda(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable, text in account.settings.to_environment().items():
        monkeypatch.setenv(variable, text)
    heal._cold_start.cache_clear()
    yield
    heal._cold_start.cache_clear()


def event(bodies: dict[str, str]) -> dict[str, Any]:
    return {
        "Records": [
            {"messageId": message_id, "body": body, "eventSource": "aws:sqs"}
            for message_id, body in bodies.items()
        ]
    }


def failures(answer: Any) -> list[str]:
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def metrics(printed: str) -> dict[str, float]:
    """The EMF values without a dimension, summed."""
    sums: dict[str, float] = {}
    for line in printed.splitlines():
        document = json.loads(line)
        for group in document.get("_aws", {}).get("CloudWatchMetrics", []):
            assert group["Namespace"] == "Mendq"
            dimensions = group["Dimensions"]
            for metric in group["Metrics"]:
                name = metric["Name"] + ("" if dimensions == [[]] else f" by {dimensions[0]}")
                sums[name] = sums.get(name, 0) + sum(document[metric["Name"]])
    return sums


def test_junk_costs_itself_and_is_parked(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    bodies = {"junk": "<html>", "nest": "[" * 9000, **account.late_deletes(queue, "1", "2", "3")}
    answer = heal.handler(event(bodies), Context())
    assert sorted(failures(answer)) == ["junk", "nest"]
    assert account.visibility(queue) == 45
    seen = metrics(capsys.readouterr().out)
    assert seen["FailedCallsSeen"] == 3
    assert seen["UnreadableEvents"] == 2
    assert "HealErrors" not in seen, "junk is no fault of heal's"
    assert seen["AutoFixes"] == seen["AutoFixes by ['symptom']"] == 1
    assert not {"Refusals", "UnknownErrorCodes"} & seen.keys()


def test_a_batch_of_junk_alone_is_no_crash() -> None:
    assert failures(heal.handler(event({"a": "x", "b": "{}"}), Context())) == ["a"]


def test_one_queue_that_cannot_be_looked_at_costs_itself(
    account: Account, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = account.queue(VisibilityTimeout="30"), account.queue("bad.fifo")
    _refuse_reading(bad)
    bodies = account.late_deletes(good, "1", "2", "3") | account.late_deletes(bad, "4", "5", "6")
    answer = heal.handler(event(bodies), Context())
    assert sorted(failures(answer)) == ["message-4", "message-5", "message-6"]
    assert account.visibility(good) == 45
    (logged,) = (each for each in caplog.records if each.levelname == "ERROR")
    assert logged.exc_info
    assert logged.exc_info[0] is ConnectionError
    assert metrics(capsys.readouterr().out)["HealErrors"] == 1, "once for its three messages"


def _refuse_reading(queue_arn: str) -> None:
    _, clients = heal._cold_start()

    def refuse(params: dict[str, Any], **_: Any) -> None:
        if queue_arn.rpartition(":")[2] in str(params.get("body", "")):
            raise ConnectionError

    clients.sqs.meta.events.register("before-call.sqs.GetQueueAttributes", refuse)


def test_an_unknown_code_is_counted_and_never_acted_on(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    bodies = account.late_deletes(queue, "1", "2", "3", errorCode="Teapot")
    assert failures(heal.handler(event(bodies), Context())) == []
    assert account.visibility(queue) == 30
    assert metrics(capsys.readouterr().out)["UnknownErrorCodes"] == 3


def test_three_thousand_deliveries_are_one_write(account: Account) -> None:
    """Grouped first: what a batch costs does not grow with its events."""
    queue = account.queue(VisibilityTimeout="30")
    calls: list[str] = []
    _, clients = heal._cold_start()
    for client in every_client(clients):
        client.meta.events.register("before-call", lambda model, **_: calls.append(model.name))
    bodies = account.late_deletes(queue, *map(str, range(1000)))
    for _ in range(3):
        heal.handler(event(bodies), Context())
    assert calls.count("SetQueueAttributes") == 1
    assert calls.count("TransactWriteItems") == 2
    assert account.transitions()[0]["evidence"]["failed_calls"] == 1000


def test_what_is_to_come_again_is_no_error(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    monkeypatch.setattr(Context, "get_remaining_time_in_millis", lambda _: 3_000)
    answer = heal.handler(event(account.late_deletes(queue, "1", "2", "3")), Context())
    assert len(failures(answer)) == 3
    assert "HealErrors" not in metrics(capsys.readouterr().out)


def test_heal_that_can_look_at_nothing_ends_well_and_counts_it(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To Lambda every message was handled: its own count of errors stays at zero."""
    first, second = account.queue(), account.queue("bills.fifo")

    def denied(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("mendq.heal.batch.look", denied)
    bodies = account.late_deletes(first, "1", "2") | account.late_deletes(second, "3", "4")
    assert len(failures(heal.handler(event(bodies), Context()))) == 4
    assert metrics(capsys.readouterr().out)["HealErrors"] == 2


@pytest.mark.parametrize("mode", ["observe", "propose", "heal"])
def test_two_runs_that_read_one_burst_are_no_error(
    account: Account,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    """One is faster; the messages of the other come again."""
    queue = account.queue(tag=mode, VisibilityTimeout="30")
    real, overtaken = Assessment.decide, list[object]()

    def decide(slower: Assessment) -> Outcome:
        if not overtaken:
            overtaken.append(slower)
            account.heal(account.late_deletes(queue, "4", "5", "6"))
        return real(slower)

    monkeypatch.setattr(Assessment, "decide", decide)
    answer = heal.handler(event(account.late_deletes(queue, "1", "2", "3")), Context())
    assert overtaken
    assert len(account.transitions()) == 1
    assert len(failures(answer)) in {0, 3}
    assert "HealErrors" not in metrics(capsys.readouterr().out)

"""The scan as its schedule calls it, and heal as the scan calls it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from functions import heal, scan
from mendq.aws.clients import Clients
from tests.functions.test_heal import Context, metrics
from tests.scan.scanning import Scanning, denied, scanning


class _Patient(Context):
    def get_remaining_time_in_millis(self) -> int:
        return 900_000


CONTEXT: Any = _Patient()


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scanning]:
    with scanning() as made:
        for settings in (made.settings(), made.account.settings):
            for variable, text in settings.to_environment().items():
                monkeypatch.setenv(variable, text)
        monkeypatch.setattr(Clients, "of_this_lambda", lambda: made.account.clients)
        for each in (scan, heal):
            each._cold_start.cache_clear()
        yield made
        for each in (scan, heal):
            each._cold_start.cache_clear()


def _dlq_with_a_short_retention(scanned: Scanning) -> str:
    dlq_arn = scanned.account.queue("orders-dlq", MessageRetentionPeriod="86400")
    policy = json.dumps({"deadLetterTargetArn": dlq_arn, "maxReceiveCount": 5})
    scanned.account.queue("orders", tag=None, RedrivePolicy=policy)
    return dlq_arn


def test_it_says_what_it_looked_at_and_found_and_heal_heals_it(
    scanned: Scanning, capsys: pytest.CaptureFixture[str]
) -> None:
    scanned.account.later(hours=-1)
    dlq_arn = _dlq_with_a_short_retention(scanned)
    answer = scan.handler({}, CONTEXT)
    assert (answer["queues"], answer["errors"]) == (1, 0)
    assert answer["findings"] >= 1
    sent = metrics(capsys.readouterr().out)
    by_symptom = {name: value for name, value in sent.items() if "symptom" in name}
    assert sent["ScannedQueues"] == 1
    assert "ScanSkipped" not in sent
    assert sum(by_symptom.values()) == answer["findings"] >= 1
    announced = [
        each for each in scanned.announced if "dlq_retention_too_short" in json.dumps(each)
    ]
    assert heal.handler(announced[0], CONTEXT) == {"batchItemFailures": []}
    assert scanned.account.attributes(dlq_arn)["MessageRetentionPeriod"] == "1209600"
    assert metrics(capsys.readouterr().out)["AutoFixes"] >= 1


def test_a_round_that_is_done_sends_nothing(
    scanned: Scanning, capsys: pytest.CaptureFixture[str]
) -> None:
    scan.handler({}, CONTEXT)
    capsys.readouterr()
    assert set(scan.handler({}, CONTEXT).values()) == {0}
    assert metrics(capsys.readouterr().out) == {}


def test_a_scan_that_is_let_look_at_nothing_says_so_and_tries_again(
    scanned: Scanning, capsys: pytest.CaptureFixture[str]
) -> None:
    scanned.account.queue("orders")
    let_in = denied(scanned)
    for _ in range(2):
        answer = scan.handler({}, CONTEXT)
        assert (answer["queues"], answer["unseen"], answer["errors"]) == (1, 1, 1)
        assert metrics(capsys.readouterr().out)["ScanErrors"] == 1
    let_in()
    assert scan.handler({}, CONTEXT)["errors"] == 0
    assert "ScanErrors" not in metrics(capsys.readouterr().out)


@pytest.mark.parametrize(
    "found",
    [
        None,
        {},
        "x",
        [None, 1, "x", [], {}],
        [{"queue_arn": 1, "symptom": "visibility_timeout_too_short"}],
        [{"queue_arn": "orders", "symptom": "dlq_retention_too_short"}],
        [{"queue_arn": "arn:aws:sqs:us-east-1:123456789012:orders", "symptom": "no_such_thing"}],
        [{"queue_arn": "arn:aws:sqs:us-east-1:123456789012:orders", "symptom": "invalid_request"}],
        [
            {
                "queue_arn": "arn:aws:sqs:us-east-1:210987654321:orders",
                "symptom": "dlq_retention_too_short",
            }
        ],
    ],
)
def test_heal_reads_at_nothing_that_is_none_of_its_own(scanned: Scanning, found: object) -> None:
    assert heal.handler({"found": found}, CONTEXT) == {"batchItemFailures": []}
    assert scanned.account.transitions() == []

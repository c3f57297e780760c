"""The sweep as its schedule calls it, and heal as the sweep calls it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from functions.aws.clients import Clients
from functions.handlers import heal, sweep
from tests.functions.aws.sweeping import Sweeping, denied, sweeping
from tests.functions.handlers.test_heal import Context, metrics


class _Patient(Context):
    def get_remaining_time_in_millis(self) -> int:
        return 900_000


CONTEXT: Any = _Patient()


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sweeping]:
    with sweeping() as made:
        for settings in (made.settings(), made.account.settings):
            for variable, text in settings.to_environment().items():
                monkeypatch.setenv(variable, text)
        monkeypatch.setattr(Clients, "of_this_lambda", lambda: made.account.clients)
        for each in (sweep, heal):
            each._cold_start.cache_clear()
        yield made
        for each in (sweep, heal):
            each._cold_start.cache_clear()


def _letters_that_expire_first(swept: Sweeping) -> str:
    letters = swept.account.queue("orders-dlq", MessageRetentionPeriod="86400")
    policy = json.dumps({"deadLetterTargetArn": letters, "maxReceiveCount": 5})
    swept.account.queue("orders", tag=None, RedrivePolicy=policy)
    return letters


def test_it_says_what_it_looked_at_and_found_and_heal_heals_it(
    swept: Sweeping, capsys: pytest.CaptureFixture[str]
) -> None:
    swept.account.later(hours=-1)
    letters = _letters_that_expire_first(swept)
    answer = sweep.handler({}, CONTEXT)
    assert (answer["queues"], answer["errors"]) == (1, 0)
    assert answer["findings"] >= 1
    sent = metrics(capsys.readouterr().out)
    by_symptom = {name: value for name, value in sent.items() if "symptom" in name}
    assert sent["SweptQueues"] == 1
    assert "SweepSkipped" not in sent
    assert sum(by_symptom.values()) == answer["findings"] >= 1
    told = [each for each in swept.told if "expire_first" in json.dumps(each)]
    assert heal.handler(told[0], CONTEXT) == {"batchItemFailures": []}
    assert swept.account.attributes(letters)["MessageRetentionPeriod"] == "1209600"
    assert metrics(capsys.readouterr().out)["AutoFixes"] >= 1


def test_a_round_that_is_done_sends_nothing(
    swept: Sweeping, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep.handler({}, CONTEXT)
    capsys.readouterr()
    assert set(sweep.handler({}, CONTEXT).values()) == {0}
    assert metrics(capsys.readouterr().out) == {}


def test_a_sweep_that_is_let_look_at_nothing_says_so_and_tries_again(
    swept: Sweeping, capsys: pytest.CaptureFixture[str]
) -> None:
    swept.account.queue("orders")
    let_in = denied(swept)
    for _ in range(2):
        answer = sweep.handler({}, CONTEXT)
        assert (answer["queues"], answer["unseen"], answer["errors"]) == (1, 1, 1)
        assert metrics(capsys.readouterr().out)["SweepErrors"] == 1
    let_in()
    assert sweep.handler({}, CONTEXT)["errors"] == 0
    assert "SweepErrors" not in metrics(capsys.readouterr().out)


@pytest.mark.parametrize(
    "found",
    [
        None,
        {},
        "x",
        [None, 1, "x", [], {}],
        [{"queue_arn": 1, "symptom": "lease_expired"}],
        [{"queue_arn": "orders", "symptom": "dead_letters_expire_first"}],
        [{"queue_arn": "arn:aws:sqs:us-east-1:123456789012:orders", "symptom": "no_such_thing"}],
        [{"queue_arn": "arn:aws:sqs:us-east-1:123456789012:orders", "symptom": "caller_bug"}],
        [
            {
                "queue_arn": "arn:aws:sqs:us-east-1:210987654321:orders",
                "symptom": "dead_letters_expire_first",
            }
        ],
    ],
)
def test_heal_looks_at_nothing_that_is_none_of_its_own(swept: Sweeping, found: object) -> None:
    assert heal.handler({"found": found}, CONTEXT) == {"batchItemFailures": []}
    assert swept.account.transitions() == []

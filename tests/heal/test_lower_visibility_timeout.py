"""Mendq proposes to lower a visibility timeout that is far too long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from mendq.catalogue.visibility.visibility_timeout_too_long import VISIBILITY_TIMEOUT_TOO_LONG
from tests.heal.operators import (
    Heal,
    list_states,
    load_newest_case,
    outcomes_by_attribute,
    roll_back,
    send_decision,
)
from tests.scan.scanner import Scanner, attach_lambda_consumer, open_scanner, start_next_hour


@pytest.fixture
def scanner(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scanner]:
    """A scanner whose consumer takes 4 s and sometimes fails. moto has no percentiles."""
    figures = {"bill": {"duration_p99_seconds": 4.0, "error_share": 0.01, "invocations": 900}}
    monkeypatch.setattr("mendq.aws.facts_reader.read_function_metrics", lambda *_: figures)
    with open_scanner() as made:
        yield made


def test_too_long_timeout_is_lowered_only_after_approval_and_restored_by_rollback(
    scanner: Scanner,
) -> None:
    account = scanner.account
    queue = account.queue("orders", VisibilityTimeout="14400")
    attach_lambda_consumer(scanner, queue)
    heal = Heal(account)
    account.later(hours=3)
    for minutes in range(4, 120):
        at = account.now - timedelta(minutes=minutes)
        scanner.put_metrics(queue, at, sent=10, received=11, deleted=10, visible=0, in_flight=0)
    start_next_hour(account)
    scanner.scan([VISIBILITY_TIMEOUT_TOO_LONG])
    scanner.heal()
    assert (list_states(account), account.visibility(queue)) == (["proposed"], 14_400), (
        "never by itself"
    )
    case_id = load_newest_case(account).case_id
    send_decision(account, "approve", case_id)
    assert len(heal.asked) == 1
    assert (list_states(account)[-1], account.visibility(queue)) == ("applied", 180)
    account.later(minutes=40)
    assert outcomes_by_attribute(roll_back(account, case_id)) == {"VisibilityTimeout": "undone"}
    assert account.visibility(queue) == 14_400

"""Patterns that EventBridge would not take for their size."""

from __future__ import annotations

import json

import pytest

from local_account.cloudtrail.patterns import LONGEST_PATTERN, bounded
from local_account.process import LocalAccount
from tests.local_account.queues import error_of


def _pattern(length: int) -> str:
    empty = json.dumps({"source": [""]})
    return json.dumps({"source": ["x" * (length - len(empty))]})


def test_the_quota() -> None:
    judge = bounded(lambda _: None)
    assert judge(_pattern(LONGEST_PATTERN)) is None
    assert judge(_pattern(LONGEST_PATTERN + 1))
    assert bounded(lambda _: "Invalid JSON")("{") == "Invalid JSON"


@pytest.mark.account
def test_a_rule_beyond_it_is_refused(account: LocalAccount) -> None:
    events = account.client("events")
    too_long = _pattern(LONGEST_PATTERN + 1)
    code, _ = error_of(lambda: events.put_rule(Name="long", EventPattern=too_long))
    assert code == "InvalidEventPatternException"

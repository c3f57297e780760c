"""Test how a command compares this machine's clock with CloudFormation's answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mendq.aws.service_clock import measure_clock_difference
from mendq.cli.account import Account

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def make_response(date_header: str | None) -> dict[str, Any]:
    headers = {} if date_header is None else {"date": date_header}
    return {"Stacks": [{"Outputs": []}], "ResponseMetadata": {"HTTPHeaders": headers}}


def make_account(response: dict[str, Any]) -> Account:
    """Make an account whose CloudFormation gives `response`."""
    client = SimpleNamespace(
        meta=SimpleNamespace(endpoint_url="https://cloudformation.eu-west-1.amazonaws.com"),
        describe_stacks=lambda **_: response,
    )
    session = SimpleNamespace(client=lambda *_, **__: client, region_name="eu-west-1")
    return Account(cast("Any", session), "mendq")


@pytest.mark.parametrize("seconds", [45, 0, -45])
def test_clock_difference_is_this_machines_time_minus_aws_time(seconds: int) -> None:
    service_time = NOW - timedelta(seconds=seconds)
    response = make_response(format_datetime(service_time, usegmt=True))
    assert measure_clock_difference(response, NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "date_header", [None, "", "yesterday", "29", f"Mon, 30 Nov {'9' * 30} 12:00:00 GMT"]
)
def test_clock_difference_is_unknown_if_the_date_header_is_missing_or_cannot_be_read(
    date_header: str | None,
) -> None:
    assert measure_clock_difference(make_response(date_header), NOW) is None


def test_account_measures_the_clock_with_cloudformations_answer_about_the_stack() -> None:
    service_time = datetime.now(UTC) - timedelta(days=1)
    account = make_account(make_response(format_datetime(service_time, usegmt=True)))
    clock_difference = account.clock_difference
    assert clock_difference is not None
    assert timedelta(days=1) <= clock_difference < timedelta(days=1, hours=1)
    assert account.outputs == {}


def test_account_does_not_know_the_clock_difference_without_a_date_header() -> None:
    assert make_account(make_response(None)).clock_difference is None

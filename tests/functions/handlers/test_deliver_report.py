"""A summary lands: its page is made, its verdict is sent once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from functions.handlers import deliver_report
from functions.report import SummaryUnreadable
from functions.settings import DeliverReportSettings
from tests.functions.aws.conftest import ACCOUNT, Account
from tests.functions.aws.conftest import account as account  # noqa: PLC0414 - a fixture
from tests.functions.handlers.test_heal import Context
from tests.functions.report.weeks import busy_week

KEY = "summary/week=2026-W46/summary.json"
EVENT = {"detail-type": "Object Created", "detail": {"object": {"key": KEY}}}


@pytest.fixture(autouse=True)
def _lambda(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    topic = account.clients.sns.create_topic(Name="verdict")["TopicArn"]
    settings = DeliverReportSettings(ACCOUNT, report_bucket="cases", topic_arn=topic)
    for variable, text in settings.to_environment().items():
        monkeypatch.setenv(variable, text)
    deliver_report._cold_start.cache_clear()
    yield
    deliver_report._cold_start.cache_clear()


def _put(account: Account, document: bytes) -> None:
    account.clients.s3.put_object(Bucket="cases", Key=KEY, Body=document)


def test_a_summary_that_cannot_be_read_delivers_nothing(account: Account) -> None:
    _put(account, b"{}")
    with pytest.raises(SummaryUnreadable):
        deliver_report.handler(EVENT, Context())  # type: ignore[arg-type]
    listed = account.clients.s3.list_objects_v2(Bucket="cases", Prefix="report/")
    assert listed["KeyCount"] == 0


def test_the_page_is_made_each_time_and_the_verdict_sent_once(account: Account) -> None:
    _put(account, json.dumps(busy_week()).encode())
    answers: list[dict[str, Any]] = [
        deliver_report.handler(EVENT, Context())  # type: ignore[arg-type]
        for _ in range(2)
    ]
    assert [each["sent"] for each in answers] == [True, False]
    key = answers[0]["page"].removeprefix("s3://cases/")
    body = account.clients.s3.get_object(Bucket="cases", Key=key)["Body"].read().decode()
    assert body.startswith("<!doctype html>")

from __future__ import annotations

from mendq.nightly.deliver import ReportBucket
from tests.heal.conftest import Account


def bucket(account: Account) -> ReportBucket:
    return ReportBucket(account.clients.s3, "cases")


def test_the_page_lies_under_its_week(account: Account) -> None:
    key = bucket(account).put_page("2026-W46", "<p>ü</p>")
    stored = account.clients.s3.get_object(Bucket="cases", Key=key)
    assert key == "report/week=2026-W46/report.html"
    assert stored["ContentType"] == "text/html; charset=utf-8"
    assert stored["Body"].read().decode() == "<p>ü</p>"

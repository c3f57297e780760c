"""The deployed stack as outsiders meet it: calls that fail, what heal makes of them, mails."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email import message_from_string
from email.message import EmailMessage
from email.policy import default

import pytest

from local_account.process import LocalAccount
from mendq.probe.probe import PROBE_QUEUE_NAME
from mendq.probe.send import ProbeRecord
from tests.local_account.accounts import REPORT_RECIPIENTS, REPORT_SENDER
from tests.local_account.callers import invoke_function
from tests.local_account.mendq_here import newest_case
from tests.local_account.queues import Queue, eventually, fail_late, new_queue
from tests.report.weeks import make_busy_week

pytestmark = pytest.mark.account


def test_stack_raises_the_visibility_timeout_only_of_the_queue_tagged_heal(
    account: LocalAccount,
) -> None:
    untagged, healed = (
        new_queue(account, fifo=True, tags=tags, VisibilityTimeout="2")
        for tags in ({}, {"mendq": "heal"})
    )
    for queue in (untagged, healed):
        fail_late(queue, times=4)
    eventually(lambda: int(healed.attributes()["VisibilityTimeout"]) > 2)
    assert untagged.attributes()["VisibilityTimeout"] == "2"


def test_probe_failure_reaches_heal_is_recorded_and_opens_no_case(account: LocalAccount) -> None:
    """How AWS's CloudTrail spells the error is what the probe is there to tell."""
    now = datetime.now(UTC).replace(microsecond=0)
    record = ProbeRecord(account.client("dynamodb"), account.outputs["CaseTable"])

    def is_probe_seen() -> bool:
        probe = record.read()
        return probe is not None and probe.sent_at >= now and probe.was_seen

    # Whatever probe the schedule has made in this account, this one comes long after it.
    invoke_function(account, "Probe", {"time": (now + timedelta(hours=2)).isoformat()})
    eventually(is_probe_seen)
    probe = record.read()
    assert probe is not None
    assert probe.spelled.startswith("InvalidParameterValue")
    url = account.client("sqs").get_queue_url(QueueName=PROBE_QUEUE_NAME)["QueueUrl"]
    assert newest_case(account, Queue(account.client("sqs"), url, is_fifo=True)) == {}


def test_weekly_summary_is_mailed_once_to_each_recipient(account: LocalAccount) -> None:
    s3 = account.client("s3")
    bucket = account.outputs["ReportBucket"]
    body = json.dumps(make_busy_week()).encode()
    week = "week=2026-W46"
    s3.put_object(Bucket=bucket, Key=f"summary/{week}/summary.json", Body=body)

    def count_sent() -> int:
        listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"report/{week}/delivered/")
        keys = [content["Key"] for content in listed.get("Contents", [])]
        bodies = (s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys)
        return sum(json.loads(body)["state"] == "sent" for body in bodies)

    eventually(lambda: count_sent() == 3)
    mails = account.mails
    assert sorted(mail["to"] for mail in mails) == [
        [report_recipient] for report_recipient in REPORT_RECIPIENTS
    ]
    for mail in mails:
        parsed = message_from_string(mail["raw"], policy=default)
        assert isinstance(parsed, EmailMessage)
        assert (parsed["From"], parsed["To"]) == (REPORT_SENDER, mail["to"][0])
        kinds = [part.get_content_type() for part in parsed.walk() if not part.is_multipart()]
        assert kinds == ["text/plain", "text/html", "image/png", "text/html"]

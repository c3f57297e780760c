"""The deployed stack as outsiders meet it: calls that fail, what heal makes of them, mails."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email import message_from_string
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest

from local_account.process import LocalAccount
from mendq.model.queue import Redrive
from mendq.probe.probe import QUEUE_NAME
from mendq.probe.send import ProbeRecord
from tests.local_account.callers import invoked
from tests.local_account.conftest import READERS, SENDER
from tests.local_account.queues import Queue, eventually, fail_late, new_queue
from tests.report.weeks import DAYS, busy_week

pytestmark = pytest.mark.account
PUT_BACK_MINUTES = 66


def test_only_the_queue_that_says_heal_gets_a_longer_visibility(account: LocalAccount) -> None:
    untagged, healed = (
        new_queue(account, fifo=True, tags=tags, VisibilityTimeout="2")
        for tags in ({}, {"mendq": "heal"})
    )
    for queue in (untagged, healed):
        fail_late(queue, times=4)
    eventually(lambda: int(healed.attributes()["VisibilityTimeout"]) > 2)
    assert untagged.attributes()["VisibilityTimeout"] == "2"


def test_a_probe_comes_round_to_heal_and_opens_no_case(account: LocalAccount) -> None:
    """How AWS's CloudTrail spells the error is what the probe is there to tell."""
    now = datetime.now(UTC).replace(microsecond=0)
    record = ProbeRecord(account.client("dynamodb"), account.outputs["CaseTable"])

    def seen() -> bool:
        probe = record.read()
        return probe is not None and probe.sent_at >= now and probe.was_seen

    # Whatever probe the schedule has made in this account, this one comes long after it.
    invoked(account, "Probe", {"time": (now + timedelta(hours=2)).isoformat()})
    eventually(seen, seconds=60)
    probe = record.read()
    assert probe is not None
    assert probe.spelled.startswith("InvalidParameterValue")
    items = account.client("dynamodb").query(
        TableName=account.outputs["CaseTable"],
        KeyConditionExpression="pk = :queue",
        ExpressionAttributeValues={
            ":queue": {"S": f"arn:aws:sqs:us-east-1:000000000000:{QUEUE_NAME}"}
        },
    )
    assert items["Items"] == []


def _case_about(account: LocalAccount, queue: Queue, symptom: str) -> dict[str, Any]:
    """The one that heal opens about what a scan found."""
    invoked(account, "Heal", {"found": [{"queue_arn": queue.arn, "symptom": symptom}]})
    s3, bucket = account.client("s3"), account.outputs["CaseBucket"]
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="cases/").get("Contents", [])
    bodies = (s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read() for each in listed)
    (case,) = [each for each in map(json.loads, bodies) if each["queue_arn"] == queue.arn]
    return dict(case)


def test_a_queue_whose_messages_come_back_gets_a_dlq_and_gives_it_up_again(
    account: LocalAccount,
) -> None:
    queue = new_queue(account, tags={"mendq": "propose"}, VisibilityTimeout="1")
    for _ in range(2):  # the first whole minute is an empty queue's
        account.put_back(queue.arn, minutes=1)
    queue.send()
    for _ in range(8):
        queue.change(queue.receive(), 0)
    account.put_back(queue.arn, minutes=PUT_BACK_MINUTES)
    case = _case_about(account, queue, "dlq_missing")
    assert case["to"] == "proposed"
    decision = {"case_id": case["case_id"], "decision": "approve", "actor": "a test"}
    assert invoked(account, "Approve", decision)["state"] == "applied"
    dead = f"{queue.arn}-dlq"
    policy = queue.attributes("RedrivePolicy")["RedrivePolicy"]
    assert json.loads(policy) == json.loads(Redrive(dead, 5).text)
    url = queue.sqs.get_queue_url(QueueName=dead.rpartition(":")[2])["QueueUrl"]
    made = Queue(queue.sqs, url, is_fifo=False).attributes()
    assert made["MessageRetentionPeriod"] == "1209600"
    assert not queue.sqs.list_queue_tags(QueueUrl=url).get("Tags")
    request = {"case_id": case["case_id"], "actor": "a test", "dry_run": False}
    undone = invoked(account, "Rollback", request)["attributes"]
    outcomes = {each["attribute"]: each["outcome"] for each in undone}
    assert outcomes == {"DeadLetterQueue": "printed", "RedrivePolicy": "undone"}
    assert "RedrivePolicy" not in queue.attributes()


def _delivered(account: LocalAccount, week: str, summary: str, states: list[str]) -> None:
    """Put a week's summary there; the deliveries of its report come to these states."""
    s3, bucket = account.client("s3"), account.outputs["ReportBucket"]
    key = f"summary/week={week}/summary.json"
    s3.put_object(Bucket=bucket, Key=key, Body=summary.encode())

    def marked() -> list[str]:
        listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"report/week={week}/delivered/")
        keys = [each["Key"] for each in listed.get("Contents", [])]
        bodies = (s3.get_object(Bucket=bucket, Key=each)["Body"].read() for each in keys)
        return sorted(json.loads(each)["state"] for each in bodies)

    eventually(lambda: marked() == states, seconds=60)


def test_a_summary_is_mailed_to_each_reader_once(account: LocalAccount) -> None:
    _delivered(account, "2026-W46", json.dumps(busy_week()), ["sent"] * 3)
    mails = account.mails
    assert sorted(each["to"] for each in mails) == [[each] for each in READERS]
    for each in mails:
        parsed = message_from_string(each["raw"], policy=default)
        assert isinstance(parsed, EmailMessage)
        assert (each["from"], parsed["Subject"]) == (SENDER, each["subject"])
        kinds = [part.get_content_type() for part in parsed.walk() if not part.is_multipart()]
        assert kinds == ["text/plain", "text/html", "image/png"]


def test_a_sender_that_is_not_verified_is_said_and_nothing_is_mailed(account: LocalAccount) -> None:
    """Its last try leaves a record for a person."""
    ses, before, summary = account.client("sesv2"), len(account.mails), json.dumps(busy_week())
    for number in range(40, 47):
        summary = summary.replace(f"2026-W{number}", f"2026-W{number - 1}")
    for day in DAYS:
        summary = summary.replace(str(day), str(day - timedelta(days=7)))
    ses.delete_email_identity(EmailIdentity=SENDER)
    try:
        _delivered(account, "2026-W45", summary, ["failed", "failed", "sent", "sent"])
        assert len(account.mails) == before
    finally:
        ses.create_email_identity(EmailIdentity=SENDER)

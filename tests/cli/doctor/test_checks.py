"""What the doctor says of topics, probe, calendars, drills and the trail's bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from mendq.aws.queue import ManagedQueue
from mendq.cli.doctor import checks
from mendq.cli.doctor.check import Check, Command, Status, guarded
from mendq.cli.doctor.checks import Doctor, drills
from mendq.cli.doctor.deployment import Deployment
from mendq.model.limits import DRILL_TAG
from mendq.probe.probe import SEEN_WITHIN, Probe
from mendq.probe.send import ProbeRecord
from tests.architecture.aws_commands import mistake_in
from tests.cli import conftest
from tests.cli.conftest import Operator
from tests.heal.conftest import ACCOUNT

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PENDING = "PendingConfirmation"
CONFIRMED = "arn:aws:sns:us-east-1:123456789012:urgent:0b4f1f0e"
OTHER = "444455556666"
ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
BUCKET, HERE, THERE = "our-logs", "us-east-1", "eu-west-1"


@pytest.mark.parametrize(
    ("subscriptions", "status", "remedy"),
    [
        ((), Status.WARN, "set notifications.urgent and deploy"),
        ((PENDING,), Status.FAIL, "follow the link"),
        ((PENDING, CONFIRMED), Status.WARN, "follow the link"),
        ((CONFIRMED,), Status.OK, ""),
    ],
)
def test_whom_a_page_would_reach(
    operator: Operator, subscriptions: tuple[str, ...], status: Status, remedy: str
) -> None:
    found = [{"SubscriptionArn": each} for each in subscriptions]
    settings = operator.account.settings
    with Stubber(operator.account.clients.sns) as stub:
        for arn, answer in ((settings.urgent_topic_arn, found), (settings.info_topic_arn, [])):
            asked = {"TopicArn": arn}
            stub.add_response("list_subscriptions_by_topic", {"Subscriptions": answer}, asked)
        urgent, _ = checks.topics(Doctor(operator.account, NOW))
    assert (urgent.name, urgent.status) == ("topic urgent", status)
    assert urgent.remedy.startswith(remedy)
    assert bool(urgent.remedy) is bool(remedy)


def _life(operator: Operator) -> dict[str, Check]:
    with Stubber(operator.account.clients.cloudwatch) as stub:
        for _ in range(3):  # runs, errors, beats
            stub.add_response("get_metric_statistics", {"Datapoints": []})
        return {each.name: each for each in checks.life(Doctor(operator.account, NOW))}


def _probe(operator: Operator, ago: timedelta, lost_in_a_row: int = 0) -> Check:
    sent = Probe(NOW - ago, NOW - ago, lost_in_a_row)
    ProbeRecord(operator.aws.clients.dynamodb, "case_store").note_sent(sent)
    return _life(operator)["probe"]


@pytest.mark.parametrize("lost_in_a_row", [0, 2])
def test_a_probe_that_was_lost(operator: Operator, lost_in_a_row: int) -> None:
    check = _probe(operator, SEEN_WITHIN + SECOND, lost_in_a_row)
    assert (check.status, check.remedy) == (Status.FAIL, "docs/runbooks/probe_lost.md")
    assert f"{lost_in_a_row} before it lost" in check.says


@pytest.mark.parametrize(("lost_in_a_row", "status"), [(0, Status.OK), (1, Status.WARN)])
def test_a_probe_that_is_on_its_way(operator: Operator, lost_in_a_row: int, status: Status) -> None:
    assert _probe(operator, SEEN_WITHIN, lost_in_a_row).status is status


def test_no_probe_yet(operator: Operator) -> None:
    check = _life(operator)["probe"]
    assert (check.status, check.remedy) == (Status.WARN, "ask again in an hour")


def _calendar(account: str) -> str:
    return f"arn:aws:ssm:us-east-1:{account}:document/quiet-days"


def _closed(operator: Operator, answer: str, owner: str = ACCOUNT) -> Check:
    """`answer` is the calendar's state, or the code of an error."""
    calendar = _calendar(owner)
    known = replace(operator.account.known, freeze_calendars=(calendar,))
    account = replace(operator.account, known=known)
    with Stubber(account.clients.ssm) as ssm:
        if answer in ("OPEN", "CLOSED"):
            expected = {"CalendarNames": [calendar]}
            ssm.add_response("get_calendar_state", {"State": answer}, expected)
        else:
            ssm.add_client_error("get_calendar_state", answer, "no: ssm:GetCalendarState")
        found = _life(replace(operator, account=account))
    return found["calendar quiet-days"]


@pytest.mark.parametrize(
    ("answer", "owner", "status"),
    [
        ("OPEN", ACCOUNT, Status.OK),
        ("OPEN", OTHER, Status.OK),
        ("CLOSED", ACCOUNT, Status.WARN),
        ("InvalidDocument", ACCOUNT, Status.FAIL),
        ("InvalidDocument", OTHER, Status.FAIL),
        ("AccessDeniedException", OTHER, Status.FAIL),
        ("AccessDeniedException", ACCOUNT, Status.UNKNOWN),  # may be the operator's own rights
        ("ThrottlingException", OTHER, Status.UNKNOWN),
        ("InternalServerError", ACCOUNT, Status.UNKNOWN),
    ],
)
def test_what_cannot_be_read_is_no_closed_calendar(
    operator: Operator, answer: str, owner: str, status: Status
) -> None:
    check = _closed(operator, answer, owner)
    assert check.status is status
    assert ("meant so" in check.remedy) is (answer == "CLOSED")
    assert ("cannot be read" in check.says) is (status is Status.FAIL)
    if status is Status.FAIL:
        assert ("share it with account" in check.remedy) is (owner == OTHER)
        assert "freezeCalendars" in check.remedy


def _queues(*marked: str) -> list[ManagedQueue]:
    plain = ManagedQueue(ARN, {"mendq": "heal"})
    return [plain, *(ManagedQueue(f"{ARN}-{each}", {DRILL_TAG: ""}) for each in marked)]


def test_without_the_tag_there_is_nothing_to_say() -> None:
    assert list(drills(_queues())) == []


@pytest.mark.parametrize(
    ("marked", "named"),
    [("a", "orders-a"), ("abcde", "orders-a, orders-b, orders-c and 2 more")],
)
def test_the_queues_are_named_whatever_the_tag_holds(marked: str, named: str) -> None:
    (check,) = drills(_queues(*marked))
    assert "nobody is paged" in check.says
    assert check.says.endswith(f": {named}")
    assert isinstance(check.remedy, Command)
    assert mistake_in(check.remedy) == ""
    assert "untag-queue --region us-east-1" in check.remedy


@pytest.fixture
def _outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "OUTPUTS", {**conftest.OUTPUTS, "TrailBucket": BUCKET})


def _bucket(operator: Operator) -> Check:
    doctor = Doctor(operator.account, NOW)
    (found,) = guarded("bucket", lambda: checks.trail_bucket(doctor))
    return found


def _made_in(region: str) -> None:
    client: Any = boto3.client("s3", region_name=region)
    where = {"CreateBucketConfiguration": {"LocationConstraint": region}}
    client.create_bucket(Bucket=BUCKET, **(where if region != HERE else {}))


@pytest.mark.usefixtures("_outputs")
def test_a_bucket_of_the_stacks_region_is_fine(operator: Operator) -> None:
    _made_in(HERE)
    assert _bucket(operator).status is Status.OK


@pytest.mark.usefixtures("_outputs")
def test_one_of_another_region_fails_with_both_ways_out(operator: Operator) -> None:
    _made_in(THERE)
    found = _bucket(operator)
    assert found.status is Status.FAIL
    assert f"{BUCKET} lies in {THERE}" in found.says
    assert THERE in found.remedy
    assert "trail.create: true" in found.remedy


@pytest.mark.usefixtures("_outputs")
def test_one_that_is_not_there_fails(operator: Operator) -> None:
    found = _bucket(operator)
    assert (found.status, "trail.bucket" in found.remedy) == (Status.FAIL, True)


@pytest.mark.usefixtures("_outputs")
@pytest.mark.parametrize(
    ("code", "headers", "status", "says"),
    [
        ("403", {"x-amz-bucket-region": THERE}, Status.FAIL, f"lies in {THERE}"),
        ("301", {"x-amz-bucket-region": THERE}, Status.FAIL, f"lies in {THERE}"),
        ("403", {"x-amz-bucket-region": HERE}, Status.OK, f"lies in {HERE}"),
        ("403", {}, Status.UNKNOWN, "403"),
        ("500", {}, Status.UNKNOWN, "500"),
    ],
)
def test_s3_tells_the_region_to_strangers_too_and_silence_is_not_known(
    operator: Operator, code: str, headers: Mapping[str, str], status: Status, says: str
) -> None:
    with Stubber(operator.account.clients.s3) as stub:
        meta = {"HTTPHeaders": dict(headers)}
        stub.add_client_error("head_bucket", code, "no", int(code), response_meta=meta)
        found = _bucket(operator)
    assert found.status is status
    assert says in found.says


@pytest.mark.usefixtures("_outputs")
def test_an_answer_without_a_region_is_not_known(operator: Operator) -> None:
    with Stubber(operator.account.clients.s3) as stub:
        stub.add_response("head_bucket", {"ResponseMetadata": {"HTTPHeaders": {}}})
        found = _bucket(operator)
    assert found.status is Status.UNKNOWN
    assert isinstance(found.remedy, Command)
    assert mistake_in(found.remedy) == ""


@pytest.mark.usefixtures("_outputs")
def test_an_older_stack_that_does_not_name_it_is_not_known(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "OUTPUTS", {})
    assert _bucket(operator).status is Status.UNKNOWN


@pytest.mark.usefixtures("_outputs")
def test_doctor_asks_for_it_once(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    _made_in(THERE)
    monkeypatch.setattr(Deployment, "look", lambda _: ())  # moto has no CloudFormation here
    document = operator.json("doctor", code=1)
    said = [each["says"] for each in document["checks"] if BUCKET in each["says"]]
    assert len(said) == 1
    assert THERE in said[0]

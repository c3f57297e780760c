"""Test the checks of `mendq doctor` and the commands that they print."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.stub import Stubber
from msgspec import structs

from mendq.aws.queue import ManagedQueue
from mendq.cli.doctor import checks
from mendq.cli.doctor.alarms import StackAlarms
from mendq.cli.doctor.check import Check, Command, Status, run_checks
from mendq.cli.doctor.checks import Doctor, check_drill_tags
from mendq.cli.doctor.deployment import Deployment
from mendq.cli.doctor.visibility import (
    Trail,
    check_trail_files,
    check_trails,
    find_unlogged_calls,
    list_symptom_visibility,
    list_unlogged_queues,
)
from mendq.cli.exit_codes import CommandError
from mendq.model.tags import DRILL_TAG
from tests.architecture.aws_commands import find_mistake
from tests.cli.builders import STACK_OUTPUTS, Operator
from tests.cli.doctor.builders import SQS_DATA_EVENTS
from tests.cli.named_rows import parametrize_rows

NOW = datetime(2026, 11, 22, 4, tzinfo=UTC)
OK = Status.OK
WARN = Status.WARN
FAIL = Status.FAIL
UNKNOWN = Status.UNKNOWN
KNOWN = json.loads(Path(__file__).with_name("checks.json").read_text())
ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
BUCKET = "our-logs"
HERE = "us-east-1"
THERE = "eu-west-1"


def _raise_after_one_check(error: Exception) -> Iterator[Check]:
    yield Check("before", OK, "")
    raise error


def _make_denial(message: str) -> ClientError:
    return ClientError({"Error": {"Code": "AccessDenied", "Message": message}}, "DescribeTrails")


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (EndpointConnectionError(endpoint_url="http://nowhere"), "ask again in a minute"),
        (
            _make_denial("User: x is not authorized to perform: cloudtrail:DescribeTrails because"),
            "allow cloudtrail:DescribeTrails",
        ),
        (_make_denial("no"), "allow the action of DescribeTrails"),
        (CommandError("no output FollowUpFunction"), "deploy this version of Mendq"),
    ],
    ids=["no connection", "denied with action", "denied without action", "missing stack output"],
)
def test_doctor_check_that_aws_refuses_is_unknown_with_a_remedy_and_keeps_earlier_results(
    error: Exception, remedy: str
) -> None:
    before, unknown = run_checks("trails", lambda: _raise_after_one_check(error))
    assert (before.status, unknown.status, unknown.remedy) == (OK, UNKNOWN, remedy)


@parametrize_rows(KNOWN["subscriptions"])
def test_doctor_topic_check_reports_if_pages_reach_a_confirmed_subscriber(
    operator: Operator, subscriptions: str, status: str, remedy: str
) -> None:
    named = (subscription.partition(":") for subscription in subscriptions.split())
    subscribers = [{"Protocol": protocol, "SubscriptionArn": arn} for protocol, _, arn in named]
    settings = operator.account.settings
    with Stubber(operator.account.clients.sns) as stub:
        for arn, answer in (
            (settings.urgent_topic_arn, subscribers),
            (settings.info_topic_arn, []),
        ):
            request = {"TopicArn": arn}
            stub.add_response("list_subscriptions_by_topic", {"Subscriptions": answer}, request)
        urgent, _ = checks.check_topics(Doctor(operator.account, NOW))
    assert (urgent.name, urgent.status, urgent.remedy) == ("topic urgent", status, remedy)


@pytest.mark.parametrize(
    ("marked", "named"),
    [("", ""), ("a", "orders-a"), ("abcde", "orders-a, orders-b, orders-c and 2 more")],
)
def test_doctor_names_up_to_three_leftover_drill_queues_and_prints_the_untag_command(
    marked: str, named: str
) -> None:
    drill_queues = [ManagedQueue(f"{ARN}-{suffix}", {DRILL_TAG: ""}) for suffix in marked]
    found_checks = list(check_drill_tags([ManagedQueue(ARN, {"mendq": "heal"}), *drill_queues]))
    assert [check.sentence.rpartition(": ")[2] for check in found_checks] == [named] * bool(marked)
    for check in found_checks:
        assert "nobody is paged" in check.sentence
        assert "untag-queue --region us-east-1" in _read_command(check)


def _read_command(check: Check) -> str:
    """Return the command of a check, which the AWS CLI must accept. Empty if there is none."""
    if check.remedy:
        assert isinstance(check.remedy, Command)
        assert find_mistake(check.remedy) == ""
    return check.remedy


@parametrize_rows(KNOWN["buckets"])
def test_doctor_reports_the_region_of_the_trail_bucket_or_that_it_is_unknown(  # noqa: PLR0917 - a row of the table
    operator: Operator, code: str, region: str, status: str, says: str, remedy: str
) -> None:
    """S3 names the region even in an error answer. Without the header the region is unknown."""
    meta: dict[str, Any] = {"HTTPHeaders": {"x-amz-bucket-region": region} if region else {}}
    doctor = Doctor(operator.account, NOW)
    with (
        Stubber(operator.account.clients.s3) as stub,
        patch.dict(STACK_OUTPUTS, TrailBucket="our-logs"),
    ):
        if code:
            stub.add_client_error("head_bucket", code, "no", int(code), response_meta=meta)
        else:
            stub.add_response("head_bucket", {"ResponseMetadata": meta})
        (check,) = run_checks("bucket", lambda: checks.check_trail_bucket(doctor))
    assert (check.status, check.sentence[: len(says)]) == (status, says)
    assert check.remedy.startswith(remedy)
    if remedy.startswith("aws "):
        assert find_mistake(check.remedy) == ""


def test_doctor_reports_a_disabled_nightly_job_as_ok_and_asks_for_no_trail_bucket(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(STACK_OUTPUTS, "NightlyApplication")
    (check,) = checks.check_trail_bucket(Doctor(operator.account, NOW))
    assert (check.name, check.status) == ("nightly job", OK)
    assert "nightly.enabled: false" in check.sentence


@pytest.mark.parametrize("row", KNOWN["parts"].values(), ids=KNOWN["parts"])
def test_doctor_check_of_a_stack_resource_is_ok_or_fails_with_a_command_to_paste(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, row: dict[str, Any]
) -> None:
    """`kind` of a row is the resource's type, `operation` the call that is answered."""
    service: Any = row["kind"].split("::")[1].lower()
    client: Any = boto3.client(service, region_name=HERE)
    monkeypatch.setattr(operator.account.session, "client", lambda *_, **__: client)
    monkeypatch.setattr(
        Deployment, "resources", [(row["kind"], row["logical_id"], row["physical_id"])]
    )
    with Stubber(client) as stub:
        stub.add_response(row["operation"], row["answer"], row["request"])
        (check,) = Deployment(operator.account, NOW).check_resources()
    assert check.status is (FAIL if row["typed"] else OK)
    assert check.sentence.startswith(row["says"])
    assert _read_command(check) == row["typed"]


@pytest.mark.parametrize("home", [HERE, THERE])
def test_doctor_prints_start_logging_in_the_home_region_of_a_stopped_trail(
    operator: Operator, home: str
) -> None:
    boto3.client("s3", region_name=HERE).create_bucket(Bucket=BUCKET)
    client: Any = boto3.client("cloudtrail", region_name=home)
    trail = client.create_trail(Name="all", S3BucketName=BUCKET, IsMultiRegionTrail=home != HERE)
    check, no_probe = check_trails(operator.account, [])
    assert (check.status, no_probe.status) == (WARN, FAIL)
    start = f"aws cloudtrail start-logging --region {home} --name {trail['TrailARN']}"
    assert _read_command(check) == start


# The trails that a member account of an organization sees.

PROBE_ARN = "arn:aws:sqs:us-east-1:123456789012:mendq-probe.fifo"
ROOTS = {"TrailBucket": "our-logs", "TrailRoot": "s3://our-logs/o-abc", "ProbeFunction": "probe"}


def _make_trail_description(name: str, owner: str = "123456789012", **over: str) -> dict[str, Any]:
    arn = f"arn:aws:cloudtrail:us-east-1:{owner}:trail/{name}"
    return {"Name": name, "TrailARN": arn, "HomeRegion": HERE, "S3BucketName": "b", **over}


def _check_trails(
    operator: Operator, *trails: tuple[dict[str, Any], list[dict[str, Any]] | str]
) -> tuple[list[Check], list[Trail]]:
    """Check trails, each given with one selector's fields or the code of a refusal."""
    found_trails: list[Trail] = []
    client = operator.account.clients.cloudtrail
    with Stubber(client) as stub, patch.dict(STACK_OUTPUTS, ROOTS):
        stub.add_response("describe_trails", {"trailList": [trail for trail, _ in trails]})
        for trail, selects in trails:
            if isinstance(selects, str):
                stub.add_client_error("get_trail_status", selects, "Unknown trail")
                continue
            stub.add_response("get_trail_status", {"IsLogging": True}, {"Name": trail["TrailARN"]})
            selectors = [{"FieldSelectors": [*SQS_DATA_EVENTS, *selects]}]
            answer = {"TrailARN": trail["TrailARN"], "AdvancedEventSelectors": selectors}
            stub.add_response("get_event_selectors", answer)
        return list(check_trails(operator.account, found_trails)), found_trails


def _select_management_events(**more: Any) -> dict[str, Any]:
    """Make an advanced event selector of management events. `more` tests further fields."""
    fields = {"eventCategory": {"Equals": ["Management"]}, **more}
    return {"FieldSelectors": [{"Field": name, **operators} for name, operators in fields.items()]}


@pytest.mark.parametrize(
    ("selectors", "logs_changes"),
    [
        ({"EventSelectors": []}, False),
        ({"EventSelectors": [{"IncludeManagementEvents": False, "ReadWriteType": "All"}]}, False),
        ({"EventSelectors": [{"ReadWriteType": "ReadOnly"}]}, False),
        ({"EventSelectors": [{"ReadWriteType": "WriteOnly"}]}, True),
        ({"AdvancedEventSelectors": [{"FieldSelectors": SQS_DATA_EVENTS}]}, False),
        (
            {"AdvancedEventSelectors": [_select_management_events(readOnly={"Equals": ["true"]})]},
            False,
        ),
        ({"AdvancedEventSelectors": [_select_management_events()]}, True),
        (
            {"AdvancedEventSelectors": [_select_management_events(readOnly={"Equals": ["false"]})]},
            True,
        ),
    ],
)
def test_trail_logs_changes_only_if_its_selectors_select_management_events_that_write(
    operator: Operator, selectors: dict[str, Any], *, logs_changes: bool
) -> None:
    description = _make_trail_description("ours")
    named = {"Name": description["TrailARN"]}
    found_trails: list[Trail] = []
    client = operator.account.clients.cloudtrail
    with Stubber(client) as stub, patch.dict(STACK_OUTPUTS, ROOTS):
        stub.add_response("describe_trails", {"trailList": [description]})
        stub.add_response("get_trail_status", {"IsLogging": True}, named)
        stub.add_response("get_event_selectors", {"TrailARN": description["TrailARN"], **selectors})
        list(check_trails(operator.account, found_trails))
    assert [trail.logs_changes for trail in found_trails] == [logs_changes]


ORGANIZATION = (_make_trail_description("organization", "999999999999"), "TrailNotFoundException")
OURS = _make_trail_description("ours"), [{"Field": "resources.ARN", "Equals": [ARN]}]


def test_doctor_still_checks_the_other_trails_if_one_trail_cannot_be_read(
    operator: Operator,
) -> None:
    found_checks, _ = _check_trails(operator, ORGANIZATION, OURS)
    assert [(check.name, check.status) for check in found_checks] == [
        ("trail organization", UNKNOWN),
        ("trail ours", OK),
        ("probe's trail", UNKNOWN),
    ]
    assert "ask account 999999999999, whose trail it is" in found_checks[0].remedy
    assert "organization cannot be read" in found_checks[2].sentence


def test_queue_that_only_an_unreadable_trail_may_log_is_neither_unlogged_nor_seen(
    operator: Operator,
) -> None:
    _, trails = _check_trails(operator, ORGANIZATION, OURS)
    other = f"{ARN}-others"
    assert list_unlogged_queues(trails, [other]) == []
    assert find_unlogged_calls(trails, [other]) == {}
    assert list_unlogged_queues(trails[1:], [other]) == [other]
    unknown = {other: "not known: organization cannot be read"}
    for visibility in list_symptom_visibility(trails, [ARN, other]):
        assert visibility.blind == {}
        assert other not in visibility.visible
        assert {arn: why for arn, why in visibility.partly.items() if arn == other} in ({}, unknown)


def _run_doctor(operator: Operator, monkeypatch: pytest.MonkeyPatch, *trails: Trail) -> Any:
    """Run the doctor with these trails and without a check of the stack's resources.

    The mute rules are left out too, because moto does not know them.
    """
    monkeypatch.setattr(checks, "check_trails", lambda _, found: found.extend(trails) or ())
    monkeypatch.setattr(Deployment, "check_resources", lambda _: ())
    monkeypatch.setattr(StackAlarms, "check_mute_rules", lambda _: ())
    return operator.run_json("doctor", code=1)


FINE_CHECKS = [Check("trail mendq", OK, "it logs"), Check("trail other", OK, "it logs as well")]
OTHER_CHECKS = [
    Check("scan", WARN, "the last one is old", "wait an hour"),
    Check("heartbeat", FAIL, "it is silent", "look into the log"),
]


@pytest.fixture
def replace_checks(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Check]], None]:
    """A function that replaces all checks of the doctor by these."""

    def replace(stack_checks: list[Check]) -> None:
        check_functions = {"all": lambda _: stack_checks}
        monkeypatch.setattr("mendq.cli.look.doctor.CHECK_FUNCTION_BY_NAME", check_functions)

    return replace


def test_doctor_prints_the_verdict_first_then_failures_and_warnings_with_their_remedy(
    operator: Operator, replace_checks: Callable[[list[Check]], None]
) -> None:
    replace_checks([*FINE_CHECKS, *OTHER_CHECKS])
    result = operator.run("doctor")
    first, *others = result.stdout.splitlines()
    assert (result.exit_code, first) == (1, "1 FAIL, 1 WARN in 4 checks: stack Mendq, us-east-1")
    beginnings = [line.split()[0] for line in others]
    assert beginnings[:4] == ["fail", "->", "warn", "->"]
    assert beginnings[-1] == "What"
    assert "trail mendq" not in result.stdout


def test_doctor_with_verbose_prints_the_same_and_then_the_passed_checks(
    operator: Operator, replace_checks: Callable[[list[Check]], None]
) -> None:
    replace_checks([*FINE_CHECKS, *OTHER_CHECKS])
    *lines, _ = operator.run("doctor").stdout.splitlines()
    verbose_output = operator.run("doctor", "-v").stdout
    assert verbose_output.startswith("".join(f"{line}\n" for line in lines))
    assert "trails: 2 of 2 are fine" in verbose_output


def test_doctor_says_all_well_if_every_check_passed(
    operator: Operator, replace_checks: Callable[[list[Check]], None]
) -> None:
    replace_checks(FINE_CHECKS)
    assert operator.read_output("doctor").startswith("all well in 2 checks: stack Mendq, us-east-1")


def test_doctor_with_an_unknown_check_says_neither_well_nor_failed_and_exits_with_0(
    operator: Operator, replace_checks: Callable[[list[Check]], None]
) -> None:
    replace_checks([*FINE_CHECKS, Check("alarms", UNKNOWN, "may not be read", "allow it")])
    assert operator.read_output("doctor").startswith("1 UNKNOWN in 3 checks: ")


def test_doctor_advises_no_trail_selectors_while_one_trail_cannot_be_read(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.aws.queue("orders.fifo")
    trails = Trail("organization", None), Trail("ours", ())
    report = _run_doctor(operator, monkeypatch, *trails)
    assert [check for check in report["checks"] if check["check"] == "selectors"] == []
    assert (report["outside_selectors"], report["not_logged"]) == ([], {})
    assert report["trails_not_read"] == ["organization"]


@parametrize_rows(KNOWN["probe_logged"])
def test_doctor_evaluates_trail_selectors_like_cloudtrail_to_see_if_the_probe_is_logged(
    operator: Operator, field: dict[str, Any], *, is_logged: bool
) -> None:
    (_, check), _ = _check_trails(operator, (_make_trail_description("ours"), [field]))
    assert check.status is (OK if is_logged else FAIL)
    assert is_logged or PROBE_ARN in check.remedy


@parametrize_rows(KNOWN["files"])
def test_doctor_warns_or_fails_if_no_trail_logs_sqs_calls_below_the_prefix_of_the_nightly_job(
    operator: Operator, trails: list[list[str]], status: str, says: str
) -> None:
    """A row of `trails` is a trail's place and its resource type, or the code of a refusal."""
    looked_at = list[tuple[dict[str, Any], list[dict[str, Any]] | str]]()
    for number, (root, logs) in enumerate(trails):
        bucket, _, prefix = root.partition("/")
        where = {"S3BucketName": bucket, **({"S3KeyPrefix": prefix} if prefix else {})}
        only = [{"Field": "resources.type", "Equals": [logs]}]
        selects = logs if logs.endswith("Exception") else only
        looked_at.append((_make_trail_description(f"t{number}", **where), selects))
    _, found = _check_trails(operator, *looked_at)
    check = check_trail_files("our-logs/o-abc", found, [ARN])
    assert (check.status, says in check.sentence) == (status, True), check.sentence
    assert ("trail.prefix" in check.remedy) is (status in {WARN, FAIL})


def test_doctor_warns_of_a_queue_with_calls_that_no_trail_logs(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = operator.aws.queue("orders.fifo")
    but_one = {"Field": "eventName", "NotEquals": ["DeleteMessage"]}
    trail = Trail("mendq", ({"FieldSelectors": [*SQS_DATA_EVENTS, but_one]},))
    report = _run_doctor(operator, monkeypatch, trail)
    (warned,) = (check for check in report["checks"] if check["check"] == "selectors")
    assert warned["status"] == "warn"
    assert warned["says"] == "1 of 1 are logged in part: not DeleteMessage"
    assert "trail.eventNames" in warned["remedy"]
    assert report["not_logged"] == {arn: ["DeleteMessage"]}
    assert report["outside_selectors"] == []


def test_doctor_fails_a_deleted_topic_and_still_checks_the_other_topic(
    operator: Operator,
) -> None:
    settings = operator.account.settings
    confirmed = {"Protocol": "email", "SubscriptionArn": f"{settings.info_topic_arn}:1"}
    with Stubber(operator.account.clients.sns) as stub:
        stub.add_client_error("list_subscriptions_by_topic", "NotFound", "no such topic", 404)
        stub.add_response("list_subscriptions_by_topic", {"Subscriptions": [confirmed]})
        urgent, info = checks.check_topics(Doctor(operator.account, NOW))
    assert (urgent.status, info.status) == (FAIL, OK)
    assert f"there is no topic {settings.urgent_topic_arn}" in urgent.sentence


TEAM_TOPICS = {"payments": "arn:aws:sns:us-east-1:123456789012:payments"}


def _make_doctor_of_teams(operator: Operator, team_topic_arns: Mapping[str, str]) -> Doctor:
    """Return a run of doctor in an account with topics of teams."""
    settings = structs.replace(operator.account.known, team_topic_arns=team_topic_arns)
    return Doctor(structs.replace(operator.account, known=settings), NOW)


@pytest.mark.parametrize(
    ("subscriptions", "status", "says"),
    [
        ([], WARN, "nobody is subscribed"),
        (["PendingConfirmation"], FAIL, "1 of 1 subscription(s) not confirmed"),
        (["arn:aws:sns:us-east-1:123456789012:payments:1"], OK, "1 subscription(s), all confirmed"),
    ],
    ids=["nobody", "pending", "confirmed"],
)
def test_doctor_reports_if_a_teams_topic_reaches_a_confirmed_subscriber(
    operator: Operator, subscriptions: list[str], status: str, says: str
) -> None:
    doctor = _make_doctor_of_teams(operator, TEAM_TOPICS)
    listed = [{"Protocol": "email", "SubscriptionArn": arn} for arn in subscriptions]
    with Stubber(doctor.account.clients.sns) as stub:
        for _ in range(2):
            stub.add_response("list_subscriptions_by_topic", {"Subscriptions": []})
        request = {"TopicArn": TEAM_TOPICS["payments"]}
        stub.add_response("list_subscriptions_by_topic", {"Subscriptions": listed}, request)
        *_, team = checks.check_topics(doctor)
    assert (team.name, team.status, team.sentence) == ("topic of team payments", status, says)


def test_doctor_fails_a_deleted_team_topic_and_checks_topics_behind_one_that_it_may_not_read(
    operator: Operator,
) -> None:
    team_topics = {"a": "arn:aws:sns:us-east-1:123456789012:a", **TEAM_TOPICS}
    doctor = _make_doctor_of_teams(operator, team_topics)
    with Stubber(doctor.account.clients.sns) as stub:
        for _ in range(2):
            stub.add_response("list_subscriptions_by_topic", {"Subscriptions": []})
        stub.add_client_error("list_subscriptions_by_topic", "AuthorizationError", "no", 403)
        stub.add_client_error("list_subscriptions_by_topic", "NotFound", "no such topic", 404)
        *_, unreadable, gone = checks.check_topics(doctor)
    assert (unreadable.name, unreadable.status) == ("topic of team a", UNKNOWN)
    assert (gone.name, gone.status) == ("topic of team payments", FAIL)
    assert "team payments gets no notifications about its queues" in gone.sentence
    assert "notifications.teams" in gone.remedy

"""One report for an organization where all of it meets: four accounts, their stacks and one bucket.

The hub is deployed as `make cdk` would, three members from the stack set's bucket, each in an
account of its own. What is shared, the deployed watch_nightly of its account has copied; the hub's
bucket policy was asked. The hub's night and one member's are whole; what the others' jobs would
have written is put into their own buckets.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from email import message_from_string
from email.policy import default
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from infra.packaging.zips import THIS_MACHINE_PLATFORM_OPTIONS
from infra.stackset.one_template import read_stack_set_settings
from infra.stackset.publishing import write_stack_set_files
from infra.synthesis import stage_code
from local_account.deployment import WAITER_CONFIGURATION
from local_account.process import LocalAccount
from local_account.where import ACCOUNT, ACCOUNT_BY_PROFILE, ORGANIZATION_ID, REGION
from mendq.nightly.outcome import STATES_OF_ENDED_RUNS
from mendq.nightly.verdict import (
    NATIVE_READER,
    TABLES_SHARED_WITH_ORGANIZATION,
    NightlyCounts,
    make_nightly_counts_key,
    make_shared_table_prefix,
)
from tests.analytics.builders import SCHEMAS, make_burst, make_transition, pack_records
from tests.analytics.week_builders import DAYS, MONDAY, WEEK, make_account_incident
from tests.local_account.accounts import REPORT_SENDER
from tests.local_account.callers import Function, allow, new_role, policy, root, session_of
from tests.local_account.queues import error_of, eventually

pytestmark = [pytest.mark.account, pytest.mark.long]
HUB = ACCOUNT
LATE, LIAR, SILENT = (account_id for account_id in ACCOUNT_BY_PROFILE.values() if account_id != HUB)
CENTRAL = "our-mendq-reports"
STACK = "StackSet-mendq-0f1e2d3c-1111-2222-3333-444455556666"
ORGANIZED: Mapping[str, Any] = {
    "id": ORGANIZATION_ID,
    "reportBucket": CENTRAL,
    "hub": {"account": HUB, "region": REGION},
}
SETTINGS: Mapping[str, Any] = {
    "organization": ORGANIZED,
    "environments": [ORGANIZED["hub"]],
    "report": {"sender": REPORT_SENDER, "recipients": ["ada@example.com"]},
}
MEMBERS: Mapping[str, Any] = {"organization": ORGANIZED}
WATCHES = f"mendq-watch-nightly-{REGION}"


@dataclass(frozen=True)
class Stack:
    """A stack of Mendq's in one of the accounts, and its root user."""

    local: LocalAccount
    account: str
    outputs: Mapping[str, str]

    def client(self, service: str) -> Any:
        return self.local.client(service, **root(self.local, self.account))

    def put(self, output: str, key: str, body: bytes) -> None:
        self.client("s3").put_object(Bucket=self.outputs[output], Key=key, Body=body)

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        listed = self.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix)
        return [item["Key"] for item in listed.get("Contents", ())]

    def add_failed_calls(self, day: date, calls: int) -> None:
        """A file of its trail in which a consumer of `orders` came too late."""
        queue = f"arn:aws:sqs:{REGION}:{self.account}:orders"
        where = {"recipientAccountId": self.account, "resources": [_resource(queue)]}
        records = make_burst(f"{day:%m-%d} 09:00", calls, seconds=30, **where)
        folder = f"AWSLogs/{self.account}/CloudTrail/{REGION}/{day:%Y/%m/%d}"
        stem = f"{self.account}_CloudTrail_{REGION}_{day:%Y%m%d}T1000Z_0123456789abcdef"
        self.put("TrailBucket", f"{folder}/{stem}.json.gz", pack_records(records))

    def add_escalated_case(self, day: date) -> None:
        """A case about it that waits for somebody."""
        times = {"first_at": f"{day:%m-%d} 09:00", "last_at": f"{day:%m-%d} 09:01"}
        queue = f"arn:aws:sqs:{REGION}:{self.account}:orders"
        whose: Any = {"queue_arn": queue, "account": self.account, "notified": True}
        case = make_transition(1, "escalated", f"{day:%m-%d} 09:03", **times, **whose)
        key = f"cases/dt={day}/{case['case_id']}-1.json"
        self.put("CaseBucket", key, json.dumps(case).encode())

    def write_tables(self, days: Sequence[date], *incidents: Mapping[str, Any]) -> None:
        """As a nightly run leaves its tables: these incidents on the first day; and it ends."""
        made_at = datetime.now(UTC) + timedelta(hours=1)  # after the run that will be said to
        for day in days:
            for table in TABLES_SHARED_WITH_ORGANIZATION:
                rows = [*incidents] if table == "incidents" and day == days[0] else []
                file = io.BytesIO()
                pq.write_table(pa.Table.from_pylist(rows, SCHEMAS[table]), file)
                self.put("ReportBucket", f"{table}/dt={day}/{table}.parquet", file.getvalue())
            night = NightlyCounts(day, made_at, NATIVE_READER, "", files=1, records=1_000)
            self.put(
                "ReportBucket", make_nightly_counts_key(day), json.dumps(night.document()).encode()
            )
        bucket = f"jobs-{self.account}"
        self.client("s3").create_bucket(Bucket=bucket)
        self.client("s3").put_object(Bucket=bucket, Key="job.py", Body=b"print('written')")
        service = {"Service": "emr-serverless.amazonaws.com"}
        reads = allow("s3:GetObject", f"arn:aws:s3:::{bucket}/*")
        self.client("emr-serverless").start_job_run(
            applicationId=self.outputs["NightlyApplication"],
            clientToken=f"{days[-1]}",
            name=f"nightly-{days[-1]}",
            executionRoleArn=new_role(self.local, service, reads, of=self.account),
            jobDriver={"sparkSubmit": {"entryPoint": f"s3://{bucket}/job.py"}},
        )

    def run_job(self, job: str, at: datetime) -> None:
        """Its own job, as its schedule would start it, to its end."""
        event = {"job": job, "time": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
        self.wait_for_end(self.invoke("StartNightly", event)["run"])

    def invoke(self, name: str, event: object) -> Any:
        """What one of its functions answers."""
        function = Function(self.client("lambda"), self.outputs[f"{name}Function"])
        error, answer = function.invoke(event)
        assert error is None, answer
        return answer

    def wait_for_end(self, run_id: str) -> None:
        asked = {"applicationId": self.outputs["NightlyApplication"], "jobRunId": run_id}
        emr = self.client("emr-serverless")
        run = dict[str, Any]()

        def has_ended() -> bool:
            run.update(emr.get_job_run(**asked)["jobRun"])
            return run["state"] in STATES_OF_ENDED_RUNS

        eventually(has_ended, seconds=900, every_seconds=0.5)
        assert (run["state"], run["stateDetails"]) == ("SUCCESS", "")


def _resource(arn: str) -> dict[str, str]:
    return {"type": "AWS::SQS::Queue", "ARN": arn}


def _read_outputs(cloudformation: Any, name: str) -> dict[str, str]:
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def _deploy_member(
    local: LocalAccount, account: str, objects: Path, key: str, bucket: str
) -> Stack:
    """Deploy the published folder as StackSets would, from a bucket in the account.

    MiniStack has Lambda take its code from the own account's buckets alone.
    """
    who = root(local, account)
    s3, cloudformation = (local.client(service, **who) for service in ("s3", "cloudformation"))
    s3.create_bucket(Bucket=bucket)
    for path in (path for path in objects.rglob("*") if path.is_file()):
        name = path.relative_to(objects).as_posix()
        s3.put_object(Bucket=bucket, Key=name, Body=path.read_bytes())
    cloudformation.create_stack(
        StackName=STACK,
        TemplateURL=f"{s3.meta.endpoint_url}/{bucket}/{key}",
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )
    cloudformation.get_waiter("stack_create_complete").wait(
        StackName=STACK, WaiterConfig=WAITER_CONFIGURATION
    )
    return Stack(local, account, _read_outputs(cloudformation, STACK))


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Stack]]:
    """Each account's: the hub first, then the stack set."""
    place = tmp_path_factory.mktemp("published")
    code = stage_code(place / "code", THIS_MACHINE_PLATFORM_OPTIONS)
    settings = read_stack_set_settings(MEMBERS)
    pattern = "our-mendq-${AWS::AccountId}-${AWS::Region}"
    key = write_stack_set_files(settings, pattern, code, folder=place / "folder")
    with LocalAccount(SETTINGS) as local:
        made = {HUB: Stack(local, HUB, local.outputs)}
        for account in (LATE, LIAR, SILENT):
            bucket = f"our-mendq-{account}-{REGION}"
            made[account] = _deploy_member(
                local, account, place / "folder" / "objects", key, bucket
            )
        yield made


BEFORE = [MONDAY - timedelta(days=days) for days in range(7, 0, -1)]
LIES = (
    make_account_incident(LATE, 90, outcome="escalated", failed_calls=9_000),
    make_account_incident(LIAR, 91, region="eu-west-1"),
)
ANOTHERS = make_account_incident(LIAR, 92, outcome="escalated") | {
    "queue_arn": make_account_incident(LATE)["queue_arn"]
}


def _make_waiting_incident(number: int) -> dict[str, Any]:
    arn = f"arn:aws:sqs:{REGION}:{LIAR}:queue-{number:02}"
    return make_account_incident(
        LIAR, number, queue_arn=arn, outcome="proposed", failed_calls=number
    )


@pytest.fixture(scope="module")
def summary(stacks: Mapping[str, Stack]) -> dict[str, Any]:
    """The week: who lies, is silent and is late, and then the hub's own night and its week."""
    hub = stacks[HUB]
    late = stacks[LATE]
    central = hub_keys(stacks)
    stacks[SILENT].write_tables(BEFORE, make_account_incident(SILENT))
    stacks[LIAR].write_tables(DAYS, *map(_make_waiting_incident, range(1, 13)), *LIES, ANOTHERS)
    late.write_tables(BEFORE)
    shared_by_three = 3 * (7 * len(TABLES_SHARED_WITH_ORGANIZATION) + 1)
    eventually(lambda: len(central()) == shared_by_three, seconds=600)
    for stack, first, calls in ((late, MONDAY, 4), (hub, DAYS[5], 5)):
        for day in (first, first + timedelta(days=1)):
            stack.add_failed_calls(day, calls)
        stack.add_escalated_case(first)
    two = timedelta(hours=2)
    late.run_job("nightly", datetime.combine(DAYS[2], datetime.min.time(), UTC) + two)
    hub.local.fire(_find_schedule(hub, "nightly"), datetime(2026, 11, 16, 2, tzinfo=UTC))
    shared = [
        make_shared_table_prefix(HUB, REGION, table, WEEK)
        for table in TABLES_SHARED_WITH_ORGANIZATION
    ]
    there = {f"{prefix}/{day}.parquet" for prefix in shared for day in DAYS[5:]}
    eventually(lambda: there <= {*central()}, seconds=900, every_seconds=0.5)
    hub.local.fire(_find_schedule(hub, "week"), datetime(2026, 11, 16, 6, tzinfo=UTC))
    key = f"summary/week={WEEK}/summary.json"
    reports = hub.outputs["ReportBucket"]
    eventually(lambda: key in hub.keys(reports, "summary/"), seconds=900, every_seconds=0.5)
    body = hub.client("s3").get_object(Bucket=reports, Key=key)["Body"].read()
    eventually(lambda: len(hub.local.mails) == 1)
    document: dict[str, Any] = json.loads(body)["organization"]
    return document


def hub_keys(stacks: Mapping[str, Stack]) -> Any:
    return lambda: stacks[HUB].keys(CENTRAL)


def _find_schedule(stack: Stack, job: str) -> str:
    scheduler = stack.client("scheduler")
    names: list[str] = [schedule["Name"] for schedule in scheduler.list_schedules()["Schedules"]]
    inputs = {name: scheduler.get_schedule(Name=name)["Target"]["Input"] for name in names}
    (found,) = (name for name, text in inputs.items() if json.loads(text).get("job") == job)
    return found


def test_organization_summary_shows_state_and_totals_of_each_account(
    summary: Mapping[str, Any],
) -> None:
    shown = ("state", "last_day", "incidents", "waiting", "rows_left_out", "files_unreadable")
    found = {
        member["account"]: tuple(member[field] for field in shown) for member in summary["members"]
    }
    assert found == {
        HUB: ("reported", str(DAYS[6]), 2, 1, 0, 0),
        LATE: ("late", str(DAYS[1]), 2, 1, 0, 0),
        LIAR: ("reported", str(DAYS[6]), 12, 12, 3, 0),
        SILENT: ("silent", None, 0, 0, 0, 0),
    }
    calls = {member["account"]: member["failed_calls"] for member in summary["members"]}
    assert calls == {HUB: 10, LATE: 8, LIAR: sum(range(1, 13)), SILENT: 0}
    sums = summary["totals"]
    assert (sums["accounts"], sums["silent"], sums["late"], sums["rows_left_out"]) == (4, 1, 1, 3)
    assert (sums["incidents"], sums["waiting"]) == (16, 14)
    assert sums["failed_calls"] == sum(calls.values())


def test_organization_summary_lists_the_ten_most_urgent_queues_and_no_foreign_rows(
    summary: Mapping[str, Any],
) -> None:
    found = [
        (queue["account"], queue["queue_arn"].rpartition(":")[2]) for queue in summary["queues"]
    ]
    proposed = [(LIAR, f"queue-{number:02}") for number in range(12, 4, -1)]
    assert found == [(HUB, "orders"), (LATE, "orders"), *proposed]


def test_organization_report_is_one_page_and_one_mail_and_member_accounts_send_no_mail(
    stacks: Mapping[str, Stack], summary: Mapping[str, Any]
) -> None:
    hub = stacks[HUB]
    key = f"report/week={WEEK}/report.html"
    s3 = {account: stack.client("s3") for account, stack in stacks.items()}
    reports = {account: stack.outputs["ReportBucket"] for account, stack in stacks.items()}
    page = s3[HUB].get_object(Bucket=reports[HUB], Key=key)["Body"].read().decode()
    for account_id in (HUB, LATE, LIAR, SILENT):
        assert account_id in page
    (mail,) = hub.local.mails
    parsed: Any = message_from_string(mail["raw"], policy=default)
    for text in (page, *(parsed.get_body((kind,)).get_content() for kind in ("plain", "html"))):
        words = " ".join(text.split())
        for fault in ("reported nothing", "reported some days only", "shared 3 rows, left out"):
            assert fault in words
    # Where a line ends right behind `Subject:`, a space is left of it.
    assert parsed["Subject"].strip() == (
        f"Mendq {WEEK}: 4 accounts: 14 of 16 incidents need somebody; 0 healed"
    )
    # A member's own summary, which its own weekly job would write: a page, and no mail.
    path = f"summary/week={WEEK}/summary.json"
    body = s3[HUB].get_object(Bucket=reports[HUB], Key=path)["Body"].read()
    stacks[LATE].put("ReportBucket", path, body)
    answer = stacks[LATE].invoke("DeliverReport", {"detail": {"object": {"key": path}}})
    assert (answer["page"], answer["sent_to"]) == (f"s3://{reports[LATE]}/{key}", [])
    assert len(hub.local.mails) == 1


@pytest.mark.usefixtures("summary")
def test_organization_bucket_lets_a_member_role_write_only_below_its_own_account_prefix(
    stacks: Mapping[str, Stack],
) -> None:
    """Of one that may do all with S3 in its own account, so that the bucket alone decides."""
    member = stacks[LIAR]
    everything = allow("s3:*", "*")

    def role(name: str) -> Any:
        iam = member.client("iam")
        trust = {"Effect": "Allow", "Principal": {"AWS": LIAR}, "Action": "sts:AssumeRole"}
        made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))["Role"]
        iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=policy(everything))
        return member.local.client("s3", **session_of(member.local, made["Arn"], LIAR))

    named = role("mendq-watch-nightly-eu-west-1")
    another = role("watch-nightly")
    mine, theirs = (f"account={account_id}/region={REGION}/x" for account_id in (LIAR, LATE))
    named.put_object(Bucket=CENTRAL, Key=mine, Body=b"x")
    for refused in (
        lambda: named.put_object(Bucket=CENTRAL, Key=theirs, Body=b"x"),
        lambda: named.put_object(Bucket=CENTRAL, Key="account=/x", Body=b"x"),
        lambda: named.get_object(Bucket=CENTRAL, Key=mine),
        lambda: named.delete_object(Bucket=CENTRAL, Key=mine),
        lambda: named.list_objects_v2(Bucket=CENTRAL),
        lambda: another.put_object(Bucket=CENTRAL, Key=mine, Body=b"x"),
    ):
        assert error_of(refused)[0] == "AccessDenied"
    assert {hub_key.partition("/")[0] for hub_key in hub_keys(stacks)()} == {
        f"account={account_id}" for account_id in ACCOUNT_BY_PROFILE.values()
    }


def test_stack_set_member_deploys_watch_nightly_with_the_organization_bucket_and_role(
    stacks: Mapping[str, Stack],
) -> None:
    for account in (LATE, LIAR, SILENT):
        member = stacks[account]
        name = member.outputs["WatchNightlyFunction"]
        function = member.client("lambda").get_function_configuration(FunctionName=name)
        assert function["Role"] == f"arn:aws:iam::{account}:role/{WATCHES}"
        variables = function["Environment"]["Variables"]
        assert variables["MENDQ_ORGANIZATION_BUCKET"] == CENTRAL
        assert variables["MENDQ_ACCOUNT"] == account

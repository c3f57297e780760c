"""Over the previous version, again, away, and anew: what people rely on stays.

One account lives through it; each test looks at what was seen on the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from local_account.process import STACK_NAME, LocalAccount
from mendq.cli.__main__ import app
from tests.infra import previous_assembly, previous_version
from tests.infra.pinned_cli import cdk, identity, status
from tests.infra.synthesized import whole_assembly

pytestmark = [pytest.mark.account, pytest.mark.long]
RETAINED = {"TrailBucket", "CaseBucket", "ReportBucket", "CaseTable"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?=[.Z+])")


@dataclass
class Life:
    """An account, and what was seen in it after each step."""

    account: LocalAccount
    cli: Path
    home: Path
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)

    def cdk(self, step: str, *arguments: str) -> None:
        done = cdk(
            self.cli,
            self.home,
            *arguments,
            "--app",
            str(whole_assembly()),
            **identity(self.account),
        )
        assert done.returncode == 0, done.stderr
        self.said[step] = done.stdout + done.stderr

    def deploy(self, step: str) -> None:
        self.cdk(step, "deploy", "--require-approval", "never")
        self.outputs[step] = self.account.outputs
        events = self.account.client("cloudformation").get_paginator("describe_stack_events")
        pages = events.paginate(StackName=STACK_NAME)
        self.events[step] = sum(len(page["StackEvents"]) for page in pages)

    def mendq(self, *arguments: str) -> Any:
        """The answer of an operator of the version that is being deployed."""
        named = {"AWS_REGION": "us-east-1", **identity(self.account)}
        result = CliRunner().invoke(app, [*arguments, "--json"], env=named)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def items(self, table: str) -> list[Any]:
        """The case store's items of the healed queue, the snapshot among them."""
        found = self.account.client("dynamodb").scan(TableName=table)["Items"]
        return sorted(
            (each for each in found if previous_version.QUEUE in each["pk"]["S"]),
            key=lambda each: str(each["sk"]["S"]),
        )


@pytest.fixture(scope="module")
def life(cli: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    previous = previous_assembly.write(tmp_path_factory.mktemp("previous"))
    home = tmp_path_factory.mktemp("home")
    with LocalAccount(options=("--assembly", str(previous))) as account:
        life = Life(account, cli, home)
        _live(life)
        yield life


def _live(life: Life) -> None:
    life.outputs["previous"] = life.account.outputs
    _left_behind(life)
    table = life.outputs["previous"]["CaseTable"]
    life.answers["items before"] = life.items(table)
    life.deploy("over")
    life.answers["items after"] = life.items(table)
    life.answers["cases"] = life.mendq("cases")
    life.deploy("again")
    (case,) = life.answers["cases"]
    life.answers["would undo"] = life.mendq("rollback", case["case_id"], "--dry-run")
    life.cdk("destroyed", "destroy", "--force")
    life.answers["items left"] = life.items(table)
    life.answers["retained"] = life.mendq("resources")
    life.deploy("anew")
    life.answers["items kept"] = life.items(table)
    life.answers["kept of the new one"] = life.mendq("resources")


def _left_behind(life: Life) -> None:
    """The queue that the previous version healed, and what it wrote down, as if just now."""
    sqs, outputs = life.account.client("sqs"), life.account.outputs
    attributes = {"FifoQueue": "true", "VisibilityTimeout": "3"}
    sqs.create_queue(
        QueueName=previous_version.QUEUE, Attributes=attributes, tags={"mendq": "heal"}
    )
    recorded = previous_version.case_store_items()
    created = min(int(each["queue_created_at"]["N"]) for each in recorded if _is_dated(each))
    late = int(_queue(life)["CreatedTimestamp"]) - created
    dynamodb, s3 = life.account.client("dynamodb"), life.account.client("s3")
    for item in json.loads(_later(json.dumps(recorded), late)):
        dynamodb.put_item(TableName=outputs["CaseTable"], Item=item)
    for key, content in previous_version.case_objects().items():
        text = _later(json.dumps(content), late)
        s3.put_object(Bucket=outputs["CaseBucket"], Key=key, Body=text.encode())


def _is_dated(item: dict[str, Any]) -> bool:
    return "queue_created_at" in item


def _later(text: str, seconds: int) -> str:
    """Every time in a text so much later: ISO 8601 and seconds since 1970."""

    def of_the_clock(found: re.Match[str]) -> str:
        moved = datetime.fromisoformat(f"{found[0]}+00:00") + timedelta(seconds=seconds)
        return moved.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")

    text = _TIME.sub(of_the_clock, text)
    return re.sub(r"(?<=\")1[78]\d{8}(?=\\?\")", lambda found: str(int(found[0]) + seconds), text)


def _queue(life: Life) -> dict[str, str]:
    sqs = life.account.client("sqs")
    url = sqs.get_queue_url(QueueName=previous_version.QUEUE)["QueueUrl"]
    found: dict[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])[
        "Attributes"
    ]
    return found


def _retained(outputs: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in outputs.items() if name in RETAINED}


def test_over_the_previous_version_the_same_table_and_buckets_go_on(life: Life) -> None:
    assert _retained(life.outputs["over"]) == _retained(life.outputs["previous"])
    assert life.outputs["previous"].keys() <= life.outputs["over"].keys()


def test_cases_and_snapshots_are_as_they_were(life: Life) -> None:
    before = life.answers["items before"]
    assert [each["sk"]["S"] for each in before if "configuration" in each]
    assert life.answers["items after"] == before


def test_the_new_version_reads_what_the_previous_one_wrote(life: Life) -> None:
    (case,) = life.answers["cases"]
    assert (case["state"], case["symptom"]) == ("applied", "visibility_timeout_too_short")


def test_and_would_undo_what_the_previous_one_did(life: Life) -> None:
    """It ships with leave to observe alone, so that it may not do it here."""
    (undo,) = life.answers["would undo"]["attributes"]
    assert (undo["outcome"], undo["before"], undo["after"]) == ("undone", "2", "3")


def test_a_second_deployment_changes_nothing(life: Life) -> None:
    assert "(no changes)" in life.said["again"]
    assert life.events["again"] == life.events["over"]


def test_destroying_leaves_the_table_and_the_buckets_and_what_they_hold(life: Life) -> None:
    assert life.answers["items left"]
    names = {each["Name"] for each in life.account.client("s3").list_buckets()["Buckets"]}
    assert {life.outputs["over"][each] for each in RETAINED - {"CaseTable"}} <= names


def test_where_they_are_is_printed(life: Life) -> None:
    retained = {each["name"]: each for each in life.answers["retained"]}
    assert retained.keys() == set(_retained(life.outputs["over"]).values())
    assert all(each["destroyed_at"] for each in retained.values())
    anew = {each["name"] for each in life.answers["kept of the new one"]}
    assert set(_retained(life.outputs["anew"]).values()) <= anew


def test_deploying_again_works_beside_what_was_retained(life: Life) -> None:
    assert status(life.account, STACK_NAME) == "CREATE_COMPLETE"
    before, after = _retained(life.outputs["over"]), _retained(life.outputs["anew"])
    assert before.keys() == after.keys()
    assert set(before.values()).isdisjoint(after.values())
    assert life.answers["items kept"] == life.answers["items left"]

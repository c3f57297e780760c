"""Over the previous version, again, away, and anew: what people rely on stays.

One account lives through it; each test looks at what was seen on the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from local_account.process import STACK_NAME, LocalAccount
from local_account.where import ACCOUNT, REGION
from mendq.cli.app import app
from tests.infra import previous_version
from tests.infra.pinned_cli import cdk, identity, status
from tests.infra.synthesized import whole_assembly

pytestmark = [pytest.mark.account, pytest.mark.long]
RETAINED = {"TrailBucket", "CaseBucket", "ReportBucket", "CaseTable"}
# But what is still open: the follow-up that is deployed would go on with it.
LEFT = [
    each
    for each in previous_version.case_store_items()
    if previous_version.QUEUE in each["pk"]["S"] and "open" not in each
]


@dataclass
class Life:
    """An account, and what was seen in it after each step."""

    account: LocalAccount
    cli: Path
    home: Path
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    items: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def cdk(self, *arguments: str) -> str:
        done = cdk(self.cli, self.home, *arguments, **identity(self.account))
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def on_the_stack(self, step: str, *arguments: str) -> None:
        self.said[step] = self.cdk(*arguments, "--app", str(whole_assembly()))
        self.outputs[step] = self.account.outputs if "deploy" in arguments else {}
        table = self.outputs["previous"]["CaseTable"]
        found = self.account.client("dynamodb").scan(TableName=table)["Items"]
        items = [each for each in found if previous_version.QUEUE in each["pk"]["S"]]
        self.items[step] = sorted(items, key=lambda each: str(each["sk"]["S"]))

    def deploy(self, step: str) -> None:
        self.on_the_stack(step, "deploy", "--require-approval", "never")

    def retained(self, step: str) -> dict[str, str]:
        return {name: value for name, value in self.outputs[step].items() if name in RETAINED}

    def look(self, step: str) -> None:
        named = {"AWS_REGION": REGION, **identity(self.account)}
        result = CliRunner().invoke(app, ["resources", "--json"], env=named)
        assert result.exit_code == 0, result.output
        self.resources[step] = json.loads(result.stdout)


@pytest.fixture(scope="module")
def life(cli: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """By our own rights at first, by those of CDK's bootstrap at last."""
    previous = previous_version.assembly(tmp_path_factory.mktemp("previous"))
    home = tmp_path_factory.mktemp("home")
    with LocalAccount(options=("--assembly", str(previous))) as account:
        life = Life(account, cli, home, {"previous": account.outputs})
        for item in LEFT:
            account.client("dynamodb").put_item(TableName=account.outputs["CaseTable"], Item=item)
        life.deploy("over")
        life.deploy("again")
        life.on_the_stack("destroyed", "destroy", "--force")
        life.look("destroyed")
        life.cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}")
        life.deploy("anew")
        life.look("anew")
        yield life


def test_deployment_over_the_previous_version_keeps_the_case_table_and_buckets(life: Life) -> None:
    assert life.retained("over") == life.retained("previous")
    assert life.outputs["previous"].keys() <= life.outputs["over"].keys()


def test_second_deployment_of_the_same_stack_changes_nothing(life: Life) -> None:
    assert "(no changes)" in life.said["again"]


def test_cdk_destroy_retains_the_case_table_the_buckets_and_their_items(life: Life) -> None:
    assert life.items["over"] == life.items["destroyed"] == life.items["anew"]
    assert len(life.items["over"]) == len(LEFT)
    names = {each["Name"] for each in life.account.client("s3").list_buckets()["Buckets"]}
    assert {life.outputs["over"][each] for each in RETAINED - {"CaseTable"}} <= names


def test_mendq_resources_lists_retained_resources_with_the_time_the_stack_was_destroyed(
    life: Life,
) -> None:
    retained = {each["name"]: each for each in life.resources["destroyed"]}
    assert retained.keys() == set(life.retained("over").values())
    assert all(each["destroyed_at"] for each in retained.values())
    anew = {each["name"] for each in life.resources["anew"]}
    assert set(life.retained("anew").values()) <= anew


def test_deployment_after_destroy_succeeds_with_new_resources_beside_the_retained_ones(
    life: Life,
) -> None:
    assert status(life.account, STACK_NAME) == "CREATE_COMPLETE"
    assert status(life.account, "CDKToolkit") == "UPDATE_COMPLETE"
    before, after = life.retained("over"), life.retained("anew")
    assert before.keys() == after.keys()
    assert set(before.values()).isdisjoint(after.values())

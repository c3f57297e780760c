"""Deploying over the previous version, again, destroying, and deploying once more.

One local account goes through all steps. Each test looks at what was recorded after a step.
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
from tests.infra.pinned_cli import make_identity, read_stack_status, run_cdk
from tests.infra.synthesized import whole_assembly

pytestmark = [pytest.mark.account, pytest.mark.long]
RETAINED_OUTPUTS = {"TrailBucket", "CaseBucket", "ReportBucket", "CaseTable"}
# The closed cases of the previous version. The deployed follow-up would change an open one.
CLOSED_CASE_ITEMS = [
    item
    for item in previous_version.read_case_store_items()
    if previous_version.QUEUE in item["pk"]["S"] and "open" not in item
]


@dataclass
class DeploymentHistory:
    """An account, and what was recorded in it after each step."""

    account: LocalAccount
    cli: Path
    home: Path
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    outputs_of_cdk: dict[str, str] = field(default_factory=dict)
    items: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def run_cdk(self, *arguments: str) -> str:
        done = run_cdk(self.cli, self.home, *arguments, **make_identity(self.account))
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def run_cdk_on_stack(self, step: str, *arguments: str) -> None:
        self.outputs_of_cdk[step] = self.run_cdk(*arguments, "--app", str(whole_assembly()))
        self.outputs[step] = self.account.outputs if "deploy" in arguments else {}
        table = self.outputs["previous"]["CaseTable"]
        all_items = self.account.client("dynamodb").scan(TableName=table)["Items"]
        items = [item for item in all_items if previous_version.QUEUE in item["pk"]["S"]]
        self.items[step] = sorted(items, key=lambda item: str(item["sk"]["S"]))

    def deploy(self, step: str) -> None:
        self.run_cdk_on_stack(step, "deploy", "--require-approval", "never")

    def get_retained_outputs(self, step: str) -> dict[str, str]:
        return {
            name: value for name, value in self.outputs[step].items() if name in RETAINED_OUTPUTS
        }

    def record_resources(self, step: str) -> None:
        named = {"AWS_REGION": REGION, **make_identity(self.account)}
        result = CliRunner().invoke(app, ["resources", "--json"], env=named)
        assert result.exit_code == 0, result.output
        self.resources[step] = json.loads(result.stdout)


@pytest.fixture(scope="module")
def history(cli: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeploymentHistory]:
    """Deployments with the operator's permissions, and the last with those of CDK's bootstrap."""
    previous = previous_version.write_assembly(tmp_path_factory.mktemp("previous"))
    home = tmp_path_factory.mktemp("home")
    with LocalAccount(options=("--assembly", str(previous))) as account:
        history = DeploymentHistory(account, cli, home, {"previous": account.outputs})
        for item in CLOSED_CASE_ITEMS:
            account.client("dynamodb").put_item(TableName=account.outputs["CaseTable"], Item=item)
        history.deploy("over")
        history.deploy("again")
        history.run_cdk_on_stack("destroyed", "destroy", "--force")
        history.record_resources("destroyed")
        history.run_cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}")
        history.deploy("anew")
        history.record_resources("anew")
        yield history


def test_deployment_over_the_previous_version_keeps_the_case_table_and_buckets(
    history: DeploymentHistory,
) -> None:
    assert history.get_retained_outputs("over") == history.get_retained_outputs("previous")
    assert history.outputs["previous"].keys() <= history.outputs["over"].keys()


def test_second_deployment_of_the_same_stack_changes_nothing(history: DeploymentHistory) -> None:
    assert "(no changes)" in history.outputs_of_cdk["again"]


def test_cdk_destroy_retains_the_case_table_with_its_items_and_the_buckets(
    history: DeploymentHistory,
) -> None:
    assert history.items["over"] == history.items["destroyed"] == history.items["anew"]
    assert len(history.items["over"]) == len(CLOSED_CASE_ITEMS)
    names = {bucket["Name"] for bucket in history.account.client("s3").list_buckets()["Buckets"]}
    assert {history.outputs["over"][output] for output in RETAINED_OUTPUTS - {"CaseTable"}} <= names


def test_mendq_resources_lists_retained_resources_with_the_time_the_stack_was_destroyed(
    history: DeploymentHistory,
) -> None:
    retained = {resource["name"]: resource for resource in history.resources["destroyed"]}
    assert retained.keys() == set(history.get_retained_outputs("over").values())
    assert all(resource["destroyed_at"] for resource in retained.values())
    anew = {resource["name"] for resource in history.resources["anew"]}
    assert set(history.get_retained_outputs("anew").values()) <= anew


def test_deployment_after_destroy_succeeds_with_new_resources_beside_the_retained_ones(
    history: DeploymentHistory,
) -> None:
    assert read_stack_status(history.account, STACK_NAME) == "CREATE_COMPLETE"
    assert read_stack_status(history.account, "CDKToolkit") == "UPDATE_COMPLETE"
    before = history.get_retained_outputs("over")
    after = history.get_retained_outputs("anew")
    assert before.keys() == after.keys()
    assert set(before.values()).isdisjoint(after.values())

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.settings.deployment import read
from infra.synthesis import new_app, synthesize
from mendq.model.limits import Consent, Mode
from tests.infra.synthesized import SETTINGS, template_of

TWO = [
    {"account": "111122223333", "region": "eu-west-1"},
    {"account": "444455556666", "region": "us-east-1"},
]


def _synthesize(folder: Path, environments: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    """Every stack's properties in the manifest, by its id."""
    synthesize(read({"environments": environments}), new_app(folder))
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"]
    return {
        name: {"environment": each["environment"], **each["properties"]}
        for name, each in artifacts.items()
        if each["type"] == "aws:cloudformation:stack"
    }


def test_outsiders_find_the_outputs_by_name() -> None:
    outputs = template_of("default").outputs
    assert set(outputs) == {
        "TrailBucket",
        "CaseBucket",
        "CaseTable",
        "ReportBucket",
        "NightlyApplication",
        "AttachDlqFunction",
        "RestorePolicyFunction",
        "RedriveFunction",
        "HealFunction",
        "FollowUpFunction",
        "ApproveFunction",
        "RollbackFunction",
        "ScanFunction",
        "ProbeFunction",
        "UrgentTopic",
        "InfoTopic",
        "IntakeQueue",
    }
    assert outputs["TrailBucket"]["Value"].startswith("TrailBucket")
    assert outputs["CaseBucket"]["Value"].startswith("CasesBucket")
    assert outputs["ReportBucket"]["Value"].startswith("ReportsBucket")
    assert outputs["CaseTable"]["Value"].startswith("CaseTable")
    assert outputs["IntakeQueue"]["Value"].startswith("IntakeQueue")


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_queue_of_ours_is_managed_whatever_prefix_fits_it(settings: str) -> None:
    queues = template_of(settings).all("AWS::SQS::Queue")
    assert len(queues) > 3
    for name, queue in queues.items():
        tags = {each["Key"]: each["Value"] for each in queue["Properties"]["Tags"]}
        everything = Consent(Mode.HEAL, Mode.HEAL, (f"{name[:3]}*",))
        assert everything.mode_of(name, {}) is Mode.HEAL
        assert everything.mode_of(name, tags) is None


@pytest.mark.parametrize(
    "name", ["Heal", "AttachDlq", "FollowUp", "Approve", "Rollback", "Scan", "Probe"]
)
def test_outsiders_find_the_lambdas_by_their_outputs(name: str) -> None:
    assert template_of("default").outputs[f"{name}Function"]["Value"].startswith(f"{name}Function")


@pytest.mark.parametrize("name", ["Urgent", "Info"])
def test_outsiders_find_the_topics_by_their_outputs(name: str) -> None:
    topic = template_of("default").outputs[f"{name}Topic"]["Value"]
    assert topic.startswith(f"Topics{name}Topic")


@pytest.mark.usefixtures("light_code")
def test_without_environments_the_account_stays_open(tmp_path: Path) -> None:
    stacks = _synthesize(tmp_path, [])
    assert list(stacks) == ["Mendq"]
    assert stacks["Mendq"]["environment"] == "aws://unknown-account/us-east-1"


@pytest.mark.usefixtures("light_code")
def test_without_environments_the_region_is_the_clis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", "eu-central-1")
    assert _synthesize(tmp_path, [])["Mendq"]["environment"].endswith("/eu-central-1")


@pytest.mark.usefixtures("light_code")
def test_one_environment_is_the_stack_mendq(tmp_path: Path) -> None:
    stacks = _synthesize(tmp_path, TWO[:1])
    assert list(stacks) == ["Mendq"]
    assert stacks["Mendq"]["environment"] == "aws://111122223333/eu-west-1"


@pytest.mark.usefixtures("light_code")
def test_several_environments_are_each_a_stack_named_mendq(tmp_path: Path) -> None:
    stacks = _synthesize(tmp_path, TWO)
    assert set(stacks) == {"Mendq-111122223333-eu-west-1", "Mendq-444455556666-us-east-1"}
    names = {each.get("stackName", name) for name, each in stacks.items()}
    assert names == {"Mendq"}


@pytest.mark.usefixtures("light_code")
def test_roles_of_two_regions_do_not_share_a_name(tmp_path: Path) -> None:
    _synthesize(tmp_path, TWO)
    texts = [each.read_text() for each in sorted(tmp_path.glob("*.template.json"))]
    assert ['"RoleName": "mendq-heal-eu-west-1"' in each for each in texts] == [True, False]
    assert ['"RoleName": "mendq-heal-us-east-1"' in each for each in texts] == [False, True]

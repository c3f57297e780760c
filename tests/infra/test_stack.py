"""The stacks that settings give, and what outsiders find in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.lambdas.rows import ROWS
from infra.settings.deployment import read
from infra.synthesis import new_app, synthesize
from mendq.model.limits import Consent, Mode
from tests.infra.synthesized import SETTINGS, THREE, folder_of_three, light_code, template_of

# What each output names in the template, by how it begins.
OUTPUTS = {
    "TrailBucket": "Trail",
    "CaseBucket": "Cases",
    "ReportBucket": "Reports",
    "UrgentTopic": "TopicsUrgent",
    "InfoTopic": "TopicsInfo",
    "CaseTable": "CaseStoreTable",
    "NightlyApplication": "NightlyApplication",
    "IntakeQueue": "IntakeQueue",
    **{f"{row.handler.construct}Function": row.handler.construct for row in ROWS if row.is_output},
}


def _synthesize(folder: Path, environments: list[dict[str, str]]) -> dict[str, str]:
    """Every stack's environment in the manifest, by its id."""
    synthesize(read({"environments": environments}), new_app(folder), code=light_code())
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"].items()
    stacks = {name: each for name, each in artifacts if each["type"].endswith(":stack")}
    assert {each["properties"].get("stackName", name) for name, each in stacks.items()} == {"Mendq"}
    return {name: each["environment"] for name, each in stacks.items()}


def test_outsiders_find_the_outputs_by_name() -> None:
    outputs = template_of("default").outputs
    assert outputs.keys() == OUTPUTS.keys()
    for name, start in OUTPUTS.items():
        assert outputs[name]["Value"].startswith(start)


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_queue_of_ours_is_managed_whatever_prefix_fits_it(settings: str) -> None:
    queues = template_of(settings).all("AWS::SQS::Queue")
    assert len(queues) > 3
    for name, queue in queues.items():
        tags = {each["Key"]: each["Value"] for each in queue["Properties"]["Tags"]}
        everything = Consent(Mode.HEAL, Mode.HEAL, (f"{name[:3]}*",))
        assert everything.mode_of(name, {}) is Mode.HEAL
        assert everything.mode_of(name, tags) is None


def test_without_environments_the_account_stays_open_and_the_region_is_the_clis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _synthesize(tmp_path / "one", [])
    assert found == {"Mendq": "aws://unknown-account/us-east-1"}
    monkeypatch.setenv("CDK_DEFAULT_REGION", "eu-central-1")
    assert _synthesize(tmp_path / "two", [])["Mendq"].endswith("/eu-central-1")


def test_each_environment_is_a_stack_named_mendq(tmp_path: Path) -> None:
    one = _synthesize(tmp_path / "one", [dict(THREE[0])])
    assert one == {"Mendq": f"aws://{THREE[0]['account']}/{THREE[0]['region']}"}
    for each in THREE:
        file = folder_of_three() / f"Mendq-{each['account']}-{each['region']}.template.json"
        assert f'"RoleName": "mendq-heal-{each["region"]}"' in file.read_text()

"""The stacks that settings give, and what outsiders find in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.settings.deployment import read
from infra.synthesis import new_app, synthesize
from mendq.model.limits import Consent, Mode
from tests.infra.synthesized import SETTINGS, light_code, template_of

TWO = [
    {"account": "111122223333", "region": "eu-west-1"},
    {"account": "444455556666", "region": "us-east-1"},
]
# What each output names in the template.
OUTPUTS = {
    **{f"{each}Bucket": f"{each}Bucket" for each in ("Trail",)},
    **{f"{each}Bucket": f"{each}sBucket" for each in ("Case", "Report")},
    **{f"{each}Topic": f"Topics{each}Topic" for each in ("Urgent", "Info")},
    **{
        f"{each}Function": f"{each}Function"
        for each in (
            *("Heal", "AttachDlq", "RestorePolicy", "Redrive"),
            *("FollowUp", "Approve", "Rollback", "Scan", "Probe"),
        )
    },
    "CaseTable": "CaseStoreTable",
    "NightlyApplication": "NightlyApplication",
    "IntakeQueue": "IntakeQueue",
}


def _synthesize(folder: Path, environments: list[dict[str, str]]) -> dict[str, str]:
    """Every stack's environment in the manifest, by its id."""
    synthesize(read({"environments": environments}), new_app(folder), code=light_code())
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"]
    stacks = {
        name: each for name, each in artifacts.items() if each["type"] == "aws:cloudformation:stack"
    }
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
    one = _synthesize(tmp_path / "one", TWO[:1])
    assert one == {"Mendq": "aws://111122223333/eu-west-1"}
    two = _synthesize(tmp_path / "two", TWO)
    assert set(two) == {"Mendq-111122223333-eu-west-1", "Mendq-444455556666-us-east-1"}
    texts = [each.read_text() for each in sorted((tmp_path / "two").glob("*.template.json"))]
    for region, found in (("eu-west-1", [True, False]), ("us-east-1", [False, True])):
        assert [f'"RoleName": "mendq-heal-{region}"' in each for each in texts] == found

"""The synthesized stacks: their recorded content and their environments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra.settings.deployment import read_deployment_settings
from infra.synthesis import make_app, synthesize
from mendq.model.consent import Consent
from mendq.model.mode import Mode
from tests.golden.checks import fail_if_stale
from tests.infra.known_stack import STACK_FILE
from tests.infra.synthesized import (
    ACCOUNT,
    NIGHTLY_OFF,
    REGION,
    SETTINGS,
    THREE,
    folder_of,
    folder_of_three,
    light_code,
    template_of,
    template_with,
)

ROOT = Path(__file__).resolve().parents[2]


def test_synthesized_stacks_match_the_recorded_stack_json() -> None:
    fail_if_stale(STACK_FILE)


EMR_SERVERLESS_WORDS = ("emr-serverless", "emrserverless")


def test_stack_without_the_nightly_job_contains_nothing_of_emr_serverless() -> None:
    text = json.dumps(template_with(NIGHTLY_OFF).raw).lower()
    assert [word for word in EMR_SERVERLESS_WORDS if word in text] == []


def test_stack_contains_emr_serverless_by_default() -> None:
    text = json.dumps(template_of("default").raw).lower()
    assert all(word in text for word in EMR_SERVERLESS_WORDS)


def _read_environments(folder: Path) -> dict[str, str]:
    """Return the environment of each stack in the manifest, by artifact id."""
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"].items()
    stacks = {name: artifact for name, artifact in artifacts if artifact["type"].endswith(":stack")}
    for name, artifact in stacks.items():
        assert artifact["properties"].get("stackName", name) == "Mendq"
    return {name: artifact["environment"] for name, artifact in stacks.items()}


@pytest.mark.parametrize("settings", SETTINGS)
def test_mendqs_own_queues_are_not_managed_even_if_a_configured_prefix_matches(
    settings: str,
) -> None:
    queues = template_of(settings).all("AWS::SQS::Queue")
    assert len(queues) > 3
    for name, queue in queues.items():
        tags = {tag["Key"]: tag["Value"] for tag in queue["Properties"]["Tags"]}
        consent = Consent(Mode.HEAL, Mode.HEAL, (f"{name[:3]}*",))
        assert consent.mode_of(name, {}) is Mode.HEAL
        assert consent.mode_of(name, tags) is None


def test_stack_without_environments_or_a_region_of_the_cdk_cli_is_for_us_east_1() -> None:
    assert _read_environments(folder_of("default")) == {"Mendq": "aws://unknown-account/us-east-1"}


@pytest.mark.parametrize(
    ("environments", "expected"),
    [
        ([], "aws://unknown-account/eu-central-1"),
        ([{"account": ACCOUNT, "region": REGION}], f"aws://{ACCOUNT}/{REGION}"),
    ],
    ids=["none", "one"],
)
def test_stack_is_for_its_configured_environment_or_for_the_region_of_the_cdk_cli(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environments: list[dict[str, str]],
    expected: str,
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", "eu-central-1")
    settings = read_deployment_settings({"environments": environments})
    synthesize(settings, make_app(tmp_path), code=light_code())
    assert _read_environments(tmp_path) == {"Mendq": expected}


def test_each_configured_environment_gives_a_stack_named_mendq_for_its_region() -> None:
    ids = {
        f"Mendq-{environment['account']}-{environment['region']}": environment["region"]
        for environment in THREE
    }
    assert _read_environments(folder_of_three()).keys() == ids.keys()
    for name, region in ids.items():
        template = (folder_of_three() / f"{name}.template.json").read_text()
        assert f'"RoleName": "mendq-heal-{region}"' in template

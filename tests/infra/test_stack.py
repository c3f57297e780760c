"""The stacks that settings give: all that they hold, what outsiders find, where they go."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from infra.settings.deployment import read_deployment_settings
from infra.synthesis import make_app, synthesize
from mendq.model.consent import Consent
from mendq.model.mode import Mode
from tests.infra.synthesized import (
    ACCOUNT,
    NIGHTLY_OFF,
    REGION,
    SETTINGS,
    THREE,
    Template,
    folder_of,
    folder_of_three,
    light_code,
    template_of,
    template_with,
)

ROOT = Path(__file__).resolve().parents[2]
KNOWN = Path(__file__).with_name("stack.json")
# Whose properties the file holds, by the name of the settings.
TYPES: Mapping[str, Sequence[str]] = {
    "default": ("CloudTrail::Trail", "EMRServerless::Application"),
    "named": (
        *("CloudTrail::Trail", "DynamoDB::Table", "EMRServerless::Application", "Events::Rule"),
        *("CloudFormation::LambdaHook", "IAM::Role"),
        *("Lambda::EventInvokeConfig", "Lambda::EventSourceMapping", "Lambda::Function"),
        *("KMS::Key", "Logs::LogGroup", "S3::Bucket", "S3::BucketPolicy", "SNS::Subscription"),
        *("SNS::TopicPolicy", "SQS::Queue", "SQS::QueuePolicy", "Scheduler::Schedule"),
    ),
    "existing trail": ("CloudTrail::Trail", "S3::Bucket"),
    "topics of theirs": (
        *("CloudWatch::CompositeAlarm", "KMS::Key", "SNS::Subscription", "SNS::Topic"),
        "SNS::TopicPolicy",
    ),
    "trails below a prefix": ("CloudTrail::Trail", "S3::BucketPolicy"),
}
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:team-"
# Settings of those above that nothing else asks for.
ALONE: Mapping[str, Mapping[str, Any]] = {
    "topics of theirs": {
        "notifications": {
            "urgent": ["a@b.io"],
            "topics": {"urgent": f"{TOPIC}urgent", "info": f"{TOPIC}info"},
        }
    },
    "trails below a prefix": {"trail": {"prefix": "logs/trail"}},
}
_HASH = re.compile(r"(?<=[A-Za-z])[0-9A-F]{8}(?=\W|$)|[0-9a-f]{64}")


def _template(settings: str) -> Template:
    return template_with(ALONE[settings]) if settings in ALONE else template_of(settings)


def known() -> Any:
    """What outsiders find and what stands behind it, without the digests of names."""
    found: dict[str, Any] = {
        settings: {
            "outputs": {name: each["Value"] for name, each in template.outputs.items()},
            **{
                name: each["Properties"]
                for kind in kinds
                for name, each in template.all(f"AWS::{kind}").items()
            },
        }
        for settings, kinds in TYPES.items()
        for template in [_template(settings)]
    }
    on, off = (template_with(each).raw for each in ({}, NIGHTLY_OFF))
    found["gone with the nightly job"] = {
        part: sorted(on[part].keys() - off[part].keys()) for part in ("Resources", "Outputs")
    }
    return json.loads(_HASH.sub("", json.dumps(found)))


def test_the_stack_holds_what_it_held() -> None:
    """The file is read by people too."""
    now, before = known(), json.loads(KNOWN.read_text())
    changed = [
        f"{settings}: {name}"
        for settings in {**before, **now}
        for name in {**before.get(settings, {}), **now.get(settings, {})}
        if before.get(settings, {}).get(name) != now.get(settings, {}).get(name)
    ]
    assert not changed, (
        f"The stack is no longer what {KNOWN.relative_to(ROOT)} holds. Changed: "
        f"{', '.join(changed)}. If your change means that, run "
        "`.venv/bin/python -m tests.infra.test_stack` and read the diff of the file."
    )


def test_stack_without_the_nightly_job_contains_nothing_of_emr_serverless() -> None:
    text = json.dumps(template_with(NIGHTLY_OFF).raw).lower()
    assert "emr-serverless" not in text
    assert "emrserverless" not in text


def _environments(folder: Path) -> dict[str, str]:
    """Every stack's environment in the manifest, by its id."""
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"].items()
    stacks = {name: each for name, each in artifacts if each["type"].endswith(":stack")}
    assert {each["properties"].get("stackName", name) for name, each in stacks.items()} == {"Mendq"}
    return {name: each["environment"] for name, each in stacks.items()}


@pytest.mark.parametrize("settings", SETTINGS)
def test_mendqs_own_queues_are_not_managed_even_if_a_configured_prefix_matches(
    settings: str,
) -> None:
    queues = template_of(settings).all("AWS::SQS::Queue")
    assert len(queues) > 3
    for name, queue in queues.items():
        tags = {each["Key"]: each["Value"] for each in queue["Properties"]["Tags"]}
        everything = Consent(Mode.HEAL, Mode.HEAL, (f"{name[:3]}*",))
        assert everything.mode_of(name, {}) is Mode.HEAL
        assert everything.mode_of(name, tags) is None


def test_stack_without_environments_has_an_open_account_and_the_cdk_clis_region(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _environments(folder_of("default")) == {"Mendq": "aws://unknown-account/us-east-1"}
    monkeypatch.setenv("CDK_DEFAULT_REGION", "eu-central-1")
    one = [{"account": ACCOUNT, "region": REGION}]
    for given, environment in (
        ([], "aws://unknown-account/eu-central-1"),
        (one, f"aws://{ACCOUNT}/{REGION}"),
    ):
        folder = tmp_path / f"{len(given)}"
        synthesize(
            read_deployment_settings({"environments": given}), make_app(folder), code=light_code()
        )
        assert _environments(folder) == {"Mendq": environment}


def test_each_configured_environment_gives_a_stack_named_mendq_for_its_region() -> None:
    ids = {f"Mendq-{each['account']}-{each['region']}": each["region"] for each in THREE}
    assert _environments(folder_of_three()).keys() == ids.keys()
    for name, region in ids.items():
        template = (folder_of_three() / f"{name}.template.json").read_text()
        assert f'"RoleName": "mendq-heal-{region}"' in template


if __name__ == "__main__":
    KNOWN.write_text(f"{json.dumps(known(), indent=1, sort_keys=True)}\n")

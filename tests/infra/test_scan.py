"""The scan: what it knows, and that it changes nothing but its own items."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.catalogue import CATALOGUE
from mendq.model.limits import Consent, Mode
from mendq.model.settings import ScanSettings
from mendq.model.steps import write_actions
from tests.infra.permissions import decision
from tests.infra.synthesized import ACCOUNT, QUEUE_ARNS, SETTINGS, template_of

WRITES = write_actions(step for symptom in CATALOGUE for step in symptom.steps)


def _function(name: str = "default") -> Any:
    return template_of(name).only("AWS::Lambda::Function", "Scan")


def _may(action: str, resource: str, name: str = "default", **tags: str) -> str:
    return decision(template_of(name).statements("ScanRole"), action, resource, tags)


def test_it_reads_its_settings_back_as_they_were_set() -> None:
    variables = _function("named")["Environment"]["Variables"]
    settings = ScanSettings.from_environment(variables)
    assert settings.account == ACCOUNT
    assert (settings.mode, settings.queues) == (Mode.HEAL, ("orders", "billing-*"))
    assert settings.heal_function.startswith("HealFunction")
    assert variables == settings.to_environment(), "and it gets nothing beside them"
    assert Consent(settings.mode, settings.tag_may_raise_to, settings.queues)


def test_it_has_as_long_as_lambda_lets_it() -> None:
    assert (_function()["Timeout"], _function()["MemorySize"]) == (900, 1_024)


@pytest.mark.parametrize("name", SETTINGS)
def test_it_writes_no_queue_and_no_case(name: str) -> None:
    template = template_of(name)
    cases = template.arn_of("AWS::S3::Bucket", "Cases")
    table = template.arn_of("AWS::DynamoDB::Table", "CaseStore")
    for action in WRITES:
        assert _may(action, f"{QUEUE_ARNS}orders", name, mendq="heal") == "ImplicitDeny"
    assert _may("s3:PutObject", f"{cases}/cases/dt=2026-11-21/x-1.json", name) == "ImplicitDeny"
    for verb in ("PutItem", "DeleteItem", "Scan", "ConditionCheckItem"):
        assert _may(f"dynamodb:{verb}", table, name) == "ImplicitDeny"


def test_it_puts_down_what_it_found_and_calls_heal_alone() -> None:
    template = template_of("default")
    cases = template.arn_of("AWS::S3::Bucket", "Cases")
    assert _may("s3:PutObject", f"{cases}/findings/dt=2026-11-21/09.json") == "Allow"
    for logical_id in template.all("AWS::Lambda::Function"):
        allowed = logical_id.startswith("HealFunction")
        answer = _may("lambda:InvokeFunction", f"arn:{logical_id}")
        assert answer == ("Allow" if allowed else "ImplicitDeny")

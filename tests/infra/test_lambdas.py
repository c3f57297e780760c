"""Every Lambda: what it runs, what it gets for it, what it knows, and what becomes of faults."""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_

from infra.lambdas.lambda_function import ENVIRONMENT_CHARACTERS, deliver
from infra.lambdas.rows import ROWS
from infra.settings.reading import SettingsRefused
from mendq.model import settings as every_settings
from mendq.model.settings import (
    ConsentSettings,
    LambdaSettings,
    OwnerSettings,
    variable_of,
)
from tests.infra.synthesized import SETTINGS, template_of, template_with

KNOWN = Path(__file__).with_name("lambdas.json")
_HASH = re.compile(r"(?<=[A-Za-z])[0-9A-F]{8}(?=\W|$)|[0-9a-f]{64}")


def _function(name: str, settings: str = "default") -> Any:
    return template_of(settings).only("AWS::Lambda::Function", f"{name}Function")


def known() -> Any:
    """What `named` gives each Lambda, without the digests of CloudFormation's names."""
    return json.loads(_HASH.sub("", json.dumps(_known())))


def _known() -> dict[str, Any]:
    return {
        row.handler.name: {
            **{key: each for key, each in function.items() if key not in ("Code", "Environment")},
            **_of(row.handler.construct),
            "variables": function["Environment"]["Variables"],
        }
        for row in ROWS
        for function in [_function(row.handler.construct, "named")]
    }


def _of(name: str) -> dict[str, Any]:
    template = template_of("named")
    return {
        "RoleName": template.only("AWS::IAM::Role", f"{name}Role")["RoleName"],
        "RetentionInDays": template.only("AWS::Logs::LogGroup", f"{name}Log")["RetentionInDays"],
        "is an output": f"{name}Function" in template.outputs,
        "has a zip of its own": _function(name)["Code"] != _function("Heal")["Code"],
    }


def test_each_gets_what_it_got_and_knows_what_it_knew() -> None:
    """The file is read by people too: `python -m tests.infra.test_lambdas` writes it anew."""
    assert known() == json.loads(KNOWN.read_text())


@pytest.mark.parametrize("settings", SETTINGS)
def test_it_reads_its_settings_back_and_no_template_lets_a_clock_be_put_forward(
    settings: str,
) -> None:
    """Who may invoke follow_up would end cases days early."""
    for row in ROWS:
        variables = _function(row.handler.construct, settings)["Environment"]["Variables"]
        assert variables == row.settings.from_environment(variables).to_environment()
        assert variable_of("most_days_ahead") not in variables


def test_whoever_a_person_asks_waits_longer_than_whom_it_asks() -> None:
    for caller, owners in (
        ("Approve", ("Heal", "AttachDlq", "RestorePolicy", "Redrive")),
        ("Rollback", ("Redrive",)),
    ):
        for owner in owners:
            assert _function(caller)["Timeout"] >= _function(owner)["Timeout"] + 15


KINDS = [
    each
    for each in vars(every_settings).values()
    if isinstance(each, type) and issubclass(each, ConsentSettings)
]


def _settings(kind: type[LambdaSettings], **over: Any) -> Any:
    """One with every field that has no default filled in."""
    filled: dict[str, Any] = {
        each.name: {} if each.name == "owners" else () if each.name == "own_roles" else "any"
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    }
    return kind(**filled | over)


def _any_function() -> lambda_.Function:
    return lambda_.Function(
        cdk.Stack(),
        "Function",
        runtime=lambda_.Runtime.PYTHON_3_13,
        handler="any.handler",
        code=lambda_.Code.from_inline("any"),
    )


def _as_long_as(kind: type[LambdaSettings], characters: int) -> Any:
    """One whose environment is exactly so long."""
    short = _settings(kind, queues=("q",))
    taken = sum(len(name) + len(value) for name, value in short.to_environment().items())
    return replace(short, queues=("q" * (1 + characters - taken),))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_lambda_that_knows_the_queues_holds_as_much_and_no_more(
    kind: type[LambdaSettings],
) -> None:
    deliver(_any_function(), _as_long_as(kind, ENVIRONMENT_CHARACTERS))
    with pytest.raises(SettingsRefused, match=r"^queues: more names than the 4 KB"):
        deliver(_any_function(), _as_long_as(kind, ENVIRONMENT_CHARACTERS + 1))
    topic = cdk.CfnResource(cdk.Stack(), "Topic", type="AWS::SNS::Topic")
    named = _settings(kind, queues=(topic.ref,) * 41)
    with pytest.raises(SettingsRefused):  # what the deployment alone knows counts at its longest
        deliver(_any_function(), named)


def test_too_many_names_are_one_mistake_that_names_the_setting_that_takes_most() -> None:
    calendars = tuple(f"{'c' * 400}{number}" for number in range(10))
    settings = _settings(OwnerSettings, queues=("q" * 100,), freeze_calendars=calendars)
    with pytest.raises(SettingsRefused, match=r"^freezeCalendars: .*; name fewer calendars"):
        deliver(_any_function(), settings)
    names = [f"{'q' * 70}{number}" for number in range(ENVIRONMENT_CHARACTERS // 70)]
    with pytest.raises(SettingsRefused) as refused:
        template_with({"queues": names})
    (mistake,) = refused.value.mistakes
    assert mistake.path == "queues"
    assert "tag the queues instead" in mistake.remedy


if __name__ == "__main__":
    KNOWN.write_text(f"{json.dumps(known(), indent=1, sort_keys=True)}\n")

"""Checks that others wrote, on every template: cfn-lint, cdk-nag, CDK's own validation."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from cdk_nag import AwsSolutionsChecks
from cfnlint.api import ManualArgs, lint

from infra import stack
from infra.acknowledgements import WILDCARDS, expected, reasons_for, wildcards
from infra.settings.deployment import read
from infra.synthesis import new_app, synthesize
from tests.infra.synthesized import SETTINGS, folder_of, light_code

# What the others have is in one of these two.
BOTH = ("named", "existing trail")


@pytest.mark.parametrize("name", BOTH)
def test_cfn_lint_finds_nothing(name: str) -> None:
    text = (folder_of(name) / "Mendq.template.json").read_text()
    # W3005: CDK writes dependencies that references imply already.
    found = lint(text, config=ManualArgs(ignore_checks=["W3005"], regions=["us-east-1"]))
    assert [str(each) for each in found] == []


def test_cdks_own_validation_is_fatal(tmp_path: Path) -> None:
    app = new_app(tmp_path)
    lambda_.CfnFunction(
        cdk.Stack(app, "Broken"),
        "Function",
        runtime="python3.13",
        handler="index.handler",
        code=lambda_.CfnFunction.CodeProperty(zip_file="pass"),
        role="arn:aws:iam::111122223333:role/broken",
        environment=lambda_.CfnFunction.EnvironmentProperty(variables={"1": "not a name"}),
    )
    with pytest.raises(RuntimeError, match=r"Environment\.Variables\.1"):
        app.synth()


def _nag(folder: Path, name: str) -> Counter[tuple[str, str]]:
    """How often each rule finds something, by rule and construct."""
    app = new_app(folder)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with suppress(RuntimeError):  # the findings; the report says which
        synthesize(read(SETTINGS[name]), app, code=light_code())
    report = json.loads((folder / "validation-report.json").read_text())
    return Counter(
        (violation["ruleName"], construct["constructPath"])
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    )


@pytest.mark.parametrize("name", BOTH)
def test_cdk_nag_finds_only_what_we_mean(name: str, tmp_path: Path) -> None:
    assert _nag(tmp_path, name) == Counter()


def test_everything_that_we_mean_is_still_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meant: list[tuple[str, str]] = []

    def note(made: cdk.Stack) -> None:
        meant.extend((each.construct.node.path, each.rule) for each in expected(made))

    monkeypatch.setattr(stack, "acknowledge", note)
    found = _nag(tmp_path, "named")
    assert sorted(meant) == sorted((_owner(construct, meant), rule) for rule, construct in found)


def _owner(construct: str, meant: list[tuple[str, str]]) -> str:
    return next((path for path, _ in meant if construct.startswith(f"{path}/")), construct)


def test_every_reason_for_a_wildcard_is_still_needed(tmp_path: Path) -> None:
    needed = set[str]()
    for name in BOTH:
        app = new_app(tmp_path)
        settings = read({**SETTINGS[name], "tagMayRaiseTo": "heal"})
        made = stack.MendqStack(app, "Mendq", settings=settings, code=light_code())
        for role in (each for each in made.node.find_all() if isinstance(each, iam.Role)):
            for resource in wildcards(made, role):
                reasons = reasons_for(resource)
                assert reasons, resource
                needed.update(reasons)
    assert needed == set(WILDCARDS.values())

"""Checks that others wrote, on every template: cfn-lint and cdk-nag."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import aws_cdk as cdk
import pytest
from cdk_nag import AwsSolutionsChecks
from cfnlint.api import ManualArgs, lint

from infra.settings.deployment import read_deployment_settings
from infra.synthesis import make_app, synthesize
from tests.infra.synthesized import SETTINGS, folder_of, light_code

# What the others have is in one of these two.
BOTH = ("named", "existing trail")
MEANT = json.loads(Path(__file__).with_name("findings.json").read_text())


@pytest.mark.parametrize("name", ["named", pytest.param("existing trail", marks=pytest.mark.long)])
def test_cfn_lint_finds_nothing_in_the_synthesized_templates(name: str) -> None:
    text = (folder_of(name) / "Mendq.template.json").read_text()
    # W3005: CDK writes dependencies that references imply already.
    found = lint(text, config=ManualArgs(ignore_checks=["W3005"], regions=["us-east-1"]))
    assert [str(each) for each in found] == []


def _nag(folder: Path, name: str) -> set[str]:
    """What rules find on which construct, or on the policy of which role."""
    app = make_app(folder)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with suppress(RuntimeError):  # the findings; the report says which
        synthesize(read_deployment_settings(SETTINGS[name]), app, code=light_code())
    report = json.loads((folder / "validation-report.json").read_text())
    return {
        f"{violation['ruleName']} {_named(construct['constructPath'])}"
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    }


def _named(path: str) -> str:
    within = path.removeprefix("Mendq/").removesuffix("/Resource")
    return within.removesuffix("/Role/DefaultPolicy")


def test_cdk_nag_findings_are_exactly_those_with_a_reason_in_findings_json(tmp_path: Path) -> None:
    """Each for a reason: findings.json."""
    found = set().union(*(_nag(tmp_path / name, name) for name in BOTH))
    meant = {each: [one for one in found if re.fullmatch(each, one)] for each in MEANT}
    assert [each for each, ones in meant.items() if not ones] == []
    assert found - {one for ones in meant.values() for one in ones} == set()

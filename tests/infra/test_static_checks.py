"""cfn-lint and cdk-nag on the synthesized templates."""

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

# Together, these settings give every resource that other settings give.
COVERING_SETTINGS = ("named", "existing trail")
ACCEPTED_FINDINGS = json.loads(Path(__file__).with_name("findings.json").read_text())


@pytest.mark.parametrize("name", ["named", pytest.param("existing trail", marks=pytest.mark.long)])
def test_cfn_lint_finds_nothing_in_the_synthesized_templates(name: str) -> None:
    text = (folder_of(name) / "Mendq.template.json").read_text()
    # W3005: CDK writes dependencies that references imply already.
    matches = lint(text, config=ManualArgs(ignore_checks=["W3005"], regions=["us-east-1"]))
    assert [str(match) for match in matches] == []


def _run_cdk_nag(folder: Path, name: str) -> set[str]:
    """Return each finding as the rule and the construct, or the role whose policy is meant."""
    app = make_app(folder)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with suppress(RuntimeError):  # raised for findings, which are in the report
        synthesize(read_deployment_settings(SETTINGS[name]), app, code=light_code())
    report = json.loads((folder / "validation-report.json").read_text())
    return {
        f"{violation['ruleName']} {_shorten_path(construct['constructPath'])}"
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    }


def _shorten_path(path: str) -> str:
    within = path.removeprefix("Mendq/").removesuffix("/Resource")
    return within.removesuffix("/Role/DefaultPolicy")


def test_cdk_nag_findings_are_exactly_those_with_a_reason_in_findings_json(tmp_path: Path) -> None:
    findings: set[str] = set()
    for name in COVERING_SETTINGS:
        findings |= _run_cdk_nag(tmp_path / name, name)
    accepted: set[str] = set()
    for pattern in ACCEPTED_FINDINGS:
        matching = {finding for finding in findings if re.fullmatch(pattern, finding)}
        assert matching, f"findings.json accepts {pattern}, which cdk-nag does not find any more"
        accepted |= matching
    assert findings - accepted == set()

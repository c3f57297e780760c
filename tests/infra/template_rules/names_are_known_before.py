"""Names are literal where a policy or a pattern names what is not there yet.

A role's name holds in all regions of an account, so it carries its region.
"""

from __future__ import annotations

from infra.trail import TRAIL_NAME
from mendq.model.names import role_name
from tests.infra.synthesized import Template
from tests.infra.template_rules.rule import Findings, Resources, Rule, properties

ROLE, TRAIL = "AWS::IAM::Role", "AWS::CloudTrail::Trail"
LONGEST_ROLE_NAME = 64


def findings(template: Template) -> Findings:
    resources = template.raw["Resources"]
    regions = set()
    for name in template.all(ROLE):
        given = resources[name]["Properties"].get("RoleName")
        if not isinstance(given, str):
            yield f"{name} has no literal name"
            continue
        purpose, region = _parts(given)
        regions.add(region)
        if given != role_name(purpose, region) or not region[-1:].isdigit():
            yield f"{name} is called {given}, without the region"
        if len(given) > LONGEST_ROLE_NAME:
            yield f"{name} has too long a name"
    if len(regions) > 1:
        yield f"roles are of {sorted(regions)}"
    for name in template.all(TRAIL):
        if resources[name]["Properties"].get("TrailName") != TRAIL_NAME:
            yield f"{name} is not called {TRAIL_NAME}"


def _parts(name: str) -> tuple[str, str]:
    """`heal` and `eu-west-1` of `mendq-heal-eu-west-1`."""
    words = name.removeprefix("mendq-").split("-")
    return "-".join(words[:-3]), "-".join(words[-3:])


def _called(resources: Resources, kind: str, field: str, name: object) -> None:
    properties(resources, kind)[field] = name


RULE = Rule(
    findings,
    {
        "a role that CloudFormation names": lambda found: properties(found, ROLE).pop("RoleName"),
        "a role without its region": lambda found: _called(found, ROLE, "RoleName", "mendq-heal"),
        "a role of another region": lambda found: _called(
            found, ROLE, "RoleName", "mendq-heal-eu-west-1"
        ),
        "a role by reference": lambda found: _called(
            found, ROLE, "RoleName", {"Fn::Sub": "mendq-heal-${AWS::Region}"}
        ),
        "too long a name": lambda found: _called(
            found, ROLE, "RoleName", role_name("x" * 60, "us-east-1")
        ),
        "another trail": lambda found: _called(found, TRAIL, "TrailName", "other"),
    },
)

"""No resource refers, over whatever others, to itself; nor to what the template does not hold."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from docs.stack_outline import references
from tests.infra.synthesized import Template
from tests.infra.template_rules.rule import Findings, Resources, Rule, name_of, properties

TRAIL = "AWS::CloudTrail::Trail"


def findings(template: Template) -> Findings:
    resources = template.raw["Resources"]
    waits = {name: references(each) for name, each in resources.items()}
    for name, others in waits.items():
        for missing in sorted(others - resources.keys() - template.raw["Parameters"].keys()):
            if not missing.startswith("AWS::"):
                yield f"{name} refers to {missing}, which is not there"
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as cycle:
        yield f"these wait for each other: {', '.join(cycle.args[1])}"


def _bucket_waits_for_its_trail(resources: Resources) -> None:
    policy = properties(resources, "AWS::S3::BucketPolicy", "TrailBucket")["PolicyDocument"]
    of_this_trail = policy["Statement"][2]["Condition"]["StringEquals"]
    of_this_trail["aws:SourceArn"] = {"Fn::GetAtt": [name_of(resources, TRAIL), "Arn"]}


def _rule_waits_for_a_role_that_waits_for_it(resources: Resources) -> None:
    rule = name_of(resources, "AWS::Events::Rule", "Intake")
    role = name_of(resources, "AWS::IAM::Role", "HealRole")
    pattern = resources[rule]["Properties"]["EventPattern"]
    pattern["detail"]["errorCode"] = [{"Fn::Sub": f"${{{role}.Arn}}"}]
    resources[role]["DependsOn"] = rule


def _gone(resources: Resources) -> None:
    del resources[name_of(resources, "AWS::SQS::Queue", "IntakeUndelivered")]


RULE = Rule(
    findings,
    {
        "a bucket that waits for its trail": _bucket_waits_for_its_trail,
        "a rule and a role": _rule_waits_for_a_role_that_waits_for_it,
        "a queue that is gone": _gone,
    },
)

"""Our own rules, on every template that settings can give; and that each rule bites."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest

from tests.infra.synthesized import SETTINGS, Template, template_of, templates_of_three
from tests.infra.template_rules import RULES

# By type of resource, what breaks a rule.
FAULTS = {
    "AWS::SNS::TopicPolicy": {
        "PolicyDocument": {"Statement": [{"Effect": "Allow", "Principal": "*"}]}
    },
    "AWS::Lambda::EventInvokeConfig": {"DestinationConfig": {}},
    "AWS::Lambda::Function": {"Timeout": 890},
    "AWS::CloudWatch::Alarm": {"DatapointsToAlarm": 99},
    "AWS::Events::Rule": {"EventPattern": {"source": ["x" * 2_048]}},
    "AWS::S3::Bucket": {"BucketName": "mendq"},
}
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
Rule = Callable[[Template], Iterator[str]]


@each_rule
def test_every_template_keeps_the_rule(rule: Rule) -> None:
    for template in (*map(template_of, SETTINGS), *templates_of_three()):
        assert list(rule(template)) == []


@each_rule
def test_what_breaks_the_rule_is_found(rule: Rule) -> None:
    raw = copy.deepcopy(template_of("named").raw)
    for resource in raw["Resources"].values():
        resource["Properties"] |= FAULTS.get(resource["Type"], {})
    assert list(rule(Template(raw)))

"""An anomaly is too many fixes, never too few: CDK's default looks at both sides of the band.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudwatch-alarm.html
"""

from __future__ import annotations

from tests.infra.synthesized import Template
from tests.infra.template_rules.rule import Findings, Resources, Rule, add

UPPER = "GreaterThanUpperThreshold"
BAND = "ANOMALY_DETECTION_BAND("
OPERATORS = {UPPER, "LessThanLowerThreshold", "LessThanLowerOrGreaterThanUpperThreshold"}


def findings(template: Template) -> Findings:
    for name, alarm in template.all("AWS::CloudWatch::Alarm").items():
        given = alarm["Properties"]
        metrics = given.get("Metrics", [])
        bands = {each["Id"] for each in metrics if BAND in each.get("Expression", "")}
        threshold, operator = given.get("ThresholdMetricId"), given["ComparisonOperator"]
        if not bands and operator in OPERATORS:
            yield f"{name} compares with a band and has none"
        if threshold is None:
            if "Threshold" not in given:
                yield f"{name} has no threshold"
            continue
        if threshold not in bands:
            yield f"{name} compares with {threshold}, which is no band"
        if operator != UPPER:
            yield f"{name} looks at {operator}"
        if "Threshold" in given:
            yield f"{name} has a band and a threshold"


def _alarm(resources: Resources, operator: str, threshold: str = "band") -> None:
    add(
        resources,
        "AWS::CloudWatch::Alarm",
        ComparisonOperator=operator,
        ThresholdMetricId=threshold,
        Metrics=[{"Id": "band", "Expression": f"{BAND}fixes, 2)"}, {"Id": "fixes"}],
    )


def _without_a_band(resources: Resources) -> None:
    _alarm(resources, UPPER)
    del resources["Seeded"]["Properties"]["Metrics"][0]


def _with_both(resources: Resources) -> None:
    _alarm(resources, UPPER)
    resources["Seeded"]["Properties"]["Threshold"] = 3


RULE = Rule(
    findings,
    {
        "both sides": lambda found: _alarm(found, "LessThanLowerOrGreaterThanUpperThreshold"),
        "the lower side": lambda found: _alarm(found, "LessThanLowerThreshold"),
        "the metric as its own band": lambda found: _alarm(found, UPPER, "fixes"),
        "no band": _without_a_band,
        "a threshold beside it": _with_both,
    },
)

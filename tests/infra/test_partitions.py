"""The stack in regions of every partition that Mendq supports, and with ten kinds of settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from infra.settings.deployment import read_deployment_settings
from infra.settings.reading import SettingsRefused
from infra.synthesis import make_app, synthesize
from mendq.model.partitions import SUPPORTED_PARTITIONS, dns_suffix_of, partition_of
from tests.infra.synthesized import light_code

ACCOUNT = "123456789012"
SECRET_ARN = f"arn:aws-us-gov:secretsmanager:us-gov-west-1:{ACCOUNT}:secret:pagerduty-AbCdEf"
# One region a partition, and one in which AWS lists no EMR Serverless (docs/aws-account.md). The
# region of the European Sovereign Cloud is such a region too.
REGIONS = ("eu-west-1", "us-gov-west-1", "cn-north-1", "eusc-de-east-1", "cn-northwest-1")
MANAGING: Mapping[str, Any] = {"mode": "heal", "queues": ["orders*"]}
SETTINGS_BY_KIND: Mapping[str, Mapping[str, Any]] = {
    "heal": MANAGING,
    "default": {},
    "tags only": {"tagMayRaiseTo": "heal"},
    "propose": {"mode": "propose", "queues": ["orders"]},
    "scan-only": {"scanOnly": True, "queues": ["orders*"]},
    "no nightly job": {**MANAGING, "nightly": {"enabled": False}},
    "least nightly job": {**MANAGING, "nightly": {"maximumVcpu": 8, "maximumMemoryGb": 28}},
    "essential alarms": {**MANAGING, "alarms": "essential", "dashboard": False},
    "chat and teams": {**MANAGING, "notifications": {"chat": {"urgent": True}}},
    "reads too": {**MANAGING, "trail": {"managementEvents": True}},
}
# Settings whose resources do not exist in every partition. They are refused by name.
REFUSED_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "templateHook": {"templateHook": {"mode": "warn"}},
    "notifications.pagerduty": {"notifications": {"pagerduty": {"secretArn": SECRET_ARN}}},
}


def _synthesize_with(kind: str, regions: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the template by region."""
    environments = [{"account": ACCOUNT, "region": region} for region in regions]
    settings = read_deployment_settings({**SETTINGS_BY_KIND[kind], "environments": environments})
    assembly = synthesize(settings, make_app(Path(mkdtemp())), code=light_code())
    return {stack.environment.region: stack.template for stack in assembly.stacks}


@cache
def _synthesize_in_each_region() -> dict[str, dict[str, Any]]:
    """Return the template by region."""
    return _synthesize_with("heal", REGIONS)


# The names of services in trust policies and resource policies have this domain everywhere.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html
_SERVICE_PRINCIPAL = re.compile(r"[a-z-]+\.amazonaws\.com")
_ARN_BEGINNING = re.compile(r"arn:([\w-]+):[\w-]+:([^:\"]*):")
_HOST = re.compile(
    r"[\w.-]+\.(?:amazonaws\.com\.cn|amazonaws\.com|amazonaws\.eu|api\.aws"
    r"|amazonwebservices\.com\.cn|amazonwebservices\.eu)(?![\w.-])"
)


def _list_faults(template: Mapping[str, Any], region: str) -> list[str]:
    """Return what the template names and the region does not have.

    The types of resources come from the registry's schemas in cfn-lint. AWS's registry also lists
    types of services that a region lacks, such as EMR Serverless in cn-northwest-1.
    """
    text = json.dumps(template)
    arn_beginnings = set(_ARN_BEGINNING.findall(text))
    faults = [
        f"an ARN of {partition}, {arn_region}"
        for partition, arn_region in arn_beginnings
        if partition != partition_of(region) or arn_region not in ("", "*", region)
    ]
    suffixes = {f"{region}.amazonaws.com", f"{region}.{dns_suffix_of(region)}"}
    faults += [
        f"the host {host}"
        for host in set(_HOST.findall(text))
        if not _SERVICE_PRINCIPAL.fullmatch(host)
        and host.partition(".")[2] not in {*suffixes, dns_suffix_of(region)}
    ]
    for names in _find_values(template, "Service"):
        faults += [
            f"the principal {name}" for name in names if not _SERVICE_PRINCIPAL.fullmatch(name)
        ]
    types = {resource["Type"] for resource in template["Resources"].values()}
    types -= {"AWS::CDK::Metadata"}
    known_types = {*PROVIDER_SCHEMA_MANAGER.get_resource_types(region)}
    faults += [f"the type {name}" for name in sorted(types - known_types)]
    return faults


def _find_values(document: object, key: str) -> Iterator[list[str]]:
    """Yield the values of a condition key in a template, each as a list."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name == key:
                yield [value] if isinstance(value, str) else value
            else:
                yield from _find_values(value, key)
    elif isinstance(document, list):
        for item in document:
            yield from _find_values(item, key)


def test_regions_are_of_every_supported_partition() -> None:
    assert {partition_of(region) for region in REGIONS} == {*SUPPORTED_PARTITIONS}


@pytest.mark.parametrize("region", REGIONS)
def test_conditions_on_services_name_them_with_the_domains_of_the_partition(region: str) -> None:
    template = _synthesize_in_each_region()[region]
    suffixes = dict.fromkeys(("amazonaws.com", dns_suffix_of(region)))
    via_services = [*_find_values(template, "kms:ViaService")]
    assert via_services
    for names in via_services:
        service = names[0].partition(".")[0]
        assert names == [f"{service}.{region}.{suffix}" for suffix in suffixes]
    (passed_to,) = _find_values(template, "iam:PassedToService")
    assert passed_to == [f"emr-serverless.{suffix}" for suffix in suffixes]


@pytest.mark.parametrize("region", REGIONS)
def test_template_names_only_arns_principals_hosts_and_types_of_its_region(region: str) -> None:
    assert _list_faults(_synthesize_in_each_region()[region], region) == []


@pytest.mark.parametrize(
    ("region", "planted", "fault"),
    [
        ("cn-north-1", {"Arn": "arn:aws:sqs:cn-north-1:1:q"}, "an ARN of aws, cn-north-1"),
        ("eu-west-1", {"Arn": "arn:aws:sqs:us-east-1:1:q"}, "an ARN of aws, us-east-1"),
        (
            "eu-west-1",
            {"Url": "https://sqs.eu-west-1.amazonaws.com.cn/1/q"},
            "the host sqs.eu-west-1.amazonaws.com.cn",
        ),
        (
            "eusc-de-east-1",
            {"Url": "https://sqs.eu-west-1.amazonaws.com"},
            "the host sqs.eu-west-1.amazonaws.com",
        ),
        (
            "cn-north-1",
            {"Principal": {"Service": "lambda.amazonaws.com.cn"}},
            "the principal lambda.amazonaws.com.cn",
        ),
        (
            "us-gov-west-1",
            {"Type": "AWS::CloudFormation::LambdaHook"},
            "the type AWS::CloudFormation::LambdaHook",
        ),
    ],
)
def test_planted_name_that_the_region_does_not_have_is_found(
    region: str, planted: Mapping[str, Any], fault: str
) -> None:
    resource = {"Type": "AWS::SQS::Queue", **planted}
    assert fault in _list_faults({"Resources": {"Planted": resource}}, region)


@pytest.mark.long
@pytest.mark.parametrize("kind", [kind for kind in SETTINGS_BY_KIND if kind != "heal"])
def test_settings_synthesize_in_every_partition_and_name_only_what_is_there(kind: str) -> None:
    template_by_region = _synthesize_with(kind, REGIONS)
    assert template_by_region.keys() == {*REGIONS}
    faults_by_region = {
        region: _list_faults(template, region) for region, template in template_by_region.items()
    }
    assert faults_by_region == {region: [] for region in REGIONS}


@pytest.mark.parametrize("setting", REFUSED_SETTINGS)
def test_setting_without_resource_types_in_govcloud_is_refused_by_its_name(setting: str) -> None:
    environments = [{"account": ACCOUNT, "region": "us-gov-west-1"}]
    document = {**MANAGING, **REFUSED_SETTINGS[setting], "environments": environments}
    with pytest.raises(SettingsRefused, match=f"(?m)^{setting}: .*us-gov-west-1"):
        synthesize(read_deployment_settings(document), make_app(Path(mkdtemp())), code=light_code())

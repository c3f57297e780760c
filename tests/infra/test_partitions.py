"""The stack in regions of every partition that Mendq supports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from infra.settings.deployment import read_deployment_settings
from infra.synthesis import make_app, synthesize
from mendq.model.partitions import SUPPORTED_PARTITIONS, dns_suffix_of, partition_of
from tests.infra.synthesized import light_code

ACCOUNT = "123456789012"
REGIONS = ("eu-west-1", "us-gov-west-1", "cn-north-1", "eusc-de-east-1")


@cache
def _synthesize_in_each_region() -> dict[str, dict[str, Any]]:
    """Return the template by region."""
    environments = [{"account": ACCOUNT, "region": region} for region in REGIONS]
    settings = read_deployment_settings(
        {"mode": "heal", "queues": ["orders*"], "environments": environments}
    )
    assembly = synthesize(settings, make_app(Path(mkdtemp())), code=light_code())
    return {stack.environment.region: stack.template for stack in assembly.stacks}


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
def test_template_names_no_arn_of_another_partition(region: str) -> None:
    text = json.dumps(_synthesize_in_each_region()[region])
    other_partitions = {*SUPPORTED_PARTITIONS, "aws"} - {partition_of(region)}
    assert [name for name in other_partitions if f"arn:{name}:" in text] == []

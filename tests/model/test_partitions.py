"""The table of AWS's partitions, compared with botocore's."""

from __future__ import annotations

import json
from pathlib import Path

import botocore
import botocore.session
import pytest

from mendq.model.partitions import (
    PARTITIONS,
    SUPPORTED_PARTITIONS,
    Partition,
    dns_suffix_of,
    is_aws_host,
    list_service_names,
    list_service_principals,
    partition_of,
)
from mendq.model.queue import arn_of_name, make_public_queue_url
from mendq.notifications.links import break_terminal_links, has_link
from mendq.report.links import ReportedAccount, make_console_url, make_queue_url, match_queue

BOTOCORE_PARTITIONS = json.loads(
    Path(botocore.__file__).with_name("data").joinpath("partitions.json").read_text()
)["partitions"]


def test_table_of_partitions_equals_botocores() -> None:
    assert sorted(PARTITIONS, key=lambda partition: partition.name) == sorted(
        (
            Partition(
                partition["id"],
                partition["regionRegex"],
                partition["outputs"]["dnsSuffix"],
                partition["outputs"]["dualStackDnsSuffix"],
            )
            for partition in BOTOCORE_PARTITIONS
        ),
        key=lambda partition: partition.name,
    )


def test_each_supported_partition_is_in_the_table_of_partitions() -> None:
    assert SUPPORTED_PARTITIONS
    assert {*SUPPORTED_PARTITIONS} <= {partition.name for partition in PARTITIONS}


@pytest.mark.parametrize("partition", BOTOCORE_PARTITIONS, ids=lambda partition: partition["id"])
def test_each_region_that_botocore_lists_is_in_its_partition(partition: dict[str, object]) -> None:
    regions = partition["regions"]
    assert isinstance(regions, dict)
    for region in regions:
        if not region.endswith("-global"):
            assert partition_of(region) == partition["id"]


def test_region_of_the_european_sovereign_cloud_gets_its_own_arns_and_domain() -> None:
    arn = arn_of_name("orders", "eusc-de-east-1", "111122223333")
    assert arn == "arn:aws-eusc:sqs:eusc-de-east-1:111122223333:orders"
    assert make_public_queue_url(arn) == (
        "https://sqs.eusc-de-east-1.amazonaws.eu/111122223333/orders"
    )


def test_unknown_region_counts_as_one_of_the_partition_aws() -> None:
    assert partition_of("xx-newland-1") == "aws"
    assert dns_suffix_of("xx-newland-1") == "amazonaws.com"


@pytest.mark.parametrize("service", ["sqs", "cloudformation", "sts"])
@pytest.mark.parametrize("partition", BOTOCORE_PARTITIONS, ids=lambda partition: partition["id"])
def test_endpoint_of_every_region_that_botocore_lists_is_a_host_of_aws(
    partition: dict[str, dict[str, str]], service: str
) -> None:
    session = botocore.session.Session()
    for region in partition["regions"]:
        if region.endswith("-global"):
            continue
        client = session.create_client(
            service, region_name=region, aws_access_key_id="x", aws_secret_access_key="x"
        )
        assert is_aws_host(client.meta.endpoint_url.removeprefix("https://"))


@pytest.mark.parametrize(
    "host",
    ["amazonaws.com", "sqs.amazonaws.com.evil.com", "evilamazonaws.eu", "localhost", "api.aws"],
)
def test_host_outside_awss_domains_or_a_bare_domain_is_no_host_of_aws(host: str) -> None:
    assert not is_aws_host(host)


@pytest.mark.parametrize(
    ("region", "suffixes"),
    [
        ("eu-west-1", ["amazonaws.com"]),
        ("us-gov-west-1", ["amazonaws.com"]),
        ("cn-north-1", ["amazonaws.com", "amazonaws.com.cn"]),
        ("eusc-de-east-1", ["amazonaws.com", "amazonaws.eu"]),
    ],
)
def test_service_names_and_principals_have_amazonaws_com_and_the_partitions_own_domain(
    region: str, suffixes: list[str]
) -> None:
    assert list_service_names("sqs", region) == [f"sqs.{region}.{suffix}" for suffix in suffixes]
    assert list_service_principals("emr-serverless", region) == [
        f"emr-serverless.{suffix}" for suffix in suffixes
    ]


@pytest.mark.parametrize("region", ["eu-west-1", "us-gov-west-1", "cn-north-1", "eusc-de-east-1"])
def test_queue_of_each_supported_partition_has_a_console_url_and_an_sqs_url_that_is_no_link(
    region: str,
) -> None:
    queue_arn = arn_of_name("orders.fifo", region, "111122223333")
    assert queue_arn is not None
    queue_match = match_queue(queue_arn, ReportedAccount(region, "111122223333"))
    assert queue_match is not None
    queue_url = make_public_queue_url(queue_arn)
    assert make_queue_url(queue_match) == queue_url
    assert make_console_url(queue_arn).startswith(f"https://{region}.console.")
    command = f"aws sqs get-queue-attributes --queue-url {queue_url} --attribute-names All"
    assert not has_link(command)
    assert break_terminal_links(command) == command

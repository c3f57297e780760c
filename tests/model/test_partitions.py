"""The table of AWS's partitions, compared with botocore's."""

from __future__ import annotations

import json
from pathlib import Path

import botocore
import pytest

from mendq.model.partitions import (
    PARTITIONS,
    SUPPORTED_PARTITIONS,
    Partition,
    dns_suffix_of,
    partition_of,
)
from mendq.model.queue import arn_of_name, make_public_queue_url

BOTOCORE_PARTITIONS = json.loads(
    Path(botocore.__file__).with_name("data").joinpath("partitions.json").read_text()
)["partitions"]


def test_table_of_partitions_equals_botocores() -> None:
    assert sorted(PARTITIONS, key=lambda partition: partition.name) == sorted(
        (
            Partition(partition["id"], partition["regionRegex"], partition["outputs"]["dnsSuffix"])
            for partition in BOTOCORE_PARTITIONS
        ),
        key=lambda partition: partition.name,
    )
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


def test_unknown_region_counts_as_one_of_the_partition_of_most_regions() -> None:
    assert partition_of("xx-newland-1") == "aws"
    assert dns_suffix_of("xx-newland-1") == "amazonaws.com"

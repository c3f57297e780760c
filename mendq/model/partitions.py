"""AWS's partitions: groups of regions with their own ARNs and domains.

The table equals the one in botocore, which is not imported here because this package knows no AWS.
`tests/model/test_partitions.py` compares them. The partition aws-eusc opened in January 2026.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_PARTITION = "aws"
# Mendq refuses to be deployed to the other partitions. It has run in none of them.
SUPPORTED_PARTITIONS = ("aws", "aws-cn", "aws-us-gov", "aws-eusc")


@dataclass(frozen=True)
class Partition:
    """A partition of AWS.

    Attributes:
        name: the partition's name, as in its ARNs.
        region_pattern: a regular expression for the names of its regions.
        dns_suffix: the domain of its services, such as `amazonaws.com`.
    """

    name: str
    region_pattern: str
    dns_suffix: str


PARTITIONS = (
    Partition(
        DEFAULT_PARTITION,
        r"^(us|eu|ap|sa|ca|me|af|il|mx)\-\w+\-\d+$",
        "amazonaws.com",
    ),
    Partition("aws-cn", r"^cn\-\w+\-\d+$", "amazonaws.com.cn"),
    Partition("aws-eusc", r"^eusc\-(de)\-\w+\-\d+$", "amazonaws.eu"),
    Partition("aws-iso", r"^us\-iso\-\w+\-\d+$", "c2s.ic.gov"),
    Partition("aws-iso-b", r"^us\-isob\-\w+\-\d+$", "sc2s.sgov.gov"),
    Partition("aws-iso-e", r"^eu\-isoe\-\w+\-\d+$", "cloud.adc-e.uk"),
    Partition("aws-iso-f", r"^us\-isof\-\w+\-\d+$", "csp.hci.ic.gov"),
    Partition("aws-us-gov", r"^us\-gov\-\w+\-\d+$", "amazonaws.com"),
)
# The domains of AWS's services in the supported partitions, such as `amazonaws.com.cn`.
DNS_SUFFIXES = tuple(
    sorted(
        {partition.dns_suffix for partition in PARTITIONS if partition.name in SUPPORTED_PARTITIONS}
    )
)
# A regular expression for one of them. Longer domains come first: one begins like another.
DNS_SUFFIX_REGEX = "(?:" + "|".join(re.escape(suffix) for suffix in DNS_SUFFIXES[::-1]) + ")"


def _find_partition(region: str) -> Partition:
    """Return the partition of a region; that of most regions if the region's name is not known."""
    for partition in PARTITIONS:
        if re.fullmatch(partition.region_pattern, region):
            return partition
    return PARTITIONS[0]


def partition_of(region: str) -> str:
    """Return AWS's partition of a region, such as `aws-cn`."""
    return _find_partition(region).name


def dns_suffix_of(region: str) -> str:
    """Return the domain of a region's services, such as `amazonaws.com.cn`."""
    return _find_partition(region).dns_suffix

"""AWS's partitions: groups of regions with their own ARNs and domains.

The table equals the one in botocore, which this package must not import.
`tests/model/test_partitions.py` compares them. The partition aws-eusc opened in January 2026.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_PARTITION = "aws"
# Mendq cannot be deployed to other partitions. It has never run in them.
SUPPORTED_PARTITIONS = ("aws", "aws-cn", "aws-us-gov", "aws-eusc")


@dataclass(frozen=True)
class Partition:
    """A partition of AWS.

    Attributes:
        name: The partition's name, as in its ARNs.
        region_pattern: A regular expression for the names of its regions.
        dns_suffix: The domain of its services, such as `amazonaws.com`.
        dual_stack_dns_suffix: The domain of services that also answer by IPv6, such as `api.aws`.
    """

    name: str
    region_pattern: str
    dns_suffix: str
    dual_stack_dns_suffix: str


PARTITIONS = (
    Partition(
        DEFAULT_PARTITION,
        r"^(us|eu|ap|sa|ca|me|af|il|mx)\-\w+\-\d+$",
        "amazonaws.com",
        "api.aws",
    ),
    Partition("aws-cn", r"^cn\-\w+\-\d+$", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    Partition("aws-eusc", r"^eusc\-(de)\-\w+\-\d+$", "amazonaws.eu", "api.amazonwebservices.eu"),
    Partition("aws-iso", r"^us\-iso\-\w+\-\d+$", "c2s.ic.gov", "api.aws.ic.gov"),
    Partition("aws-iso-b", r"^us\-isob\-\w+\-\d+$", "sc2s.sgov.gov", "api.aws.scloud"),
    Partition("aws-iso-e", r"^eu\-isoe\-\w+\-\d+$", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
    Partition("aws-iso-f", r"^us\-isof\-\w+\-\d+$", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
    Partition("aws-us-gov", r"^us\-gov\-\w+\-\d+$", "amazonaws.com", "api.aws"),
)
# The domains of AWS's services in the supported partitions, such as `amazonaws.com.cn`.
DNS_SUFFIXES = tuple(
    sorted(
        {partition.dns_suffix for partition in PARTITIONS if partition.name in SUPPORTED_PARTITIONS}
    )
)
# A regular expression for one of DNS_SUFFIXES. Longer domains come first, because one domain is the
# beginning of another.
DNS_SUFFIX_REGEX = "(?:" + "|".join(re.escape(suffix) for suffix in DNS_SUFFIXES[::-1]) + ")"

_HOST_SUFFIXES = tuple(
    f".{suffix}"
    for partition in PARTITIONS
    for suffix in (partition.dns_suffix, partition.dual_stack_dns_suffix)
)
# Partitions where SQS has no message movement tasks (StartMessageMoveTask, and the redrive in the
# console). Mendq moves messages itself, so it does not need them.
# https://docs.amazonaws.cn/en_us/aws/latest/userguide/sqs.html
PARTITIONS_WITHOUT_MOVE_TASKS = frozenset({"aws-cn"})


def _find_partition(region: str) -> Partition:
    """Return the partition of a region; the partition `aws` if the region's name is not known."""
    for partition in PARTITIONS:
        if re.fullmatch(partition.region_pattern, region):
            return partition
    return PARTITIONS[0]


def is_in_known_partition(region: str) -> bool:
    """Return True if the region's name fits a partition that botocore lists."""
    return any(re.fullmatch(partition.region_pattern, region) for partition in PARTITIONS)


def partition_of(region: str) -> str:
    """Return AWS's partition of a region, such as `aws-cn`."""
    return _find_partition(region).name


def dns_suffix_of(region: str) -> str:
    """Return the domain of a region's services, such as `amazonaws.com.cn`."""
    return _find_partition(region).dns_suffix


def is_aws_host(host: str) -> bool:
    """Return True if the host is in a domain of AWS, such as `sqs.eu-west-1.amazonaws.com`."""
    return host.endswith(_HOST_SUFFIXES)


def list_service_names(service: str, region: str) -> list[str]:
    """Return the names of a service in a region that an IAM condition may compare.

    AWS's pages spell these names with `amazonaws.com` in each partition, as in
    `sqs.eu-west-1.amazonaws.com`. Some services in a partition with another domain use that domain
    instead. So return both names; only AWS can send them. Not tried in a partition other than
    `aws`.
    https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html#conditions-kms-via-service
    """
    dns_suffixes = dict.fromkeys((PARTITIONS[0].dns_suffix, dns_suffix_of(region)))
    return [f"{service}.{region}.{dns_suffix}" for dns_suffix in dns_suffixes]


def list_service_principals(service: str, region: str) -> list[str]:
    """Return the names of a service that an IAM condition on `iam:PassedToService` may compare.

    There is one name per domain, as `list_service_names` explains.
    """
    dns_suffixes = dict.fromkeys((PARTITIONS[0].dns_suffix, dns_suffix_of(region)))
    return [f"{service}.{dns_suffix}" for dns_suffix in dns_suffixes]

"""Which regions there are, as far as the CDK that is locked here knows them."""

from __future__ import annotations

from functools import cache

from aws_cdk.region_info import RegionInfo


@cache
def known_regions() -> frozenset[str]:
    """Those of all partitions; AWS opens new ones, so that others may be right."""
    return frozenset(each.name for each in RegionInfo.regions)

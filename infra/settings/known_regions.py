"""Which regions there are, as far as the AWS SDK that is locked here knows them."""

from __future__ import annotations

from functools import cache

from botocore.session import get_session

_SERVICE = "sqs"


@cache
def known_regions() -> frozenset[str]:
    """Those with SQS, of all partitions; AWS opens new ones, so that others may be right."""
    session = get_session()
    partitions = session.get_available_partitions()
    return frozenset(
        region for each in partitions for region in session.get_available_regions(_SERVICE, each)
    )

"""Where an existing trail's bucket lies, which its name does not tell and the job must know.

The job has no VPC: it reaches the endpoints of its own region alone.
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/vpc-access.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.settings.deployment import DeploymentSettings
from infra.settings.mistakes import Mistake

_CURE = "deploy to the bucket's region, or let Mendq make a trail of its own with create: true"


def elsewhere(settings: DeploymentSettings, regions: Sequence[str]) -> Iterator[Mistake]:
    """Why a job in one of `regions` could not read the bucket, as far as the settings say it."""
    bucket, said = settings.trail.bucket, settings.trail.bucket_region
    if bucket is None:
        return
    others = [each for each in dict.fromkeys(regions) if each != said]
    if said is not None and others:
        yield Mistake(
            "trail.bucketRegion",
            f"is {said}, and a stack goes to {others[0]}, where the nightly job reaches "
            "no other region's buckets",
            _CURE,
        )
    elif len(others) > 1:
        yield Mistake(
            "trail.bucket",
            f"lies in one region, and stacks go to {' and '.join(others)}, where each nightly job "
            "reaches its own region alone",
            _CURE,
        )


def is_not_said(settings: DeploymentSettings) -> bool:
    """Whether only the first night would find out."""
    return settings.trail.bucket is not None and settings.trail.bucket_region is None

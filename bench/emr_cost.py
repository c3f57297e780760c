"""What a night costs on EMR Serverless, computed from the nights that were measured.

Nothing of ours ran there. The model: a worker is the two cores that were measured, a night is what
it takes without any file and then so much for each byte, and the bytes are shared by the executors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.rounds import Cost, Measure, middle, wall
from functions.healing.night_workers import executors_within
from infra import prices
from infra.settings import NightSettings

REGION, PRICES_NOTED_ON = prices.REGION, prices.NOTED_ON
X86_VCPU_HOUR, X86_GB_HOUR = prices.EMR_X86_VCPU_HOUR, prices.EMR_X86_GB_HOUR
ARM_SHARE, ARM_PAGE = prices.EMR_ARM_SHARE, prices.EMR_ARM_PAGE
VCPU_HOUR, GB_HOUR = prices.EMR_VCPU_HOUR.of(1), prices.EMR_GB_HOUR.of(1)
S3_GET = prices.S3_GET.of(1)
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html
MINIMUM_SECONDS = 60
# AWS names no figure for a start without workers that wait: our assumption, billed in full.
START_SECONDS = 90
SECONDS_AN_HOUR = 3_600
GB, TB = 10**9, 10**12


@dataclass(frozen=True)
class Rate:
    """Seconds of two cores: whatever is read, and for each byte as it lies in the bucket."""

    fixed_seconds: float
    seconds_a_byte: float
    compression: float


@dataclass(frozen=True)
class Estimate:
    """A night on so many executors and one driver."""

    executors: int
    seconds: float
    dollars: float


def most_executors() -> int:
    """What fits into the stack's bounds as they are set by default, beside the driver."""
    bounds = NightSettings()
    return executors_within(bounds.maximum_vcpu, bounds.maximum_memory_gb)


def rate(nights: Measure) -> Rate:
    """From the smaller and the larger night; raise ValueError where they tell none."""
    every = sorted(nights.costs.values(), key=lambda costs: costs[0].compressed_bytes)
    small, large = every[0], every[-1]
    few, many = small[0].compressed_bytes, large[0].compressed_bytes
    slope = (_seconds(large) - _seconds(small)) / (many - few)
    if slope <= 0:
        raise ValueError("ten times the bytes took no longer: measure on a quiet machine")
    fixed = max(0.0, _seconds(small) - slope * few)
    return Rate(fixed, slope, large[0].raw_bytes / many)


def estimate(rate: Rate, compressed_bytes: float, executors: int) -> Estimate:
    """The driver and every executor are billed from the start to the end."""
    reading = rate.seconds_a_byte * compressed_bytes / executors
    seconds = max(MINIMUM_SECONDS, START_SECONDS + rate.fixed_seconds + reading)
    hours = (1 + executors) * seconds / SECONDS_AN_HOUR
    return Estimate(executors, seconds, hours * prices.emr_worker_hour())


def within_an_hour(rate: Rate, compressed_bytes: float) -> Estimate:
    """With the fewest executors that end it in time."""
    left = SECONDS_AN_HOUR - START_SECONDS - rate.fixed_seconds
    executors = max(1, math.ceil(rate.seconds_a_byte * compressed_bytes / left))
    return estimate(rate, compressed_bytes, executors)


def _seconds(costs: list[Cost]) -> float:
    return middle(costs, wall) / 1000

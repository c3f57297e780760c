"""What a nightly run costs on EMR Serverless, computed from the nightly runs that were measured.

Nothing of ours ran there. The model: a worker is the two cores that were measured, a nightly run is
what it takes without any file and then so much for each byte, and the bytes are shared by the
executors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.pages import TEXTS, Part
from bench.rounds import Measure
from infra.settings.deployment import NightlySettings
from mendq.model import prices
from mendq.model.settings import WORKER, executors_within

BEGIN, END = "<!-- derived: EMR Serverless (make bench KEEP=1) -->", "<!-- end: EMR Serverless -->"
HEAD = "# What Mendq costs on AWS\n\nIn dollars of one account and region, before discounts.\n"
HEADINGS = (
    "a day's trail, compressed",
    "inflated",
    "executors",
    "lasts",
    "a nightly run",
    "30 nightly runs",
)
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html
MINIMUM_SECONDS = 60
# AWS names no figure for a start without workers that wait: our assumption, billed in full.
START_SECONDS = 90
SECONDS_AN_HOUR = 3_600
GB, TB = 10**9, 10**12
VOLUMES = (0.1 * GB, GB, 10 * GB, 100 * GB, TB)


@dataclass(frozen=True)
class Rate:
    """Seconds of two cores: whatever is read, and for each byte as it lies in the bucket."""

    fixed_seconds: float
    seconds_a_byte: float
    compression: float

    @classmethod
    def of(cls, nightly_runs: Measure) -> Rate:
        """From the smaller and the larger night; raise ValueError where they tell none."""
        every = sorted(
            nightly_runs.costs, key=lambda way: nightly_runs.costs[way][0].compressed_bytes
        )
        small, large = every[0], every[-1]
        few, many = (nightly_runs.costs[way][0].compressed_bytes for way in (small, large))
        took, longer = (nightly_runs.middle(way, "wall_ms") / 1000 for way in (small, large))
        slope = (longer - took) / (many - few)
        if slope <= 0:
            raise ValueError("ten times the bytes took no longer: measure on a quiet machine")
        raw = nightly_runs.costs[large][0].raw_bytes
        return cls(max(0.0, took - slope * few), slope, raw / many)

    @property
    def reading_seconds(self) -> float:
        """What an hour leaves for reading."""
        return SECONDS_AN_HOUR - START_SECONDS - self.fixed_seconds

    def executors_for(self, volume: float) -> int:
        """The fewest executors that end a nightly run within an hour."""
        return max(1, math.ceil(self.seconds_a_byte * volume / self.reading_seconds))

    def nightly(self, volume: float, executors: int) -> tuple[float, float]:
        """(seconds, dollars): driver and executors are billed from the start to the end."""
        reading = self.seconds_a_byte * volume / executors
        seconds = max(MINIMUM_SECONDS, START_SECONDS + self.fixed_seconds + reading)
        hours = (1 + executors) * seconds / SECONDS_AN_HOUR
        return seconds, hours * prices.emr_worker_hour()

    def row(self, volume: float) -> tuple[str, ...]:
        """One volume."""
        executors = self.executors_for(volume)
        seconds, dollars = self.nightly(volume, executors)
        lasts = f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
        inflated = _bytes(volume * self.compression)
        bills = (f"${dollars:,.2f}", f"${30 * dollars:,.2f}")
        return (_bytes(volume), inflated, f"{executors}", lasts, *bills)


def with_emr(page: str, nightly: Part) -> str:
    """`page` with what stands between the marks replaced; a new one where there is none."""
    text = f"{BEGIN}\n{emr_text(nightly)}{END}"
    if BEGIN not in page:
        return f"{page or HEAD}\n{text}\n"
    before, _, rest = page.partition(BEGIN)
    return f"{before}{text}{rest.partition(END)[2]}"


def emr_text(nightly: Part) -> str:
    """The part of the page; `texts/emr.md` has its words."""
    rate, bounds = Rate.of(nightly.measures["nightly_runs"]), NightlySettings()
    rows = [HEADINGS, ("---:",) * len(HEADINGS), *map(rate.row, VOLUMES)]
    most = executors_within(bounds.maximum_vcpu, bounds.maximum_memory_gb)
    reach = rate.reading_seconds / rate.seconds_a_byte
    return (
        (TEXTS / "emr.md")
        .read_text()
        .format(
            nightly=nightly,
            table="\n".join(f"| {' | '.join(row)} |" for row in rows),
            rate=rate,
            compressed_terabyte=rate.row(TB)[4],
            raw_terabyte=rate.row(TB / rate.compression)[4],
            compressed_speed=_bytes(1 / rate.seconds_a_byte),
            raw_speed=_bytes(rate.compression / rate.seconds_a_byte),
            million_gets=1e6 * prices.S3_GET.of(1),
            worker=WORKER,
            reach=_bytes(reach),
            most_executors=most,
            whole_reach=_bytes(most * reach),
            start_seconds=START_SECONDS,
            minimum_seconds=MINIMUM_SECONDS,
            prices=prices,
            vcpu_hour=prices.EMR_VCPU_HOUR.of(1),
            gb_hour=prices.EMR_GB_HOUR.of(1),
            worker_hour=prices.emr_worker_hour(),
            arm_discount=1 - prices.EMR_ARM_SHARE,
        )
    )


def _bytes(volume: float) -> str:
    for unit, name in ((TB, "TB"), (GB, "GB")):
        if volume >= unit:
            return f"{volume / unit:,.3g} {name}"
    return f"{volume / 1e6:,.0f} MB"

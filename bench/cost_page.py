"""EMR's part of docs/cost.md; what stands around it stays as it is."""

from __future__ import annotations

from pathlib import Path

from bench import emr_cost as emr
from bench.emr_cost import GB, SECONDS_AN_HOUR, TB, Rate
from bench.kept import Part
from functions.healing.night_workers import WORKER
from infra.prices import emr_worker_hour

BEGIN, END = "<!-- derived: EMR Serverless (make bench KEEP=1) -->", "<!-- end: EMR Serverless -->"
HEAD = "# What Mendq costs on AWS\n\nIn dollars of one account and region, before discounts.\n"
TEXT = Path(__file__).parent / "texts" / "emr.md"
VOLUMES = (0.1 * GB, GB, 10 * GB, 100 * GB, TB)
HEADINGS = ("a day's trail, compressed", "inflated", "executors", "lasts", "a night", "30 nights")


def with_emr(page: str, night: Part) -> str:
    """`page` with what stands between the marks replaced; a new one where there is none."""
    text = f"{BEGIN}\n{emr_text(night)}{END}"
    if BEGIN not in page:
        return f"{page or HEAD}\n{text}\n"
    before, _, rest = page.partition(BEGIN)
    return f"{before}{text}{rest.partition(END)[2]}"


def emr_text(night: Part) -> str:
    rate = emr.rate(night.measures["nights"])
    return TEXT.read_text().format(
        machine=night.machine,
        taken_at=night.taken_at,
        table=_table(rate),
        arm_page=emr.ARM_PAGE,
        **_of_rate(rate),
        **_of_workers(rate),
        **_prices(),
    )


def _table(rate: Rate) -> str:
    rows = [HEADINGS, ("---:",) * len(HEADINGS), *(_row(rate, volume) for volume in VOLUMES)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(rate: Rate, volume: float) -> tuple[str, ...]:
    found = emr.within_an_hour(rate, volume)
    return (
        _bytes(volume),
        _bytes(volume * rate.compression),
        f"{found.executors}",
        _lasting(found.seconds),
        _dollars(found.dollars),
        _dollars(30 * found.dollars),
    )


def _of_rate(rate: Rate) -> dict[str, str]:
    speed = 1 / rate.seconds_a_byte
    return {
        "compressed_terabyte": _dollars(emr.within_an_hour(rate, TB).dollars),
        "raw_terabyte": _dollars(emr.within_an_hour(rate, TB / rate.compression).dollars),
        "compression": f"{rate.compression:.1f}",
        "compressed_speed": _bytes(speed),
        "raw_speed": _bytes(speed * rate.compression),
        "fixed_seconds": f"{rate.fixed_seconds:.0f}",
        "million_gets": _dollars(1e6 * emr.S3_GET),
    }


def _of_workers(rate: Rate) -> dict[str, object]:
    most = emr.most_executors()
    seconds = SECONDS_AN_HOUR - emr.START_SECONDS - rate.fixed_seconds
    reach = seconds / rate.seconds_a_byte
    return {
        "vcpu": WORKER.vcpu,
        "memory_gb": WORKER.memory_gb,
        "heap_gb": WORKER.heap_gb,
        "reach": _bytes(reach),
        "most_executors": most,
        "whole_reach": _bytes(most * reach),
    }


def _prices() -> dict[str, object]:
    return {
        "start_seconds": emr.START_SECONDS,
        "minimum_seconds": emr.MINIMUM_SECONDS,
        "region": emr.REGION,
        "prices_noted_on": emr.PRICES_NOTED_ON,
        "vcpu_hour": f"${emr.VCPU_HOUR:.6f}",
        "gb_hour": f"${emr.GB_HOUR:.6f}",
        "worker_hour": f"${emr_worker_hour():.4f}",
        "x86_vcpu_hour": f"${emr.X86_VCPU_HOUR}",
        "x86_gb_hour": f"${emr.X86_GB_HOUR}",
        "arm_discount": f"{1 - emr.ARM_SHARE:.0%}",
    }


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}"


def _bytes(volume: float) -> str:
    for unit, name in ((TB, "TB"), (GB, "GB")):
        if volume >= unit:
            return f"{volume / unit:,.3g} {name}"
    return f"{volume / 1e6:,.0f} MB"


def _lasting(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"

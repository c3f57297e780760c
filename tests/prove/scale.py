"""Times and costs of many queues, accounts and calls: docs/scale.md, computed from measurements.

Times come out of docs/performance.md, calls of the scan out of rounds over a simulated account,
sums out of the template and the price list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import cache

from msgspec import Struct

from docs.markdown import ROOT, make_table
from docs.stack_outline import synthesize_template
from infra.intake import MAXIMUM_CONCURRENCY
from infra.settings.deployment import DeploymentSettings
from infra.settings.reading import get_fields_by_name, split_type_and_bounds
from mendq.cli.cost.bill import DAYS_PER_MONTH, HOURS_PER_MONTH, BilledStack, CostLine, list_costs
from mendq.cli.cost.view import format_dollars
from mendq.model import prices
from mendq.model.limits import Limits
from mendq.model.settings import DEFAULT_SPARK_WORKER, count_executors_within
from mendq.model.traffic import SUMS_EVERY_HOURS
from mendq.nightly.jobs import TIMEOUT_MINUTES
from mendq.scan.hourly import MEASURING_RESERVE_SECONDS
from mendq.scan.reader import SQS_CALLS_PER_SECOND
from mendq.scan.scan import Allowance
from tests.prove.scans import LAMBDA_SECONDS, ManyQueues, Rounds

QUEUES = (100, 1_000, 4_000, 10_000, 30_000, 100_000, 1_000_000)
ACCOUNTS = (1, 10, 60, 1_000, 10_000)
EVENTS = (10**6, 10**7, 10**8, 10**9)
# 60 accounts in two regions, of 4,000 queues each.
STACKS = 120
OF_A_STACK = 4_000
FAILED_SHARE = 0.01
# Of the made-up trail of the bench: bytes a record, and by how much gzip shortens it.
RECORD_BYTES = 1_770
COMPRESSED = 7.2
# Not measured here: what an AWS call takes there, and what an EMR run takes to begin.
AWS_CALL_SECONDS = 0.01
EMR_START_SECONDS = 90
LOOKING_SECONDS = LAMBDA_SECONDS - MEASURING_RESERVE_SECONDS
# One is started every ten minutes, and one that looks for longer takes the next one's turn.
RUNS_AN_HOUR = 3
EXECUTORS = count_executors_within(16, 64)
# What SQS is asked for one failed call: a send by EventBridge, and a tenth of a receive and delete.
CALLS_OF_A_FAILURE = 1.2
# Invocations a second in the smallest regions, to which a failed call each is one.
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
EVENTBRIDGE_A_SECOND = 750
SIMULATED = 400


class Units(Struct, frozen=True):
    """`calls` and `metrics` of a queue and a round; `first` are the calls of a first one."""

    first: float
    calls: float
    asks: dict[str, float]
    metrics: float


@cache
def units() -> Units:
    """Of three rounds over an account of queues that are as `ManyQueues` says."""
    many = ManyQueues(SIMULATED)
    at = datetime.fromisoformat("2026-11-16T09:00Z")
    rounds = Rounds(many)
    after = list[dict[str, int]]()
    metrics_after = list[int]()
    for hour in range(3):
        # As deployed: sums in every second hour.
        allowance = Allowance(asks_sums=hour % SUMS_EVERY_HOURS == 0)
        rounds.round(at + timedelta(hours=hour), allowance, lambda _: None)
        after.append({name: many.calls[name] for name in _OF_SQS})
        metrics_after.append(many.metrics)
    first, _, last = after
    asks = {name: (last[name] - first[name]) / 2 / SIMULATED for name in _OF_SQS}
    metrics = (metrics_after[-1] - metrics_after[0]) / 2 / SIMULATED
    return Units(sum(first.values()) / SIMULATED, sum(asks.values()), asks, metrics)


_OF_SQS = ("GetQueueAttributes", "ListDeadLetterSourceQueues", "ListMessageMoveTasks")


def read_measurement(way: str, column: int = 0) -> float:
    """Seconds, or a number of calls, that docs/performance.md has of a way."""
    page = (ROOT / "docs" / "performance.md").read_text()
    found = re.search(rf"^\| {re.escape(way)} \| (.+) \|$", page, re.MULTILINE)
    if found is None:
        raise LookupError(
            f"docs/performance.md measures no {way!r}: name another in tests/prove/scale.py"
        )
    number, _, unit = found[1].split(" | ")[column].replace(",", "").partition(" ")
    return float(number) / (1_000 if unit == "ms" else 1)


def heal_seconds(way: str = "fixed queue") -> float:
    """What one queue takes a warm heal, with what AWS takes to answer."""
    return read_measurement(way) + read_measurement(way, -1) * AWS_CALL_SECONDS


def _night() -> tuple[float, float]:
    """The seconds of a nightly run: before the first record, and for each with one executor."""
    many = read_measurement("2,000,000 records in 200 files")
    few = read_measurement("200,000 records in 20 files")
    return EMR_START_SECONDS + few, (many - few) / 1_800_000


def nightly_seconds(events: float, executors: int) -> float:
    """A whole nightly run of so many records."""
    before, of_a_record = _night()
    return before + of_a_record * events / executors


def readable(executors: int, seconds: float = 3_600) -> float:
    """The records that so many executors read in that time, to two figures."""
    before, of_a_record = _night()
    return float(f"{(seconds - before) / of_a_record * executors:.2g}")


def executors(events: float) -> int:
    """As many as end it within an hour, and no more than the stack ships with."""
    return next((n for n in range(1, EXECUTORS) if nightly_seconds(events, n) < 3_600), EXECUTORS)


class Month(Struct, frozen=True):
    """A month of a stack: its managed queues and its logged calls a day."""

    queues: float = 0
    events: float = 0
    alarms: str = "full"

    def idle(self) -> float:
        return sum(cost.dollars for cost in _idle(self.alarms))

    def looking(self) -> float:
        """What SQS is asked by the scan, and how long its Lambda waits for that."""
        asked = min(self.queues * units().calls, _most_calls()) * HOURS_PER_MONTH
        lambda_ = prices.LAMBDA_GB_SECOND.cost(asked / SQS_CALLS_PER_SECOND)
        return prices.SQS_REQUEST.cost(asked) + lambda_

    def measuring(self) -> float:
        a_day = min(24 * self.queues * units().metrics, Limits().scan_metrics_per_day)
        return prices.METRIC_READ.cost(a_day * DAYS_PER_MONTH)

    def logging(self) -> float:
        """CloudTrail's copy, and its files for three months."""
        gigabytes = self.events * DAYS_PER_MONTH * RECORD_BYTES / COMPRESSED / 1e9
        return prices.DATA_EVENT.cost(self.events * DAYS_PER_MONTH) + prices.S3_GB_MONTH.cost(
            3 * gigabytes
        )

    def failing(self) -> float:
        """One in a hundred calls fails: intake, heal and case store."""
        failed = FAILED_SHARE * self.events * DAYS_PER_MONTH
        batch = read_measurement("1,000 events of one queue") / 1_000 * failed
        writes = prices.WRITE_UNIT.cost(read_measurement("fixed queue", -1) * failed / 1_000)
        spent = prices.SQS_REQUEST.cost(CALLS_OF_A_FAILURE * failed) + writes
        return spent + prices.LAMBDA_GB_SECOND.cost(batch / 2)

    def reading(self) -> float:
        """The nightly job, beyond what it takes of an idle account."""
        number = executors(self.events)
        hours = (1 + number) * nightly_seconds(self.events, number) / 3_600 * DAYS_PER_MONTH
        worker = prices.EMR_VCPU_HOUR.cost(DEFAULT_SPARK_WORKER.vcpu) + prices.EMR_GB_HOUR.cost(
            DEFAULT_SPARK_WORKER.memory_gb
        )
        return hours * worker if self.events else 0.0

    def parts(self) -> dict[str, float]:
        """The sums by what they are for."""
        return {
            f"the stack, idle (`alarms`: {self.alarms}, no dashboard)": self.idle(),
            "the scan: SQS is asked": self.looking(),
            "the scan: metrics": self.measuring(),
            "CloudTrail, and its files for three months": self.logging(),
            "what fails: intake, heal, case store": self.failing(),
            "the nightly job": self.reading(),
        }

    @property
    def dollars(self) -> float:
        return sum(self.parts().values())


@cache
def _idle(alarms: str) -> list[CostLine]:
    return list_costs(BilledStack(synthesize_template(alarms=alarms, dashboard=False)))


def _most_calls() -> float:
    return RUNS_AN_HOUR * LOOKING_SECONDS * SQS_CALLS_PER_SECOND


def _most_stacks() -> int:
    """As many as one file of settings names; a stack set goes on from there."""
    return int(
        split_type_and_bounds(get_fields_by_name(DeploymentSettings)["environments"][1])[
            1
        ].max_length
    )


def number(name: str) -> str:
    """Return a number for a sentence of the page."""
    found = {
        "first": units().first,
        "calls": units().calls,
        "metrics": units().metrics,
        "attributes": units().asks["GetQueueAttributes"],
        "sources": units().asks["ListDeadLetterSourceQueues"],
        "of_an_hour": _most_calls() / units().calls,
        "of_a_run": LOOKING_SECONDS * SQS_CALLS_PER_SECOND / units().calls,
        "of_the_budget": Limits().scan_metrics_per_day / 24 / units().metrics,
        "rate": SQS_CALLS_PER_SECOND,
        "budget": Limits().scan_metrics_per_day,
        "executors": EXECUTORS,
        "of_one_executor": readable(1),
        "of_all_executors": readable(EXECUTORS),
        "of_a_whole_night": readable(EXECUTORS, 60 * TIMEOUT_MINUTES),
        "night_minutes": TIMEOUT_MINUTES,
        "eventbridge": EVENTBRIDGE_A_SECOND,
        "stacks": _most_stacks(),
        "heal_seconds": heal_seconds(),
        "healed_an_hour": MAXIMUM_CONCURRENCY * 3_600 / heal_seconds(),
        "storm_a_second": MAXIMUM_CONCURRENCY
        * 10_000
        / read_measurement("10,000 events of one queue"),
    }[name]
    return f"{found:,.2f}" if isinstance(found, float) and found < 10 else f"{found:,.0f}"


def fleet() -> str:
    """60 accounts in two regions with 4,000 queues each, by what is paid for."""
    of_a_day = EVENTS[2] / STACKS
    ways = [
        Month(OF_A_STACK),
        Month(OF_A_STACK, of_a_day),
        Month(OF_A_STACK, of_a_day, "essential"),
    ]
    names = [name.partition(" (")[0] for name in ways[0].parts()]
    sums = zip(names, *([*month.parts().values()] for month in ways), strict=True)
    rows = [
        (name, *(format_dollars(dollars * STACKS) for dollars in month_sums))
        for name, *month_sums in sums
    ]
    whole = (
        "**together**",
        *(f"**{format_dollars(month.dollars * STACKS)}**" for month in ways),
    )
    of_one = ("of one stack", *(format_dollars(month.dollars) for month in ways))
    heads = (
        f"a month|#as it ships without dashboards, no call logged|#{EVENTS[2]:,} calls a day logged"
    )
    return make_table(f"{heads}|#the same, `alarms`: essential", [*rows, whole, of_one])


def arithmetic() -> str:
    """How the sums of one stack come about."""
    return "\n".join(f"- {row}" for row in _arithmetic())


def _arithmetic() -> Iterator[str]:
    it = units()
    every = Month(OF_A_STACK, EVENTS[2] / STACKS)
    asked = OF_A_STACK * it.calls
    wanted = 24 * OF_A_STACK * it.metrics
    most = Limits().scan_metrics_per_day
    yield (
        f"the scan asks SQS {OF_A_STACK:,} x {it.calls:.2f} = {asked:,.0f} times a round, in "
        f"{HOURS_PER_MONTH} rounds, at {prices.SQS_REQUEST.words}; its Lambda waits "
        f"{asked / SQS_CALLS_PER_SECOND:,.0f} s for it, at {SQS_CALLS_PER_SECOND} a second and "
        f"{prices.LAMBDA_GB_SECOND.words} GB-seconds: {format_dollars(every.looking())}"
    )
    yield (
        f"it would measure by {wanted:,.0f} metrics a day and may by {most:,}, at "
        f"{prices.METRIC_READ.words}: {format_dollars(every.measuring())}"
    )
    yield (
        f"{every.events:,.0f} logged calls a day are {every.events * DAYS_PER_MONTH:,.0f} a month, "
        f"at {prices.DATA_EVENT.words}, and their files: {format_dollars(every.logging())}"
    )
    yield f"one in {1 / FAILED_SHARE:.0f} of them fails: {format_dollars(every.failing())}"
    yield (
        f"the nightly job reads them in {nightly_seconds(every.events, 1):,.0f} s with one "
        f"executor, {EMR_START_SECONDS} s of start among them: {format_dollars(every.reading())}"
    )


def render_queues() -> str:
    """One account and region."""
    rows = []
    for queues in QUEUES:
        month = Month(queues)
        calls = queues * units().calls
        hours = max(1, calls / _most_calls())
        share = min(1, Limits().scan_metrics_per_day / 24 / (queues * units().metrics))
        each = "each hour" if hours == 1 else f"every {hours:.1f} h"
        runs = f"{max(1, calls / SQS_CALLS_PER_SECOND / LOOKING_SECONDS):,.1f}"
        spent = format_dollars(month.looking() + month.measuring())
        seconds = calls / SQS_CALLS_PER_SECOND
        rows.append(
            (f"{queues:,}", f"{calls:,.0f}", f"{seconds:,.0f}", runs, each, f"{share:.1%}", spent)
        )
    heads = "#queues|#SQS calls a round|#seconds|#runs of the Lambda|a queue's turn"
    return make_table(f"{heads}|#suspects measured within the hour|#a month", rows)


def render_accounts() -> str:
    """With two regions each and as many queues in each as in the fleet, no call logged."""
    rows = []
    for accounts in ACCOUNTS:
        stacks = 2 * accounts
        full = Month(OF_A_STACK)
        lean = Month(OF_A_STACK, alarms="essential")
        sums = (full.idle(), lean.idle(), full.dollars, lean.dollars)
        queues = f"{stacks * OF_A_STACK:,}"
        rows.append(
            (
                f"{accounts:,}",
                f"{stacks:,}",
                queues,
                *(format_dollars(stacks * dollars) for dollars in sums),
            )
        )
    heads = "#accounts|#stacks|#queues|#idle|#idle, essential|#with scans|#with scans, essential"
    return make_table(heads, rows)


def render_events() -> str:
    """Logged in one account and region."""
    rows = []
    for events in EVENTS:
        month = Month(OF_A_STACK, events)
        workers = executors(events)
        failed = events * FAILED_SHARE / 86_400
        gigabytes = events * RECORD_BYTES / COMPRESSED / 1e9
        minutes = nightly_seconds(events, workers) / 60
        night = f"{minutes:,.0f} min, {workers}"
        spent = (month.logging(), month.failing(), month.reading(), month.dollars)
        size = f"{gigabytes:,.1f} GB"
        rows.append((f"{events:,}", f"{failed:,.1f}", size, night, *map(format_dollars, spent)))
    heads = "#calls a day|#failed a second|#files a day|#nightly run, executors|#CloudTrail"
    return make_table(f"{heads}|#what fails|#nightly job|#the stack, a month", rows)


class Curve(Struct, frozen=True):
    """A month's dollars at each of `xs`; `marks` name what ends where, the first of it first."""

    title: str
    of: str
    xs: tuple[int, ...]
    dollars_at: Callable[[float], float]
    marks: dict[str, float]

    def points(self) -> list[float]:
        """As many as the line bends at."""
        first = self.xs[0]
        last = self.xs[-1]
        return [first * (last / first) ** (n / 120) for n in range(121)]


def curves() -> tuple[Curve, ...]:
    """The sums of the three tables, and where the first part of each comes to its end."""
    of_stacks = Month(OF_A_STACK).dollars
    in_small_regions = EVENTBRIDGE_A_SECOND * 86_400 / FAILED_SHARE
    return (
        Curve(
            "The scan, of one account and region",
            "managed queues",
            QUEUES,
            lambda queues: Month(queues).looking() + Month(queues).measuring(),
            {
                "limits.scanMetricsPerDay is used up": Limits().scan_metrics_per_day
                / 24
                / units().metrics,
                "the hour ends": _most_calls() / units().calls,
            },
        ),
        Curve(
            f"Stacks of {OF_A_STACK:,} queues, no call logged",
            "accounts of two regions",
            ACCOUNTS,
            lambda accounts: 2 * accounts * of_stacks,
            {"environments is full": _most_stacks() / 2},
        ),
        Curve(
            f"One stack of {OF_A_STACK:,} queues, calls logged",
            "logged calls a day",
            (*EVENTS, 10**10),
            lambda events: Month(OF_A_STACK, events).dollars,
            {"EventBridge in small regions": in_small_regions, "a second executor": readable(1)},
        ),
    )

"""The metrics of an account by minute: those of Mendq's Lambdas and those of AWS.

The deployed code makes the metrics of the follow-up and the nightly job. Heal sends one count for
each fix. Minutes count from midnight of day 0, after two quiet days.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import chain

from aws_lambda_powertools import Metrics
from msgspec.structs import replace

from functions.follow_up import send_metrics
from mendq.cases import items
from mendq.cases.table import OpenCase
from mendq.follow_up.follow_up import FollowUpResult
from mendq.model.names import METRIC_NAMESPACE, OwnMetric
from mendq.model.state import FINAL_STATES, State
from mendq.nightly.outcome import NightlyJobRun, describe_run
from mendq.nightly.verdict import NATIVE_READER, NightlyCounts
from mendq.probe.probe import Probe
from tests.functions.builders import make_invocation
from tests.infra.alarms.evaluator import Data, Evaluator, Series
from tests.infra.synthesized import Template, template_of

DAY = 24 * 60
HOUR = 60
MIDNIGHT = datetime(2026, 11, 23, tzinfo=UTC)
QUIET = -2 * DAY
# Nightly runs start at 03:00. Weekly runs start three hours later.
NIGHTLY_ENDS = 3 * HOUR + 12
WEEK_ENDS = 6 * HOUR + 12
# The first scan ends at five past midnight, and one follows every ten minutes.
SCAN_ENDS = 5
SCAN_INTERVAL = 10
FUNCTION = "AWS::Lambda::Function"
USUAL_RECORDS = 50_000
# The records of unusual nightly runs: none, the expected maximum, and one more.
_RECORDS = {"little": 0, "expected": 1_000_000, "much": 1_000_001}
EMPTY = range(0)
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:orders"
CASE_KEY = items.case_key(QUEUE, "any_symptom")
Minutes = Collection[int]
SentValues = Iterator[tuple[str, int, float]]


def to_datetime(minute: int) -> datetime:
    return MIDNIGHT + timedelta(minutes=minute)


def make_own_series(metric: str) -> Series:
    return (METRIC_NAMESPACE, metric, frozenset())


@dataclass(frozen=True)
class SimulatedCase:
    """A case's states by the minute in which each begins. The first one opens the case."""

    states: Mapping[int, State]

    def list_open_minutes(self, end: int) -> Iterator[tuple[OpenCase, range]]:
        """Yield the open case in each state, and the minutes of the state."""
        states = sorted(self.states.items())
        began = to_datetime(min(self.states))
        until = [*(minute for minute, _ in states[1:]), end]
        for (minute, state), over in zip(states, until, strict=True):
            if state not in FINAL_STATES:
                case = OpenCase(CASE_KEY, "case-1", QUEUE, "any_symptom", state, began, began)
                yield case, range(minute, min(over, end))


def make_fixed_case(minute: int) -> SimulatedCase:
    """Return a case whose fix is verified after 20 minutes and then watched for two days."""
    watching = minute + 20
    states = {minute: State.APPLIED, watching: State.WATCHING, watching + 2 * DAY: State.CLOSED}
    return SimulatedCase(states)


def list_open_cases(lives: Iterable[SimulatedCase], end: int) -> Mapping[int, Sequence[OpenCase]]:
    """Return the open cases by minute. Minutes without open cases are left out."""
    cases_by_minute = defaultdict[int, list[OpenCase]](list)
    for case, minutes in chain.from_iterable(life.list_open_minutes(end) for life in lives):
        for minute in minutes:
            cases_by_minute[minute].append(case)
    return cases_by_minute


@dataclass
class Days:
    """What happens on the simulated days. Everything else goes well."""

    settings: str = "named"
    lives: Sequence[SimulatedCase] = ()
    silent: Minutes = EMPTY  # no metric of Mendq arrives
    follow_up_down: Minutes = EMPTY  # it is not started
    follow_up_failing: Minutes = EMPTY
    weeks: Mapping[int, bool] = field(
        default_factory=lambda: dict.fromkeys(range(-14, 99, 7), True)
    )
    scan_down: Minutes = EMPTY  # it is not started (`errors` lists failures)
    probe_down: Minutes = EMPTY
    probes_unseen: Minutes = EMPTY
    nightly_runs: Mapping[int, str] = field(
        default_factory=dict
    )  # failed, none or as in _RECORDS, by day
    messages: Mapping[str, Minutes] = field(default_factory=dict)
    errors: Mapping[str, Minutes] = field(default_factory=dict)
    deliveries: Mapping[int, bool] = field(default_factory=dict)
    sent: Mapping[str, Minutes] = field(default_factory=dict)  # additional metrics
    starts: int = QUIET

    def run(self, days: int, edge: float = 1e9) -> Evaluator:
        """Evaluate the alarms from midnight of day 0. `edge` is the assumed edge of the band."""
        template = template_of(self.settings)
        end = days * DAY
        evaluator = Evaluator.of(template)
        sent = {
            make_own_series(name): values for name, values in self._make_own_metrics(end).items()
        }
        data = Data({**sent, **self._make_aws_metrics(template, end)})
        evaluator.run(data, range(max(self.starts, -5), end), lambda _minute: edge)
        return evaluator

    def _make_own_metrics(self, end: int) -> dict[str, dict[int, float]]:
        ours = defaultdict[str, dict[int, float]](dict)
        every = (
            self._send_fixes(),
            self._send_follow_up_metrics(end),
            self._send_probe_metrics(end),
            self._send_nightly_metrics(end),
        )
        for name, minute, value in chain(*every, self._send_report_metrics(end)):
            if minute >= self.starts and minute not in self.silent:
                ours[name][minute] = ours[name].get(minute, 0.0) + value
        for name, minutes in self.sent.items():
            ours[name].update(dict.fromkeys(minutes, 1.0))
        return ours

    def _make_aws_metrics(self, template: Template, end: int) -> dict[Series, dict[int, float]]:
        """Return AWS's metrics. A queue sends zero for six hours after its last message."""
        runs = [
            minute
            for minute in range(max(self.starts, QUIET), end)
            if minute not in self.follow_up_down
        ]
        failed = {minute: float(minute in self.follow_up_failing) for minute in runs}
        scans = [
            minute
            for minute in range(QUIET + SCAN_ENDS, end, SCAN_INTERVAL)
            if minute >= self.starts and minute not in self.scan_down
        ]
        sent = {
            _make_aws_series(template, "FollowUpFunction", "Invocations"): dict.fromkeys(runs, 1.0),
            _make_aws_series(template, "FollowUpFunction", "Errors"): failed,
            _make_aws_series(template, "ScanFunction", "Errors"): dict.fromkeys(scans, 0.0),
        }
        for name, minutes in self.errors.items():
            series = _make_aws_series(template, name, "Errors")
            sent.setdefault(series, {}).update(dict.fromkeys(minutes, 1.0))
        for name, minutes in self.messages.items():
            gone = range(max(minutes) + 1, max(minutes) + 6 * HOUR)
            series = _make_aws_series(template, name, "ApproximateNumberOfMessagesVisible")
            sent[series] = {**dict.fromkeys(minutes, 1.0), **dict.fromkeys(gone, 0.0)}
        return sent

    def _send_fixes(self) -> SentValues:
        """Yield the counts of fixes and of escalated cases."""
        for life in self.lives:
            for minute, state in life.states.items():
                if state is State.ESCALATED:
                    yield OwnMetric.ESCALATIONS, minute, 1.0
        opened = [min(life.states) for life in self.lives]
        applied = [n for n, life in zip(opened, self.lives, strict=True) if _is_a_fix(life)]
        for minute, fixes in Counter(applied).items():
            yield OwnMetric.AUTO_FIXES, minute, float(fixes)

    def _send_follow_up_metrics(self, end: int) -> SentValues:
        """Yield the metrics of the follow-up, which runs each minute."""
        list_open_minutes = list_open_cases(self.lives, end)
        for minute in range(QUIET, end):
            if minute not in self.follow_up_down and minute not in self.follow_up_failing:
                cases = list_open_minutes.get(minute)
                for name, value in (
                    _run_send_metrics(cases, minute) if cases else _list_quiet_metrics()
                ):
                    yield name, minute, value

    def _send_probe_metrics(self, end: int) -> SentValues:
        """Yield the metrics of the probe, which runs each hour at a quarter past."""
        probe: Probe | None = None
        for minute in range(QUIET + 15, end, HOUR):
            if minute in self.probe_down:
                continue
            now = to_datetime(minute)
            probe = probe.next_probe(now, now) if probe else Probe(now, now)
            yield OwnMetric.PROBES_LOST, minute, probe.lost_in_a_row
            if minute not in self.probes_unseen:
                probe = replace(probe, made_at=now, seen_at=now + timedelta(minutes=5))

    def _send_nightly_metrics(self, end: int) -> SentValues:
        nightly_runs: dict[date, NightlyCounts] = {}
        for day in range(-16, end // DAY):
            outcome = self.nightly_runs.get(day, "well")
            minute = day * DAY + NIGHTLY_ENDS
            if outcome == "none":
                continue
            slept = to_datetime((day - 1) * DAY).date()
            ended_at = to_datetime(minute)
            if outcome != "failed":
                records = _RECORDS.get(outcome, USUAL_RECORDS)
                nightly_runs[slept] = NightlyCounts(
                    slept, ended_at, NATIVE_READER, "", records=records
                )
            state = "FAILED" if outcome == "failed" else "SUCCESS"
            started_at = ended_at - timedelta(minutes=10)
            run = NightlyJobRun("run1", f"nightly-{slept}", state, "", started_at, ended_at)
            # Before the first weekly run there is no missing summary.
            summed_up = [
                week_day for week_day, well in self.weeks.items() if well and week_day < day
            ]
            newest = to_datetime(max(summed_up) * DAY + WEEK_ENDS) if summed_up else None
            for name, value in describe_run(run, slept, nightly_runs, newest).metrics().items():
                yield name, minute, value

    def _send_report_metrics(self, end: int) -> SentValues:
        for day, well in self.weeks.items():
            if day * DAY + WEEK_ENDS < end:
                yield OwnMetric.WEEKS_FAILED, day * DAY + WEEK_ENDS, float(not well)
        for minute, delivered in self.deliveries.items():
            yield OwnMetric.REPORTS_NOT_DELIVERED, minute, float(not delivered)


def _is_a_fix(life: SimulatedCase) -> bool:
    return life.states[min(life.states)] is State.APPLIED


_METRICS = Metrics(namespace=METRIC_NAMESPACE)


def _run_send_metrics(open_cases: Sequence[OpenCase], minute: int) -> Sequence[tuple[str, float]]:
    """Return the metrics that the follow-up sends about these cases, and clear them afterwards."""
    _METRICS.clear_metrics()
    send_metrics(make_invocation(_METRICS), FollowUpResult(list(open_cases)), to_datetime(minute))
    sent = [
        (str(name), float(sum(metric["Value"]))) for name, metric in _METRICS.metric_set.items()
    ]
    _METRICS.clear_metrics()
    return sent


@cache
def _list_quiet_metrics() -> Sequence[tuple[str, float]]:
    """Return the metrics that the follow-up sends while no case is open."""
    return _run_send_metrics([], 0)


def _make_aws_series(template: Template, start: str, metric: str) -> Series:
    """Return the series of a metric that AWS sends about a Lambda or a queue."""
    is_lambda = start.endswith("Function")
    kind = FUNCTION if is_lambda else "AWS::SQS::Queue"
    (name,) = (logical_id for logical_id in template.all(kind) if logical_id.startswith(start))
    space, dimension = ("Lambda", "FunctionName") if is_lambda else ("SQS", "QueueName")
    return f"AWS/{space}", metric, frozenset({(dimension, name)})

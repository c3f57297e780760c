"""Days of an account in minutes: what Mendq's Lambdas send, and what AWS sends about its queues.

The follow-up's and the nightly job's figures are made by the code that is deployed; that of heal is
one count a fix. A minute is counted from midnight of day 0; two quiet days lie before it.
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
# Nightly runs start at 03:00 and take a while; weeks are summed up three hours later.
NIGHTLY_ENDS, WEEK_ENDS = 3 * HOUR + 12, 6 * HOUR + 12
# Ten minutes apart, from five past on.
SCAN_ENDS, SCANNED_EACH = 5, 10
FUNCTION = "AWS::Lambda::Function"
USUAL_RECORDS = 50_000
# Of nightly runs that are not as usual; so many are expected at most, and one more.
_RECORDS = {"little": 0, "expected": 1_000_000, "much": 1_000_001}
EMPTY = range(0)
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:orders"
CASE_KEY = items.case_key(QUEUE, "any_symptom")
Minutes = Collection[int]
Sent = Iterator[tuple[str, int, float]]


def at(minute: int) -> datetime:
    return MIDNIGHT + timedelta(minutes=minute)


def own(metric: str) -> Series:
    return (METRIC_NAMESPACE, metric, frozenset())


@dataclass(frozen=True)
class Life:
    """A case's states by the minute in which it comes into them; the first opens it."""

    states: Mapping[int, State]

    def open_in(self, end: int) -> Iterator[tuple[OpenCase, range]]:
        """The case as it is listed, and the minutes in which it is listed so."""
        states, began = sorted(self.states.items()), at(min(self.states))
        until = [*(minute for minute, _ in states[1:]), end]
        for (minute, state), over in zip(states, until, strict=True):
            if state not in FINAL_STATES:
                case = OpenCase(CASE_KEY, "case-1", QUEUE, "any_symptom", state, began, began)
                yield case, range(minute, min(over, end))


def healed(minute: int) -> Life:
    """A fix that proves good 20 minutes later and is watched for two days."""
    watching = minute + 20
    states = {minute: State.APPLIED, watching: State.WATCHING, watching + 2 * DAY: State.CLOSED}
    return Life(states)


def listed(lives: Iterable[Life], end: int) -> Mapping[int, Sequence[OpenCase]]:
    """The open cases of each minute, where there are any."""
    found = defaultdict[int, list[OpenCase]](list)
    for case, minutes in chain.from_iterable(each.open_in(end) for each in lives):
        for minute in minutes:
            found[minute].append(case)
    return found


@dataclass
class Days:
    """What happens; everything that is not said goes well."""

    settings: str = "named"
    lives: Sequence[Life] = ()
    silent: Minutes = EMPTY  # nothing of Mendq's own is sent
    follow_up_down: Minutes = EMPTY  # it is not started
    follow_up_failing: Minutes = EMPTY
    weeks: Mapping[int, bool] = field(
        default_factory=lambda: dict.fromkeys(range(-14, 99, 7), True)
    )
    scan_down: Minutes = EMPTY  # it is not started; where it fails is said in `errors`
    probe_down: Minutes = EMPTY
    probes_unseen: Minutes = EMPTY
    nightly_runs: Mapping[int, str] = field(
        default_factory=dict
    )  # failed, none or as in _RECORDS, by day
    messages: Mapping[str, Minutes] = field(default_factory=dict)
    errors: Mapping[str, Minutes] = field(default_factory=dict)
    deliveries: Mapping[int, bool] = field(default_factory=dict)
    sent: Mapping[str, Minutes] = field(default_factory=dict)  # by whomever
    starts: int = QUIET

    def run(self, days: int, edge: float = 1e9) -> Evaluator:
        """What people are told from midnight of day 0 on; the band's `edge` is assumed."""
        template, end = template_of(self.settings), days * DAY
        evaluator = Evaluator.of(template)
        sent = {own(name): values for name, values in self._ours(end).items()}
        data = Data({**sent, **self._of_aws(template, end)})
        evaluator.run(data, range(max(self.starts, -5), end), lambda _minute: edge)
        return evaluator

    def _ours(self, end: int) -> dict[str, dict[int, float]]:
        ours = defaultdict[str, dict[int, float]](dict)
        every = (self._fixed(), self._followed(end), self._probed(end), self._slept(end))
        for name, minute, value in chain(*every, self._mailed(end)):
            if minute >= self.starts and minute not in self.silent:
                ours[name][minute] = ours[name].get(minute, 0.0) + value
        for name, minutes in self.sent.items():
            ours[name].update(dict.fromkeys(minutes, 1.0))
        return ours

    def _of_aws(self, template: Template, end: int) -> dict[Series, dict[int, float]]:
        """For six hours after a message is gone the queue still says that it is empty."""
        runs = [
            minute
            for minute in range(max(self.starts, QUIET), end)
            if minute not in self.follow_up_down
        ]
        failed = {minute: float(minute in self.follow_up_failing) for minute in runs}
        scans = [
            minute
            for minute in range(QUIET + SCAN_ENDS, end, SCANNED_EACH)
            if minute >= self.starts and minute not in self.scan_down
        ]
        sent = {
            _of(template, "FollowUpFunction", "Invocations"): dict.fromkeys(runs, 1.0),
            _of(template, "FollowUpFunction", "Errors"): failed,
            _of(template, "ScanFunction", "Errors"): dict.fromkeys(scans, 0.0),
        }
        for name, minutes in self.errors.items():
            series = _of(template, name, "Errors")
            sent.setdefault(series, {}).update(dict.fromkeys(minutes, 1.0))
        for name, minutes in self.messages.items():
            gone = range(max(minutes) + 1, max(minutes) + 6 * HOUR)
            series = _of(template, name, "ApproximateNumberOfMessagesVisible")
            sent[series] = {**dict.fromkeys(minutes, 1.0), **dict.fromkeys(gone, 0.0)}
        return sent

    def _fixed(self) -> Sent:
        """The counts of whoever moves cases: fixes that open one, and what is escalated."""
        for life in self.lives:
            for minute, state in life.states.items():
                if state is State.ESCALATED:
                    yield OwnMetric.ESCALATIONS, minute, 1.0
        opened = [min(each.states) for each in self.lives]
        applied = [n for n, life in zip(opened, self.lives, strict=True) if _is_a_fix(life)]
        for minute, fixes in Counter(applied).items():
            yield OwnMetric.AUTO_FIXES, minute, float(fixes)

    def _followed(self, end: int) -> Sent:
        """Each minute."""
        open_in = listed(self.lives, end)
        for minute in range(QUIET, end):
            if minute not in self.follow_up_down and minute not in self.follow_up_failing:
                cases = open_in.get(minute)
                for name, value in _emitted(cases, minute) if cases else _quiet():
                    yield name, minute, value

    def _probed(self, end: int) -> Sent:
        """Each hour, at a quarter past."""
        probe: Probe | None = None
        for minute in range(QUIET + 15, end, HOUR):
            if minute in self.probe_down:
                continue
            now = at(minute)
            probe = probe.next_probe(now, now) if probe else Probe(now, now)
            yield OwnMetric.PROBES_LOST, minute, probe.lost_in_a_row
            if minute not in self.probes_unseen:
                probe = replace(probe, made_at=now, seen_at=now + timedelta(minutes=5))

    def _slept(self, end: int) -> Sent:
        nightly_runs: dict[date, NightlyCounts] = {}
        for day in range(-16, end // DAY):
            outcome, minute = self.nightly_runs.get(day, "well"), day * DAY + NIGHTLY_ENDS
            if outcome == "none":
                continue
            slept, ended_at = at((day - 1) * DAY).date(), at(minute)
            if outcome != "failed":
                records = _RECORDS.get(outcome, USUAL_RECORDS)
                nightly_runs[slept] = NightlyCounts(
                    slept, ended_at, NATIVE_READER, "", records=records
                )
            state = "FAILED" if outcome == "failed" else "SUCCESS"
            started_at = ended_at - timedelta(minutes=10)
            run = NightlyJobRun("run1", f"nightly-{slept}", state, "", started_at, ended_at)
            # Nobody has failed before weeks began.
            summed_up = [each for each, well in self.weeks.items() if well and each < day]
            newest = at(max(summed_up) * DAY + WEEK_ENDS) if summed_up else None
            for name, value in describe_run(run, slept, nightly_runs, newest).metrics().items():
                yield name, minute, value

    def _mailed(self, end: int) -> Sent:
        for day, well in self.weeks.items():
            if day * DAY + WEEK_ENDS < end:
                yield OwnMetric.WEEKS_FAILED, day * DAY + WEEK_ENDS, float(not well)
        for minute, delivered in self.deliveries.items():
            yield OwnMetric.REPORTS_NOT_DELIVERED, minute, float(not delivered)


def _is_a_fix(life: Life) -> bool:
    return life.states[min(life.states)] is State.APPLIED


_METRICS = Metrics(namespace=METRIC_NAMESPACE)


def _emitted(listed: Sequence[OpenCase], minute: int) -> Sequence[tuple[str, float]]:
    """What the follow-up sends of these cases; nothing stays for who sends next in this process."""
    _METRICS.clear_metrics()
    send_metrics(make_invocation(_METRICS), FollowUpResult(list(listed)), at(minute))
    sent = [(str(name), float(sum(each["Value"]))) for name, each in _METRICS.metric_set.items()]
    _METRICS.clear_metrics()
    return sent


@cache
def _quiet() -> Sequence[tuple[str, float]]:
    """What it sends while no case is open, whenever that is."""
    return _emitted([], 0)


def _of(template: Template, start: str, metric: str) -> Series:
    """A metric that AWS sends of a Lambda or a queue."""
    is_lambda = start.endswith("Function")
    kind = FUNCTION if is_lambda else "AWS::SQS::Queue"
    (name,) = (each for each in template.all(kind) if each.startswith(start))
    space, dimension = ("Lambda", "FunctionName") if is_lambda else ("SQS", "QueueName")
    return f"AWS/{space}", metric, frozenset({(dimension, name)})

"""Days of an account in minutes: what Mendq's Lambdas send, and what AWS sends about its queues.

The follow-up's and the nightly job's figures are made by the code that is deployed; that of heal is
one count a fix. A minute is counted from midnight of day 0; two quiet days lie before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from aws_lambda_powertools import Metrics

from functions.telemetry import emit_follow_up
from mendq.cases import items
from mendq.cases.table import OpenCase
from mendq.follow_up.follow_up import Followed
from mendq.model.case import FINAL, State
from mendq.model.limits import Limits
from mendq.model.names import NAMESPACE, OwnMetric
from mendq.nightly.outcome import Run, watched
from mendq.nightly.verdict import NATIVE, NightlyRead
from mendq.probe.probe import Probe
from tests.infra.alarms.evaluator import Data, Edge, Evaluator, Notice, Series
from tests.infra.synthesized import Template, template_of

DAY = 24 * 60
HOUR = 60
MIDNIGHT = datetime(2026, 11, 23, tzinfo=UTC)
# Nightly runs start at 03:00 and take a while.
NIGHTLY_ENDS = 3 * HOUR + 12
# Weeks are summed up three hours later.
WEEK_ENDS = 6 * HOUR + 12
# Ten minutes apart, from five past on.
SCAN_ENDS, SCANNED_EACH = 5, 10
FUNCTION = "AWS::Lambda::Function"
USUAL_RECORDS = 50_000
EMPTY = range(0)
USUAL_AT_MOST = 1.6
Minutes = Collection[int]


def at(minute: int) -> datetime:
    return MIDNIGHT + timedelta(minutes=minute)


def own(metric: str) -> Series:
    return (NAMESPACE, metric, frozenset())


@dataclass(frozen=True)
class Life:
    """A case's states by the minute in which it comes into them; the first opens it."""

    states: Mapping[int, State]

    def listed(self, minute: int) -> OpenCase | None:
        past = [each for each in self.states if each <= minute]
        if not past or self.states[max(past)] in FINAL:
            return None
        opened_at = at(min(self.states))
        key = items.case_key(
            "arn:aws:sqs:eu-west-1:123456789012:orders", "visibility_timeout_too_short"
        )
        state = self.states[max(past)]
        return OpenCase(
            key,
            "case-1",
            key["pk"]["S"],
            "visibility_timeout_too_short",
            state,
            opened_at,
            opened_at,
        )


def healed(minute: int) -> Life:
    """A fix that proves good 20 minutes later and is watched for two days."""
    watching = minute + 20
    states = {minute: State.APPLIED, watching: State.WATCHING, watching + 2 * DAY: State.CLOSED}
    return Life(states)


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
    nightly_runs: Mapping[int, str] = field(default_factory=dict)  # failed, none or little, by day
    messages: Mapping[str, range] = field(default_factory=dict)
    errors: Mapping[str, Minutes] = field(default_factory=dict)
    deliveries: Mapping[int, bool] = field(default_factory=dict)
    more: Mapping[Series, Mapping[int, float]] = field(default_factory=dict)
    starts: int = -2 * DAY

    def run(self, days: int, edge: float | Edge = 1e9) -> list[Notice]:
        """What people are told from midnight of day 0 on, printed; the band's `edge` is assumed."""
        template = template_of(self.settings)
        evaluator = Evaluator.of(template)
        upper: Edge = edge if callable(edge) else lambda _minute: edge
        evaluator.run(self.data(days), range(max(self.starts, -5), days * DAY), upper)
        self.rang = dict(evaluator.rang)
        for notice in evaluator.notices:
            print(notice)  # noqa: T201 - to be read
        return evaluator.notices

    def data(self, days: int) -> Data:
        """What is sent until the end of the last of them."""
        data = Data()
        for series, values in self._sent(template_of(self.settings), days * DAY).items():
            for minute in sorted(values):
                data.put(series, minute, values[minute])
        return data

    def _sent(self, template: Template, end: int) -> dict[Series, dict[int, float]]:
        sent: dict[Series, dict[int, float]] = {}
        for part in (self._followed, self._probed, self._slept, self._mailed):
            part(
                lambda name, minute, value: sent.setdefault(own(name), {}).update({minute: value}),
                end,
            )
        for series, values in sent.items():
            sent[series] = {
                minute: value
                for minute, value in values.items()
                if minute not in self.silent and minute >= self.starts
            }
        (scan,) = (each for each in template.all(FUNCTION) if each.startswith("ScanFunction"))
        sent[_errors_of(scan)] = dict.fromkeys(self._scans(end), 0.0)
        for kind, happened, series_of, announced in (
            ("AWS::SQS::Queue", self.messages, _messages_in, _waiting),
            (FUNCTION, self.errors, _errors_of, _each_one),
        ):
            for name, minutes in happened.items():
                (logical_id,) = (each for each in template.all(kind) if each.startswith(name))
                sent.setdefault(series_of(logical_id), {}).update(announced(minutes))
        for metric, value in (("Invocations", 1.0), ("Errors", 0.0)):
            sent.setdefault(_follow_up(template, metric), {}).update(
                {
                    minute: 1.0 if minute in self.follow_up_failing else value
                    for minute in range(max(self.starts, -2 * DAY), end)
                    if minute not in self.follow_up_down
                }
            )
        for series, added in self.more.items():
            sent.setdefault(series, {}).update(added)
        return sent

    def _scans(self, end: int) -> Iterator[int]:
        """When they end; those of a scan that is done end well as well."""
        for minute in range(-2 * DAY + SCAN_ENDS, end, SCANNED_EACH):
            if minute >= self.starts and minute not in self.scan_down:
                yield minute

    def _followed(self, put: Callable[[str, int, float], None], end: int) -> None:
        """Each minute, and heal's count of the fixes that open a case."""
        metrics = Metrics(namespace=NAMESPACE)
        for minute in range(-2 * DAY, end):
            fixes = sum(
                min(each.states) == minute and each.states[minute] is State.APPLIED
                for each in self.lives
            )
            sums = {OwnMetric.AUTO_FIXES.value: float(fixes)} if fixes else {}
            if minute not in self.follow_up_down and minute not in self.follow_up_failing:
                listed = [case for each in self.lives if (case := each.listed(minute))]
                emit_follow_up(metrics, Followed(listed), at(minute), Limits())
                for name, metric in metrics.metric_set.items():
                    sums[str(name)] = sums.get(str(name), 0.0) + sum(metric["Value"])
                metrics.clear_metrics()
            for name, value in sums.items():
                put(name, minute, value)

    def _probed(self, put: Callable[[str, int, float], None], end: int) -> None:
        """Each hour, at a quarter past."""
        probe: Probe | None = None
        for minute in range(-2 * DAY + 15, end, HOUR):
            if minute in self.probe_down:
                continue
            now = at(minute)
            probe = probe.next_one(now, now) if probe else Probe(now, now)
            put(OwnMetric.PROBES_LOST.value, minute, probe.lost_in_a_row)
            if minute not in self.probes_unseen:
                probe = replace(probe, made_at=now, seen_at=now + timedelta(minutes=5))

    def _slept(self, put: Callable[[str, int, float], None], end: int) -> None:
        nightly_runs: dict[date, NightlyRead] = {}
        for day in range(-16, end // DAY):
            outcome, minute = self.nightly_runs.get(day, "well"), day * DAY + NIGHTLY_ENDS
            if outcome == "none":
                continue
            slept, ended_at = at((day - 1) * DAY).date(), at(minute)
            if outcome != "failed":
                records = 0 if outcome == "little" else USUAL_RECORDS
                nightly_runs[slept] = NightlyRead(slept, ended_at, NATIVE, "", records=records)
            state = "FAILED" if outcome == "failed" else "SUCCESS"
            started_at = ended_at - timedelta(minutes=10)
            run = Run("run1", f"nightly-{slept}", state, "", started_at, ended_at)
            for name, value in (
                watched(run, slept, nightly_runs, self._summed_up(day)).metrics().items()
            ):
                put(name.value, minute, value)

    def _summed_up(self, day: int) -> datetime | None:
        """When the newest week was summed up; nobody has failed before they began."""
        done = [each for each, well in self.weeks.items() if well and each < day]
        return at(max(done) * DAY + WEEK_ENDS) if done else None

    def _mailed(self, put: Callable[[str, int, float], None], end: int) -> None:
        for day, well in self.weeks.items():
            if day * DAY + WEEK_ENDS < end:
                put(OwnMetric.WEEKS_FAILED.value, day * DAY + WEEK_ENDS, float(not well))
        for minute, delivered in self.deliveries.items():
            put(OwnMetric.REPORTS_DELIVERED.value, minute, float(delivered))
            put(OwnMetric.REPORTS_NOT_DELIVERED.value, minute, float(not delivered))


def _messages_in(queue: str) -> Series:
    dimensions = frozenset({("QueueName", queue)})
    return ("AWS/SQS", "ApproximateNumberOfMessagesVisible", dimensions)


def _waiting(minutes: Minutes) -> dict[int, float]:
    """One message, and for six hours after it is gone the queue still says that it is empty."""
    gone = range(max(minutes) + 1, max(minutes) + 6 * HOUR)
    return {**dict.fromkeys(minutes, 1.0), **dict.fromkeys(gone, 0.0)}


def _follow_up(template: Template, metric: str) -> Series:
    functions = template.all(FUNCTION)
    (function,) = (each for each in functions if each.startswith("FollowUpFunction"))
    return ("AWS/Lambda", metric, frozenset({("FunctionName", function)}))


def _errors_of(function: str) -> Series:
    return ("AWS/Lambda", "Errors", frozenset({("FunctionName", function)}))


def _each_one(minutes: Minutes) -> dict[int, float]:
    return dict.fromkeys(minutes, 1.0)


def in_order(notices: Sequence[Notice]) -> list[tuple[str, str]]:
    """The alarms and states that people are told of."""
    assert all(a.minute <= b.minute for a, b in pairwise(notices))
    return [(each.alarm, str(each.state)) for each in notices]

"""What a scan finds, round by round: an hour's look at every managed queue."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert, json

from mendq.model.evidence import to_text
from mendq.model.queue import ARN

SCHEMA = 1
# What heal can look at and decide in the time that it has.
MOST_IN_A_CALL = 20
FEW_OTHERS = 3
_MOST_WHY = 300


_Arn = Annotated[str, Meta(pattern=rf"\A{ARN.pattern}\Z")]


class SharedFinding(Struct, frozen=True, omit_defaults=True):
    """The queues that a finding speaks for as well, `more` beyond those named here.

    `open_at` are the queues whose open case may ask for the same.
    """

    others: Annotated[tuple[_Arn, ...], Meta(max_length=FEW_OTHERS)] = ()
    more: Annotated[int, Meta(ge=0)] = 0
    open_at: Annotated[tuple[_Arn, ...], Meta(max_length=MOST_IN_A_CALL)] = ()


class FindingReference(SharedFinding, frozen=True, omit_defaults=True, kw_only=True):
    """What heal is told of a finding: where to look, for whom else, and nothing of what was seen
    there.
    """

    queue_arn: str
    symptom: str


@dataclass(frozen=True, order=True)
class Finding:
    """A symptom that one queue shows without a failed call, in a sentence with its numbers.

    `sources` are the queues whose DLQ messages it is known to take; `about` is another queue that
    is missing, of which the symptom speaks, and `others` are the queues of findings that say the
    same of it; `open_at` are queues with an open case of the symptom. `seconds_left` is how soon
    something is lost at the earliest, None where nothing is.
    """

    queue_arn: str
    symptom: str
    because: str = field(compare=False)
    sources: tuple[str, ...] = field(default=(), compare=False)
    about: str = field(default="", compare=False)
    others: tuple[str, ...] = field(default=(), compare=False)
    open_at: tuple[str, ...] = field(default=(), compare=False)
    seconds_left: float | None = field(default=None, compare=False)

    @property
    def reference(self) -> FindingReference:
        more = max(0, len(self.others) - FEW_OTHERS)
        shared = self.others[:FEW_OTHERS], more, self.open_at[:MOST_IN_A_CALL]
        return FindingReference(*shared, queue_arn=self.queue_arn, symptom=self.symptom)

    @property
    def topic(self) -> str:
        """What a page about it is about: of two faults of a queue people are told twice."""
        return f"{self.queue_arn} {self.symptom}"

    def document(self) -> dict[str, Any]:
        found = {"queue_arn": self.queue_arn, "symptom": self.symptom, "because": self.because}
        left = {} if self.seconds_left is None else {"seconds_left": int(self.seconds_left)}
        return {**found, **left}


@dataclass(frozen=True)
class ScanResult:
    """How far a scan has come: numbers of queues, what was found, and where looking failed.

    `after` is the name of the last queue that was looked at; `failed` says by queue why one could
    not be, or not wholly, and by name or prefix of the settings why it could not be listed; `gone`
    counts those that are no more, `unseen` those of which nothing could be seen; `skipped` are
    suspects that were not measured, for the budget; `unsettled` those that were made or changed too
    lately to be. `looked_at` holds the configuration of those at
    which all was looked that may be wrong, `queues` how the measured ones stood.
    """

    queues_scanned: int = 0
    gone: int = 0
    unseen: int = 0
    suspects: int = 0
    measured: int = 0
    metrics: int = 0
    after: str = ""
    findings: tuple[Finding, ...] = ()
    failed: Mapping[str, Exception] = field(default_factory=dict)
    looked_at: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    queues: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def is_blind(self) -> bool:
        """Whether there were queues, and nothing could be seen of any."""
        return self.unseen > 0 and self.unseen + self.gone == self.queues_scanned

    def document(self, at: datetime) -> dict[str, Any]:
        """As the case bucket holds a round."""
        return {
            "schema": SCHEMA,
            "at": to_text(at),
            **{name: getattr(self, name) for name in _NUMBERS},
            "skipped_for_budget": len(self.skipped),
            "failed": len(self.failed),
            "not_looked_at": {each: str(why)[:_MOST_WHY] for each, why in self.failed.items()},
            "skipped": sorted(self.skipped),
            "findings": [each.document() for each in sorted(self.findings)],
            "queues": self.queues,
        }


_NUMBERS = ("queues_scanned", "gone", "unseen", "suspects", "measured")


def add_managed_queues(
    document: Mapping[str, Any], queue_arns: Iterable[str], *, whole: bool
) -> dict[str, Any]:
    """A round's document with the queues that were managed then; `whole` where all were listed."""
    return {**document, "managed": sorted(queue_arns), "managed_whole": whole}


def merge_documents(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a round that took two scans; a finding of both is one, the later's."""
    found = {
        (each["queue_arn"], each["symptom"]): each
        for document in (earlier, now)
        for each in document["findings"]
    }
    # A version before wrote fewer of them.
    count_names = (*_NUMBERS, "skipped_for_budget", "failed")
    counts = {name: earlier.get(name, 0) + now[name] for name in count_names}
    return {
        **now,
        **counts,
        "not_looked_at": {**earlier.get("not_looked_at", {}), **now["not_looked_at"]},
        "skipped": sorted({*earlier.get("skipped", ()), *now["skipped"]}),
        "findings": [found[each] for each in sorted(found)],
        "queues": {**earlier.get("queues", {}), **now["queues"]},
    }


def start_of_hour(now: datetime) -> datetime:
    """The hour that a moment's scan belongs to."""
    return now.replace(minute=0, second=0, microsecond=0)


def findings_key(hour: datetime) -> str:
    """A round's place in the case bucket."""
    return f"findings/dt={hour:%Y-%m-%d}/{hour:%H}.json"


def scan_order_key(queue_arn: str, hour: datetime) -> str:
    """Sorted by this, other queues come first each hour: a budget skips not always the same."""
    return sha256(f"{to_text(hour)} {queue_arn}".encode()).hexdigest()


def metrics_allowed_until(metrics_per_day: int, now: datetime) -> int:
    """How many of the day's metrics may have been asked for by the end of this hour.

    Without it the first round of a day would take them all, and the others see nothing.
    """
    return metrics_per_day * (now.hour + 1) // 24


def find_waiting(
    findings: Sequence[Finding], gives_way_to: Mapping[str, frozenset[str]]
) -> dict[Finding, str]:
    """Return the findings of a round that must wait, each with the symptom that goes first.

    `gives_way_to` says by symptom which others go first, on the queue or one of its sources.
    """
    shown: dict[str, set[str]] = defaultdict(set)
    for each in findings:
        shown[each.queue_arn].add(each.symptom)
    waits = dict[Finding, str]()
    for each in findings:
        others = {name for arn in (each.queue_arn, *each.sources) for name in shown.get(arn, ())}
        first = others & gives_way_to.get(each.symptom, frozenset())
        if first:
            waits[each] = min(first)
    return waits


def limit_mass_findings(
    findings: Iterable[Finding], mass_symptoms: Iterable[str]
) -> Iterator[Finding]:
    """A mass symptom's as many as one call holds: they are one page, and nothing is changed."""
    mass, taken = frozenset(mass_symptoms), Counter[str]()
    for each in sorted(findings):
        taken[each.symptom] += each.symptom in mass
        if taken[each.symptom] <= MOST_IN_A_CALL:
            yield each


def group_into_calls(findings: Iterable[Finding]) -> Iterator[tuple[Finding, ...]]:
    """What heal is called with; one symptom to a call, so that it sees how far it has spread."""
    by_symptom: dict[str, list[Finding]] = defaultdict(list)
    for each in findings:
        by_symptom[each.symptom].append(each)
    for found in by_symptom.values():
        for first in range(0, len(found), MOST_IN_A_CALL):
            yield tuple(found[first : first + MOST_IN_A_CALL])


def make_request(findings: Sequence[Finding]) -> bytes:
    """What heal is called with."""
    return json.encode({"found": [each.reference for each in findings]})


def read_references(request: Mapping[str, Any]) -> list[FindingReference]:
    """The entries that are such, by queue and symptom once, in order; total."""
    found, once = request.get("found"), dict[tuple[str, str], FindingReference]()
    for each in found if isinstance(found, list) else []:
        with suppress(ValidationError):
            named = convert(each, FindingReference)
            once[named.queue_arn, named.symptom] = named
    return [*once.values()][:MOST_IN_A_CALL]


def merge_results(one: ScanResult, other: ScanResult) -> ScanResult:
    """Two stretches of a scan as one."""
    counts = (*_NUMBERS, "metrics")
    return replace(
        other,
        after=other.after or one.after,
        findings=(*one.findings, *other.findings),
        failed={**one.failed, **other.failed},
        looked_at={**one.looked_at, **other.looked_at},
        skipped=(*one.skipped, *other.skipped),
        unsettled=(*one.unsettled, *other.unsettled),
        queues={**one.queues, **other.queues},
        **{name: getattr(one, name) + getattr(other, name) for name in counts},
    )

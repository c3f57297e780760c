"""Findings of the hourly scan: the values, the object in the case bucket, and the calls of heal.

The scan looks at every managed queue once per hour, if needed in several runs. `ScanResult` holds
the result of one or more runs, and its `document` is stored in the case bucket. The scan calls heal
with the requests that `make_heal_request` makes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert, json, to_builtins

from mendq.cases.measured_facts import (
    MOST_PACKED_CHARACTERS,
    MeasuredFacts,
    pack_measured_facts,
)
from mendq.model.facts import SourceCheck
from mendq.model.mutes import Mute, MuteUse
from mendq.model.queue import QUEUE_ARN_PATTERN
from mendq.model.severity_class import SeverityClass
from mendq.model.time_text import format_time
from mendq.model.traffic import SUMS_EVERY_HOURS, ScanHistory

SCHEMA_NUMBER = 1
# heal can decide about this many findings in the time that one invocation has.
MAXIMUM_FINDINGS_PER_CALL = 20
# A finding names at most this many other queues. Further queues are only counted.
MAXIMUM_NAMED_QUEUES = 3
# The most characters stored of the reason why a queue could not be checked.
_MAXIMUM_REASON_CHARACTERS = 300


# Of each source of a DLQ, a finding names this many symptoms.
MAXIMUM_NAMED_SYMPTOMS = 3
_SymptomName = Annotated[str, Meta(pattern=r"\A[a-z][a-z_]{0,63}\Z")]
_QueueArn = Annotated[str, Meta(pattern=rf"\A{QUEUE_ARN_PATTERN.pattern}\Z")]


class SourceReference(Struct, frozen=True, omit_defaults=True):
    """What the scan knows about a source of the finding's DLQ (`SourceCheck`)."""

    queue_arn: _QueueArn
    symptoms: Annotated[tuple[_SymptomName, ...], Meta(max_length=MAXIMUM_NAMED_SYMPTOMS)] = ()
    is_measured: bool = False

    @property
    def source_check(self) -> SourceCheck:
        """The same as the facts of heal hold it."""
        return SourceCheck(self.queue_arn, self.symptoms, self.is_measured)


class SharedFinding(Struct, frozen=True, omit_defaults=True):
    """Other queues that a finding is about: those that name a missing queue, or a DLQ's sources.

    Args:
        others: The first MAXIMUM_NAMED_QUEUES of these queues.
        more: The number of these queues that `others` leaves out.
        open_at: Other queues with an open case of the symptom. heal checks if one of these cases
            already asks people for the missing queue.
        sources: What the scan knows about the first MAXIMUM_NAMED_QUEUES sources of a DLQ.
        measured: The metrics that the scan has read (`mendq/cases/measured_facts.py`); empty if it
            read none.
    """

    others: Annotated[tuple[_QueueArn, ...], Meta(max_length=MAXIMUM_NAMED_QUEUES)] = ()
    more: Annotated[int, Meta(ge=0)] = 0
    open_at: Annotated[tuple[_QueueArn, ...], Meta(max_length=MAXIMUM_FINDINGS_PER_CALL)] = ()
    sources: Annotated[tuple[SourceReference, ...], Meta(max_length=MAXIMUM_NAMED_QUEUES)] = ()
    measured: Annotated[str, Meta(max_length=MOST_PACKED_CHARACTERS)] = ""


class FindingReference(SharedFinding, frozen=True, omit_defaults=True, kw_only=True):
    """A finding as the scan passes it to heal: the queue and the symptom to look at.

    Heal reads the queue itself. The metrics in `measured` only save it from paying for them again.
    """

    queue_arn: str
    symptom: str


@dataclass(frozen=True, order=True)
class Finding:
    """A symptom that the scan found on one queue. Findings are equal by queue and symptom.

    Args:
        queue_arn: The queue that shows the symptom.
        symptom: The symptom's name.
        sentence: A sentence for people, with the measured numbers.
        source_arns: The known queues that have this queue as their DLQ. If the finding is about a
            missing queue, also the other queues that name the missing queue.
        missing_queue_arn: The missing queue that the finding is about. Empty for most symptoms.
        other_queue_arns: The other queues that name the missing queue.
        open_case_queue_arns: Other queues that have an open case of the symptom. Empty if no queue
            is missing.
        seconds_left: The seconds until the first message is lost. None if none will be lost.
        source_checks: If messages arrive in a DLQ, what the scan knows about its sources.
        possible_source_arns: If messages arrive in a DLQ, all queues that can have sent them, also
            those that nothing confirms. The finding waits for the symptoms of its sources only if
            each of these queues shows one. Otherwise anyone could create a queue that names the
            DLQ and fails, and so silence the finding about the messages of another source.
        should_page: False if the symptom is recorded without a page. A finding with
            `possible_source_arns` does not wait for it, because then nobody would be paged about
            the messages in the DLQ.
        is_hygiene: True if the queue may be meant to be like that.
        severity_class: The severity class; None for the class that the symptom usually has.
        measured: The metrics that the scan has read about the queue; None if it read none, or not
            all that heal may need.
        mute: The mute that hides the finding; None if people may hear of it.
        shared_setting: The attribute with the wrong value, such as `MessageRetentionPeriod=345600`,
            if several queues may share it; otherwise empty.
    """

    queue_arn: str
    symptom: str
    sentence: str = field(compare=False)
    source_arns: tuple[str, ...] = field(default=(), compare=False)
    missing_queue_arn: str = field(default="", compare=False)
    other_queue_arns: tuple[str, ...] = field(default=(), compare=False)
    open_case_queue_arns: tuple[str, ...] = field(default=(), compare=False)
    seconds_left: float | None = field(default=None, compare=False)
    source_checks: tuple[SourceCheck, ...] = field(default=(), compare=False)
    possible_source_arns: tuple[str, ...] = field(default=(), compare=False)
    should_page: bool = field(default=True, compare=False)
    is_hygiene: bool = field(default=False, compare=False)
    severity_class: SeverityClass | None = field(default=None, compare=False)
    measured: MeasuredFacts | None = field(default=None, compare=False)
    mute: Mute | None = field(default=None, compare=False)
    shared_setting: str = field(default="", compare=False)

    @property
    def reference(self) -> FindingReference:
        """The reference to this finding that the scan passes to heal."""
        return FindingReference(
            others=self.other_queue_arns[:MAXIMUM_NAMED_QUEUES],
            more=max(0, len(self.other_queue_arns) - MAXIMUM_NAMED_QUEUES),
            open_at=self.open_case_queue_arns[:MAXIMUM_FINDINGS_PER_CALL],
            sources=tuple(
                SourceReference(
                    check.queue_arn, check.symptoms[:MAXIMUM_NAMED_SYMPTOMS], check.is_measured
                )
                for check in self.source_checks[:MAXIMUM_NAMED_QUEUES]
            ),
            measured=pack_measured_facts(self.measured) if self.measured else "",
            queue_arn=self.queue_arn,
            symptom=self.symptom,
        )

    @property
    def topic(self) -> str:
        """The key of a notification about this finding: its queue and symptom."""
        return f"{self.queue_arn} {self.symptom}"

    def document(self) -> dict[str, Any]:
        """Return the finding as a JSON object for the case bucket."""
        document: dict[str, Any] = {
            "queue_arn": self.queue_arn,
            "symptom": self.symptom,
            "because": self.sentence,
        }
        if self.seconds_left is not None:
            document["seconds_left"] = int(self.seconds_left)
        if self.mute is not None:
            document["class"] = self.severity_class
            document["muted_because"] = self.mute.reason
            document["muted_until"] = self.mute.until.isoformat()
        return document


@dataclass(frozen=True)
class ScanResult:
    """The result of one scan run, or of several runs of the same hour.

    Args:
        queues_scanned: The number of queues that the scan has reached.
        gone: The number of scanned queues that were deleted after they were listed.
        unseen: The number of scanned queues that could not be read at all.
        suspects: The number of queues that may show a symptom which only metrics can confirm.
        measured: The number of suspects whose metrics were read.
        metrics: The number of metrics that were read from CloudWatch. AWS charges for them.
        last_queue_name: The name of the last queue that the scan has reached. The next run
            continues after this queue.
        findings: The symptoms that were found.
        error_by_target: The error for each queue ARN that could not be fully checked, and for each
            name or prefix in the settings whose queues could not be listed. The key `baselines` has
            the error of storing baselines.
        configuration_by_arn: The configuration of each queue that was fully checked, by ARN.
        skip_reason_by_arn: The reason by the ARN of each queue whose sums or metrics were not read,
            because the budget or the time was spent.
        gap_reason_by_arn: The reason by the ARN of each queue that was not measured, because
            CloudWatch lacks some of its counts (`MetricGap`).
        partly_checked_arns: The ARNs of queues in use without a sign of a fault. For lack of budget
            or time, they were not measured for symptoms that only cost money or do no harm yet.
        unsettled_arns: The ARNs of queues that were created or changed too recently to be measured.
        levels_by_arn: The backlog and the age of the oldest message of each measured queue, by ARN.
        measuring_reason_by_arn: The reason to measure each suspect, by ARN.
        record_by_queue_name: What the next scan must know about the queues.
        unjudged_reason_by_symptom: The reason by symptom that could not be judged for some queues,
            although nothing else failed for them.
        mute_uses: What the run says of each mute of the settings.
    """

    queues_scanned: int = 0
    gone: int = 0
    unseen: int = 0
    suspects: int = 0
    measured: int = 0
    metrics: int = 0
    last_queue_name: str = ""
    findings: tuple[Finding, ...] = ()
    error_by_target: Mapping[str, Exception] = field(default_factory=dict)
    configuration_by_arn: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    skip_reason_by_arn: Mapping[str, str] = field(default_factory=dict)
    gap_reason_by_arn: Mapping[str, str] = field(default_factory=dict)
    partly_checked_arns: tuple[str, ...] = ()
    unsettled_arns: tuple[str, ...] = ()
    levels_by_arn: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    measuring_reason_by_arn: Mapping[str, str] = field(default_factory=dict)
    record_by_queue_name: ScanHistory = field(default_factory=dict)
    unjudged_reason_by_symptom: Mapping[str, str] = field(default_factory=dict)
    mute_uses: tuple[MuteUse, ...] = ()

    @property
    def reported_findings(self) -> tuple[Finding, ...]:
        """The findings that are not muted."""
        return tuple(finding for finding in self.findings if finding.mute is None)

    @property
    def muted_findings(self) -> tuple[Finding, ...]:
        """The findings that a mute of the settings hides."""
        return tuple(finding for finding in self.findings if finding.mute is not None)

    @property
    def skipped_arns(self) -> tuple[str, ...]:
        """The ARNs of the queues whose sums or metrics were not read for lack of budget or time."""
        return tuple(self.skip_reason_by_arn)

    @property
    def is_blind(self) -> bool:
        """True if there were queues, and none of them could be read."""
        return self.unseen > 0 and self.unseen + self.gone == self.queues_scanned

    def document(self, at: datetime) -> dict[str, Any]:
        """Return the result as a JSON object for the case bucket, with the time `at`."""
        count_by_name = {name: getattr(self, name) for name in _SCAN_COUNT_NAMES}
        failure_reason_by_target = {
            name: str(error)[:_MAXIMUM_REASON_CHARACTERS]
            for name, error in self.error_by_target.items()
        }
        return {
            "schema": SCHEMA_NUMBER,
            "at": format_time(at),
            **count_by_name,
            "skipped_for_budget": len(self.skipped_arns),
            "failed": len(self.error_by_target),
            "not_looked_at": failure_reason_by_target,
            "skipped": sorted(self.skipped_arns),
            "skipped_because": {**self.skip_reason_by_arn},
            "metric_gaps": {**self.gap_reason_by_arn},
            "measured_because": {**self.measuring_reason_by_arn},
            "not_judged": {**self.unjudged_reason_by_symptom},
            "findings": [finding.document() for finding in sorted(self.reported_findings)],
            "muted": [finding.document() for finding in sorted(self.muted_findings)],
            "mutes": [to_builtins(use) for use in self.mute_uses],
            "queues": self.levels_by_arn,
        }


_MUTE_COUNT_NAMES = ("findings", "checked", "unchecked")
_SCAN_COUNT_NAMES = ("queues_scanned", "gone", "unseen", "suspects", "measured")


def add_managed_queues(
    document: Mapping[str, Any], queue_arns: Iterable[str], *, is_listing_complete: bool
) -> dict[str, Any]:
    """Return an hour's document with the managed queues added.

    `is_listing_complete` is True if all managed queues could be listed.
    """
    return {**document, "managed": sorted(queue_arns), "managed_whole": is_listing_complete}


def merge_documents(
    earlier_document: Mapping[str, Any], later_document: Mapping[str, Any]
) -> dict[str, Any]:
    """Merge the documents of two scan runs of one hour.

    If both runs found a symptom on a queue, keep the later finding. An older version of Mendq may
    have written `earlier_document`, so a missing key other than `findings` means 0 or empty.
    """
    finding_by_queue_and_symptom: dict[tuple[str, str], Mapping[str, Any]] = {}
    muted_by_queue_and_symptom: dict[tuple[str, str], Mapping[str, Any]] = {}
    for document in (earlier_document, later_document):
        for finding in document["findings"]:
            finding_by_queue_and_symptom[finding["queue_arn"], finding["symptom"]] = finding
        for finding in document.get("muted", ()):
            muted_by_queue_and_symptom[finding["queue_arn"], finding["symptom"]] = finding
    count_names = (*_SCAN_COUNT_NAMES, "skipped_for_budget", "failed")
    count_by_name = {
        name: earlier_document.get(name, 0) + later_document[name] for name in count_names
    }
    return {
        **later_document,
        **count_by_name,
        "not_looked_at": {
            **earlier_document.get("not_looked_at", {}),
            **later_document["not_looked_at"],
        },
        "skipped": sorted({*earlier_document.get("skipped", ()), *later_document["skipped"]}),
        "skipped_because": _merge_texts(earlier_document, later_document, "skipped_because"),
        "measured_because": _merge_texts(earlier_document, later_document, "measured_because"),
        "not_judged": _merge_texts(earlier_document, later_document, "not_judged"),
        "findings": [
            finding_by_queue_and_symptom[queue_and_symptom]
            for queue_and_symptom in sorted(finding_by_queue_and_symptom)
        ],
        "muted": [
            muted_by_queue_and_symptom[queue_and_symptom]
            for queue_and_symptom in sorted(muted_by_queue_and_symptom)
        ],
        "mutes": _add_mute_uses(earlier_document.get("mutes", ()), later_document["mutes"]),
        "queues": {**earlier_document.get("queues", {}), **later_document["queues"]},
    }


def _add_mute_uses(
    earlier_uses: Iterable[Mapping[str, Any]], later_uses: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the mutes of the later run, each with the sums of both runs' counts."""
    earlier_use_by_mute = {
        (use["queue"], use["symptom"], use["until"]): use for use in earlier_uses
    }
    merged_uses = list[dict[str, Any]]()
    for use in later_uses:
        earlier_use = earlier_use_by_mute.get((use["queue"], use["symptom"], use["until"]), {})
        counts = {name: earlier_use.get(name, 0) + use[name] for name in _MUTE_COUNT_NAMES}
        merged_uses.append({**use, **counts})
    return merged_uses


def _merge_texts(
    earlier_document: Mapping[str, Any], later_document: Mapping[str, Any], key: str
) -> dict[str, str]:
    """Return the texts of two documents by queue ARN."""
    return {**earlier_document.get(key, {}), **later_document[key]}


def start_of_hour(now: datetime) -> datetime:
    """Return the start of the hour of `now`. All scan runs in one hour together are one scan."""
    return now.replace(minute=0, second=0, microsecond=0)


def findings_key(hour: datetime) -> str:
    """Return the S3 key of an hour's document in the case bucket."""
    return f"findings/dt={hour:%Y-%m-%d}/{hour:%H}.json"


def scan_order_key(queue_arn: str, hour: datetime) -> str:
    """Return a sort key that orders queues differently in each hour.

    So if the budget is too small for all queues, each hour skips other queues.
    """
    return sha256(f"{format_time(hour)} {queue_arn}".encode()).hexdigest()


def count_allowed_metrics(metrics_per_day: int, now: datetime) -> int:
    """Return how many of the day's metrics may have been read by the end of this hour (UTC).

    So the first scans of the day cannot use up all metrics. The share of two hours may be used in
    the first of them, because this scan asks for the sums of all queues in use.
    """
    begun_turns = now.hour // SUMS_EVERY_HOURS + 1
    return metrics_per_day * begun_turns * SUMS_EVERY_HOURS // 24


def count_allowed_last_metrics(metrics_per_day: int, now: datetime) -> int:
    """Return how many of the day's metrics may have been read if those of this hour are the last.

    Queues without a sign of a fault may be measured up to this number. So they leave the next
    hour's share to suspects.
    """
    return metrics_per_day * (now.hour + 1) // 24


def find_waiting_findings(
    findings: Sequence[Finding], explaining_symptoms_by_symptom: Mapping[str, frozenset[str]]
) -> dict[Finding, str]:
    """Return the findings that must wait, each with the symptom that is handled before it.

    A finding with `possible_source_arns` is about messages that were moved to a DLQ. It waits only
    if people are paged about the cause instead: each of these queues must show a symptom that has a
    page and does not itself wait for another one.

    Args:
        findings: All findings of a scan.
        explaining_symptoms_by_symptom: For each symptom, the symptoms that are handled before it if
            the same queue or one of its sources shows them.
    """
    explaining_symptom_by_finding = _find_waiting_faults(findings, explaining_symptoms_by_symptom)
    paged_symptoms_by_queue_arn = _group_symptoms_by_queue(
        finding
        for finding in findings
        if finding.should_page and finding not in explaining_symptom_by_finding
    )
    for finding in findings:
        if finding.possible_source_arns:
            symptoms_to_wait_for = explaining_symptoms_by_symptom.get(finding.symptom, frozenset())
            paged_symptoms = _list_paged_causes(
                finding, symptoms_to_wait_for, paged_symptoms_by_queue_arn
            )
            if paged_symptoms:
                explaining_symptom_by_finding[finding] = min(paged_symptoms)
    return explaining_symptom_by_finding


def _find_waiting_faults(
    findings: Sequence[Finding], explaining_symptoms_by_symptom: Mapping[str, frozenset[str]]
) -> dict[Finding, str]:
    """Return the waiting findings, without those that have `possible_source_arns`."""
    symptoms_by_queue_arn = _group_symptoms_by_queue(findings)
    explaining_symptom_by_finding: dict[Finding, str] = {}
    for finding in findings:
        if finding.possible_source_arns:
            continue
        symptoms_to_wait_for = explaining_symptoms_by_symptom.get(finding.symptom, frozenset())
        shown_symptoms = symptoms_by_queue_arn[finding.queue_arn].union(
            *(symptoms_by_queue_arn[source_arn] for source_arn in finding.source_arns)
        )
        if explaining_symptoms := shown_symptoms & symptoms_to_wait_for:
            explaining_symptom_by_finding[finding] = min(explaining_symptoms)
    return explaining_symptom_by_finding


def _list_paged_causes(
    finding: Finding,
    symptoms_to_wait_for: frozenset[str],
    paged_symptoms_by_queue_arn: Mapping[str, set[str]],
) -> set[str]:
    """Return the symptoms with a page that explain the messages in a DLQ.

    They are symptoms of the DLQ itself. Those of its sources count only if each queue that can have
    sent messages shows one.
    """
    own_symptoms = paged_symptoms_by_queue_arn.get(finding.queue_arn, set()) & symptoms_to_wait_for
    symptoms_of_sources = [
        paged_symptoms_by_queue_arn.get(queue_arn, set()) & symptoms_to_wait_for
        for queue_arn in finding.possible_source_arns
    ]
    return own_symptoms.union(*symptoms_of_sources) if all(symptoms_of_sources) else own_symptoms


def _group_symptoms_by_queue(findings: Iterable[Finding]) -> defaultdict[str, set[str]]:
    """Return the symptoms of the findings by the queue's ARN; an empty set for other queues."""
    symptoms_by_queue_arn = defaultdict[str, set[str]](set)
    for finding in findings:
        symptoms_by_queue_arn[finding.queue_arn].add(finding.symptom)
    return symptoms_by_queue_arn


def limit_mass_findings(
    findings: Iterable[Finding], mass_symptoms: Iterable[str]
) -> Iterator[Finding]:
    """Yield the sorted findings, but at most MAXIMUM_FINDINGS_PER_CALL for each mass symptom.

    A mass symptom leads to one notification and no change, so more queues would add nothing.
    """
    mass_symptom_names = frozenset(mass_symptoms)
    count_by_symptom = Counter[str]()
    for finding in sorted(findings):
        if finding.symptom in mass_symptom_names:
            count_by_symptom[finding.symptom] += 1
        if count_by_symptom[finding.symptom] <= MAXIMUM_FINDINGS_PER_CALL:
            yield finding


def group_into_calls(findings: Iterable[Finding]) -> Iterator[tuple[Finding, ...]]:
    """Yield the findings for each call of heal.

    A call has at most MAXIMUM_FINDINGS_PER_CALL findings. All are of one symptom, so that heal sees
    how many queues show that symptom.
    """
    findings_by_symptom: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        findings_by_symptom[finding.symptom].append(finding)
    for findings_of_symptom in findings_by_symptom.values():
        for first_finding_index in range(0, len(findings_of_symptom), MAXIMUM_FINDINGS_PER_CALL):
            yield tuple(
                findings_of_symptom[
                    first_finding_index : first_finding_index + MAXIMUM_FINDINGS_PER_CALL
                ]
            )


def make_heal_request(findings: Sequence[Finding]) -> bytes:
    """Return the JSON payload for heal. `read_finding_references` reads it."""
    return json.encode({"found": [finding.reference for finding in findings]})


def read_finding_references(request: Mapping[str, Any]) -> list[FindingReference]:
    """Return the findings in a request to heal, at most MAXIMUM_FINDINGS_PER_CALL.

    Leave out values that are not findings. Of repeated findings, keep the last. Never raise an
    error.
    """
    finding_documents = request.get("found")
    if not isinstance(finding_documents, list):
        return []
    reference_by_queue_and_symptom: dict[tuple[str, str], FindingReference] = {}
    for finding_document in finding_documents:
        with suppress(ValidationError):
            reference = convert(finding_document, FindingReference)
            reference_by_queue_and_symptom[reference.queue_arn, reference.symptom] = reference
    return list(reference_by_queue_and_symptom.values())[:MAXIMUM_FINDINGS_PER_CALL]


def merge_results(earlier_result: ScanResult, later_result: ScanResult) -> ScanResult:
    """Return the results of two parts of a scan as one result."""
    count_names = (*_SCAN_COUNT_NAMES, "metrics")
    count_by_name = {
        name: getattr(earlier_result, name) + getattr(later_result, name) for name in count_names
    }
    return replace(
        later_result,
        last_queue_name=later_result.last_queue_name or earlier_result.last_queue_name,
        findings=(*earlier_result.findings, *later_result.findings),
        error_by_target={**earlier_result.error_by_target, **later_result.error_by_target},
        configuration_by_arn={
            **earlier_result.configuration_by_arn,
            **later_result.configuration_by_arn,
        },
        skip_reason_by_arn={
            **earlier_result.skip_reason_by_arn,
            **later_result.skip_reason_by_arn,
        },
        gap_reason_by_arn={**earlier_result.gap_reason_by_arn, **later_result.gap_reason_by_arn},
        partly_checked_arns=(
            *earlier_result.partly_checked_arns,
            *later_result.partly_checked_arns,
        ),
        unsettled_arns=(*earlier_result.unsettled_arns, *later_result.unsettled_arns),
        levels_by_arn={**earlier_result.levels_by_arn, **later_result.levels_by_arn},
        measuring_reason_by_arn={
            **earlier_result.measuring_reason_by_arn,
            **later_result.measuring_reason_by_arn,
        },
        record_by_queue_name={
            **earlier_result.record_by_queue_name,
            **later_result.record_by_queue_name,
        },
        unjudged_reason_by_symptom={
            **earlier_result.unjudged_reason_by_symptom,
            **later_result.unjudged_reason_by_symptom,
        },
        **count_by_name,
    )

"""Scan queues for faults that make no call fail. Change nothing.

Some faults never appear in a failed call: a queue without a DLQ, messages that pile up or expire, a
consumer that receives and never deletes. So every managed queue is read once an hour, and by
`mendq scan`. Each symptom of the catalogue that can be seen in this way has a `Detection`.

Reading has two prices. SQS calls are cheap but limited per second. CloudWatch bills every metric.
So `scan` works in three steps.

Step 1, free: read attributes, tags, consumers and the DLQ of all queues, 200 at a time, called a
block. That decides the symptoms of the configuration. A queue is a candidate if a measurement could
show a further symptom.

Step 2, three metrics a queue: ask CloudWatch for the sums of the candidates' sends, receives and
deletes. The sums, and what step 1 has read, tell which candidates must be measured
(`mendq/model/traffic.py`). They are the suspects.

Step 3, four to six metrics more a queue, and those of its functions: measure the suspects, the
worst first, for as long as the allowance lasts. A measured queue is checked for every symptom that
its configuration makes possible.

`mendq/scan/reader.py` makes the calls, each once and within AWS's rates. `mendq/scan/hourly.py`
decides where an hour's scan begins and ends, and hands findings to heal.

Rules:

1. Nothing is asked of CloudWatch before all queues were read for which there is time. Otherwise the
   first queues by name would spend the whole budget.

2. Results come block by block, each with the name of its last queue (`last_queue_name`). If no time
   is left for another block, `scan` reads no further queues and continues with those it has. The
   caller knows by `last_queue_name` which queues were read; the others are in no result at all, not
   even as skipped.

3. A failure costs one queue, or one symptom of one queue. A queue that cannot be read is counted as
   unseen, with its error; one that was deleted meanwhile is counted as gone and is no error. If a
   symptom's detection fails, the error is recorded and the other symptoms are still checked. If
   CloudWatch does not answer for several queues together, each is asked for alone; if that fails
   MOST_FAILED_READS times in a row, the others of the batch fail too, because CloudWatch itself is
   disturbed. The wide `except Exception` is intended: a bug in one entry must not blind Mendq for
   every queue. If the Lambda consumers of a queue cannot be read, it looks like a queue without a
   function. So only symptoms that do not need the consumers are looked for
   (`Facts.consumers_error`), and the queue is recorded with "consumers not judged" and the reason.

4. A fault in the configuration is looked for before measuring, and the queue is measured for that
   symptom only if the configuration shows nothing. Metrics would not tell more.

5. Sums are asked for in the hours that the allowance names, in turns if there are many queues (rule
   6 of `mendq/model/traffic.py`). In the other hours, what step 1 has read decides alone: growth of
   a DLQ, the queue's own messages, disabled mappings.

6. Suspects are measured by urgency. Among equals the order changes every hour, so that a budget
   that is too small does not skip the same queues for ever. Each urgency has a share of the metrics
   that are left (`metric_share.py`), so that many queues of one urgency, which anyone can make, do
   not keep the others from being measured. A run that cannot reach all queues leaves metrics to the
   round's next run: as large a part as it leaves queues. Queues in use without a sign of a fault
   are measured last, and only for symptoms that traffic need not show (`Detection.is_measured_last`
   and `is_hidden_in_traffic`), with the few metrics that these need, and only if the sums were
   asked for. They may spend only what the worse ones of later hours do not need. Once the allowance
   refuses a batch, the remaining suspects are skipped, with the reason (`skip_reason_by_arn`);
   those without a sign of a fault are named as checked in part (`partly_checked_arns`).

7. A queue counts as completely checked (`configuration_by_arn`) if it was measured or its sums show
   no fault, nothing failed, and it was not created or changed too lately to be measured (such a
   suspect is in `unsettled_arns`). Only of these queues a healthy configuration is stored, as a
   baseline. A queue that was not measured for lack of budget must not count as a healthy one.

8. A DLQ that Mendq made is scanned with its source even if it is not a managed queue, unless its
   tag is `off`. Mendq is responsible for this DLQ, because other people may not notice its faults.
   It is checked once in a run, also if its name comes before its source's.

9. A detection that takes redrives or the traffic of four days into account runs again if the queue
   was measured (`Facts.measurement`) and the first run found something: first without asking for
   them, then with each. Listing redrives costs a call per DLQ, four days of traffic cost two
   metrics, and both can only explain a finding away, never make one. They explain measurements
   only, so other findings need no second run. If the allowance refuses the two metrics, the
   symptom is not judged, and the queue is recorded with that reason.

10. The deletes of a DLQ, one metric more, are read only if the counts of its source can be those of
   messages that go round (`Facts.may_job_send_messages_back`). If the allowance refuses the metric,
   the symptom is not judged, as in rule 9.

11. Some facts prove a fault without a metric (`Detection.detect_fact`), such as a disabled mapping.
   If a suspect is not measured, because it was changed too lately, the allowance is spent or
   CloudWatch fails, they decide. If it is measured, the measurement decides, because it knows more.
   Facts that cost a call (NEEDS_OF_FACTS) are read only then, while there is time.

12. A fact that no metric shows may cost a call that most queues are not worth, such as the state of
   a KMS key (`Detection.is_left_to_suspects`). It is read for suspects, measured or not, and for
   queues in use whose sums are all 0: if the key is disabled, nothing is sent or received. A key
   that cannot be read is no error of its queue. `unjudged_reason_by_symptom` says why.

This module stores nothing, sends no notifications, and does not choose which findings matter. So
`mendq scan --dry-run` can use the same function.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import filterfalse
from math import inf
from typing import NamedTuple, TypeVar

from msgspec import Struct, structs

from mendq.aws.cloudwatch import MOST_QUEUES_PER_CALL, MOST_QUEUES_PER_SUMS_CALL
from mendq.aws.errors import ConsumersUnknown, FactsUnavailable, QueueGone, QueueRefusesUs
from mendq.aws.facts_reader import function_names
from mendq.aws.queue import ManagedQueue, read_tags_if_allowed
from mendq.cases.finding import Finding, ScanResult, merge_results, scan_order_key
from mendq.cases.measured_facts import MeasuredFacts
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import DetectedFault, Detection, Symptom
from mendq.model.facts import Facts, Need
from mendq.model.metrics import DAYS_OF_TRAFFIC_METRICS, Measurement, Window
from mendq.model.tags import MODE_OFF_VALUE, MODE_TAG
from mendq.model.traffic import (
    SUM_SERIES,
    MeasuringReason,
    QueueRecord,
    ScanHistory,
    SumsShare,
    Traffic,
    Urgency,
    count_messages,
    find_measuring_reason,
    has_dlq_gained,
    hour_number,
    must_measure,
    select_queues_for_sums,
)
from mendq.notifications.queue_lines import describe_configuration
from mendq.scan.metric_share import MetricShare, divide_by_urgency
from mendq.scan.reader import DLQ_DELETES_METRICS, THREAD_COUNT, ScanReader

QUEUES_PER_BLOCK = 200
# If CloudWatch fails this often in a row for single queues, it is not asked for the next ones of
# the batch.
MOST_FAILED_READS = 2
# Facts that are read for every suspect. A detection's other needs are read later, one by one.
NEEDS_READ_FOR_SUSPECTS = frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS})
# Facts that only the plans of symptoms need. A scan makes no plan, so it does not read them.
NEEDS_OF_PLANS = frozenset({Need.DLQ_NAMESAKE})
# Facts that may prove a fault without a metric (rule 11).
NEEDS_OF_FACTS = frozenset({Need.SWITCHED_OFF_FUNCTIONS})
# Facts that can only explain a finding away, in the order in which they are read (rule 9).
NEEDS_THAT_EXPLAIN = (Need.MOVE_TASKS, Need.DAYS_OF_TRAFFIC)
# Why a queue was left out.
SUMS_SKIPPED = (
    "its sums were not read: the metrics or the time of this scan were spent on other queues"
)
SUMS_WAIT = (
    "its sums were not read: there are more queues in use than limits.scanMetricsPerDay pays for, "
    "so they take turns; each has one within {hours:,} hours"
)
SUMS_NEVER = "its sums were not read: limits.scanMetricsPerDay is too small for any queue"
MEASURING_SKIPPED = (
    "it was not measured, although {reason}: the metrics or the time of this scan were spent on "
    "worse queues"
)
# The symptom that is not judged for a queue whose key cannot be read.
KMS_SYMPTOM = "kms_key_unusable"
ReadAnswer = TypeVar("ReadAnswer")


def _allow_metrics(_metric_count: int) -> bool:
    """Return True: the allowance without a limit."""
    return True


class Allowance(Struct, frozen=True):
    """The limits of a scan.

    Attributes:
        may_read_queues: Function that returns True while there is time to read more queues.
        may_measure: Function that gets a number of metrics. If they may be read, it counts them as
            spent and returns True.
        may_measure_last: The same for queues in use without a sign of a fault.
        may_read_facts: Function that returns True while there is time to read facts about suspects
            that are not measured.
        asks_sums: True if this scan asks for sums (rule 5).
        sums_share: The most queues whose sums are asked for in the round; None for all.
        count_metrics_left: Function that returns how many metrics may still be read in this round.
        round_queue_count: The number of queues of the whole round, if other runs scan some of them;
            otherwise 0.
    """

    may_read_queues: Callable[[], bool] = lambda: True
    may_measure: Callable[[int], bool] = _allow_metrics
    may_measure_last: Callable[[int], bool] = _allow_metrics
    may_read_facts: Callable[[], bool] = lambda: True
    asks_sums: bool = True
    sums_share: SumsShare | None = None
    count_metrics_left: Callable[[], float] = lambda: inf
    round_queue_count: int = 0

    def find_sums_share(self, reached_share: float, queue_count: int) -> SumsShare | None:
        """Return how much of the hourly scan's `sums_share` this run may use so far.

        An hourly scan may need several runs. Each run gets the part of its own queues.

        Args:
            reached_share: The part of the run's queues that it has reached, from 0 to 1.
            queue_count: The number of the run's queues.
        """
        if self.sums_share is None or not queue_count:
            return self.sums_share
        return self.sums_share.take_part(
            reached_share * queue_count / max(queue_count, self.round_queue_count)
        )


def scan(
    queues: Sequence[ManagedQueue],
    reader: ScanReader,
    allowance: Allowance,
    symptoms: Iterable[Symptom] = CATALOGUE,
    history: ScanHistory | None = None,
) -> Iterator[ScanResult]:
    """Scan the queues. Yield one result per block, then further results of the other steps.

    `merge_results` adds up two results. `scan` itself stores nothing.

    Args:
        queues: The queues, sorted by name. A DLQ that Mendq made is added to its source (rule 8).
        reader: Reads the queues.
        allowance: How far the scan may go.
        symptoms: The symptoms to look for. Those without a detection, and those that only a
            template shows, are left out.
        history: What earlier scans remember; None without an earlier scan.
    """
    detectable_symptoms = tuple(
        symptom for symptom in symptoms if symptom.detection and not symptom.is_of_template
    )
    known_history = history or {}
    candidates: list[_Candidate] = []
    record_by_queue_name = dict[str, QueueRecord]()
    failed_arns = set[str]()
    reached_count = 0
    for block in _check_blocks(queues, reader, allowance, detectable_symptoms, known_history):
        candidates += block.candidates
        record_by_queue_name.update(block.result.record_by_queue_name)
        failed_arns.update(block.result.error_by_target)
        reached_count += block.result.queues_scanned
        yield block.result
    reached_share = min(1.0, reached_count / max(1, len(queues)))
    metrics_left = allowance.count_metrics_left() * reached_share if reached_share else 0
    traffic_by_arn = dict[str, Traffic | None]()
    if allowance.asks_sums:
        sums_share = allowance.find_sums_share(reached_share, len(queues))
        allowance_of_run = structs.replace(allowance, sums_share=sums_share)
        for sums in _read_sums(candidates, reader, allowance_of_run, known_history):
            metrics_left -= sums.result.metrics
            traffic_by_arn.update(sums.traffic_by_arn)
            record_by_queue_name.update(sums.result.record_by_queue_name)
            yield sums.result
    selection = _select_suspects(candidates, traffic_by_arn, reader, known_history)
    yield selection.result
    facts_by_arn = {
        suspect.queue_arn: suspect.facts
        for suspect in selection.suspects
        if suspect.queue_arn not in failed_arns
    }
    for measured in _measure_suspects(selection.suspects, reader, allowance, metrics_left):
        yield _note_judged_dlqs(measured, facts_by_arn, record_by_queue_name)
    yield _check_silent_queues(selection.silent_candidates, reader, allowance)


class _Candidate(Struct, frozen=True):
    """A queue that a measurement could tell something about.

    Attributes:
        facts: The queue as step 1 has read it.
        window: The time to measure.
        symptoms: The symptoms that its configuration makes possible and that metrics would show.
        fact_symptoms: The possible symptoms that are left to suspects (rule 12).
    """

    facts: Facts
    window: Window
    symptoms: tuple[Symptom, ...]
    fact_symptoms: tuple[Symptom, ...] = ()

    @property
    def queue_arn(self) -> str:
        return self.facts.queue_arn


class _Suspect(Struct, frozen=True):
    """A queue to measure, the symptoms to look for, and the reason.

    `fact_symptoms` are looked for too, and need no metric (rule 12).
    """

    facts: Facts
    window: Window
    symptoms: tuple[Symptom, ...]
    reason: MeasuringReason
    fact_symptoms: tuple[Symptom, ...] = ()

    @property
    def queue_arn(self) -> str:
        return self.facts.queue_arn

    @property
    def is_measured_last(self) -> bool:
        """True if the queue shows no sign of a fault (rule 6)."""
        return self.reason.urgency is Urgency.NOTHING_SHOWS


class _QueueCheck(Struct, frozen=True):
    """The result of checking one queue without measuring it.

    Attributes:
        result: The result, with the findings.
        candidate: The queue with the symptoms that metrics would show; None if there are none.
        made_dlq_arn: The ARN of the queue's DLQ if Mendq made that DLQ, else an empty text.
    """

    result: ScanResult
    candidate: _Candidate | None = None
    made_dlq_arn: str = ""


class _CheckedBlock(Struct, frozen=True):
    """The candidates among the queues of a block, and the result for the caller of `scan`."""

    candidates: list[_Candidate]
    result: ScanResult


def _check_blocks(
    queues: Sequence[ManagedQueue],
    reader: ScanReader,
    allowance: Allowance,
    symptoms: tuple[Symptom, ...],
    history: ScanHistory,
) -> Iterator[_CheckedBlock]:
    """Check the queues without measuring them, block by block, while there is time (rule 2)."""
    checked_arns = set[str]()
    with ThreadPoolExecutor(THREAD_COUNT) as thread_pool:
        for block_start in range(0, len(queues), QUEUES_PER_BLOCK):
            if not allowance.may_read_queues():
                break
            queue_block = queues[block_start : block_start + QUEUES_PER_BLOCK]
            new_queues = [queue for queue in queue_block if queue.queue_arn not in checked_arns]
            queue_checks = list(
                thread_pool.map(
                    lambda queue: _check_queue(queue, reader, symptoms, history),
                    new_queues,
                )
            )
            checked_arns.update(queue.queue_arn for queue in queue_block)
            made_dlq_arns = sorted(
                {queue_check.made_dlq_arn for queue_check in queue_checks} - {"", *checked_arns}
            )
            checked_arns.update(made_dlq_arns)
            queue_checks += thread_pool.map(
                lambda dlq_arn: _check_made_dlq(dlq_arn, reader, symptoms, history),
                made_dlq_arns,
            )
            candidates = [
                queue_check.candidate for queue_check in queue_checks if queue_check.candidate
            ]
            block_result = ScanResult()
            for queue_check in queue_checks:
                block_result = merge_results(block_result, queue_check.result)
            yield _CheckedBlock(
                candidates, replace(block_result, last_queue_name=queue_block[-1].name)
            )


def _check_made_dlq(
    dlq_arn: str, reader: ScanReader, symptoms: tuple[Symptom, ...], history: ScanHistory
) -> _QueueCheck:
    """Check a DLQ that Mendq made (rule 8).

    If its own `mendq` tag is `off`, do not check it and return an empty result.
    """
    try:
        tags = reader.ask(read_tags_if_allowed, dlq_arn)
    except FactsUnavailable as error:
        return _QueueCheck(ScanResult(queues_scanned=1, unseen=1, error_by_target={dlq_arn: error}))
    if tags.get(MODE_TAG) == MODE_OFF_VALUE:
        return _QueueCheck(ScanResult())
    return _check_queue(ManagedQueue(dlq_arn, tags), reader, symptoms, history)


def _check_queue(
    queue: ManagedQueue, reader: ScanReader, symptoms: tuple[Symptom, ...], history: ScanHistory
) -> _QueueCheck:
    """Check a queue for every symptom without measuring it.

    The result names the symptoms that metrics would show. Errors are recorded in the result and not
    raised (rule 3).
    """
    try:
        facts = _read_facts(queue, reader, history)
        window = reader.choose_window(facts)
        record = _make_record(facts, history, reader)
    except QueueGone:
        return _QueueCheck(ScanResult(queues_scanned=1, gone=1))
    except Exception as error:  # noqa: BLE001 - recorded; other queues are still scanned (rule 3)
        return _QueueCheck(
            ScanResult(queues_scanned=1, unseen=1, error_by_target={queue.queue_arn: error})
        )
    errors: list[Exception] = []
    if facts.consumers_error:
        errors.append(ConsumersUnknown(facts.consumers_error))
        symptoms = tuple(symptom for symptom in symptoms if not _needs_consumers(symptom))
    must_judge_facts = window is None and must_measure(facts, None, history)
    checks = _check_symptoms(facts, symptoms, reader, errors, must_judge_facts=must_judge_facts)
    made_dlq_arn = ""
    try:
        made_dlq_arn = reader.find_dlq_made_by_mendq(facts)
    except Exception as error:  # noqa: BLE001 - recorded; the queue itself was looked at
        errors.append(error)
    open_symptoms = [check.symptom for check in checks if check.is_possible]
    fact_symptoms = tuple(filter(_is_left_to_suspects, open_symptoms))
    possible_symptoms = tuple(filterfalse(_is_left_to_suspects, open_symptoms))
    candidate = None
    if possible_symptoms and window:
        candidate = _Candidate(facts, window, possible_symptoms, fact_symptoms)
    is_unsettled = bool(possible_symptoms) and window is None and _is_in_use(facts, history)
    is_check_incomplete = candidate or errors or window is None
    result = ScanResult(
        queues_scanned=1,
        findings=tuple(finding for check in checks for finding in check.findings),
        error_by_target={queue.queue_arn: errors[0]} if errors else {},
        configuration_by_arn={}
        if is_check_incomplete
        else {queue.queue_arn: describe_configuration(facts)},
        unsettled_arns=(queue.queue_arn,) if is_unsettled else (),
        record_by_queue_name={facts.name: record},
    )
    return _QueueCheck(result, candidate, made_dlq_arn)


def _check_symptoms(
    facts: Facts,
    symptoms: Iterable[Symptom],
    reader: ScanReader,
    errors: list[Exception],
    *,
    must_judge_facts: bool,
) -> list[_SymptomCheck]:
    """Check a queue for the symptoms, and add to `errors` why one cannot be checked (rule 3)."""
    checks: list[_SymptomCheck] = []
    for symptom in symptoms:
        try:
            checks.append(_check_symptom(symptom, facts, reader, must_judge_facts=must_judge_facts))
        except Exception as error:  # noqa: BLE001 - recorded; other symptoms are still checked
            errors.append(error)
    return checks


class _SymptomCheck(NamedTuple):
    """What a queue shows of a symptom without a measurement.

    `is_possible` is True if metrics or facts of suspects may show the symptom.
    """

    symptom: Symptom
    findings: list[Finding]
    is_possible: bool


def _check_symptom(
    symptom: Symptom, facts: Facts, reader: ScanReader, *, must_judge_facts: bool
) -> _SymptomCheck:
    """Check a queue for a symptom. If `must_judge_facts`, facts alone may prove it (rule 11)."""
    findings, is_possible = _check_without_measuring(symptom, facts, reader)
    if is_possible and must_judge_facts:
        findings = [*findings, *_detect_fact(symptom, facts, reader)]
    return _SymptomCheck(symptom, [*findings], is_possible)


def _is_in_use(facts: Facts, history: ScanHistory) -> bool:
    """Return True if the queue holds messages, or was in use at the last scan, as far as known."""
    record = history.get(facts.name)
    return count_messages(facts) > 0 or record is None or record.is_in_use


def _make_record(facts: Facts, history: ScanHistory, reader: ScanReader) -> QueueRecord:
    """Return what the next scan must know about the queue.

    If its DLQ gained messages, the record keeps the number at which the queue was last judged, and
    `_note_judged_dlqs` replaces that number if the queue is measured.
    """
    hour = hour_number(reader.now)
    earlier_record = history.get(facts.name, QueueRecord(0, hour, first_seen_hour=hour))
    message_count = count_messages(facts)
    record = earlier_record._replace(
        messages=message_count,
        scanned_hour=hour,
        active_hour=hour if message_count else earlier_record.active_hour,
    )
    if facts.dlq and facts.dlq.exists and not has_dlq_gained(facts, history):
        record = record.with_judged_dlq(facts.dlq)
    return record


def _read_facts(queue: ManagedQueue, reader: ScanReader, history: ScanHistory) -> Facts:
    """Return the queue's attributes, tags, consumers and DLQ.

    The DLQ of a queue in use is read in each scan, because its messages show within the hour that
    the queue's messages fail. For other queues, the last scan's answer may be used.
    If the DLQ cannot be read, it is left out here. Symptoms that need the DLQ then fail with the
    error. If the consumers cannot be read, the facts have the reason (rule 3).
    """
    tags = reader.consent.without_team_tag(queue.tags)
    facts = reader.read_queue(queue.queue_arn, tags, {Need.QUEUE})
    try:
        facts = reader.with_consumers(facts)
    except (FactsUnavailable, QueueRefusesUs) as error:
        facts = replace(facts, consumers_error=str(error))
    record = history.get(facts.name)
    if count_messages(facts) or (record and record.active_hour and record.is_in_use):
        reader.forget_last_dlq_answer(facts)
    with suppress(FactsUnavailable, QueueRefusesUs):
        facts = reader.with_dlq(facts)
    return facts


def _is_left_to_suspects(symptom: Symptom) -> bool:
    """Return True if only suspects are checked for the symptom, without metrics (rule 12)."""
    return _get_detection(symptom).is_left_to_suspects


def _needs_consumers(symptom: Symptom) -> bool:
    """Return True if the symptom cannot be judged without the queue's Lambda consumers."""
    return Need.LAMBDA_CONSUMERS in _get_detection(symptom).needs


def _check_without_measuring(
    symptom: Symptom, facts: Facts, reader: ScanReader
) -> tuple[list[Finding], bool]:
    """Check a queue for a symptom without measuring (rule 4).

    Return the findings, and True if a measurement could show the symptom.
    """
    detection = _get_detection(symptom)
    is_possible = detection.is_possible(facts)
    is_judged_later = Need.MEASUREMENTS in detection.needs or detection.is_left_to_suspects
    findings: list[Finding] = []
    if detection.is_of_configuration or (is_possible and not is_judged_later):
        findings = _detect_symptom(symptom, facts, reader)
    return findings, is_possible and is_judged_later and not findings


class _SumsOfBatch(Struct, frozen=True):
    """The sums of some candidates by queue ARN, and the result for the caller of `scan`."""

    traffic_by_arn: Mapping[str, Traffic | None]
    result: ScanResult


def _read_sums(
    candidates: Sequence[_Candidate],
    reader: ScanReader,
    allowance: Allowance,
    history: ScanHistory,
) -> Iterator[_SumsOfBatch]:
    """Read the three sums of the candidates whose turn it is, batch by batch (rule 5).

    A queue whose sums cannot be read is in the result with its error. A queue that is left out is
    there with the reason, except if it will be measured without its sums.
    """
    hour = hour_number(reader.now)
    turn = select_queues_for_sums(
        [candidate.facts.name for candidate in candidates], history, hour, allowance.sums_share
    )
    waiting_candidates = [
        candidate for candidate in candidates if candidate.facts.name in turn.waiting_names
    ]
    if waiting_candidates:
        reason = SUMS_WAIT.format(hours=turn.longest_pause_hours)
        if not turn.longest_pause_hours:
            reason = SUMS_NEVER
        yield _skip_sums(waiting_candidates, history, reason)
    due_candidates = [candidate for candidate in candidates if candidate.facts.name in turn.names]
    due_candidates.sort(key=lambda candidate: scan_order_key(candidate.queue_arn, reader.now))
    for batch_start in range(0, len(due_candidates), MOST_QUEUES_PER_SUMS_CALL):
        batch = due_candidates[batch_start : batch_start + MOST_QUEUES_PER_SUMS_CALL]
        metric_count = len(batch) * len(SUM_SERIES)
        if not allowance.may_measure(metric_count):
            yield _skip_sums(due_candidates[batch_start:], history, SUMS_SKIPPED)
            return
        yield _read_sums_of_batch(batch, reader, history)


def _read_sums_of_batch(
    batch: Sequence[_Candidate], reader: ScanReader, history: ScanHistory
) -> _SumsOfBatch:
    """Read the three sums of some candidates together."""
    window_by_arn = {candidate.queue_arn: candidate.window for candidate in batch}
    traffic_by_arn, error_by_arn = _read_each(window_by_arn, reader.read_traffic)
    record_by_queue_name = dict[str, QueueRecord]()
    for candidate in batch:
        name = candidate.facts.name
        if traffic := traffic_by_arn.get(candidate.queue_arn):
            record = _make_record(candidate.facts, history, reader)
            record_by_queue_name[name] = _note_sums(record, traffic, hour_number(reader.now))
    result = ScanResult(
        metrics=len(batch) * len(SUM_SERIES),
        error_by_target=error_by_arn,
        record_by_queue_name=record_by_queue_name,
    )
    return _SumsOfBatch(traffic_by_arn, result)


def _skip_sums(candidates: Iterable[_Candidate], history: ScanHistory, reason: str) -> _SumsOfBatch:
    """Return a result that names the queues that are left out, with the reason.

    Queues that will be measured without their sums are not left out.
    """
    left_out_arns = [
        candidate.queue_arn
        for candidate in candidates
        if not must_measure(candidate.facts, None, history)
    ]
    return _SumsOfBatch({}, ScanResult(skip_reason_by_arn=dict.fromkeys(left_out_arns, reason)))


def _note_sums(record: QueueRecord, traffic: Traffic, hour: int) -> QueueRecord:
    """Return the record of a queue whose sums were read in this hour."""
    active_hour = hour if traffic.has_messages else record.active_hour
    return record._replace(sums_hour=hour, active_hour=active_hour)


def _read_each(
    window_by_arn: Mapping[str, Window],
    read: Callable[[Mapping[str, Window]], Mapping[str, ReadAnswer]],
) -> tuple[dict[str, ReadAnswer], dict[str, Exception]]:
    """Read queues together, or one by one if that fails (rule 3).

    Return the answers, and the errors of the other queues, both by queue ARN.
    """
    try:
        return {**read(window_by_arn)}, {}
    except Exception as error:  # noqa: BLE001 - each queue is asked for alone below
        batch_error = error
    answer_by_arn = dict[str, ReadAnswer]()
    error_by_arn = dict[str, Exception]()
    failed_reads_in_a_row = 0
    for arn, window in window_by_arn.items():
        if failed_reads_in_a_row == MOST_FAILED_READS:
            error_by_arn[arn] = batch_error
            continue
        try:
            answer_by_arn.update(read({arn: window}))
            failed_reads_in_a_row = 0
        except Exception as error:  # noqa: BLE001 - recorded; other queues are still read
            error_by_arn[arn] = error
            failed_reads_in_a_row += 1
    return answer_by_arn, error_by_arn


class _Selection(Struct, frozen=True):
    """The suspects, the most urgent first, and the result of the candidates that are none.

    `silent_candidates` are no suspects, and all their sums are 0 although they are in use.
    """

    suspects: list[_Suspect]
    result: ScanResult
    silent_candidates: list[_Candidate]


def _select_suspects(
    candidates: Sequence[_Candidate],
    traffic_by_arn: Mapping[str, Traffic | None],
    reader: ScanReader,
    history: ScanHistory,
) -> _Selection:
    """Return the candidates to measure, sorted by urgency (rule 6).

    `traffic_by_arn` has the sums of the queues that were asked for; None if CloudWatch did not
    return all three.
    """
    suspects = list[_Suspect]()
    silent_candidates = list[_Candidate]()
    configuration_by_arn = dict[str, Mapping[str, str]]()
    for candidate in candidates:
        traffic = traffic_by_arn.get(candidate.queue_arn)
        are_sums_incomplete = candidate.queue_arn in traffic_by_arn and traffic is None
        suspect = _find_suspect(
            candidate, history, traffic, are_sums_incomplete=are_sums_incomplete
        )
        if _is_silent(candidate, suspect, traffic, history):
            silent_candidates.append(candidate)
        if suspect:
            suspects.append(suspect)
            # Symptoms that only cost money do not depend on the DLQ or on sources.
            if suspect.symptoms == candidate.symptoms:
                reader.forget_last_scan_answers(suspect.facts)
        elif traffic and not candidate.facts.consumers_error:
            configuration_by_arn[candidate.queue_arn] = describe_configuration(candidate.facts)
    suspects.sort(
        key=lambda suspect: (suspect.reason.urgency, scan_order_key(suspect.queue_arn, reader.now))
    )
    result = ScanResult(
        suspects=len(suspects),
        configuration_by_arn=configuration_by_arn,
        measuring_reason_by_arn={suspect.queue_arn: suspect.reason.text for suspect in suspects},
    )
    return _Selection(suspects, result, silent_candidates)


def _is_silent(
    candidate: _Candidate,
    suspect: _Suspect | None,
    traffic: Traffic | None,
    history: ScanHistory,
) -> bool:
    """Return True if nothing asks to measure the queue and its sums are 0 although it is in use."""
    if traffic is None or traffic.has_messages:
        return False
    nothing_shows = suspect is None or suspect.reason.urgency is Urgency.NOTHING_SHOWS
    return nothing_shows and _is_in_use(candidate.facts, history)


def _find_suspect(
    candidate: _Candidate,
    history: ScanHistory,
    traffic: Traffic | None,
    *,
    are_sums_incomplete: bool,
) -> _Suspect | None:
    """Return a suspect if something asks to measure the queue, or if traffic hides a symptom."""
    reason = find_measuring_reason(candidate.facts, traffic, history)
    if reason is None and are_sums_incomplete:
        reason = MeasuringReason(
            Urgency.MESSAGES_STAY, "CloudWatch did not return its sums completely"
        )
    if reason is None or all(map(_is_looked_for_last, candidate.symptoms)):
        return _make_last_suspect(candidate, traffic) if traffic else None
    return _Suspect(
        candidate.facts, candidate.window, candidate.symptoms, reason, candidate.fact_symptoms
    )


def _is_looked_for_last(symptom: Symptom) -> bool:
    """Return True if traffic need not show the symptom."""
    detection = _get_detection(symptom)
    return detection.is_measured_last or detection.is_hidden_in_traffic


def _make_last_suspect(candidate: _Candidate, traffic: Traffic) -> _Suspect | None:
    """Return a suspect for the symptoms that traffic need not show; None if none is possible.

    If all these symptoms name the kinds of metrics that they need, only these are read. A queue of
    which CloudWatch has no datapoint is not in use and cannot have such a symptom.
    """
    symptoms = [symptom for symptom in candidate.symptoms if _is_looked_for_last(symptom)]
    if not traffic.has_messages:
        symptoms = [symptom for symptom in symptoms if _get_detection(symptom).is_measured_last]
    if not symptoms or not traffic.is_reported:
        return None
    reason = MeasuringReason(Urgency.NOTHING_SHOWS, "it is in use")
    detections = [_get_detection(symptom) for symptom in symptoms]
    if not all(detection.metric_kinds for detection in detections):
        return _Suspect(candidate.facts, candidate.window, candidate.symptoms, reason)
    metric_kinds: dict[str, None] = {}
    for detection in detections:
        metric_kinds.update(dict.fromkeys(detection.metric_kinds))
    window = replace(candidate.window, kinds=tuple(metric_kinds))
    return _Suspect(candidate.facts, window, tuple(symptoms), reason)


def _measure_suspects(
    suspects: Sequence[_Suspect], reader: ScanReader, allowance: Allowance, metrics_left: float
) -> Iterator[ScanResult]:
    """Measure the suspects batch by batch until the allowance is spent (rule 6).

    Each urgency has a share of `metrics_left`; what it leaves is for the next. What all leave is
    for the suspects that are left, the worst first.
    """
    worse_suspects = [suspect for suspect in suspects if not suspect.is_measured_last]
    last_suspects = [suspect for suspect in suspects if suspect.is_measured_last]
    share_of_run = MetricShare(allowance.may_measure, metrics_left)
    left_out_suspects: list[_Suspect] = []
    unspent = 0.0
    urgencies = [suspect.reason.urgency for suspect in worse_suspects]
    for urgency, metric_count in divide_by_urgency(metrics_left, urgencies).items():
        share = MetricShare(share_of_run.spend_beyond_share, metric_count + unspent)
        suspects_of_urgency = [
            suspect for suspect in worse_suspects if suspect.reason.urgency is urgency
        ]
        left_out_suspects += yield from _measure_while_allowed(suspects_of_urgency, reader, share)
        unspent = share.left
    left_out_suspects = yield from _measure_while_allowed(left_out_suspects, reader, share_of_run)
    share_of_last = MetricShare(allowance.may_measure_last, share_of_run.left)
    left_out_suspects += yield from _measure_while_allowed(last_suspects, reader, share_of_last)
    if left_out_suspects:
        yield _skip_suspects(left_out_suspects, reader, allowance.may_read_facts)


def _note_judged_dlqs(
    result: ScanResult, facts_by_arn: Mapping[str, Facts], record_by_queue_name: ScanHistory
) -> ScanResult:
    """Return the result with the new records of the suspects that were judged.

    These are the suspects that were measured without an error. Another suspect keeps its record,
    so that it is a suspect in the next scan too.

    Args:
        result: The result of some suspects.
        facts_by_arn: The suspects whose configuration was checked without an error.
        record_by_queue_name: The records of this scan so far.
    """
    new_record_by_queue_name = dict[str, QueueRecord]()
    for queue_arn in result.configuration_by_arn:
        facts = facts_by_arn.get(queue_arn)
        if facts and facts.dlq and facts.dlq.exists:
            record = record_by_queue_name[facts.name]
            new_record_by_queue_name[facts.name] = record.with_judged_dlq(facts.dlq)
    return replace(result, record_by_queue_name=new_record_by_queue_name)


def _measure_while_allowed(
    suspects: Sequence[_Suspect], reader: ScanReader, share: MetricShare
) -> Generator[ScanResult, None, list[_Suspect]]:
    """Measure the suspects batch by batch. Return those from the first refusal on."""
    for batch_start in range(0, len(suspects), MOST_QUEUES_PER_CALL):
        suspect_batch = suspects[batch_start : batch_start + MOST_QUEUES_PER_CALL]
        metric_count = reader.count_function_metrics(suspect.facts for suspect in suspect_batch)
        for suspect in suspect_batch:
            metric_count += reader.count_series_to_read(suspect.queue_arn, suspect.window)
        if not share.spend(metric_count):
            return [*suspects[batch_start:]]
        batch_result = _measure_batch(suspect_batch, reader, share.spend_beyond_share)
        yield replace(batch_result, metrics=metric_count + batch_result.metrics)
    return []


def _skip_suspects(
    suspects: Iterable[_Suspect], reader: ScanReader, may_read_facts: Callable[[], bool]
) -> ScanResult:
    """Return a result that names the suspects that are left out, with the reason.

    It has the findings that facts alone prove, as far as there is time to read them (rule 11).
    """
    skip_reason_by_arn = dict[str, str]()
    partly_checked_arns = list[str]()
    findings = list[Finding]()
    error_by_arn = dict[str, Exception]()
    for suspect in suspects:
        if suspect.is_measured_last:
            partly_checked_arns.append(suspect.queue_arn)
            continue
        skip_reason_by_arn[suspect.queue_arn] = MEASURING_SKIPPED.format(reason=suspect.reason.text)
        if may_read_facts():
            findings += _detect_facts(suspect, reader, error_by_arn)
    return ScanResult(
        findings=tuple(findings),
        error_by_target=error_by_arn,
        skip_reason_by_arn=skip_reason_by_arn,
        partly_checked_arns=tuple(partly_checked_arns),
    )


def _measure_batch(
    suspect_batch: Sequence[_Suspect], reader: ScanReader, may_measure: Callable[[int], bool]
) -> ScanResult:
    """Measure some suspects together, and check them for their symptoms.

    The result counts only the metrics that are read for single suspects (`_count_later_metrics`).
    """
    measurement_by_arn, error_by_arn = _read_each(
        {suspect.queue_arn: suspect.window for suspect in suspect_batch}, reader.measure
    )
    # The reader caches the metrics of all their consumers, and answers for each queue from them. If
    # that read fails, each queue's consumers are read alone below.
    function_names_of_batch: set[str] = set()
    for suspect in suspect_batch:
        function_names_of_batch.update(function_names(suspect.facts))
    with suppress(FactsUnavailable, QueueRefusesUs):
        reader.read_function_metrics(sorted(function_names_of_batch))
    findings: list[Finding] = []
    gap_reason_by_arn = dict[str, str]()
    for suspect in suspect_batch:
        if measurement_by_arn.get(suspect.queue_arn) is None:
            findings += _detect_facts(suspect, reader, error_by_arn)
            if metric_gap := reader.find_metric_gap(suspect.queue_arn, suspect.window):
                gap_reason_by_arn[suspect.queue_arn] = metric_gap.reason
        if suspect.queue_arn in measurement_by_arn:
            measurement = measurement_by_arn[suspect.queue_arn]
            findings += _check_measured_queue(
                suspect, measurement, reader, may_measure, error_by_arn
            )
    return ScanResult(
        measured=len(measurement_by_arn),
        metrics=_count_later_metrics(suspect_batch, measurement_by_arn, reader),
        findings=tuple(findings),
        error_by_target=error_by_arn,
        gap_reason_by_arn=gap_reason_by_arn,
        configuration_by_arn={
            suspect.queue_arn: describe_configuration(suspect.facts)
            for suspect in suspect_batch
            if measurement_by_arn.get(suspect.queue_arn)
            and suspect.queue_arn not in error_by_arn
            and not suspect.facts.consumers_error
        },
        levels_by_arn=_summarize_queue_levels(suspect_batch, measurement_by_arn),
    )


def _check_measured_queue(
    suspect: _Suspect,
    measurement: Measurement | None,
    reader: ScanReader,
    may_measure: Callable[[int], bool],
    error_by_arn: dict[str, Exception],
) -> list[Finding]:
    """Return the findings about a suspect, and add its last error, if any, to `error_by_arn`."""
    try:
        facts = reader.with_function_metrics(suspect.facts)
    except Exception as error:  # noqa: BLE001 - recorded; other queues are still checked
        error_by_arn[suspect.queue_arn] = error
        return []
    facts = replace(facts, measurement=measurement)
    findings: list[Finding] = []
    for symptom in (*suspect.symptoms, *suspect.fact_symptoms):
        try:
            findings += _detect_symptom(symptom, facts, reader, may_measure)
        except Exception as error:  # noqa: BLE001 - recorded; other symptoms are still checked
            error_by_arn[suspect.queue_arn] = error
    return _add_measured_facts(findings, facts, suspect.window, reader)


def _add_measured_facts(
    findings: Sequence[Finding], facts: Facts, window: Window, reader: ScanReader
) -> list[Finding]:
    """Return the findings with the metrics of the queue, which heal need not read again then.

    If only some kinds of metrics were read, heal needs more. The findings are then not changed.
    """
    if not findings or facts.measurement is None or "every queue" not in window.kinds:
        return [*findings]
    days_of_traffic = None
    if reader.has_days_of_traffic(facts.queue_arn):
        with suppress(FactsUnavailable):
            days_of_traffic = reader.with_days_of_traffic(facts).days_of_traffic
    measured_facts = MeasuredFacts(
        reader.now, facts.measurement, facts.lambda_consumers, days_of_traffic
    )
    return [replace(finding, measured=measured_facts) for finding in findings]


def _count_later_metrics(
    suspect_batch: Sequence[_Suspect],
    measurement_by_arn: Mapping[str, Measurement | None],
    reader: ScanReader,
) -> int:
    """Return how many metrics were read for single suspects after they were measured.

    These are the traffic of four days, and the deletes of DLQs.
    """
    metric_count = 0
    for suspect in suspect_batch:
        measurement = measurement_by_arn.get(suspect.queue_arn)
        if reader.has_days_of_traffic(suspect.queue_arn):
            metric_count += len(DAYS_OF_TRAFFIC_METRICS)
        if reader.has_dlq_deletes(replace(suspect.facts, measurement=measurement)):
            metric_count += DLQ_DELETES_METRICS
    return metric_count


def _summarize_queue_levels(
    suspect_batch: Sequence[_Suspect], measurement_by_arn: Mapping[str, Measurement | None]
) -> dict[str, dict[str, int]]:
    """Return the backlog and the age of the oldest message, in seconds, by queue ARN.

    Queues for which these metrics were not measured are left out.
    """
    levels_by_arn: dict[str, dict[str, int]] = {}
    for suspect in suspect_batch:
        measurement = measurement_by_arn.get(suspect.queue_arn)
        if measurement and "every queue" in suspect.window.kinds:
            levels_by_arn[suspect.queue_arn] = {
                "backlog": measurement.now.backlog,
                "oldest_age_seconds": measurement.now.oldest_age_seconds,
            }
    return levels_by_arn


def _detect_symptom(
    symptom: Symptom,
    facts: Facts,
    reader: ScanReader,
    may_measure: Callable[[int], bool] = lambda _metrics: True,
) -> list[Finding]:
    """Return a list with the finding of a symptom on a queue; empty if there is none (rule 9)."""
    detection = _get_detection(symptom)
    needs = detection.needs - NEEDS_READ_FOR_SUSPECTS - NEEDS_OF_PLANS
    if Need.REDRIVES in needs:
        _require_dlq_deletes(facts, reader, may_measure)
    facts = reader.with_needed_facts(facts, needs - {*NEEDS_THAT_EXPLAIN})
    fault = detection.detect(facts)
    for need in NEEDS_THAT_EXPLAIN:
        if fault and facts.measurement and need in needs:
            if need is Need.DAYS_OF_TRAFFIC:
                _require_days_of_traffic(facts.queue_arn, reader, may_measure)
            facts = reader.with_needed_facts(facts, {need})
            fault = detection.detect(facts)
    if fault is None:
        return []
    return [_make_finding(symptom, facts, fault)]


def _make_finding(symptom: Symptom, facts: Facts, fault: DetectedFault) -> Finding:
    return Finding(
        queue_arn=facts.queue_arn,
        symptom=symptom.name,
        sentence=fault.because,
        source_arns=facts.source_arns if fault.source_arns is None else fault.source_arns,
        missing_queue_arn=fault.missing_queue_arn,
        seconds_left=fault.seconds_left,
        possible_source_arns=fault.possible_source_arns,
        should_page=fault.should_page,
        is_hygiene=fault.is_hygiene,
        shared_setting=_format_shared_setting(symptom, facts),
        severity_class=None if symptom.is_only_counted else symptom.find_class(fault),
    )


def _format_shared_setting(symptom: Symptom, facts: Facts) -> str:
    """Return the attribute with the wrong value; empty if queues do not share the fault."""
    attribute = symptom.shared_attribute
    return f"{attribute}={facts.attributes.get(attribute, '')}" if attribute else ""


def _check_silent_queues(
    candidates: Iterable[_Candidate], reader: ScanReader, allowance: Allowance
) -> ScanResult:
    """Check queues in use whose sums are all 0, while there is time (rule 12).

    The result also says which symptoms could not be judged in this scan.
    """
    findings: list[Finding] = []
    error_by_arn = dict[str, Exception]()
    for candidate in candidates:
        for symptom in candidate.fact_symptoms if allowance.may_read_facts() else ():
            try:
                findings += _detect_symptom(symptom, candidate.facts, reader)
            except Exception as error:  # noqa: BLE001 - recorded; other queues are still checked
                error_by_arn.setdefault(candidate.queue_arn, error)
    unjudged_reason = reader.explain_unjudged_keys()
    return ScanResult(
        findings=tuple(findings),
        error_by_target=error_by_arn,
        unjudged_reason_by_symptom={KMS_SYMPTOM: unjudged_reason} if unjudged_reason else {},
    )


def _detect_facts(
    suspect: _Suspect, reader: ScanReader, error_by_arn: dict[str, Exception]
) -> list[Finding]:
    """Return the findings that facts prove on a suspect that was not measured (rule 11).

    Add an error to `error_by_arn`, unless the queue has one there.
    """
    findings: list[Finding] = []
    for symptom in (*suspect.symptoms, *suspect.fact_symptoms):
        try:
            findings += _detect_fact(symptom, suspect.facts, reader)
        except Exception as error:  # noqa: BLE001 - recorded; other symptoms are still checked
            error_by_arn.setdefault(suspect.queue_arn, error)
    return findings


def _detect_fact(symptom: Symptom, facts: Facts, reader: ScanReader) -> list[Finding]:
    """Return the finding that facts prove without a metric, in a list; empty if there is none.

    The sources of a DLQ and open cases can only explain the finding away, so they are read only if
    there is one without them.
    """
    detection = _get_detection(symptom)
    if detection.is_left_to_suspects:
        return _detect_symptom(symptom, facts, reader)
    if detection.detect_fact is None:
        return []
    facts = reader.with_needed_facts(facts, detection.needs & NEEDS_OF_FACTS)
    if detection.detect_fact(replace(facts, dlq_sources=()), reader.now) is None:
        return []
    facts = reader.with_needed_facts(facts, detection.needs & {Need.DLQ_SOURCES, Need.OPEN_CASES})
    fault = detection.detect_fact(facts, reader.now)
    return [_make_finding(symptom, facts, fault)] if fault else []


def _require_days_of_traffic(
    queue_arn: str, reader: ScanReader, may_measure: Callable[[int], bool]
) -> None:
    """Raise FactsUnavailable if the allowance refuses the traffic of four days (rule 9)."""
    if reader.has_days_of_traffic(queue_arn) or may_measure(len(DAYS_OF_TRAFFIC_METRICS)):
        return
    raise FactsUnavailable(
        f"the traffic of four days of {queue_arn}: the metrics that may be read are spent"
    )


def _require_dlq_deletes(
    facts: Facts, reader: ScanReader, may_measure: Callable[[int], bool]
) -> None:
    """Raise FactsUnavailable if the allowance refuses the deletes of the DLQ (rule 10)."""
    if not reader.must_read_dlq_deletes(facts) or may_measure(DLQ_DELETES_METRICS):
        return
    raise FactsUnavailable(
        f"the deletes of {facts.dlq_arn}: the metrics that may be read are spent"
    )


def _get_detection(symptom: Symptom) -> Detection:
    assert symptom.detection is not None  # noqa: S101 - `scan` leaves the others out
    return symptom.detection

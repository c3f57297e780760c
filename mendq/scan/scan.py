"""Scan queues for faults that make no call fail. Change nothing.

Some faults never appear in a failed call: a queue without a DLQ, messages that pile up or expire, a
consumer that receives and never deletes. So every managed queue is read once an hour, and by
`mendq scan`. Each symptom of the catalogue that can be seen in this way has a `Detection`.

Reading has two prices. SQS calls are cheap but limited per second. CloudWatch bills every metric.
So `scan` works in two steps. It first reads attributes, tags and consumers of all queues, 200 at a
time, called a block. That decides most symptoms. The other queues are suspects: only a measurement
can tell if they have a symptom. Then it measures the suspects for as long as the allowance lasts.
`mendq/scan/reader.py` makes the calls, each once and within AWS's rates. `mendq/scan/hourly.py`
decides where an hour's scan begins and ends, and hands findings to heal.

Rules:

1. Nothing is measured before all queues were read for which there is time. Otherwise the first
   queues by name would spend the whole budget. A queue is suspected of a symptom only if its
   attributes, tags and consumers make the symptom possible.

2. Results come block by block, each with the name of its last queue (`last_queue_name`). If no time
   is left for another block, `scan` reads no further queues and measures the suspects it has. The
   caller knows by `last_queue_name` which queues were read; the others are in no result at all, not
   even as skipped.

3. A failure costs one queue, or one symptom of one queue. A queue that cannot be read is counted as
   unseen, with its error; one that was deleted meanwhile is counted as gone and is no error. If a
   symptom's detection fails, the error is recorded and the other symptoms are still checked. If a
   batch cannot be measured, its queues are recorded as failed, and keep their findings from step
   one. The wide `except Exception` is intended: a bug in one entry must not blind Mendq for every
   queue.

4. A fault in the configuration is looked for before measuring, and the queue is measured for that
   symptom only if the configuration shows nothing. Metrics would not tell more.

5. Suspects whose messages may be in danger are measured before those that merely cost money. Within
   each group the order changes every hour, so that a budget that is too small does not skip the
   same queues for ever. Once the allowance refuses a batch, all remaining suspects are skipped
   (`skipped_arns`).

6. A queue counts as completely checked (`configuration_by_arn`) only if no suspicion is left,
   nothing failed, and it was not created or changed too lately to be measured (such a suspect is in
   `unsettled_arns`). Only of these queues a healthy configuration is stored, as a baseline. A queue
   that was not measured must not count as a healthy one.

7. A DLQ that Mendq made is scanned with its source even if it is not a managed queue, unless its
   tag is `off`. Mendq is responsible for this DLQ, because other people may not notice its faults.
   It is read once per scan.

8. A detection that takes redrives into account runs twice if the queue was measured
   (`Facts.measurement`) and the first run found something: first without asking for redrives, then
   with them. Listing redrives costs a call per DLQ, and a redrive can only explain a finding away,
   never make one. It explains measurements only, so other findings need no second run.

This module stores nothing, sends no notifications, and does not choose which findings matter. So
`mendq scan --dry-run` can use the same function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from msgspec import Struct

from mendq.aws.cloudwatch import MOST_QUEUES_PER_CALL
from mendq.aws.errors import FactsUnavailable, QueueGone, QueueRefusesUs
from mendq.aws.facts_reader import function_names
from mendq.aws.queue import ManagedQueue, read_tags_if_allowed
from mendq.cases.finding import Finding, ScanResult, merge_results, scan_order_key
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Detection, Symptom
from mendq.model.facts import Facts, Need
from mendq.model.metrics import Measurement, Window
from mendq.model.tags import MODE_OFF_VALUE, MODE_TAG
from mendq.notifications.queue_lines import describe_configuration
from mendq.scan.reader import THREAD_COUNT, ScanReader

QUEUES_PER_BLOCK = 200
# Facts that are read for every suspect. A detection's other needs are read later, one by one.
NEEDS_READ_FOR_SUSPECTS = frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS})
# Facts that only the plans of symptoms need. A scan makes no plan, so it does not read them.
NEEDS_OF_PLANS = frozenset({Need.DLQ_NAMESAKE})


class Allowance(Struct, frozen=True):
    """The limits of a scan.

    Attributes:
        may_read_queues: Function that returns True while there is time to read more queues.
        may_measure: Function that gets a number of metrics. If they may be read, it counts them as
            spent and returns True.
    """

    may_read_queues: Callable[[], bool] = lambda: True
    may_measure: Callable[[int], bool] = lambda _metrics: True


def scan(
    queues: Sequence[ManagedQueue],
    reader: ScanReader,
    allowance: Allowance,
    symptoms: Iterable[Symptom] = CATALOGUE,
) -> Iterator[ScanResult]:
    """Scan the queues and yield one result per block, then one per batch of measured suspects.

    If the allowance refuses a batch, one last result names the skipped suspects. `merge_results`
    adds up two results. `scan` itself stores nothing.

    Args:
        queues: The queues, sorted by name. A DLQ that Mendq made is added to its source (rule 7).
        reader: Reads the queues.
        allowance: How far the scan may go.
        symptoms: The symptoms to look for. Those without a detection are left out.
    """
    detectable_symptoms = tuple(symptom for symptom in symptoms if symptom.detection)
    suspects: list[_Suspect] = []
    arns_scanned_with_source = set[str]()
    with ThreadPoolExecutor(THREAD_COUNT) as thread_pool:
        for block_start in range(0, len(queues), QUEUES_PER_BLOCK):
            if not allowance.may_read_queues():
                break
            queue_block = queues[block_start : block_start + QUEUES_PER_BLOCK]
            new_queues = [
                queue for queue in queue_block if queue.queue_arn not in arns_scanned_with_source
            ]
            queue_checks = list(
                thread_pool.map(
                    lambda queue: _check_queue(queue, reader, detectable_symptoms), new_queues
                )
            )
            scanned_or_listed_arns = arns_scanned_with_source.union(
                queue.queue_arn for queue in queue_block
            )
            made_dlq_arns = sorted(
                {queue_check.made_dlq_arn for queue_check in queue_checks}
                - {"", *scanned_or_listed_arns}
            )
            arns_scanned_with_source.update(made_dlq_arns)
            queue_checks += thread_pool.map(
                lambda dlq_arn: _check_made_dlq(dlq_arn, reader, detectable_symptoms), made_dlq_arns
            )
            new_suspects = [
                queue_check.suspect for queue_check in queue_checks if queue_check.suspect
            ]
            suspects += new_suspects
            block_result = ScanResult()
            for queue_check in queue_checks:
                block_result = merge_results(block_result, queue_check.result)
            yield replace(
                block_result, suspects=len(new_suspects), last_queue_name=queue_block[-1].name
            )
    suspects.sort(key=lambda suspect: suspect.make_sort_key(reader.now))
    yield from _measure_suspects(suspects, reader, allowance)


class _Suspect(Struct, frozen=True):
    """A queue, and the symptoms that only a measurement can show or rule out."""

    facts: Facts
    window: Window
    symptoms: tuple[Symptom, ...]

    @property
    def queue_arn(self) -> str:
        return self.facts.queue_arn

    def make_sort_key(self, now: datetime) -> tuple[bool, str]:
        """Return the key by which suspects are sorted before they are measured (rule 5)."""
        are_all_measured_last = all(
            _get_detection(symptom).is_measured_last for symptom in self.symptoms
        )
        return are_all_measured_last, scan_order_key(self.queue_arn, now)


class _QueueCheck(Struct, frozen=True):
    """The result of checking one queue without measuring it.

    Attributes:
        result: The result, with the findings.
        suspect: The queue with the symptoms that must be measured; None if there are none.
        made_dlq_arn: The ARN of the queue's DLQ if Mendq made that DLQ, else an empty text.
    """

    result: ScanResult
    suspect: _Suspect | None = None
    made_dlq_arn: str = ""


def _check_made_dlq(dlq_arn: str, reader: ScanReader, symptoms: tuple[Symptom, ...]) -> _QueueCheck:
    """Check a DLQ that Mendq made (rule 7).

    If its own `mendq` tag is `off`, do not check it and return an empty result.
    """
    try:
        tags = reader.ask(read_tags_if_allowed, dlq_arn)
    except FactsUnavailable as error:
        return _QueueCheck(ScanResult(queues_scanned=1, unseen=1, error_by_target={dlq_arn: error}))
    if tags.get(MODE_TAG) == MODE_OFF_VALUE:
        return _QueueCheck(ScanResult())
    return _check_queue(ManagedQueue(dlq_arn, tags), reader, symptoms)


def _check_queue(
    queue: ManagedQueue, reader: ScanReader, symptoms: tuple[Symptom, ...]
) -> _QueueCheck:
    """Check a queue for every symptom without measuring it.

    The result names the symptoms for which the queue must be measured. Errors are recorded in the
    result and not raised (rule 3).
    """
    try:
        facts = _read_facts(queue, reader)
        window = reader.choose_window(facts)
    except QueueGone:
        return _QueueCheck(ScanResult(queues_scanned=1, gone=1))
    except Exception as error:  # noqa: BLE001 - recorded; other queues are still scanned (rule 3)
        return _QueueCheck(
            ScanResult(queues_scanned=1, unseen=1, error_by_target={queue.queue_arn: error})
        )
    findings: list[Finding] = []
    suspected_symptoms: list[Symptom] = []
    error_by_arn: dict[str, Exception] = {}
    for symptom in symptoms:
        try:
            new_findings, must_measure = _check_without_measuring(symptom, facts, reader)
            findings += new_findings
            if must_measure:
                suspected_symptoms.append(symptom)
        except Exception as error:  # noqa: BLE001 - recorded; other symptoms are still checked (rule 3)
            error_by_arn.setdefault(queue.queue_arn, error)
    made_dlq_arn = ""
    try:
        made_dlq_arn = reader.find_dlq_made_by_mendq(facts)
    except Exception as error:  # noqa: BLE001 - recorded; the queue itself was looked at
        error_by_arn.setdefault(queue.queue_arn, error)
    suspect = None
    if suspected_symptoms and window:
        suspect = _make_suspect(facts, window, tuple(suspected_symptoms))
        reader.forget_last_scan_answers(facts)
    is_check_incomplete = suspected_symptoms or error_by_arn or window is None
    result = ScanResult(
        queues_scanned=1,
        findings=tuple(findings),
        error_by_target=error_by_arn,
        configuration_by_arn={}
        if is_check_incomplete
        else {queue.queue_arn: describe_configuration(facts)},
        unsettled_arns=(queue.queue_arn,) if suspected_symptoms and not window else (),
    )
    return _QueueCheck(result, suspect, made_dlq_arn)


def _read_facts(queue: ManagedQueue, reader: ScanReader) -> Facts:
    """Return the queue's attributes, tags, consumers and DLQ.

    If the DLQ cannot be read, it is left out here. Symptoms that need the DLQ then fail with the
    error.
    """
    tags = reader.consent.without_team_tag(queue.tags)
    facts = reader.with_consumers(reader.read_queue(queue.queue_arn, tags, {Need.QUEUE}))
    with suppress(FactsUnavailable, QueueRefusesUs):
        facts = reader.with_dlq(facts)
    return facts


def _check_without_measuring(
    symptom: Symptom, facts: Facts, reader: ScanReader
) -> tuple[list[Finding], bool]:
    """Check a queue for a symptom without measuring (rules 1 and 4).

    Return the findings, and True if the queue must be measured for the symptom.
    """
    detection = _get_detection(symptom)
    is_suspect = detection.is_suspect(facts)
    needs_measurements = Need.MEASUREMENTS in detection.needs
    findings: list[Finding] = []
    if detection.is_of_configuration or (is_suspect and not needs_measurements):
        findings = _detect_symptom(symptom, facts, reader)
    return findings, is_suspect and needs_measurements and not findings


def _make_suspect(facts: Facts, window: Window, symptoms: tuple[Symptom, ...]) -> _Suspect:
    """Return a suspect with the metrics that must be read.

    If all its detections name the kinds of metrics that they read, only these are read.
    """
    detections = [_get_detection(symptom) for symptom in symptoms]
    if all(detection.metric_kinds for detection in detections):
        metric_kinds: dict[str, None] = {}
        for detection in detections:
            metric_kinds.update(dict.fromkeys(detection.metric_kinds))
        window = replace(window, kinds=tuple(metric_kinds))
    return _Suspect(facts, window, symptoms)


def _measure_suspects(
    suspects: Sequence[_Suspect], reader: ScanReader, allowance: Allowance
) -> Iterator[ScanResult]:
    """Measure the suspects batch by batch until the allowance is spent (rule 5)."""
    for batch_start in range(0, len(suspects), MOST_QUEUES_PER_CALL):
        suspect_batch = suspects[batch_start : batch_start + MOST_QUEUES_PER_CALL]
        metric_count = reader.count_function_metrics(suspect.facts for suspect in suspect_batch)
        metric_count += sum(len(suspect.window.series) for suspect in suspect_batch)
        if not allowance.may_measure(metric_count):
            yield ScanResult(
                skipped_arns=tuple(suspect.queue_arn for suspect in suspects[batch_start:])
            )
            return
        yield replace(_measure_batch(suspect_batch, reader), metrics=metric_count)


def _measure_batch(suspect_batch: Sequence[_Suspect], reader: ScanReader) -> ScanResult:
    """Measure some suspects together, and check the symptoms that they are suspected of."""
    try:
        measurement_by_arn = reader.measure(
            {suspect.queue_arn: suspect.window for suspect in suspect_batch}
        )
        # The reader caches the metrics of all their consumers, and answers for each queue from
        # them.
        function_names_of_batch: set[str] = set()
        for suspect in suspect_batch:
            function_names_of_batch.update(function_names(suspect.facts))
        reader.read_function_metrics(sorted(function_names_of_batch))
    except Exception as error:  # noqa: BLE001 - recorded; other batches are still measured (rule 3)
        return ScanResult(error_by_target={suspect.queue_arn: error for suspect in suspect_batch})
    findings: list[Finding] = []
    error_by_arn: dict[str, Exception] = {}
    for suspect in suspect_batch:
        for symptom in suspect.symptoms:
            try:
                facts = reader.with_function_metrics(suspect.facts)
                facts = replace(facts, measurement=measurement_by_arn[suspect.queue_arn])
                findings += _detect_symptom(symptom, facts, reader)
            except Exception as error:  # noqa: BLE001 - recorded; other symptoms are still checked
                error_by_arn[suspect.queue_arn] = error
    return ScanResult(
        measured=len(suspect_batch),
        findings=tuple(findings),
        error_by_target=error_by_arn,
        configuration_by_arn={
            suspect.queue_arn: describe_configuration(suspect.facts)
            for suspect in suspect_batch
            if measurement_by_arn[suspect.queue_arn] and suspect.queue_arn not in error_by_arn
        },
        levels_by_arn=_summarize_queue_levels(suspect_batch, measurement_by_arn),
    )


def _summarize_queue_levels(
    suspect_batch: Sequence[_Suspect], measurement_by_arn: Mapping[str, Measurement | None]
) -> dict[str, dict[str, int]]:
    """Return the backlog and the age of the oldest message, in seconds, by queue ARN.

    Queues for which these metrics were not measured are left out.
    """
    levels_by_arn: dict[str, dict[str, int]] = {}
    for suspect in suspect_batch:
        measurement = measurement_by_arn[suspect.queue_arn]
        if measurement and "every queue" in suspect.window.kinds:
            levels_by_arn[suspect.queue_arn] = {
                "backlog": measurement.now.backlog,
                "oldest_age_seconds": measurement.now.oldest_age_seconds,
            }
    return levels_by_arn


def _detect_symptom(symptom: Symptom, facts: Facts, reader: ScanReader) -> list[Finding]:
    """Return a list with the finding of a symptom on a queue; empty if there is none (rule 8)."""
    detection = _get_detection(symptom)
    needs = detection.needs - NEEDS_READ_FOR_SUSPECTS - NEEDS_OF_PLANS
    facts = reader.with_needed_facts(facts, needs - {Need.MOVE_TASKS})
    fault = detection.detect(facts)
    # A redrive explains measurements only.
    if fault and facts.measurement and Need.MOVE_TASKS in needs:
        fault = detection.detect(reader.with_needed_facts(facts, {Need.MOVE_TASKS}))
    if fault is None:
        return []
    finding = Finding(
        queue_arn=facts.queue_arn,
        symptom=symptom.name,
        sentence=fault.because,
        source_arns=facts.source_arns if fault.source_arns is None else fault.source_arns,
        missing_queue_arn=fault.missing_queue_arn,
        seconds_left=fault.seconds_left,
    )
    return [finding]


def _get_detection(symptom: Symptom) -> Detection:
    assert symptom.detection is not None  # noqa: S101 - `scan` leaves the others out
    return symptom.detection

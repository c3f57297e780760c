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

2. Results come block by block, each with the name of its last queue in `after`. If no time is
   left for another block, `scan` reads no further queues and measures the suspects it has. The
   caller knows by `after` which queues were read; the others are in no result at all, not even as
   skipped.

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
   same queues for ever. Once the allowance refuses a batch, all remaining suspects are `skipped`.

6. A queue counts as completely checked (`looked_at`) only if no suspicion is left, nothing failed,
   and it was not created or changed too lately to be measured (such a suspect is `unsettled`). Only
   of these queues a healthy configuration is stored, as a baseline. A queue that was not measured
   must not count as a healthy one.

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

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from msgspec import Struct

from mendq.aws.cloudwatch import QUEUES_A_CALL
from mendq.aws.errors import FactsUnavailable, QueueGone, QueueRefusesUs
from mendq.aws.facts_reader import function_names
from mendq.aws.queue import ManagedQueue, tags_if_readable
from mendq.cases.finding import Finding, ScanResult, merge_results, scan_order_key
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Detection, Symptom
from mendq.model.facts import Facts, Need
from mendq.model.metrics import Window
from mendq.model.tags import MODE_OFF, MODE_TAG
from mendq.notifications.queue_lines import describe_configuration
from mendq.scan.reader import THREADS, ScanReader

QUEUES_A_BLOCK = 200
# Needs that are read for every suspect. A detection's other needs are read later, one by one.
OF_A_SUSPECT = frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS})
# Needs that only the plans of symptoms have. A scan makes no plan, so it does not read them.
OF_A_PLAN = frozenset({Need.DLQ_NAMESAKE})


class Allowance(Struct, frozen=True):
    """The limits of a scan.

    Attributes:
        may_look: Function that returns True while there is time to read more queues.
        may_measure: Function that gets a number of metrics. If they may be read, it counts them as
            spent and returns True.
    """

    may_look: Callable[[], bool] = lambda: True
    may_measure: Callable[[int], bool] = lambda _metrics: True


def scan(
    queues: Sequence[ManagedQueue],
    reader: ScanReader,
    allowance: Allowance,
    symptoms: Iterable[Symptom] = CATALOGUE,
) -> Iterator[ScanResult]:
    """Scan the queues and yield one result per block, then one per batch of measured suspects.

    `merge_results` adds up two results. `scan` itself stores nothing.

    Args:
        queues: The queues, sorted by name. A DLQ that Mendq made is added to its source (rule 7).
        reader: Reads the queues.
        allowance: How far the scan may go.
        symptoms: The symptoms to look for. Those without a detection are left out.
    """
    detected = tuple(symptom for symptom in symptoms if symptom.detection)
    suspects: list[_Suspect] = []
    with_source = set[str]()
    with ThreadPoolExecutor(THREADS) as pool:
        for first in range(0, len(queues), QUEUES_A_BLOCK):
            if not allowance.may_look():
                break
            block = queues[first : first + QUEUES_A_BLOCK]
            new = [queue for queue in block if queue.queue_arn not in with_source]
            looks = list(pool.map(lambda queue: _look_at(queue, reader, detected), new))
            seen_already = with_source.union(queue.queue_arn for queue in block)
            made_dlqs = sorted({look.made_dlq for look in looks} - {"", *seen_already})
            with_source.update(made_dlqs)
            looks += pool.map(lambda dlq: _look_at_made(dlq, reader, detected), made_dlqs)
            new_suspects = [look.suspect for look in looks if look.suspect]
            suspects += new_suspects
            seen = ScanResult()
            for look in looks:
                seen = merge_results(seen, look.scanned)
            yield replace(seen, suspects=len(new_suspects), after=block[-1].name)
    suspects.sort(key=lambda suspect: suspect.turn(reader.now))
    yield from _measure(suspects, reader, allowance)


class _Suspect(Struct, frozen=True):
    """A queue, and the symptoms that only a measurement can show or rule out."""

    facts: Facts
    window: Window
    symptoms: tuple[Symptom, ...]

    @property
    def queue_arn(self) -> str:
        return self.facts.queue_arn

    def turn(self, now: datetime) -> tuple[bool, str]:
        """Return the key by which suspects are sorted before they are measured (rule 5)."""
        can_wait = all(_detection_of(symptom).measured_last for symptom in self.symptoms)
        return can_wait, scan_order_key(self.queue_arn, now)


class _QueueLook(Struct, frozen=True):
    """The result of checking one queue without measuring it.

    Attributes:
        scanned: The result, with the findings.
        suspect: The queue with the symptoms that must be measured; None if there are none.
        made_dlq: The ARN of the queue's DLQ if Mendq made that DLQ, else an empty text.
    """

    scanned: ScanResult
    suspect: _Suspect | None = None
    made_dlq: str = ""


def _look_at_made(dlq_arn: str, reader: ScanReader, symptoms: tuple[Symptom, ...]) -> _QueueLook:
    """Check a DLQ that Mendq made (rule 7). If its own `mendq` tag is `off`, return no result."""
    try:
        tags = reader.ask(tags_if_readable, dlq_arn)
    except FactsUnavailable as error:
        return _QueueLook(ScanResult(queues_scanned=1, unseen=1, failed={dlq_arn: error}))
    if tags.get(MODE_TAG) == MODE_OFF:
        return _QueueLook(ScanResult())
    return _look_at(ManagedQueue(dlq_arn, tags), reader, symptoms)


def _look_at(queue: ManagedQueue, reader: ScanReader, symptoms: tuple[Symptom, ...]) -> _QueueLook:
    """Check a queue for every symptom without measuring it.

    The result names the symptoms for which the queue must be measured.
    """
    try:
        facts = _read_facts(queue, reader)
        window = reader.window(facts)
    except QueueGone:
        return _QueueLook(ScanResult(queues_scanned=1, gone=1))
    except Exception as error:  # noqa: BLE001 - recorded; other queues are still scanned (rule 3)
        failed_queue = {queue.queue_arn: error}
        return _QueueLook(ScanResult(queues_scanned=1, unseen=1, failed=failed_queue))
    findings: list[Finding] = []
    suspected: list[Symptom] = []
    failed: dict[str, Exception] = {}
    for symptom in symptoms:
        try:
            found, must_measure = _check_unmeasured(symptom, facts, reader)
            findings += found
            if must_measure:
                suspected.append(symptom)
        except Exception as error:  # noqa: BLE001 - recorded; other symptoms are still checked (rule 3)
            failed.setdefault(queue.queue_arn, error)
    made_dlq = ""
    try:
        made_dlq = reader.made_dlq(facts)
    except Exception as error:  # noqa: BLE001 - recorded; the queue itself was looked at
        failed.setdefault(queue.queue_arn, error)
    suspect = None
    if suspected and window:
        suspect = _make_suspect(facts, window, tuple(suspected))
        reader.ask_anew(facts)
    unsure = suspected or failed or window is None
    scanned = ScanResult(
        queues_scanned=1,
        findings=tuple(findings),
        failed=failed,
        looked_at={} if unsure else {queue.queue_arn: describe_configuration(facts)},
        unsettled=(queue.queue_arn,) if suspected and not window else (),
    )
    return _QueueLook(scanned, suspect, made_dlq)


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


def _check_unmeasured(
    symptom: Symptom, facts: Facts, reader: ScanReader
) -> tuple[list[Finding], bool]:
    """Check a queue for a symptom without measuring (rules 1 and 4).

    Return the findings, and True if the queue must be measured for the symptom.
    """
    detection = _detection_of(symptom)
    is_suspect = detection.is_suspect(facts)
    needs_measurements = Need.MEASUREMENTS in detection.needs
    findings: list[Finding] = []
    if detection.of_configuration or (is_suspect and not needs_measurements):
        findings = _detect(symptom, facts, reader)
    return findings, is_suspect and needs_measurements and not findings


def _make_suspect(facts: Facts, window: Window, symptoms: tuple[Symptom, ...]) -> _Suspect:
    """Return a suspect with the metrics that must be read.

    If all its detections name the kinds of metrics that they read, only these are read.
    """
    detections = [_detection_of(symptom) for symptom in symptoms]
    if all(detection.reads for detection in detections):
        kinds: dict[str, None] = {}
        for detection in detections:
            kinds.update(dict.fromkeys(detection.reads))
        window = replace(window, kinds=tuple(kinds))
    return _Suspect(facts, window, symptoms)


def _measure(
    suspects: Sequence[_Suspect], reader: ScanReader, allowance: Allowance
) -> Iterator[ScanResult]:
    """Measure the suspects batch by batch until the allowance is spent (rule 5)."""
    for done in range(0, len(suspects), QUEUES_A_CALL):
        batch = suspects[done : done + QUEUES_A_CALL]
        metrics = reader.metrics_of_figures(suspect.facts for suspect in batch)
        metrics += sum(len(suspect.window.series) for suspect in batch)
        if not allowance.may_measure(metrics):
            yield ScanResult(skipped=tuple(suspect.queue_arn for suspect in suspects[done:]))
            return
        yield replace(_measure_batch(batch, reader), metrics=metrics)


def _measure_batch(batch: Sequence[_Suspect], reader: ScanReader) -> ScanResult:
    """Measure some suspects with one call, and check the symptoms that they are suspected of."""
    try:
        measured = reader.measure({suspect.queue_arn: suspect.window for suspect in batch})
        # The reader keeps the figures of all their consumers, and answers each queue from them.
        names: set[str] = set()
        for suspect in batch:
            names.update(function_names(suspect.facts))
        reader.figures(sorted(names))
    except Exception as error:  # noqa: BLE001 - recorded; other batches are still measured (rule 3)
        return ScanResult(failed={suspect.queue_arn: error for suspect in batch})
    findings: list[Finding] = []
    failed: dict[str, Exception] = {}
    for suspect in batch:
        for symptom in suspect.symptoms:
            try:
                facts = reader.with_figures(suspect.facts)
                facts = replace(facts, measurement=measured[suspect.queue_arn])
                findings += _detect(symptom, facts, reader)
            except Exception as error:  # noqa: BLE001 - recorded; other symptoms are still checked
                failed[suspect.queue_arn] = error
    looked_at: dict[str, dict[str, str]] = {}
    levels: dict[str, dict[str, int]] = {}
    seen = [suspect for suspect in batch if measured[suspect.queue_arn] is not None]
    for suspect in seen:
        if suspect.queue_arn not in failed:
            looked_at[suspect.queue_arn] = describe_configuration(suspect.facts)
    for suspect in batch:
        found = measured[suspect.queue_arn]
        if found and "every queue" in suspect.window.kinds:
            now = found.now
            levels[suspect.queue_arn] = {
                "backlog": now.backlog,
                "oldest_age_seconds": now.oldest_age_seconds,
            }
    return ScanResult(
        measured=len(batch),
        findings=tuple(findings),
        failed=failed,
        looked_at=looked_at,
        queues=levels,
    )


def _detect(symptom: Symptom, facts: Facts, reader: ScanReader) -> list[Finding]:
    """Return the finding of a symptom on a queue, if there is one (rule 8)."""
    detection = _detection_of(symptom)
    needs = detection.needs - OF_A_SUSPECT - OF_A_PLAN
    facts = reader.with_more(facts, needs - {Need.MOVE_TASKS})
    found = detection.detect(facts)
    # A redrive explains measurements only.
    if found and facts.measurement and Need.MOVE_TASKS in needs:
        found = detection.detect(reader.with_more(facts, {Need.MOVE_TASKS}))
    if found is None:
        return []
    finding = Finding(
        queue_arn=facts.queue_arn,
        symptom=symptom.name,
        because=found.because,
        sources=facts.source_arns,
        about=found.about,
        seconds_left=found.seconds_left,
    )
    return [finding]


def _detection_of(symptom: Symptom) -> Detection:
    assert symptom.detection is not None  # noqa: S101 - `scan` leaves the others out
    return symptom.detection

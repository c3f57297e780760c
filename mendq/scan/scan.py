"""Look at managed queues for what is wrong although no call fails; change nothing.

First at attributes, tags and consumers of all, then at what CloudWatch measured of those that
these make suspect, because every metric that is asked for is billed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial, reduce

from msgspec import Struct

from mendq.aws.cloudwatch import QUEUES_A_CALL
from mendq.aws.errors import FactsUnavailable, QueueGone, QueueRefusesUs
from mendq.aws.facts_reader import function_names
from mendq.aws.queue import ManagedQueue, tags_shown
from mendq.cases.finding import Finding, Scanned, together, turn_of
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Detection, Symptom
from mendq.model.facts import Facts, Need
from mendq.model.limits import MODE_TAG, OFF
from mendq.model.metrics import Window
from mendq.notifications.queue_lines import described
from mendq.scan.reader import THREADS, ScanReader

QUEUES_A_STRETCH = 200
# Known of every suspect before it is asked what else a detection needs.
OF_A_SUSPECT = frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS})
# What a plan asks and no detection does: heal plans.
OF_A_PLAN = frozenset({Need.DLQ_NAMESAKE})


class Allowance(Struct, frozen=True):
    """True while there is time for more queues, and for so many metrics more."""

    may_look: Callable[[], bool] = lambda: True
    may_measure: Callable[[int], bool] = lambda _metrics: True


class _Suspect(Struct, frozen=True):
    """A queue that only measuring can tell about, and of what."""

    facts: Facts
    window: Window
    symptoms: tuple[Symptom, ...]

    def turn(self, now: datetime) -> tuple[bool, str]:
        """Queues whose messages may suffer come first; among them others each hour."""
        can_wait = all(_detection_of(each).measured_last for each in self.symptoms)
        return can_wait, turn_of(self.facts.queue_arn, now)


def scan(
    queues: Sequence[ManagedQueue],
    reader: ScanReader,
    allowance: Allowance,
    symptoms: Iterable[Symptom] = CATALOGUE,
) -> Iterator[Scanned]:
    """Scan the queues and yield one result per stretch; `together` adds results up.

    A DLQ that Mendq made is scanned together with its source, even if it is not in `queues`. A
    queue that cannot be read does not stop the others. This writes and records nothing; the caller
    does.
    """
    detected = tuple(each for each in symptoms if each.detection)
    suspects: list[_Suspect] = []
    look_at = partial(_look_at, reader=reader, symptoms=detected)
    with_source = set[str]()
    with ThreadPoolExecutor(THREADS) as pool:
        for first in range(0, len(queues), QUEUES_A_STRETCH):
            if not allowance.may_look():
                break
            stretch = queues[first : first + QUEUES_A_STRETCH]
            looked = list(
                pool.map(look_at, (each for each in stretch if each.queue_arn not in with_source))
            )
            seen_already = with_source.union(each.queue_arn for each in stretch)
            made = sorted({each.made_dlq for each in looked} - {"", *seen_already})
            with_source.update(made)
            looked += pool.map(partial(_look_at_made, reader=reader, symptoms=detected), made)
            suspected = [each.suspect for each in looked if each.suspect]
            suspects += suspected
            seen = reduce(together, (each.scanned for each in looked), Scanned())
            yield replace(seen, suspects=len(suspected), after=stretch[-1].name)
    suspects.sort(key=lambda each: each.turn(reader.now))
    yield from _measured(suspects, reader, allowance)


class _Looked(Struct, frozen=True):
    """One queue's findings, its symptoms still to measure, and its DLQ if Mendq made that."""

    scanned: Scanned
    suspect: _Suspect | None = None
    made_dlq: str = ""


def _look_at_made(dlq_arn: str, reader: ScanReader, symptoms: tuple[Symptom, ...]) -> _Looked:
    """Scan a DLQ that Mendq made, unless its own `mendq` tag is `off`."""
    try:
        tags = reader.ask(tags_shown, dlq_arn)
    except FactsUnavailable as error:
        return _Looked(Scanned(queues_scanned=1, unseen=1, failed={dlq_arn: error}))
    if tags.get(MODE_TAG) == OFF:
        return _Looked(Scanned())
    return _look_at(ManagedQueue(dlq_arn, tags), reader, symptoms)


def _look_at(queue: ManagedQueue, reader: ScanReader, symptoms: tuple[Symptom, ...]) -> _Looked:
    tags = reader.consent.but_for_a_team(queue.tags)
    try:
        facts = reader.consumers(reader.queue(queue.queue_arn, tags, {Need.QUEUE}))
        # Told of by the entries that ask for it.
        with suppress(FactsUnavailable, QueueRefusesUs):
            facts = reader.dlq(facts)
        window = reader.window(facts)
    except QueueGone:
        return _Looked(Scanned(queues_scanned=1, gone=1))
    except Exception as error:  # noqa: BLE001 - told of with the scan
        return _Looked(Scanned(queues_scanned=1, unseen=1, failed={queue.queue_arn: error}))
    findings, suspected, failed = list[Finding](), list[Symptom](), dict[str, Exception]()
    for symptom in symptoms:
        try:
            detection = _detection_of(symptom)
            suspect, measuring = detection.suspects(facts), Need.MEASUREMENTS in detection.needs
            at_once = detection.of_configuration or (suspect and not measuring)
            found = _found(symptom, facts, reader) if at_once else []
            findings += found
            if suspect and measuring and not found:
                suspected.append(symptom)
        except Exception as error:  # noqa: BLE001 - one entry's trouble is not the others'
            failed.setdefault(queue.queue_arn, error)
    made_dlq = ""
    try:
        made_dlq = reader.made_dlq(facts)
    except Exception as error:  # noqa: BLE001 - the queue itself was looked at
        failed.setdefault(queue.queue_arn, error)
    to_measure = _suspect(facts, window, tuple(suspected)) if suspected and window else None
    if to_measure:
        reader.ask_anew(facts)
    unsure = suspected or failed or window is None
    whole = {} if unsure else {queue.queue_arn: described(facts)}
    scanned = Scanned(
        queues_scanned=1,
        findings=tuple(findings),
        failed=failed,
        looked_at=whole,
        unsettled=(queue.queue_arn,) if suspected and not window else (),
    )
    return _Looked(scanned, to_measure, made_dlq)


def _suspect(facts: Facts, window: Window, symptoms: tuple[Symptom, ...]) -> _Suspect:
    """What merely costs money is told by fewer series than all."""
    detections = [_detection_of(each) for each in symptoms]
    if all(each.reads for each in detections):
        kinds = dict.fromkeys(kind for each in detections for kind in each.reads)
        window = replace(window, kinds=tuple(kinds))
    return _Suspect(facts, window, symptoms)


def _found(symptom: Symptom, facts: Facts, reader: ScanReader) -> list[Finding]:
    """A redrive only explains what was measured: of what is not found nobody asks for it."""
    detection = _detection_of(symptom)
    needs = detection.needs - OF_A_SUSPECT - OF_A_PLAN
    explains = needs & {Need.MOVE_TASKS} if facts.measured else frozenset()
    facts = reader.with_more(facts, needs - {Need.MOVE_TASKS})
    found = detection.detect(facts)
    if found and explains:
        found = detection.detect(reader.with_more(facts, explains))
    if found is None:
        return []
    said = (found.because, facts.source_arns, found.about)
    return [Finding(facts.queue_arn, symptom.name, *said, seconds_left=found.seconds_left)]


def _measured(
    suspects: Sequence[_Suspect], reader: ScanReader, allowance: Allowance
) -> Iterator[Scanned]:
    """Once the allowance is spent all others are skipped: another hour begins with others."""
    for done in range(0, len(suspects), QUEUES_A_CALL):
        batch = suspects[done : done + QUEUES_A_CALL]
        figures = reader.metrics_of_figures(each.facts for each in batch)
        metrics = figures + sum(len(each.window.series) for each in batch)
        if not allowance.may_measure(metrics):
            yield Scanned(skipped=tuple(each.facts.queue_arn for each in suspects[done:]))
            return
        yield replace(_measured_together(batch, reader), metrics=metrics)


def _measured_together(batch: Sequence[_Suspect], reader: ScanReader) -> Scanned:
    try:
        measured = reader.measured({each.facts.queue_arn: each.window for each in batch})
        # Asked for together here; each of them is answered from what is kept.
        reader.figures(sorted({name for each in batch for name in function_names(each.facts)}))
    except Exception as error:  # noqa: BLE001 - told of with the scan
        return Scanned(failed={each.facts.queue_arn: error for each in batch})
    findings, failed = list[Finding](), dict[str, Exception]()
    for each in batch:
        queue_arn = each.facts.queue_arn
        for symptom in each.symptoms:
            try:
                facts = replace(reader.with_figures(each.facts), measured=measured[queue_arn])
                findings += _found(symptom, facts, reader)
            except Exception as error:  # noqa: BLE001 - one entry's trouble is not the others'
                failed[queue_arn] = error
    whole = {e.facts.queue_arn: e.facts for e in batch if "every queue" in e.window.kinds}
    queues = {
        arn: {name: getattr(found.now, name) for name in ("backlog", "oldest_age_seconds")}
        for arn, found in measured.items()
        if found and arn in whole
    }
    seen = (each.facts for each in batch if measured[each.facts.queue_arn] is not None)
    looked_at = {e.queue_arn: described(e) for e in seen if e.queue_arn not in failed}
    return Scanned(
        measured=len(batch),
        findings=tuple(findings),
        failed=failed,
        looked_at=looked_at,
        queues=queues,
    )


def _detection_of(symptom: Symptom) -> Detection:
    assert symptom.detection is not None  # noqa: S101 - `scan` leaves the others out
    return symptom.detection

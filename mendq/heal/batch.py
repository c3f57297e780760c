"""Heal a batch: group failed calls by queue and symptom, assess each, then decide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any

from mendq.aws.errors import CaseStoreUnavailable, ComeAgain, EventUnreadable
from mendq.cases.finding import named_in
from mendq.cases.view import Reach
from mendq.catalogue import CATALOGUE, match
from mendq.catalogue.symptom import Symptom
from mendq.heal import guardrails
from mendq.heal.assess import Assessment, look
from mendq.heal.context import Group, Outcome, Run
from mendq.heal.guardrails import SECONDS_TO_WRITE
from mendq.model.failed_call import KNOWN_CODES, FailedCall, Unreadable, read
from mendq.model.limits import DRILL_TAG, counted_as
from mendq.model.plan import Refusal
from mendq.model.queue import arn_of
from mendq.notifications import notification
from mendq.probe.probe import ProbeSource
from mendq.probe.send import ProbeRecord


def notify_mass_symptom(symptom: Symptom, reach: Reach, run: Run) -> None:
    """Send one page for all queues; raises CaseStoreUnavailable or NotificationNotSent."""
    spread = reach.queue_arns
    text = notification.of_mass_symptom(
        symptom.name,
        symptom.sentence,
        symptom.runbook,
        queue_arns=spread,
        managed_queues=reach.managed_queues,
        now=run.now,
        account=run.home.account,
        region=run.home.region,
        advice=symptom.mass.words,
        next_command=symptom.mass.command(min(spread)),
    )
    names = " ".join(sorted(spread))
    news = f"mass_symptom:{sha256(names.encode()).hexdigest()[:12]}"
    run.notifier.send_about_account(symptom.name, news, text)


# Records that are no failed call of SQS are not faults of the batch.
NOT_OURS = frozenset({"not_failed", "not_sqs"})


@dataclass
class Intake:
    """A batch, read: groups with the messages behind each, and what was counted on the way.

    `probes`, by message id, are our own: they count for nothing else.
    """

    groups: dict[Group, list[str]] = field(default_factory=dict)
    unreadable: dict[str, Unreadable] = field(default_factory=dict)
    unknown_codes: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    probes: dict[str, FailedCall] = field(default_factory=dict)
    failed_calls: int = 0


def read_batch(
    bodies: Mapping[str, str], home: guardrails.Home, probe_source: ProbeSource
) -> Intake:
    """`bodies` by message id. An event delivered twice counts once; nothing is raised."""
    intake = Intake()
    seen: dict[tuple[str, Symptom], dict[str, FailedCall]] = defaultdict(dict)
    messages: dict[tuple[str, Symptom], list[str]] = defaultdict(list)
    for message_id, body in bodies.items():
        call = read(body)
        if isinstance(call, Unreadable):
            if call.reason not in NOT_OURS:
                intake.unreadable[message_id] = call
            continue
        if probe_source.made(call):
            intake.probes[message_id] = call
            continue
        intake.failed_calls += 1
        symptom = _symptom_of(call, home, intake)
        if symptom is not None and call.queue_arn is not None:
            key = (call.queue_arn, symptom)
            seen[key].setdefault(call.event_id, call)
            messages[key].append(message_id)
    intake.groups = {
        Group(queue_arn, symptom, tuple(calls.values())): messages[queue_arn, symptom]
        for (queue_arn, symptom), calls in seen.items()
    }
    return intake


def _symptom_of(call: FailedCall, home: guardrails.Home, intake: Intake) -> Symptom | None:
    if call.error_code not in KNOWN_CODES:
        intake.unknown_codes.append(call.raw_error_code)
    symptom = match(call)
    if symptom is None or symptom.plan is None:
        return None
    refusal = guardrails.first_refusal_of_call(call, home)
    if refusal:
        intake.refusals.append(refusal)
        return None
    return symptom


@dataclass
class Healed:
    """A batch, done: what became of each group, and the error behind each message that failed."""

    intake: Intake
    fixed: dict[Group, Outcome] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)

    def answer(self) -> dict[str, list[dict[str, str]]]:
        """What Lambda's poller takes: the messages that are to come again.

        https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
        """
        return {"batchItemFailures": [{"itemIdentifier": each} for each in self.errors]}


def heal_batch(bodies: Mapping[str, str], run: Run) -> Healed:
    """`bodies` by message id; never raises: every error is kept for the handler to raise."""
    healed = Healed(read_batch(bodies, run.home, run.probe_source))
    for message_id, unreadable in healed.intake.unreadable.items():
        healed.errors[message_id] = EventUnreadable(unreadable.reason)
    _hear(healed, run)
    return _fixed(healed, run)


def heal_findings(request: Mapping[str, Any], run: Run) -> Healed:
    """What a scan found, `{"found": [{"queue_arn", "symptom"}, ...]}`; never raises.

    What is none of ours is left out. A finding that fails is not tried again: while it is so, the
    next scan finds it.
    """
    by_name = {each.name: each for each in CATALOGUE if each.plan and each.detection}
    groups = (
        Group(queue_arn, by_name[name], is_found=True, shared=shared)
        for (queue_arn, name), shared in named_in(request).items()
        if name in by_name and arn_of(queue_arn) and run.is_here(queue_arn)
    )
    intake = Intake(groups={group: [f"{n}"] for n, group in enumerate(groups)})
    return _fixed(Healed(intake), run)


def _fixed(healed: Healed, run: Run) -> Healed:
    batch = _Batch(run, healed)
    batch.fix(list(healed.intake.groups))
    batch.fix([group for group, outcome in healed.fixed.items() if outcome.look_again])
    return healed


def _hear(healed: Healed, run: Run) -> None:
    """Note our own probe, and do nothing else about it."""
    record = ProbeRecord(run.clients.dynamodb, run.settings.case_table)
    for message_id, call in healed.intake.probes.items():
        try:
            record.note_seen(call, run.now)
        except CaseStoreUnavailable as error:
            healed.errors[message_id] = error


@dataclass(frozen=True)
class _Batch:
    run: Run
    healed: Healed

    def fix(self, groups: Iterable[Group]) -> None:
        """Half of the time is for looking, so that what was looked at is decided too."""
        alike: dict[tuple[Symptom, str], list[Assessment]] = defaultdict(list)
        reserve_seconds = self.run.remaining_seconds() / 2
        for group in groups:
            undecided = self._try(group, partial(_undecided, group, self.run), reserve_seconds)
            if undecided:
                word = counted_as(group.symptom.name, undecided.tags)
                alike[group.symptom, word].append(undecided)
        for (symptom, word), assessments in alike.items():
            self._decide(symptom, word, assessments)

    def _decide(self, symptom: Symptom, word: str, assessments: list[Assessment]) -> None:
        """All are noted before the first is decided, so that a mass symptom writes nothing."""
        try:
            spread = self._spread(symptom, word, assessments)
        except CaseStoreUnavailable as error:
            for each in assessments:
                self._fail(each.group, error)
            return
        for each in assessments:
            self._try(each.group, replace(each, spread=spread).decide)
        is_drill = any(DRILL_TAG in each.tags for each in assessments)
        if not is_drill and any(map(self._stopped_as_one_of_many, assessments)):
            self._tell_once(symptom, spread, assessments)

    def _spread(self, symptom: Symptom, word: str, assessments: list[Assessment]) -> frozenset[str]:
        """None for a fault in configuration: many have had it for long, and are told of slowly."""
        if symptom.is_of_configuration and all(e.group.is_found for e in assessments):
            return frozenset()
        queue_arns = [each.group.queue_arn for each in assessments]
        return self.run.case_store.spread_to(queue_arns, word, self.run.now)

    def _stopped_as_one_of_many(self, stopped: Assessment) -> bool:
        """True where people are to hear of it."""
        outcome = self.healed.fixed.get(stopped.group)
        refusal = outcome.refusal if outcome else None
        return bool(refusal and refusal.code == "mass_symptom" and refusal.heard_in(stopped.mode))

    def _tell_once(
        self, symptom: Symptom, spread: frozenset[str], assessments: list[Assessment]
    ) -> None:
        """Send the one page for all; where it cannot be sent, the events come again for it."""
        try:
            reach = self.run.reach(spread, (each.group.queue_arn for each in assessments))
            notify_mass_symptom(symptom, reach, self.run)
        except Exception as error:  # noqa: BLE001 - kept whole for the handler, which logs it
            for each in assessments:
                self._fail(each.group, error)

    def _try(
        self, group: Group, act: Callable[[], Assessment | Outcome], reserve_seconds: float = 0
    ) -> Assessment | None:
        """What is left to decide; None where the group is done, or has failed."""
        if self.run.remaining_seconds() < max(SECONDS_TO_WRITE, reserve_seconds):
            self._fail(group, ComeAgain("too little of the Lambda's time is left"))
            return None
        try:
            done = act()
        except Exception as error:  # noqa: BLE001 - kept whole for the handler, which raises it
            self._fail(group, error)
            return None
        if isinstance(done, Assessment):
            return done
        self.healed.fixed[group] = done
        if done.refusal and done.refusal.again:
            self._fail(group, ComeAgain(done.refusal.reason))
        return None

    def _fail(self, group: Group, error: Exception) -> None:
        message_ids = self.healed.intake.groups[group]
        self.healed.errors.update(dict.fromkeys(message_ids, error))


def _undecided(group: Group, run: Run) -> Assessment | Outcome:
    assessment = look(group, run)
    if isinstance(assessment, Outcome):
        return assessment
    refusal = assessment.refusal_so_far()
    return assessment.decline(refusal) if refusal else assessment

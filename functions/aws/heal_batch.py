"""Mends a batch: look at every group, note how far each symptom has spread, then decide.

Where a group comes from, failed calls or a sweep's finding, is no matter from there on.

A group that fails costs itself and comes again, and so does what there is no time left for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from functions.aws.errors import ComeAgain, EventUnreadable, LedgerUnavailable
from functions.aws.intake import Intake, read_batch
from functions.aws.look import look
from functions.aws.mending import Mending
from functions.aws.pulse_record import PulseRecord
from functions.aws.run import Group, Outcome, Run
from functions.aws.telling import tell_mass_symptom
from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Symptom
from functions.healing.guardrails import SECONDS_TO_WRITE
from functions.healing.managed import DRILL_TAG, counted_as
from functions.healing.queue_names import arn_of
from functions.healing.sweeping import named_in


@dataclass
class Healed:
    """A batch, done: what became of each group, and the error behind each message that failed."""

    intake: Intake
    mended: dict[Group, Outcome] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)

    def answer(self) -> dict[str, list[dict[str, str]]]:
        """What Lambda's poller takes: the messages that are to come again.

        https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
        """
        return {"batchItemFailures": [{"itemIdentifier": each} for each in self.errors]}


def heal_batch(bodies: Mapping[str, str], run: Run) -> Healed:
    """`bodies` by message id; never raises: every error is kept for the handler to raise."""
    healed = Healed(read_batch(bodies, run.home, run.pulse_source))
    for message_id, unreadable in healed.intake.unreadable.items():
        healed.errors[message_id] = EventUnreadable(unreadable.reason)
    _hear(healed, run)
    return _mended(healed, run)


def heal_findings(request: Mapping[str, Any], run: Run) -> Healed:
    """What a sweep found, `{"found": [{"queue_arn", "symptom"}, ...]}`; never raises.

    What is none of ours is left out. A finding that fails is not tried again: while it is so, the
    next sweep finds it.
    """
    by_name = {each.name: each for each in CATALOGUE if each.plan and each.detection}
    groups = (
        Group(queue_arn, by_name[name], is_found=True, shared=shared)
        for (queue_arn, name), shared in named_in(request).items()
        if name in by_name and arn_of(queue_arn) and run.is_here(queue_arn)
    )
    intake = Intake(groups={group: [f"{n}"] for n, group in enumerate(groups)})
    return _mended(Healed(intake), run)


def _mended(healed: Healed, run: Run) -> Healed:
    batch = _Batch(run, healed)
    batch.mend(list(healed.intake.groups))
    batch.mend([group for group, outcome in healed.mended.items() if outcome.look_again])
    return healed


def _hear(healed: Healed, run: Run) -> None:
    """Note our own pulse, and do nothing else about it."""
    record = PulseRecord(run.clients.dynamodb, run.settings.ledger_table)
    for message_id, call in healed.intake.pulses.items():
        try:
            record.note_seen(call, run.now)
        except LedgerUnavailable as error:
            healed.errors[message_id] = error


@dataclass(frozen=True)
class _Batch:
    run: Run
    healed: Healed

    def mend(self, groups: Iterable[Group]) -> None:
        """Half of the time is for looking, so that what was looked at is decided too."""
        alike: dict[tuple[Symptom, str], list[Mending]] = defaultdict(list)
        reserve_seconds = self.run.remaining_seconds() / 2
        for group in groups:
            undecided = self._try(group, partial(_undecided, group, self.run), reserve_seconds)
            if undecided:
                word = counted_as(group.symptom.name, undecided.tags)
                alike[group.symptom, word].append(undecided)
        for (symptom, word), mendings in alike.items():
            self._decide(symptom, word, mendings)

    def _decide(self, symptom: Symptom, word: str, mendings: list[Mending]) -> None:
        """All are noted before the first is decided, so that a mass symptom writes nothing."""
        try:
            spread = self._spread(symptom, word, mendings)
        except LedgerUnavailable as error:
            for each in mendings:
                self._fail(each.group, error)
            return
        for each in mendings:
            self._try(each.group, replace(each, spread=spread).decide)
        is_drill = any(DRILL_TAG in each.tags for each in mendings)
        if not is_drill and any(map(self._stopped_as_one_of_many, mendings)):
            self._tell_once(symptom, spread, mendings)

    def _spread(self, symptom: Symptom, word: str, mendings: list[Mending]) -> frozenset[str]:
        """Of a fault in configuration none: many have had it for long, and are told of slowly."""
        if symptom.is_of_configuration and all(e.group.is_found for e in mendings):
            return frozenset()
        queue_arns = [each.group.queue_arn for each in mendings]
        return self.run.ledger.spread_to(queue_arns, word, self.run.now)

    def _stopped_as_one_of_many(self, stopped: Mending) -> bool:
        """So that people are to hear of it."""
        outcome = self.healed.mended.get(stopped.group)
        refusal = outcome.refusal if outcome else None
        return bool(refusal and refusal.code == "mass_symptom" and refusal.heard_in(stopped.mode))

    def _tell_once(self, symptom: Symptom, spread: frozenset[str], told: list[Mending]) -> None:
        """The one page for all; where it cannot be told, the events come again to tell it."""
        try:
            reach = self.run.reach(spread, (each.group.queue_arn for each in told))
            tell_mass_symptom(symptom, reach, self.run)
        except Exception as error:  # noqa: BLE001 - kept whole for the handler, which logs it
            for each in told:
                self._fail(each.group, error)

    def _try(
        self, group: Group, act: Callable[[], Mending | Outcome], reserve_seconds: float = 0
    ) -> Mending | None:
        """None where the group is done, or has failed."""
        if self.run.remaining_seconds() < max(SECONDS_TO_WRITE, reserve_seconds):
            self._fail(group, ComeAgain("too little of the Lambda's time is left"))
            return None
        try:
            done = act()
        except Exception as error:  # noqa: BLE001 - kept whole for the handler, which raises it
            self._fail(group, error)
            return None
        if isinstance(done, Mending):
            return done
        self.healed.mended[group] = done
        if done.refusal and done.refusal.again:
            self._fail(group, ComeAgain(done.refusal.reason))
        return None

    def _fail(self, group: Group, error: Exception) -> None:
        message_ids = self.healed.intake.groups[group]
        self.healed.errors.update(dict.fromkeys(message_ids, error))


def _undecided(group: Group, run: Run) -> Mending | Outcome:
    mending = look(group, run)
    if isinstance(mending, Outcome):
        return mending
    refusal = mending.refusal_so_far()
    return mending.decline(refusal) if refusal else mending

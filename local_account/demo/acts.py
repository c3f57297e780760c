"""What becomes of cases: shown not to help, approved, rolled back, and seen to hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from functions.healing.limits import Timing
from functions.healing.signs import CLOUDTRAIL_LAG
from functions.healing.states import State
from functions.healing.steps import SetVisibilityTimeout
from local_account.demo.operator_shell import DONE, KEPT
from local_account.demo.stage import Stage
from local_account.demo.story import BadQueue

A_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class DoesNotHelp:
    """The calls of a mended queue go on failing: the follow-up notices, a person is paged."""

    bad: BadQueue

    def tell(self, stage: Stage) -> None:
        name, needed = self.bad.name, self.bad.symptom.evidence.distinct_events
        stage.say(name, "was changed, and its calls go on; do they fail as before?")
        stage.until(lambda: self._failed_again(stage) >= needed, f"{needed} more failed calls")
        stage.say(
            "clock",
            "the follow-up is fired now instead of at the next full minute",
            "yellow",
        )
        stage.follow_up_until([name], State.INEFFECTIVE, at=None)
        stage.until_in([name], State.ESCALATED)
        stage.end([name])

    def _failed_again(self, stage: Stage) -> int:
        """As its case counts: not what was received before, while a lease lasts."""
        seen = stage.seen(self.bad.name)
        if seen.changed_at is None:
            return 0
        return seen.failed_since(seen.changed_at + longer_lease(self.bad))


@dataclass(frozen=True)
class Approved:
    """A person approves a proposal; the calls that failed work from then on."""

    bad: BadQueue

    def tell(self, stage: Stage) -> None:
        name = self.bad.name
        stage.say(name, "waits for a person, who agrees")
        stage.mendq("approve", stage.case_id(name), "--yes", code=DONE)
        stage.until_in([name], State.APPLIED)
        stage.until(lambda: _works(stage, self.bad), f"calls of {name} that work")
        stage.end([name])


@dataclass(frozen=True)
class RolledBack:
    """Two queues are mended, a person sets another value on one, and all of it is taken back."""

    taken_back: BadQueue
    kept: BadQueue

    def tell(self, stage: Stage) -> None:
        names = (self.taken_back.name, self.kept.name)
        began = datetime.now(UTC)
        stage.say("act", f"two more queues are called: {self.taken_back.name}, {self.kept.name}")
        stage.begin(names)
        stage.until_in(names, State.APPLIED)
        stage.until(
            lambda: _works(stage, self.taken_back) and _works(stage, self.kept),
            f"calls of {' and '.join(names)} that work",
        )
        stage.end(names)
        self._a_person_sets(stage, self.kept.name, self.kept.a_person_sets)
        since = f"{began:%Y-%m-%dT%H:%M:%SZ}"
        stage.mendq("roll-back", "--since", since, "--yes", code=KEPT)
        stage.until_in([self.taken_back.name], State.ROLLED_BACK)

    @staticmethod
    def _a_person_sets(stage: Stage, name: str, values: Mapping[str, str]) -> None:
        said = ", ".join(f"{attribute} {value}" for attribute, value in values.items())
        stage.say(name, f"a person sets {said}")
        stage.account.client("sqs").set_queue_attributes(
            QueueUrl=stage.seen(name).queue_url, Attributes=dict(values)
        )
        stage.look()


@dataclass(frozen=True)
class SeenToHold:
    """Calls work and messages are deleted: verified after a while, watched, closed.

    `waits` is the queue whose calls still go on, `others` those whose have ended well before;
    `overruled` those where a person's value stands by now: contested, and told.
    """

    waits: BadQueue
    others: tuple[BadQueue, ...] = ()
    overruled: tuple[BadQueue, ...] = ()

    def tell(self, stage: Stage) -> None:
        name, names = self.waits.name, [each.name for each in (self.waits, *self.others)]
        stage.until(lambda: self._deletes_in_time(stage), f"deletes of {name} in time")
        stage.end([name])
        longest = max(longer_lease(each) for each in (self.waits, *self.others))
        at = datetime.now(UTC) + longest + CLOUDTRAIL_LAG + A_MINUTE
        put_forward(
            stage,
            longest + CLOUDTRAIL_LAG + A_MINUTE,
            f"the longer lease of {longest.total_seconds():.0f} s, {_minutes(CLOUDTRAIL_LAG)} for "
            "CloudTrail, a minute for the schedule",
        )
        stage.follow_up_until(names, State.VERIFIED, at)
        stage.follow_up_until([each.name for each in self.overruled], State.CONTESTED, at)
        stage.follow_up_until(names, State.WATCHING, at + A_MINUTE)
        watch = timedelta(hours=Timing().watch_hours)
        put_forward(stage, watch, "as long as a case is watched")
        stage.follow_up_until(names, State.CLOSED, at + 2 * A_MINUTE + watch)

    def _deletes_in_time(self, stage: Stage) -> bool:
        """After the last failed call, and after every lease has ended."""
        seen = stage.seen(self.waits.name)
        if seen.changed_at is None or seen.well_at is None:
            return False
        return seen.well_at > max(seen.changed_at + longer_lease(self.waits), *seen.failures_at)


def put_forward(stage: Stage, by: timedelta, why: str) -> None:
    """Say that the follow-up is fired for a time that lies ahead."""
    said = f"the follow-up's clock is put forward by {_minutes(by)} instead of waiting: {why}"
    stage.clock_put_forward.append(said)
    stage.say("clock", said, "yellow")


def _works(stage: Stage, bad: BadQueue) -> bool:
    return stage.seen(bad.name).calls_well >= bad.traffic.convincing


def longer_lease(bad: BadQueue) -> timedelta:
    """What messages in flight may keep; none where the lease is not what is changed."""
    steps = [each for each in bad.steps if isinstance(each, SetVisibilityTimeout)]
    return timedelta(seconds=max((max(each.before, each.after) for each in steps), default=0))


def _minutes(length: timedelta) -> str:
    minutes = length.total_seconds() / 60
    return f"{minutes / 60:.0f} h" if minutes >= 120 else f"{minutes:.0f} min"
